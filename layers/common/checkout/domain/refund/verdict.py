"""Decide from what both wallets show how much of a refund was sent.

The merchant's own wallet is the evidence. The customer's wallet is not trusted: it is believed only
against its own interest, that is, if it reports that money has arrived. Counted amounts are minor
units of the session's currency, rounded up, so that less is released.
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

# Clocks of the two servers may differ; a payment that began in time may take this long.
CLOCKS: Final = timedelta(seconds=30)
UNDER_WAY: Final = timedelta(minutes=10)
# The merchant's wallet alone decides a part if the customer's has not answered for this long.
BOTH_WITHIN: Final = timedelta(hours=1)
# The largest part of a debit that may be fees, if the two wallets have different assets.
FEE_AT_MOST: Final = 2  # as a divisor: a half


class Outcome(StrEnum):
    """The result of one look at both wallets."""

    WAIT = "wait"
    SUCCEEDED = "succeeded"
    FAILED = "failed"  # a part was sent
    NOTHING = "nothing"  # nothing was sent, and nothing will be


@dataclass(frozen=True, slots=True)
class Verdict:
    """`sent` is the part of the refund's amount that counts as sent, in minor units.

    `spent` is what the merchant's wallet has paid for it: the quote's debit for all. For a part it
    is that wallet's amount, or the part of the debit for the amount that the customer's wallet
    shows, if that is greater. Whether a fee was kept for a part is not known.
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

    `own` is the payment of the refund's quote at the merchant's wallet, None if there is certainly
    none. `theirs` is what the customer's incoming payment has received, in the units of the quote's
    `receive`; None if that could not be read.
    """
    assert refund.quote is not None
    asked, debit, least = refund.quote.receive.value, refund.quote.debit, _least(refund)
    if theirs is not None and theirs >= least:
        return Verdict(Outcome.SUCCEEDED, refund.amount, debit, confirmed=True)
    ended = refund.quote_ends_at
    if own is None:
        over = now >= ended + CLOCKS
    else:
        # A packet that was sent before the failure may still be fulfilled for 30 s.
        failed = refund.failed_at is not None and now >= refund.failed_at + FENCE
        over = (own.failed and failed) or now >= ended + UNDER_WAY
    if not over:
        return Verdict(Outcome.WAIT)
    if theirs is None and now < ended + BOTH_WITHIN:
        return Verdict(Outcome.WAIT)  # the greater of both amounts counts, and one is missing
    by_own = 0 if own is None else _share(refund.amount, own.sent.value, _whole(own, refund))
    by_theirs = _share(refund.amount, theirs or 0, asked)
    sent = max(by_own, by_theirs)
    if sent == 0:
        return Verdict(Outcome.NOTHING)
    if sent < refund.amount:
        by_price = _share(debit.value, theirs or 0, asked)
        said = own.sent.value if own is not None else 0
        # In one asset the own wallet's amount is exact. In two, `by_own` may count a fee as sent.
        exact = debit.same_asset(refund.quote.receive) and by_own == by_theirs
        spent = said if by_own > by_theirs or exact else max(said, by_price)
        return Verdict(Outcome.FAILED, sent, replace(debit, value=spent))
    return Verdict(Outcome.SUCCEEDED, sent, debit)


def next_look(refund: Refund, now: datetime) -> datetime | None:
    """Return the next time at which a look can decide what an earlier one could not, or None."""
    ended = refund.quote_ends_at
    times = [ended + each for each in (CLOCKS, UNDER_WAY, BOTH_WITHIN)]
    if refund.failed_at is not None:
        times.append(refund.failed_at + FENCE)
    return min((each for each in times if each > now), default=None)


def _least(refund: Refund) -> int:
    """Return the smallest value received that counts as all of the quote's `receive`."""
    quote, receiver = refund.quote, refund.incoming_payment
    assert quote is not None
    assert receiver is not None
    converted = may_be_converted(quote, receiver.id)
    return least_accepted(quote.receive.value, tolerance=1, converted=converted, ended=True)


def _whole(own: OutgoingPayment, refund: Refund) -> int:
    """Return the smallest value of `sent` that means that all was sent.

    `sent` excludes fees, and the debit includes them. In one asset all of `receive` must be sent,
    except for rounding. In two assets the fees are unknown, so up to half of the debit counts as a
    fee.
    """
    assert refund.quote is not None
    if own.sent.same_asset(refund.quote.receive):
        return _least(refund)
    return -(-own.debit.value // FEE_AT_MOST)


def _share(amount: int, part: int, whole: int) -> int:
    """Return the part of `amount`, rounded up, and at most all of it."""
    return min(amount, -(-amount * part // whole)) if part and whole else 0
