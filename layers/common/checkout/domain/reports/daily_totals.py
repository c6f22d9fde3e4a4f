"""Daily totals of a merchant's ended sessions: number, steps reached, money paid, failures.

Each session is included once, on the UTC day of its end, with its values at that time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date
from typing import Final, TypeVar

from checkout.domain.ground.providers import Provider, name_of
from checkout.domain.payment.events import Event
from checkout.domain.session.attempts import attempts_of
from checkout.domain.session.record import Session, Status

# Used in place of a provider that is in no list of providers. Customers choose the hosts of their
# wallets, so storing the names of these hosts could make the row of a day too large.
OTHER: Final = ""

K = TypeVar("K")
Offered = Callable[[str], Sequence[Provider]]  # the providers that a merchant's page offers


@dataclass(frozen=True, slots=True, kw_only=True)
class DayTotals:
    """How many of the sessions that ended on a day reached each step.

    Of the `ended` sessions, `wallet` were given a wallet, `priced` showed a price, `approved` were
    approved, and `paid` were paid. `amount` is the money received by the paid sessions, without any
    excess, in minor units. `hours` splits `amount` by the UTC hour in which the sessions ended.
    `unpaid` counts the sessions with a wallet that were not paid, by the reason and the provider's
    name (`unpaid_of`). A merchant with many sessions has several parts (ground/parts.py). The
    totals of each `part` are stored separately, and shown as one sum.
    """

    merchant: str
    currency: str
    day: date
    ended: int = 0
    wallet: int = 0
    priced: int = 0
    approved: int = 0
    paid: int = 0
    amount: int = 0
    part: int = 0
    hours: Mapping[int, int] = field(default_factory=dict)
    unpaid: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def plus(self, session: Session, offered: Sequence[Provider] = ()) -> DayTotals:
        """Return the totals plus this ended session, whose page offered these providers."""
        assert session.over_at is not None
        hour = session.over_at.astimezone(UTC).hour
        paid = session.status is Status.COMPLETED
        received = session.amount_received
        amount = session.amount_total if received is None or session.overpaid else received
        reason = unpaid_of(session, offered)
        return DayTotals(
            merchant=self.merchant,
            currency=self.currency,
            day=self.day,
            ended=self.ended + 1,
            wallet=self.wallet + (session.customer is not None or session.erased),
            priced=self.priced + (paid or session.happened(Event.PREPARED)),
            # The customer came back with a verified approval.
            approved=self.approved + (paid or session.happened(Event.APPROVAL_CLAIMED)),
            paid=self.paid + paid,
            amount=self.amount + (amount if paid else 0),
            part=self.part,
            hours=_more(self.hours, {hour: amount} if paid else {}),
            unpaid=_more(self.unpaid, {reason: 1} if reason else {}),
        )

    def with_all(self, other: DayTotals) -> DayTotals:
        """Return the sum of both totals, with the merchant and day of this one."""
        return DayTotals(
            merchant=self.merchant,
            currency=self.currency,
            day=self.day,
            ended=self.ended + other.ended,
            wallet=self.wallet + other.wallet,
            priced=self.priced + other.priced,
            approved=self.approved + other.approved,
            paid=self.paid + other.paid,
            amount=self.amount + other.amount,
            part=self.part,
            hours=_more(self.hours, other.hours),
            unpaid=_more(self.unpaid, other.unpaid),
        )


def unpaid_of(session: Session, offered: Sequence[Provider]) -> tuple[str, str] | None:
    """Return why an ended session with a wallet was not paid, and the name of its provider.

    The reason is the problem of the last attempt, or its outcome if it has no problem. Returns None
    for a paid session, and for a session without a wallet.
    """
    last = attempts_of(session)[-1:]
    if session.status is Status.COMPLETED or not last:
        return None
    attempt = last[0]
    reason = attempt.problem or attempt.outcome or attempt.reported
    if reason is None:
        return None
    wallet = attempt.wallet or f"https://{(attempt.typed or '').removeprefix('https://')}"
    return str(reason), name_of(wallet, offered) or OTHER


def tallied(sessions: Iterable[Session], offered: Offered) -> tuple[DayTotals, ...]:
    """Return the totals of these ended sessions, one per merchant, part, currency and day."""
    found: dict[tuple[str, int, str, date], DayTotals] = {}
    for session in sessions:
        assert session.over_at is not None
        day = session.over_at.astimezone(UTC).date()
        key = (session.merchant, session.part, session.currency, day)
        empty = DayTotals(
            merchant=session.merchant, currency=session.currency, day=day, part=session.part
        )
        offers = offered(session.merchant) if session.payment_attempts else ()
        found[key] = found.get(key, empty).plus(session, offers)
    return tuple(found.values())


def _more(counts: Mapping[K, int], more: Mapping[K, int]) -> dict[K, int]:
    """Return the sum of both counts for each key, including zeros."""
    total = Counter(counts)
    total.update(more)
    return dict(total)
