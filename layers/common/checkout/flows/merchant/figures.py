"""Read a merchant's daily sums, for the dashboard's totals, chart and funnel."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from checkout.domain.people import Actor
from checkout.domain.tally import DayTally
from checkout.ports.services import DashboardServices

DAYS_MAX: Final = 92


def days(services: DashboardServices, key: Actor, *, first: date, last: date) -> Sequence[DayTally]:
    """Return the days from `first` to `last`, at most the last DAYS_MAX of them.

    It takes one read for each shard of the merchant.
    """
    first = max(first, last - timedelta(days=DAYS_MAX - 1))
    wanted = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    currency = key.asset_code.lower()
    return services.tallies.days(key.lists, currency, wanted)
