"""A merchant, its API keys, and the webhook event of a session: plain records, no rules but the
event's bytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from checkout.domain.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Merchant:
    """Who gets paid. `private_key` is sealed; asset and servers are from the wallet address
    document at setup.
    """

    id: str
    name: str
    wallet_address: str
    key_id: str
    private_key: str = field(repr=False)
    asset_code: str
    asset_scale: int
    auth_server: str
    resource_server: str
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """`hash` is the SHA-256 of the key. The merchant's asset is copied here: creating a session
    needs one look-up.
    """

    id: str
    hash: str
    merchant: str
    name: str
    last_four: str
    asset_code: str
    asset_scale: int
    created_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEvent:
    """What the merchant is told. `body` is frozen when the session changes: the same bytes on every
    attempt.
    """

    id: str
    merchant: str
    session: str
    type: str
    body: str
    created_at: datetime


def private_key_place(merchant_id: str) -> tuple[str, str, str]:
    """Where a merchant's private key is at home in the vault: table, record, field."""
    return ("merchants", merchant_id, "private_key")


def event_body(session: Session) -> str:
    """Exactly the seven fields of spec.md "Events", in its order, as compact JSON."""
    body: dict[str, Any] = {
        "id": session.id,
        "status": session.status.value,
        "amount_total": session.amount_total,
        "currency": session.currency,
        "metadata": session.metadata,
        "outgoing_payment": session.outgoing_payment,
        "customer_wallet": session.customer.id if session.customer else None,
    }
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)
