"""A refund as the API and webhooks show it."""

from __future__ import annotations

from typing import Any, Final

from checkout.domain.public import amount, timestamp
from checkout.domain.refund import Refund

_PENDING: Final = "pending"


def status_of(refund: Refund) -> str:
    """Return the public status: pending, succeeded, failed or canceled."""
    return refund.status.value if refund.terminal else _PENDING


def pending_reason(refund: Refund) -> str | None:
    """Return why a refund is pending: it `needs_approval`, or is `processing`."""
    if refund.terminal:
        return None
    return "needs_approval" if refund.approval_waits else "processing"


def public_refund(refund: Refund, *, base_url: str) -> dict[str, Any]:
    """Return the refund's object in the API.

    It has no field for grants, tokens and interact addresses, so it cannot show them.
    """
    waits = refund.approval_waits
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
        "amount_mode": refund.mode.value,
        "amount_sent": refund.sent,
        "arrival_confirmed": bool(refund.confirmed) if refund.terminal else None,
        "cost": amount(refund.quote.debit if refund.quote else None),
        "customer_receives": amount(refund.quote.receive if refund.quote else refund.give),
        "customer_wallet": refund.wallet or None,
        "outgoing_payment": refund.outgoing_payment,
        "reason": refund.reason.value if refund.reason else None,
        "failure_reason": refund.problem.value if refund.problem else None,
        "metadata": dict(refund.metadata),
        "created_at": timestamp(refund.created_at),
        "ended_at": timestamp(refund.ended_at) if refund.ended_at else None,
    }
