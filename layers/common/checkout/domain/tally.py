"""Daily totals of a merchant's ended sessions: number, steps reached, money paid.

A session counts once, on the UTC day of its end, with its values at that time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date

from checkout.domain.session import Session, Status
from checkout.domain.session_events import Event


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTally:
    """A funnel of the sessions that ended on a day.

    Of `ended` sessions, `wallet` gave a wallet, `approved` approved, `paid` paid; `amount` is
    the sum of the paid ones, in minor units: what was asked, or less if less has arrived. The
    sessions of each `part` of a merchant are counted apart, and shown as one sum.
    """

    merchant: str
    currency: str
    day: date
    ended: int = 0
    wallet: int = 0
    approved: int = 0
    paid: int = 0
    amount: int = 0
    part: int = 0

    def plus(self, session: Session) -> DayTally:
        paid = session.status is Status.COMPLETED
        received = session.amount_received
        amount = session.amount_total if received is None else min(session.amount_total, received)
        return DayTally(
            merchant=self.merchant,
            currency=self.currency,
            day=self.day,
            ended=self.ended + 1,
            wallet=self.wallet + (session.customer is not None or session.erased),
            # The customer came back with a verified approval.
            approved=self.approved + (paid or session.happened(Event.APPROVAL_CLAIMED)),
            paid=self.paid + paid,
            amount=self.amount + (amount if paid else 0),
            part=self.part,
        )


def tallied(sessions: Iterable[Session]) -> tuple[DayTally, ...]:
    """Return the tallies of these ended sessions, one per merchant, part, currency and day."""
    found: dict[tuple[str, int, str, date], DayTally] = {}
    for session in sessions:
        assert session.over_at is not None
        day = session.over_at.astimezone(UTC).date()
        key = (session.merchant, session.part, session.currency, day)
        empty = DayTally(
            merchant=session.merchant, currency=session.currency, day=day, part=session.part
        )
        found[key] = found.get(key, empty).plus(session)
    return tuple(found.values())
