"""Seal and open a session's secrets: the pending grant and the access token.

Each is sealed under the session's id and the field's name: a ciphertext opens in no other place.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime

from checkout.open_payments.models import AccessToken, Continuation
from checkout.ports.runtime import Vault


@dataclass(frozen=True, slots=True)
class Grant:
    """The nonces that verify the callback, and the handle that continues the grant."""

    client_nonce: str = field(repr=False)
    finish_nonce: str = field(repr=False)
    continuation: Continuation


def seal_grant(vault: Vault, session_id: str, grant: Grant) -> str:
    plain = {
        "client_nonce": grant.client_nonce,
        "finish_nonce": grant.finish_nonce,
        "uri": grant.continuation.uri,
        "token": grant.continuation.token,
        "not_before": grant.continuation.not_before.isoformat(),
    }
    return vault.seal(json.dumps(plain), place=_place(session_id, "grant"))


def open_grant(vault: Vault, session_id: str, sealed: str) -> Grant:
    plain = json.loads(vault.open(sealed, place=_place(session_id, "grant")))
    return Grant(
        client_nonce=plain["client_nonce"],
        finish_nonce=plain["finish_nonce"],
        continuation=Continuation(
            uri=plain["uri"],
            token=plain["token"],
            not_before=datetime.fromisoformat(plain["not_before"]),
        ),
    )


def seal_token(vault: Vault, session_id: str, token: AccessToken) -> str:
    plain = {
        "value": token.value,
        "manage": token.manage,
        "expires_at": token.expires_at.isoformat() if token.expires_at else None,
    }
    return vault.seal(json.dumps(plain), place=_place(session_id, "token"))


def open_token(vault: Vault, session_id: str, sealed: str) -> AccessToken:
    plain = json.loads(vault.open(sealed, place=_place(session_id, "token")))
    expires_at = plain["expires_at"]
    return AccessToken(
        value=plain["value"],
        manage=plain["manage"],
        expires_at=datetime.fromisoformat(expires_at) if expires_at else None,
    )


def _place(session_id: str, name: str) -> tuple[str, str, str]:
    return ("checkout_sessions", session_id, name)
