"""Refunds as the API and webhooks show them.

The types are in `checkout/answers.py`. They have no field for grants, tokens and interact
addresses, so none of these can be shown. Amounts are in minor units of the currency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from checkout.domain.ground.json_values import amount, optional_time, timestamp
from checkout.domain.refund.record import Refund, RefundStatus

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
