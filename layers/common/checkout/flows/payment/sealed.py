"""Seal (encrypt) and open (decrypt) a record's secrets: the pending grant and the access token.

The encryption binds each secret to its table, its record's id and its field's name. A secret that
is copied to another place cannot be decrypted there.
"""

from __future__ import annotations

import hmac
import json
import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from checkout.domain.ground.json_values import compact
from checkout.domain.payment.in_flight import InFlight
from checkout.domain.payment.mandate import Mandate
from checkout.domain.record_kinds import subject_of
from checkout.domain.refund.record import Refund
from open_payments.models import AccessToken, Continuation

if TYPE_CHECKING:
    from checkout.adapters.vault import AesVault


class Proof(StrEnum):
    """The purpose of a proof. A proof made for one purpose is invalid for the other."""

    BROWSER = "browser"  # in a cookie: the approval was begun in this browser or moved to it
    DEVICE = "device"  # in a link that moves the approval to another device


@dataclass(frozen=True, slots=True)
class Grant:
    """The nonces that verify the callback, and the handle that continues the grant."""

    client_nonce: str = field(repr=False)
    finish_nonce: str = field(repr=False)
    continuation: Continuation

    def wait_seconds(self, now: datetime) -> int:
        """Return the seconds from `now` until the wallet allows the grant to be continued, or 0."""
        return max(0, math.ceil((self.continuation.not_before - now).total_seconds()))

    def proof(self, record_id: str, use: Proof) -> str:
        """Return a proof of 128 bits that only a holder of the grant's nonce can make.

        Each approval has its own nonce, and therefore its own proofs.
        """
        text = f"{use.value}\n{record_id}".encode()
        return hmac.digest(self.client_nonce.encode(), text, "sha256")[:16].hex()

    def proves(self, presented: str, record_id: str, use: Proof) -> bool:
        """Return whether `presented` is the grant's `proof`."""
        return hmac.compare_digest(presented.encode(), self.proof(record_id, use).encode())


def pending_grant(vault: AesVault, record: InFlight | Refund | Mandate) -> Grant | None:
    """Return the grant that waits for the payer's approval, or None."""
    return None if record.grant is None else open_grant(vault, record.id, record.grant)


def seal_grant(vault: AesVault, record_id: str, grant: Grant) -> str:
    return vault.seal(grant_text(grant), place=_place(record_id, "grant"))


def open_grant(vault: AesVault, record_id: str, sealed: str) -> Grant:
    return grant_from(vault.open(sealed, place=_place(record_id, "grant")))


def grant_text(grant: Grant) -> str:
    """Return a grant as the text to seal."""
    following = grant.continuation
    return compact(
        [
            grant.client_nonce,
            grant.finish_nonce,
            following.uri,
            following.token,
            math.ceil(following.not_before.timestamp() * 1000),
        ]
    )


def grant_from(plain: str) -> Grant:
    """Return the grant from a text that `grant_text` made."""
    client_nonce, finish_nonce, uri, token, not_before = json.loads(plain)
    return Grant(
        client_nonce=client_nonce,
        finish_nonce=finish_nonce,
        continuation=Continuation(
            uri=uri, token=token, not_before=datetime.fromtimestamp(not_before / 1000, UTC)
        ),
    )


def seal_token(vault: AesVault, record_id: str, token: AccessToken) -> str:
    expires_at = token.expires_at.isoformat() if token.expires_at else None
    plain = [token.value, token.manage, expires_at]
    return vault.seal(compact(plain), place=_place(record_id, "token"))


def open_token(vault: AesVault, record_id: str, sealed: str) -> AccessToken:
    value, manage, expires_at = json.loads(vault.open(sealed, place=_place(record_id, "token")))
    return AccessToken(
        value=value,
        manage=manage,
        expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
    )


def _place(record_id: str, name: str) -> tuple[str, str, str]:
    return (subject_of(record_id).table, record_id, name)
