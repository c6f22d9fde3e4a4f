"""The sums, the chart of payments per day and the funnel, ready to be drawn: shapes are in units of
their picture, and nothing is a float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from checkout.domain.merchant import ApiKey
from checkout.domain.money import from_minor_units
from checkout.domain.tally import DayTally
from dashboard.view import readable

HEIGHT: Final = 100
STEP: Final = 10  # of which the bar takes BAR
BAR: Final = 7


@dataclass(frozen=True, slots=True)
class Day:
    date: str
    ended: int
    wallet: int
    approved: int
    paid: int
    amount: str


@dataclass(frozen=True, slots=True)
class Bar:
    x: int
    height: int


@dataclass(frozen=True, slots=True)
class Stage:
    """`share` is in percent of the first stage."""

    name: str
    count: int
    share: int


@dataclass(frozen=True, slots=True)
class Figures:
    """`most` is the tallest bar's number of payments. Days are newest first, bars oldest first."""

    first: str
    last: str
    currency: str
    amount: str
    paid: int
    most: int
    width: int
    bars: tuple[Bar, ...]
    days: tuple[Day, ...]
    funnel: tuple[Stage, ...]


def figures(tallies: Sequence[DayTally], key: ApiKey) -> Figures:
    def money(value: int) -> str:
        scale = key.asset_scale
        return readable(from_minor_units(value, currency=key.asset_code, wallet_scale=scale))

    most = max(tally.paid for tally in tallies)
    paid = sum(tally.paid for tally in tallies)
    return Figures(
        first=tallies[0].day.isoformat(),
        last=tallies[-1].day.isoformat(),
        currency=key.asset_code,
        amount=money(sum(tally.amount for tally in tallies)),
        paid=paid,
        most=most,
        width=STEP * len(tallies),
        bars=tuple(
            # What is not nothing is seen.
            Bar(STEP * place, max(2, HEIGHT * tally.paid // most) if tally.paid else 0)
            for place, tally in enumerate(tallies)
        ),
        days=tuple(
            Day(
                date=tally.day.isoformat(),
                ended=tally.ended,
                wallet=tally.wallet,
                approved=tally.approved,
                paid=tally.paid,
                amount=money(tally.amount),
            )
            for tally in reversed(tallies)
        ),
        funnel=_funnel(
            ("Sessions that ended", sum(tally.ended for tally in tallies)),
            ("Wallet given", sum(tally.wallet for tally in tallies)),
            ("Approved at the wallet", sum(tally.approved for tally in tallies)),
            ("Paid", paid),
        ),
    )


def _funnel(*stages: tuple[str, int]) -> tuple[Stage, ...]:
    whole = stages[0][1]
    return tuple(Stage(name, count, 100 * count // whole if whole else 0) for name, count in stages)
