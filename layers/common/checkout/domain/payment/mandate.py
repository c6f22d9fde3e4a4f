"""The record of a mandate: a grant from the merchant's own wallet that outlives one payment.

The mandate is the refund budget: an amount a month, from which refunds are paid without an approval
of their own. Its transitions are in `mandate_transitions.py`. `token`, `grant` and `handle` are
sealed (ciphertext).
"""

from __future__ import annotations

import calendar
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.machine import Record
from open_payments.models import Amount, WalletAddress

# A provider deletes a token some time after the token's end, often without an announced time
# (Rafiki: after 30 days). So the token is renewed twice a day. These renewals also reveal, within a
# day, that the wallet has ended the grant.
ROTATED_EVERY: Final = timedelta(hours=12)
# A lease of this length outlives any process that may still be rotating (replacing) the token.
ROTATION_LEASE: Final = timedelta(seconds=45)
# If a rotation gets no answer, the sweep (the scheduled job) tries again, at growing intervals.
ROTATION_AGAIN: Final = timedelta(minutes=1)
ROTATION_AGAIN_MOST: Final = timedelta(hours=1)
# If a rotation has had no answer for this long, the merchant is notified.
SILENT_AFTER: Final = timedelta(days=1)

LAST_DAY: Final = 28  # the last day that every month has
# The first period begins this long before the request, so that it has also begun for a wallet whose
# clock is behind.
CLOCKS: Final = timedelta(hours=1)


class MandateStatus(StrEnum):
    """The states of a mandate. No state is final, because the owner can always approve it again."""

    PENDING = "pending"  # the mandate was never approved
    ACTIVE = "active"
    LOST = "lost"  # the answer with the new token did not arrive, so there is no valid token
    REVOKED = "revoked"  # the wallet has ended the grant, or deleted its token
    ENDED = "ended"  # the merchant has ended it here


class MandateEvent(StrEnum):
    """The events that can happen to a mandate."""

    BEGUN = "begun"
    REQUESTED = "requested"
    APPROVAL_ASKED = "approval_asked"
    APPROVAL_CLAIMED = "approval_claimed"
    APPROVAL_KEPT = "approval_kept"
    APPROVAL_LOST = "approval_lost"
    APPROVED = "approved"
    SPENT = "spent"
    GIVEN_BACK = "given_back"
    ROTATION_STARTED = "rotation_started"
    ROTATED = "rotated"
    NOT_ROTATED = "not_rotated"
    LOST = "lost"
    REVOKED = "revoked"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Margin:
    """How much more than its amount a refund may cost if the budget pays it automatically.

    This is `percent` of the amount plus `units` of the merchant's wallet. `units` are needed
    because the fees for a small amount can be a large percentage.
    """

    percent: int = 2
    units: int = 0

    def most(self, cost: int) -> int:
        """Return the most units that the budget pays automatically for a refund of `cost` units."""
        return cost + cost * self.percent // 100 + self.units


USUAL_MARGIN: Final = Margin()


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a grant: `limit` is the most that may be paid in each month from `start` on.

    The owner chooses the margin when approving the grant. The wallet does not see the margin.
    """

    payer: WalletAddress
    limit: Amount
    start: datetime
    identity: int = 0  # the merchant's identity that requested the grant (Merchant.as_of)
    margin: Margin = USUAL_MARGIN


@dataclass(frozen=True, kw_only=True)
class Mandate(Record):
    """The refund budget of a merchant; each merchant has one record.

    `terms` are the terms of the grant in use. `token` is used to pay with the grant. `handle`, the
    grant's continuation, is used to cancel the grant. `rotating` is the time since
    which the token may have been replaced. `rotation_until` is the end of the lease of the process
    that replaces the token. The sweep renews the token at `rotate_at`. `unanswered` is the number
    of rotations in a row that had no result.

    `spent` is our own sum of what was paid in the period that began at `period`, in units of the
    limit. The sum continues when another grant is approved, because `start` stays the same.

    `asked`, `grant`, `interact_url`, `approve_until` and `lease_until` belong to the approval that
    was requested most recently. `over_at` is when the mandate was lost, revoked or ended. `wanted`
    was written by release 0.1.0 for a request by API, and is not used.

    `later_json` is what a later release has stored with the mandate, unchanged.
    """

    status: MandateStatus
    created_at: datetime
    terms: Terms | None = None
    token: str | None = field(default=None, repr=False)
    handle: str | None = field(default=None, repr=False)
    rotating: datetime | None = None
    rotation_until: datetime | None = None
    rotate_at: datetime | None = None
    unanswered: int = 0
    period: datetime | None = None
    spent: int = 0
    wanted: Amount | None = None
    asked: Terms | None = None
    interact_url: str | None = field(default=None, repr=False)
    grant: str | None = field(default=None, repr=False)
    approve_until: datetime | None = None
    lease_until: datetime | None = None
    over_at: datetime | None = None
    later_json: str | None = None

    @property
    def terminal(self) -> bool:
        return False

    # The sweep reads these fields of every record. A mandate never has a payment in flight.
    payment_in_flight = False
    attention = None

    @property
    def active(self) -> bool:
        return self.status is MandateStatus.ACTIVE

    @property
    def gone(self) -> bool:
        """Whether the mandate ended without the merchant's doing, and needs a new approval."""
        return self.status in (MandateStatus.LOST, MandateStatus.REVOKED)

    def pays_for(self, merchant: Merchant) -> bool:
        """Whether the mandate is active, and for the merchant's present wallet and identity."""
        terms = self.terms
        if not self.active or terms is None:
            return False
        wallet, identity = merchant.wallet_address, merchant.identity
        return terms.payer.id == wallet and terms.identity == identity

    def silent(self, now: datetime) -> bool:
        """Whether the wallet has not answered a rotation for SILENT_AFTER."""
        return self.active and self.rotating is not None and now >= self.rotating + SILENT_AFTER

    def spent_in(self, period: datetime) -> int:
        """Return the amount spent in this period, in units of the limit."""
        return self.spent if self.period == period else 0

    def period_at(self, now: datetime) -> datetime:
        """Return the beginning of the period to which a payment at `now` belongs.

        Once a period has begun, a process whose clock is behind uses this period, too.
        """
        assert self.terms is not None
        found = period_of(self.terms.start, now)
        return found if self.period is None or found > self.period else self.period

    def left(self, now: datetime) -> int:
        """Return the amount that is left in this period, in units of the limit."""
        assert self.terms is not None
        return max(0, self.terms.limit.value - self.spent_in(self.period_at(now)))

    def renews_at(self, now: datetime) -> datetime:
        """Return when the next period begins."""
        return plus_months(self.period_at(now), 1)

    @property
    def needed_at(self) -> datetime | None:
        """Return when the sweep must look at the mandate; None if nothing is left to do."""
        return self.rotate_at if self.active else None

    def lease_live(self, now: datetime) -> bool:
        """Return whether a process is redeeming the approval right now."""
        return self.lease_until is not None and now < self.lease_until

    def rotation_live(self, now: datetime) -> bool:
        """Return whether a process may be renewing the token right now."""
        return self.rotation_until is not None and now < self.rotation_until


def first_period(now: datetime) -> datetime:
    """Return when the periods of a grant that is requested at `now` begin.

    The day is never after the 28th. Servers count each month from the end of the previous one, so a
    later day would move after a short month. The time is an hour early, so that the period has also
    begun for a wallet whose clock is behind. Subtracting the hour from the first of a month can
    give a day after the 28th of the previous month, so the day is limited a second time.
    """
    found = now.replace(day=min(now.day, LAST_DAY), microsecond=0) - CLOCKS
    return found.replace(day=min(found.day, LAST_DAY))


def plus_months(at: datetime, months: int) -> datetime:
    """Return the same day of a later month, or the last day of a month that is too short."""
    years, month = divmod(at.month - 1 + months, 12)
    year, month = at.year + years, month + 1
    return at.replace(year=year, month=month, day=min(at.day, calendar.monthrange(year, month)[1]))


def period_of(start: datetime, now: datetime) -> datetime:
    """Return when the month that contains `now` began, counted from `start`; at least `start`."""
    months = 12 * (now.year - start.year) + now.month - start.month
    if plus_months(start, months) > now:
        months -= 1
    return plus_months(start, max(months, 0))


def again_after(unanswered: int) -> timedelta:
    """Return the pause after `unanswered` rotations without an answer."""
    doubled: timedelta = ROTATION_AGAIN * 2 ** min(unanswered, 10)
    return min(doubled, ROTATION_AGAIN_MOST)
