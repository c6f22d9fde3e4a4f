"""The overview compares a period with the previous one: sums, steps, reasons, and a chart.

The chart is SVG, and a table repeats its numbers. Positions in the chart are percentages, so that
its text has the same size as other text of the page on any screen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from functools import partial
from itertools import pairwise
from typing import Annotated, Any, Final

from fastapi import Depends, Request, Response

from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.money import minor_unit_digits
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Actor, Right
from checkout.domain.reports.daily_totals import OTHER, DayTotals
from checkout.domain.reports.statement import less, statement, total
from checkout.flows import reports
from checkout.flows.reports import READ_FOR, refunds_of
from checkout.services import DashboardServices
from dashboard.dependencies import Page
from dashboard.rendering import page
from dashboard.routing import PageRouter
from dashboard.texts import REASON, REASON_UNKNOWN
from dashboard.view import readable, sum_of
from open_payments.models import Amount

router = PageRouter(section=("/overview", "Overview"))
HOURS: Final = 24
ROUNDS: Final = 3  # reads of refunds at most, so that the page is fast even with many refunds

Money = Callable[[int], str]
Figure = tuple[str, str, str]  # the name, the value, and the comparison with the period before


class Period(StrEnum):
    """A period of days. The overview compares it with the period before it, of the same length."""

    TODAY = "today"
    YESTERDAY = "yesterday"
    WEEK = "week"
    MONTH = "month"
    QUARTER = "quarter"

    @property
    def words(self) -> str:
        return _PERIODS[self][0]

    @property
    def before(self) -> str:
        """Return the text for the period before."""
        return _PERIODS[self][1]

    @property
    def length(self) -> int:
        """Return the number of days."""
        return _PERIODS[self][2]


_PERIODS: Final = {
    Period.TODAY: ("Today", "yesterday", 1),
    Period.YESTERDAY: ("Yesterday", "the day before", 1),
    Period.WEEK: ("7 days", "the 7 days before", 7),
    Period.MONTH: ("30 days", "the 30 days before", 30),
    Period.QUARTER: ("90 days", "the 90 days before", 90),
}


@dataclass(frozen=True, slots=True)
class FunnelStep:
    """A step of the conversion, on the way to a payment.

    `share` is the percentage of sessions that reached this step, as text. `before` is the same
    percentage for the period before.
    """

    name: str
    count: int
    percent: int
    share: str
    before: str


@dataclass(frozen=True, slots=True)
class Unpaid:
    """A reason why sessions with a wallet were not paid.

    `share` is the count as a percentage of the most frequent reason's count.
    """

    reason: str
    providers: str
    count: int
    share: int
    before: int


async def chosen(request: Request) -> Period:
    """Return the period in the query string. Raise ParameterInvalid."""
    typed = request.query_params.get("period", Period.TODAY)
    if typed not in tuple(Period):
        raise ParameterInvalid("There is no such period.", param="period")
    return Period(typed)


@router.page("/overview", Door(Right.READ, "sums"))
async def overview(request: Page, period: Annotated[Period, Depends(chosen)]) -> Response:
    """Show a period compared with the period before it."""
    services, key = request.services, request.key
    now = services.clock.now().astimezone(UTC)
    last = now.date() - timedelta(days=period is Period.YESTERDAY)
    first = last - timedelta(days=2 * period.length - 1)
    found = reports.daily_figures(services, key, first=first, last=last)
    before, these = found.days[: period.length], found.days[period.length :]
    money = partial(sum_of, key)
    return page(
        request.http,
        "overview.html",
        section="/overview",
        period=period,
        periods=tuple(Period),
        first=these[0].day.isoformat(),
        last=these[-1].day.isoformat(),
        currency=key.asset_code,
        figures=(
            *_figures(_sum(these), _sum(before), period, money),
            _refunded(services, key, these, money),
        ),
        chart=_chart(these, before, period, now, key),
        steps=_steps(_sum(these), _sum(before)),
        unpaid=_unpaid(_sum(these), _sum(before)),
        days=tuple(zip(these, before, strict=True))[::-1] if period.length > 1 else (),
        money=money,
        counted_to=now,
        looked_to=found.looked_to,
    )


def _sum(days: Sequence[DayTotals]) -> DayTotals:
    total = days[0]
    for each in days[1:]:
        total = total.with_all(each)
    return total


def _figures(
    now: DayTotals, before: DayTotals, period: Period, money: Money
) -> tuple[Figure, Figure, Figure]:
    average = f"; on average {money(_rounded(now.amount, now.paid))}" if now.paid else ""
    rates = [_share(each.paid, each.priced) for each in (now, before)]
    shown = [_percent(each.paid, each.priced) for each in (now, before)]
    points = "point" if abs(rates[0] - rates[1]) == 1 else "points"
    moved = f"{_direction(*rates)} {abs(rates[0] - rates[1])} {points}; "
    both = now.priced and before.priced and rates[0] != rates[1]
    return (
        ("Paid", money(now.amount), _beside(now.amount, before.amount, period, money)),
        ("Payments", f"{now.paid:,}", _beside(now.paid, before.paid, period) + average),
        ("Price seen, then paid", shown[0], f"{moved if both else ''}{period.before} {shown[1]}"),
    )


def _refunded(
    services: DashboardServices, key: Actor, these: Sequence[DayTotals], money: Money
) -> Figure:
    """Return the figure for refunds: their sum and cost, computed as in the statement.

    A refund belongs to the day on which it ended. The stored daily sums do not include refunds, so
    the refund records themselves are read. If there are too many to read, the text says so.
    """
    first, last = these[0].day, these[-1].day
    begin, until = datetime.combine(first, time(), UTC), services.clock.now() + READ_FOR
    found, whole = refunds_of(services, key, begin, until=until, rounds=ROUNDS)
    if not whole:
        return ("Refunded", "–", "too many refunds to add up here: see the statement")
    nothing = Amount(0, key.asset_code, key.asset_scale)
    days = statement((), found, nothing, first=first, last=last)
    number, back = sum(each.refunds for each in days), sum(each.refunded for each in days)
    cost = total((each.cost for each in days), nothing)
    rest = less(replace(cost, value=-cost.value), -sum(each.amount for each in these))
    left = f"{readable(rest)} is left" if rest.value >= 0 else "more than was paid"
    of_it = f"{number:,} refund{'s' if number != 1 else ''}, which cost {readable(cost)}"
    said = f"{of_it}; {left}" if number else "no refunds"
    return ("Refunded", money(back), said)


def _beside(now: int, before: int, period: Period, words: Money = "{:,}".format) -> str:
    """Return the text that compares a figure with the period before.

    An unfinished day is not compared with a whole one.
    """
    shown = f"{period.before} {words(before)}"
    if period is Period.TODAY or before == 0 or now == before:
        return shown
    change = _rounded(abs(now - before) * 100, before)
    return f"{_direction(now, before)} {change} %; {shown}"


def _direction(now: int, before: int) -> str:
    return "up" if now > before else "down"


def _chart(
    these: Sequence[DayTotals],
    before: Sequence[DayTotals],
    period: Period,
    now: datetime,
    key: Actor,
) -> dict[str, Any] | None:
    """Return the chart, by hour for one day, otherwise by day. Return None if nothing was paid."""
    if period.length > 1:
        return chart(
            [each.day.isoformat() for each in these],
            [f"{each.day.day} {each.day:%b}" for each in these],
            [each.amount for each in these],
            [each.amount for each in before],
            running=len(these) - 1,
            key=key,
        )
    hours = [f"{hour:02}:00" for hour in range(HOURS)]
    return chart(
        hours,
        hours,
        [these[0].hours.get(hour, 0) for hour in range(HOURS)],
        [before[0].hours.get(hour, 0) for hour in range(HOURS)],
        running=now.hour if period is Period.TODAY else None,
        key=key,
    )


def _share(count: int, of: int) -> int:
    """Return the rounded percentage: 0 only if `count` is 0, and 100 only if `count` is `of`."""
    if count in (0, of):
        return 100 * (count == of > 0)
    return min(max(_rounded(100 * count, of), 1), 99)


def _percent(count: int, of: int) -> str:
    return f"{_share(count, of)} %" if of else "–"


def _rounded(value: int, by: int) -> int:
    """Return the quotient of positive numbers, rounded to the nearest integer."""
    return (2 * value + by) // (2 * by)


def _steps(now: DayTotals, before: DayTotals) -> tuple[FunnelStep, ...]:
    return tuple(
        FunnelStep(
            name,
            getattr(now, attribute),
            _share(getattr(now, attribute), now.ended),
            _percent(getattr(now, attribute), now.ended),
            _percent(getattr(before, attribute), before.ended),
        )
        for name, attribute in (
            ("Sessions that ended", "ended"),
            ("Gave a wallet", "wallet"),
            ("Saw the price", "priced"),
            ("Approved", "approved"),
            ("Paid", "paid"),
        )
    )


def _unpaid(now: DayTotals, before: DayTotals) -> tuple[Unpaid, ...]:
    """Return the reasons for unpaid sessions, most frequent first."""
    counts, earlier = _by_reason(now), _by_reason(before)
    most = max(counts.values(), default=0)
    return tuple(
        Unpaid(
            REASON.get(reason, REASON_UNKNOWN.format(reason)),
            _providers(now, reason),
            count,
            _share(count, most),
            earlier[reason],
        )
        for reason, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    )


def _by_reason(tally: DayTotals) -> Counter[str]:
    found: Counter[str] = Counter()
    for (reason, _), count in tally.unpaid.items():
        found[reason] += count
    return found


def _providers(tally: DayTotals, reason: str) -> str:
    """Return the providers of sessions with this reason, with counts, most frequent first."""
    found = [(name, count) for (why, name), count in tally.unpaid.items() if why == reason]
    found.sort(key=lambda each: (each[0] == OTHER, -each[1], each[0]))
    return ", ".join(f"{name or 'other wallets'} {count}" for name, count in found)


LINES: Final = 4  # lines of the grid above zero
STEPS: Final = (1, 2, 5)  # the distance of two lines is one of these, times a power of ten
LABELS_MAX: Final = 8  # labels under the bars
PLACE: Final = 10  # units of width of a bar's slot; the bar fills the middle six


@dataclass(frozen=True, slots=True)
class Bar:
    """The bar of an hour or a day. x, width, middle, y and height are percentages of the chart.

    `label` is the text under the bar, or "". `running` means that the hour or day has not ended.
    """

    x: str
    width: str
    middle: str
    y: str
    height: str
    label: str
    title: str
    running: bool


def chart(
    names: Sequence[str],
    labels: Sequence[str],
    values: Sequence[int],
    before: Sequence[int],
    *,
    running: int | None,
    key: Actor,
) -> dict[str, Any] | None:
    """Return a chart that compares `values` with those `before`, in minor units; None if all are 0.

    `labels` are short forms of `names`. `running` is the number of the bar whose hour or day has
    not ended.

    In the result, `scale` has the values at the lines of the grid, from the top, and `grid` the
    positions of these lines. `line` has the pieces of the curve for the period before, as x1, y1,
    x2 and y2 in percentages. `top` is the highest bar, its value, and the SVG text anchor that
    keeps the value inside the chart. Each of the `rows` has a name, the sum, and the sum in the
    period before.
    """
    most = max(values)
    step = _step(max(most, *before))
    if step == 0:
        return None
    digits = minor_unit_digits(key.asset_code, wallet_scale=key.asset_scale)
    whole = step % 10**digits == 0
    highest = values.index(most)
    bars = tuple(
        Bar(
            x=_exact_percent(PLACE * place + 2, PLACE * len(values)),
            width=_exact_percent(6, PLACE * len(values)),
            middle=_middle(place, len(values)),
            y=_exact_percent(step * LINES - value, step * LINES),
            height=_exact_percent(value, step * LINES),
            label=labels[place] if _labelled(place, len(values)) else "",
            title=f"{names[place]}: {sum_of(key, value)}",
            running=place == running,
        )
        for place, value in enumerate(values)
    )
    return {
        "scale": tuple(_number(key, step * line, whole=whole) for line in range(LINES, -1, -1)),
        "grid": tuple(_exact_percent(line, LINES) for line in range(LINES + 1)),
        "bars": bars,
        "line": _line(before, step * LINES),
        "top": (bars[highest], _number(key, most), _anchor(highest, len(values))) if most else None,
        "most": f"{sum_of(key, most)} ({names[highest]})",
        "rows": tuple(
            (name, sum_of(key, value), sum_of(key, was))
            for name, value, was in zip(names, values, before, strict=True)
        ),
    }


def _line(values: Sequence[int], top: int) -> tuple[tuple[str, str, str, str], ...]:
    """Return the curve through the middles of the bars' slots, or nothing if all values are 0."""
    points = [
        (_middle(place, len(values)), _exact_percent(top - value, top))
        for place, value in enumerate(values)
    ]
    pieces = pairwise(points) if any(values) else ()
    return tuple((*one, *other) for one, other in pieces)


def _step(most: int) -> int:
    """Return the distance of two lines: the smallest round number of which LINES reach `most`."""
    power = 1 if most else 0
    while True:
        for step in STEPS:
            if step * power * LINES >= most:
                return step * power
        power *= 10


def _labelled(place: int, count: int) -> bool:
    """Return whether a bar has a label. The last bar has one, to show the chart's end."""
    return (count - 1 - place) % -(-count // LABELS_MAX) == 0


def _anchor(place: int, count: int) -> str:
    """Return the SVG anchor that keeps a bar's text, which may be wide, inside the chart."""
    if 6 * place < count:
        return "start"
    return "end" if 6 * place >= 5 * count else "middle"


def _middle(place: int, count: int) -> str:
    return _exact_percent(PLACE * place + PLACE // 2, PLACE * count)


def _exact_percent(value: int, of: int) -> str:
    """Return a percentage with two decimals, rounded down."""
    hundredths = 10_000 * value // of
    return f"{hundredths // 100}.{hundredths % 100:02}%"


def _number(key: Actor, value: int, *, whole: bool = False) -> str:
    """Return a sum without its currency, and without decimals if all sums are `whole`."""
    number = sum_of(key, value).partition("\N{NO-BREAK SPACE}")[0]
    return number.partition(".")[0] if whole else number
