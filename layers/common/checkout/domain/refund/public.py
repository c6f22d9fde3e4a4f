"""Refunds and the refund budget as the API and webhooks show them.

The types are in `checkout/answers.py`. They have no field for grants, tokens and interact
addresses, so none of these can be shown. Amounts are in minor units of the currency.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from checkout.domain.ground.json_values import amount, optional_time, timestamp
from checkout.domain.ground.money import minor_units
from checkout.domain.payment.mandate import Mandate
from checkout.domain.refund.record import Refund, RefundStatus
from open_payments.models import Amount

if TYPE_CHECKING:
    from checkout import answers

_PENDING: Final = "pending"


def status_of(refund: Refund) -> str:
    """Return the public status: pending, succeeded, failed or canceled.

    A note that the customer was paid back elsewhere is shown as succeeded.
    """
    if refund.status is RefundStatus.PAID_ELSEWHERE:
        return RefundStatus.SUCCEEDED.value
    return refund.status.value if refund.terminal else _PENDING


def pending_reason(refund: Refund) -> str | None:
    """Return why a refund is pending, `needs_approval` or `processing`; None for other refunds."""
    if refund.terminal:
        return None
    return "needs_approval" if refund.approval_waits else "processing"


def public_refund(refund: Refund, *, base_url: str) -> answers.Refund:
    """Return the refund's object."""
    waits, noted = refund.approval_waits, refund.elsewhere is not None
    price = refund.quote.debit if refund.quote else None
    page = f"{base_url}/dashboard/refunds/{refund.id}"
    return {
        "id": refund.id,
        "object": "refund",
        "session": refund.session,
        "status": status_of(refund),
        "pending_reason": pending_reason(refund),
        "approval_url": page if waits else None,
        "amount": refund.amount,
        "currency": refund.currency,
        "amount_mode": None if noted else refund.mode,
        "paid_elsewhere": refund.elsewhere,
        "amount_sent": refund.sent,
        "arrival_confirmed": bool(refund.confirmed) if refund.terminal and not noted else None,
        "cost": amount(refund.spent or price),
        "customer_receives": amount(refund.quote.receive if refund.quote else refund.give),
        "customer_wallet": refund.wallet or None,
        "outgoing_payment": refund.outgoing_payment,
        "reason": refund.reason,
        "failure_reason": refund.problem,
        "metadata": dict(refund.metadata),
        "created_at": timestamp(refund.created_at),
        "ended_at": optional_time(refund.ended_at),
    }


def public_budget(mandate: Mandate, *, base_url: str, now: datetime) -> answers.RefundBudget:
    """Return the budget's object at `now`.

    `amount` is what the budget allows each month. `left` is what remains in this month, rounded
    down. `spent` is `amount` less `left`, so because of the rounding it is never below what was
    sent.
    """
    terms = mandate.terms
    allowed = currency = spent = left = None
    if terms is not None:
        code, scale = terms.limit.asset_code, terms.limit.asset_scale
        allowed, currency = minor_units(terms.limit), code.lower()
        left = minor_units(Amount(mandate.left(now), code, scale))
        spent = allowed - left
    return {
        "id": mandate.id,
        "object": "refund_budget",
        "status": mandate.status,
        "amount": allowed,
        "currency": currency,
        "spent": spent,
        "left": left,
        "interval": "month",
        "renews_at": timestamp(mandate.renews_at(now)) if mandate.active else None,
        "requested_amount": minor_units(mandate.wanted) if mandate.wanted else None,
        "approval_url": f"{base_url}/dashboard/budget" if mandate.approval_waits else None,
        "created_at": timestamp(mandate.created_at),
        "ended_at": optional_time(mandate.over_at),
    }
