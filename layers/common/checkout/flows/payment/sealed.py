"""Seal and open a session's secrets: the pending grant and the access token.

Each is sealed under the session's id and the field's name: a ciphertext opens in no other place.
"""

from __future__ import annotations

import hmac
import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum

from checkout.domain.session import Session, Status
from checkout.domain.webhooks import compact
from checkout.open_payments.models import AccessToken, Continuation
from checkout.ports.runtime import Vault


class Proof(StrEnum):
    """Choose what a proof is for; one for the one use is worth nothing for the other."""

    BROWSER = "browser"  # in a cookie: the approval was begun here, or handed over to here
    DEVICE = "device"  # in a link that hands the approval over to another device


@dataclass(frozen=True, slots=True)
class Grant:
    """The nonces that verify the callback, and the handle that continues the grant."""

    client_nonce: str = field(repr=False)
    finish_nonce: str = field(repr=False)
    continuation: Continuation

    def proof(self, session_id: str, use: Proof) -> str:
        """Return 128 bits that nobody can make without the nonce. A new approval has others."""
        text = f"{use.value}\n{session_id}".encode()
        return hmac.digest(self.client_nonce.encode(), text, "sha256")[:16].hex()

    def proves(self, presented: str, session_id: str, use: Proof) -> bool:
        """Return whether `presented` is `proof`."""
        return hmac.compare_digest(presented.encode(), self.proof(session_id, use).encode())


def pending_grant(vault: Vault, session: Session) -> Grant | None:
    """Return the grant that waits for the customer's approval, or None."""
    if session.status is not Status.AWAITING_APPROVAL or session.grant is None:
        return None
    return open_grant(vault, session.id, session.grant)


def seal_grant(vault: Vault, session_id: str, grant: Grant) -> str:
    following = grant.continuation
    plain = [
        grant.client_nonce,
        grant.finish_nonce,
        following.uri,
        following.token,
        math.ceil(following.not_before.timestamp() * 1000),
    ]
    return vault.seal(compact(plain), place=_place(session_id, "grant"))


def open_grant(vault: Vault, session_id: str, sealed: str) -> Grant:
    client_nonce, finish_nonce, *following = json.loads(
        vault.open(sealed, place=_place(session_id, "grant"))
    )
    uri, token, not_before = following
    return Grant(
        client_nonce=client_nonce,
        finish_nonce=finish_nonce,
        continuation=Continuation(
            uri=uri, token=token, not_before=datetime.fromtimestamp(not_before / 1000, UTC)
        ),
    )


def seal_token(vault: Vault, session_id: str, token: AccessToken) -> str:
    expires_at = token.expires_at.isoformat() if token.expires_at else None
    plain = [token.value, token.manage, expires_at]
    return vault.seal(compact(plain), place=_place(session_id, "token"))


def open_token(vault: Vault, session_id: str, sealed: str) -> AccessToken:
    value, manage, expires_at = json.loads(vault.open(sealed, place=_place(session_id, "token")))
    return AccessToken(
        value=value,
        manage=manage,
        expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
    )


def _place(session_id: str, name: str) -> tuple[str, str, str]:
    return ("checkout_sessions", session_id, name)
