"""Read a merchant's daily sums up to this moment, for the dashboard's figures and charts.

Ended sessions are counted some minutes after their end. Those that are not counted yet are read
from the list and added, so the sums are those of the list at any moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

from checkout.domain.ground.providers import Provider
from checkout.domain.merchant.people import Actor
from checkout.domain.reports.daily_totals import DayTally, tallied
from checkout.domain.session.record import Session
from checkout.ports.services import DashboardServices
from checkout.ports.sessions import Positions

DAYS_MAX: Final = 92
NEWEST: Final = 100  # sessions among which those are that were not counted yet
TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Figures:
    """The sums of some days, in their order.

    Of what ended in the last minutes, sessions created before `looked_to` may be missing; None if
    nothing is.
    """

    days: tuple[DayTally, ...]
    looked_to: datetime | None


def days(services: DashboardServices, key: Actor, *, first: date, last: date) -> Figures:
    """Return the days from `first` to `last`, at most the last 2 * DAYS_MAX of them.

    Sessions that ended and were not counted yet are among them. It takes one read for each shard of
    the merchant and each 100 days, two of positions, and a page of the list.
    """
    first = max(first, last - timedelta(days=2 * DAYS_MAX - 1))
    wanted = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    currency = key.asset_code.lower()
    positions = services.tallies.positions()
    for _ in range(TRIES):
        counted = services.tallies.days(key.lists, currency, wanted)
        before, positions = positions, services.tallies.positions()
        if before.marks == positions.marks:
            break  # nothing was counted meanwhile, so the days belong to these positions
    ended, looked_to = _uncounted(services, key, positions)
    found = {each.day: each for each in counted}
    for more in tallied(ended, lambda _: _offered(services, key)):
        if more.day in found and more.currency == currency:
            found[more.day] = found[more.day].with_all(more)
    return Figures(tuple(found.values()), looked_to)


def _uncounted(
    services: DashboardServices, key: Actor, positions: Positions
) -> tuple[list[Session], datetime | None]:
    """Return the newest sessions that ended and were not counted, and where the reading ended."""
    now = services.clock.now()
    page = services.sessions.page(
        key.lists, limit=NEWEST, after=None, created_from=None, created_before=None
    )
    ended = [
        each
        for each in page.sessions
        if each.over_at is not None
        and each.over_at <= now
        and not services.tallies.counted(each, positions)
    ]
    more = page.next_key is not None and page.sessions
    return ended, page.sessions[-1].created_at if more else None


def _offered(services: DashboardServices, key: Actor) -> Sequence[Provider]:
    merchant = services.known_merchants.get(key.merchant)
    return (merchant.providers if merchant else ()) or services.providers
