"""The allowance of a grant: its limits, and the sums of its payments.

A record (`Spent`) has the sums of one period of the grant's interval. As in Rafiki, only the newest
record counts. A payment adds to the sums of the newest record if that record is of the payment's
period. Otherwise the sums begin at 0. When a payment of an older period fails, the record of that
period becomes the newest. So the sums of the present period begin at 0 again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sandbox.wallets import intervals
from sandbox.wallets.state import Grant, Money, OutgoingPayment, Quote, Spent


class Unreadable(Exception):
    """The grant was issued with a malformed interval, so no payment is possible."""


def since(grant: Grant, at: datetime) -> datetime | None:
    """Return the start of the period that `at` is in, or None for a grant without an interval.

    Raises LookupError if `at` is in no period, Unreadable for a malformed interval.
    """
    text = _interval(grant)
    if not text:
        return None
    try:
        found = intervals.period(text, at)
    except (ValueError, OverflowError):
        raise Unreadable from None
    if found is None:
        raise LookupError(f"{at} is in no period of {text}")
    return found[0]


def spent(grant: Grant, at: datetime) -> tuple[Money | None, Money | None]:
    """Return the debit and receive sums of the period that `at` is in, (None, None) if unknown."""
    try:
        start = since(grant, at)
    except (LookupError, Unreadable):
        return None, None
    if not grant.spent:
        return None, None
    newest = grant.spent[-1]
    if newest.since != start:
        return newest.debit.with_value(0), newest.receive.with_value(0)
    return newest.debit, newest.receive


def fits(grant: Grant, quote: Quote, at: datetime) -> bool:
    """Return whether the quote's payment is within the grant's limits. Raises Unreadable."""
    try:
        since(grant, at)
    except LookupError:
        return False
    limits = _limits(grant, quote.wallet)
    if limits.get("receiver", quote.receiver) != quote.receiver:
        return False
    before = spent(grant, at)
    for name, amount, gone in (
        ("debitAmount", quote.debit, before[0]),
        ("receiveAmount", quote.receive, before[1]),
    ):
        if name in limits:
            limit = Money.of_json(limits[name])
            total = amount.value + (gone.value if gone else 0)
            if not limit.same_asset(amount) or total > limit.value:
                return False
    return True


def hold(grant: Grant, payment: OutgoingPayment) -> None:
    """Add a new payment to the sums of its period."""
    newest = grant.spent[-1] if grant.spent else None
    before = newest if newest is not None and newest.since == payment.since else None
    debit = payment.debit.value + (before.debit.value if before else 0)
    receive = payment.receive.value + (before.receive.value if before else 0)
    _record(grant, payment, debit, receive)


def give_back(grant: Grant, payment: OutgoingPayment) -> None:
    """Subtract a failed payment from the sums of its period, even if it has sent a part.

    Do nothing if the period has no record, as in a state that was saved before records existed.
    """
    for held in grant.spent:
        if held.since == payment.since:
            debit = max(0, held.debit.value - payment.debit.value)
            _record(grant, payment, debit, max(0, held.receive.value - payment.receive.value))
            return


def _record(grant: Grant, payment: OutgoingPayment, debit: int, receive: int) -> None:
    """Store a record with these sums as the newest. It replaces an older record of its period."""
    record = Spent(
        payment.since, payment.debit.with_value(debit), payment.receive.with_value(receive)
    )
    grant.spent = [*(each for each in grant.spent if each.since != payment.since), record]


def _interval(grant: Grant) -> str:
    kinds = (item for item in grant.access if item["type"] == "outgoing-payment")
    return next((str(item.get("limits", {}).get("interval", "")) for item in kinds), "")


def _limits(grant: Grant, wallet: str) -> dict[str, Any]:
    return next(
        item.get("limits", {})
        for item in grant.access
        if item["type"] == "outgoing-payment" and item["identifier"] == wallet
    )
