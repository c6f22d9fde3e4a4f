"""Refunds in the shape that Stripe's client libraries read.

Amounts are in Stripe's units; times are Unix seconds.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from checkout.domain.ground.grammar import REFUND_ID
from checkout.domain.ground.money import minor_units
from checkout.domain.refund.public import pending_reason, public_refund, status_of
from checkout.domain.refund.record import Refund, RefundStatus
from checkout.domain.stripe.objects import (
    balance_transaction,
    charge_id,
    envelope,
    payment_intent_id,
    payment_method_id,
    to_stripe,
    unix,
)

_TRANSACTION: Final = "txn_re"  # unlike a charge's "txn_", so that each id belongs to one record


def refund_object(refund: Refund, *, base_url: str) -> dict[str, Any]:
    """Return the `refund`. Facts that Stripe has no field for are in `open_payments`.

    As in Stripe, `failure_reason` and `pending_reason` are left out if there is no such reason.
    """
    failed = refund.status is RefundStatus.FAILED
    waits = pending_reason(refund)
    ours = public_refund(refund, base_url=base_url)
    return {
        "id": refund.id,
        "object": "refund",
        "amount": to_stripe(refund.amount, refund.currency),
        "balance_transaction": transaction_id(refund),
        "charge": charge_id(refund.session),
        "created": unix(refund.created_at),
        "currency": refund.currency,
        "customer": None,
        "customer_account": None,
        **({"failure_reason": "unknown"} if failed else {}),
        "metadata": {name: str(value) for name, value in refund.metadata.items()},
        "payment_intent": payment_intent_id(refund.session),
        "payment_method": payment_method_id(refund.session),
        **({"pending_reason": "processing"} if waits else {}),
        "reason": refund.reason.value if refund.reason else None,
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": status_of(refund),
        "transfer_reversal": None,
        "open_payments": {
            name: ours[name]
            for name in (
                "session",
                "pending_reason",
                "approval_url",
                "amount_mode",
                "paid_elsewhere",
                "amount_sent",
                "arrival_confirmed",
                "cost",
                "customer_receives",
                "customer_wallet",
                "outgoing_payment",
                "failure_reason",
            )
        },
    }


def transaction_id(refund: Refund) -> str | None:
    """Return the id of the refund's balance transaction, or None until the wallet has paid."""
    if not refund.terminal or refund.spent is None:
        return None
    return f"{_TRANSACTION}{refund.id.removeprefix('re_')}"


def refund_of(named: str) -> str | None:
    """Return the id of the refund with this balance transaction, or None for any other id."""
    refund_id = f"re_{named.removeprefix(_TRANSACTION)}"
    right = named.startswith(_TRANSACTION) and REFUND_ID.fullmatch(refund_id)
    return refund_id if right else None


def refund_transaction(refund: Refund) -> dict[str, Any] | None:
    """Return the wallet's payment of the refund as `balance_transaction`; None if not paid."""
    named, paid = transaction_id(refund), refund.spent
    if named is None or paid is None:
        return None
    currency = paid.asset_code.lower()
    cost = to_stripe(minor_units(paid), currency)
    at = refund.ended_at or refund.updated_at
    return balance_transaction(named, -cost, currency, at, source=refund.id, kind="refund")


def refund_event_json(
    refund: Refund, *, event_id: str, event_type: str, base_url: str, at: datetime
) -> str:
    """Return the `event` about a refund, as compact JSON."""
    shown = refund_object(refund, base_url=base_url)
    return envelope(shown, event_id=event_id, event_type=event_type, base_url=base_url, at=at)
