"""Read what a statement is made of: the sessions and refunds that may belong to its days."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from checkout.domain.merchant.people import Actor
from checkout.domain.refund.record import APPROVAL_AWAITED, Refund
from checkout.domain.reports.statement import StatementDay, statement
from checkout.domain.session.record import Session
from checkout.open_payments.models import Amount
from checkout.ports.services import DashboardServices

DAYS_MAX: Final = 31
PAGE: Final = 100
ROUNDS: Final = 150  # pages that are read for a statement, if the time suffices
READ_FOR: Final = timedelta(seconds=5)  # then what was read is shown, and said not to be all
# A session may be decided long after it was created: a part is accepted, money comes late.
DECIDED_WITHIN: Final = timedelta(days=31)
# The time from a refund's request to its end: its approval is awaited, then it is sent.
REFUNDED_WITHIN: Final = APPROVAL_AWAITED + timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Statement:
    """The days of a statement; not `whole` if there was too much to read."""

    days: tuple[StatementDay, ...]
    whole: bool


def read(services: DashboardServices, key: Actor, *, first: date, last: date) -> Statement:
    """Return the statement of these days, at most the last DAYS_MAX of them."""
    first = max(first, last - timedelta(days=DAYS_MAX - 1))
    begin = datetime.combine(first, time(), UTC)
    end = datetime.combine(last + timedelta(days=1), time(), UTC)
    until = services.clock.now() + READ_FOR
    refunds, all_refunds = refunds_of(services, key, begin, until=until)
    sessions, all_sessions = _sessions(services, key, begin - DECIDED_WITHIN, end, until)
    nothing = Amount(0, key.asset_code, key.asset_scale)
    days = statement(sessions, refunds, nothing, first=first, last=last)
    return Statement(days, all_sessions and all_refunds)


def _sessions(
    services: DashboardServices, key: Actor, begin: datetime, end: datetime, until: datetime
) -> tuple[list[Session], bool]:
    """Return the sessions created in this time, and whether these are all. Stop at `until`."""
    found: list[Session] = []
    after = None
    for _ in range(ROUNDS):
        page = services.sessions.page(
            key.lists, limit=PAGE, after=after, created_from=begin, created_before=end
        )
        found += page.sessions
        after = page.next_key
        if after is None or services.clock.now() >= until:
            break
    return found, after is None


def refunds_of(
    services: DashboardServices,
    key: Actor,
    begin: datetime,
    *,
    until: datetime,
    rounds: int = ROUNDS,
) -> tuple[list[Refund], bool]:
    """Return the refunds that may have ended since `begin`, and whether these are all.

    Stop at `until`, or after `rounds` reads.
    """
    begin -= REFUNDED_WITHIN
    found: list[Refund] = []
    after = None
    for _ in range(rounds):
        page = services.refunds.page(key.lists, limit=PAGE, after=after)
        found += page.refunds
        after = page.next_key
        if after is None or (page.refunds and page.refunds[-1].created_at < begin):
            return found, True
        if services.clock.now() >= until:
            break
    return found, False
