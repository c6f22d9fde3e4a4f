"""Decide how much of a refund was sent, from what both wallets show.

The merchant's own wallet is the evidence. The customer's wallet is not trusted: its report is used
only if the report shows that money has arrived, because that is against the customer's interest.
Sent amounts are in minor units of the session's currency. They are rounded up, so that the session
never makes too much available for other refunds.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from checkout.domain.ground.money import least_accepted, may_be_converted
from checkout.domain.payment.in_flight import FENCE
from checkout.domain.refund.record import Refund
from open_payments.models import Amount, OutgoingPayment

# The clocks of the two servers may differ by the time CLOCKS. A payment that began in time may take
# as long as UNDER_WAY.
CLOCKS: Final = timedelta(seconds=30)
UNDER_WAY: Final = timedelta(minutes=10)
# If the customer's wallet gives no answer until this time after the quote's end, the merchant's
# wallet alone decides.
BOTH_WITHIN: Final = timedelta(hours=1)
# If the two wallets have different assets, up to this share of a debit may be fees.
FEE_AT_MOST: Final = 2  # a divisor, so up to a half


class Outcome(StrEnum):
    """The result of one look at both wallets."""

    WAIT = "wait"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # a part was sent
    NOTHING = "nothing"  # nothing was sent, and nothing will be


@dataclass(frozen=True, slots=True)
class Verdict:
    """`sent` is the part of the refund's amount that is treated as sent, in minor units.

    `spent` is what the merchant's wallet has paid for `sent`. If all was sent, `spent` is the
    quote's debit. If a part was sent, it is not known whether the merchant's wallet kept a fee.
    `spent` is then the greater of two amounts: the amount that the merchant's wallet shows, and the
    share of the debit for what the customer's wallet has received.
    """

    outcome: Outcome
    sent: int = 0
    spent: Amount | None = None
    confirmed: bool = False


def decide(
    refund: Refund,
    own: OutgoingPayment | None,
    theirs: int | None,
    *,
    now: datetime,
) -> Verdict:
    """Return the verdict of one look that began at `now`.

    `own` is the payment of the refund's quote at the merchant's wallet; None if there is certainly
    no payment. `theirs` is what the customer's incoming payment has received, in the units of the
    quote's `receive`; None if the incoming payment could not be read.
    """
    assert refund.quote is not None
    asked, debit, least = refund.quote.receive.value, refund.quote.debit, _least(refund)
    if theirs is not None and theirs >= least:
        return Verdict(Outcome.SUCCEEDED, refund.amount, debit, confirmed=True)
    ended = refund.quote_ends_at
    if own is None:
        over = now >= ended + CLOCKS
    else:
        # For 30 s after the failure, money that was already on its way may still arrive.
        failed = refund.failed_at is not None and now >= refund.failed_at + FENCE
        over = (own.failed and failed) or now >= ended + UNDER_WAY
    if not over:
        return Verdict(Outcome.WAIT)
    if theirs is None and now < ended + BOTH_WITHIN:
        return Verdict(Outcome.WAIT)  # the greater of two amounts decides, and one is missing
    by_own = 0 if own is None else _share(refund.amount, own.sent.value, _whole(own, refund))
    by_theirs = _share(refund.amount, theirs or 0, asked)
    sent = max(by_own, by_theirs)
    if sent == 0:
        return Verdict(Outcome.NOTHING)
    if sent < refund.amount:
        by_price = _share(debit.value, theirs or 0, asked)
        said = own.sent.value if own is not None else 0
        # If both wallets have the same asset, the amount of the merchant's wallet is exact.
        # Otherwise `by_own` may include a fee.
        exact = debit.same_asset(refund.quote.receive) and by_own == by_theirs
        spent = said if by_own > by_theirs or exact else max(said, by_price)
        return Verdict(Outcome.FAILED, sent, replace(debit, value=spent))
    return Verdict(Outcome.SUCCEEDED, sent, debit)


def next_look(refund: Refund, now: datetime) -> datetime | None:
    """Return the next time at which a look at the wallets can give a new verdict, or None."""
    ended = refund.quote_ends_at
    times = [ended + each for each in (CLOCKS, UNDER_WAY, BOTH_WITHIN)]
    if refund.failed_at is not None:
        times.append(refund.failed_at + FENCE)
    return min((each for each in times if each > now), default=None)


def _least(refund: Refund) -> int:
    """Return the smallest received value that is accepted as all of the quote's `receive`."""
    quote, receiver = refund.quote, refund.incoming_payment
    assert quote is not None
    assert receiver is not None
    converted = may_be_converted(quote, receiver.id)
    return least_accepted(quote.receive.value, tolerance=1, converted=converted, ended=True)


def _whole(own: OutgoingPayment, refund: Refund) -> int:
    """Return the smallest value of `sent` that means that all was sent.

    `sent` excludes fees, and the debit includes them. If both wallets have the same asset, all of
    `receive` must be sent, except for rounding. Otherwise the fees are unknown, so up to half of
    the debit may be a fee.
    """
    assert refund.quote is not None
    if own.sent.same_asset(refund.quote.receive):
        return _least(refund)
    return -(-own.debit.value // FEE_AT_MOST)


def _share(amount: int, part: int, whole: int) -> int:
    """Return the share `part` / `whole` of `amount`, rounded up, and at most `amount`."""
    return min(amount, -(-amount * part // whole)) if part and whole else 0
