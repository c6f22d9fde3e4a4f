"""The refund budget as webhooks and the API show it. Amounts are in minor units of its currency."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from checkout.domain.ground.json_values import timestamp
from checkout.domain.ground.money import minor_units
from checkout.domain.payment.mandate import Mandate
from checkout.open_payments.models import Amount


def public_budget(mandate: Mandate, *, base_url: str, now: datetime) -> dict[str, Any]:
    """Return the budget's object at `now`. It has no field for grants and tokens.

    `amount` is what it allows a month, `left` what is left of this month, rounded down, and `spent`
    the rest, which is at least what was sent.
    """
    terms = mandate.terms
    money: dict[str, Any] = dict.fromkeys(("amount", "currency", "spent", "left"))
    if terms is not None:
        code, scale = terms.limit.asset_code, terms.limit.asset_scale
        amount, left = minor_units(terms.limit), minor_units(Amount(mandate.left(now), code, scale))
        money = {"amount": amount, "currency": code.lower(), "spent": amount - left, "left": left}
    return {
        "id": mandate.id,
        "object": "refund_budget",
        "status": mandate.status.value,
        **money,
        "interval": "month",
        "renews_at": timestamp(mandate.renews_at(now)) if mandate.active else None,
        "requested_amount": minor_units(mandate.wanted) if mandate.wanted else None,
        "approval_url": f"{base_url}/dashboard/budget" if mandate.approval_waits else None,
        "created_at": timestamp(mandate.created_at),
        "ended_at": timestamp(mandate.over_at) if mandate.over_at else None,
    }
