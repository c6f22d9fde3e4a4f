"""Draw a chart of sums beside those of the period before, as SVG with the numbers in a table.

Its places are percentages, so that its text has the page's size on any screen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from checkout.domain.ground.money import minor_unit_digits
from checkout.domain.merchant.people import Actor
from dashboard.view import sum_of

LINES: Final = 4  # of the grid, above zero
STEPS: Final = (1, 2, 5)  # of the axis, times a power of ten
LABELS_MAX: Final = 8  # under the bars
PLACE: Final = 10  # units of a bar's place, of which it fills the middle six


@dataclass(frozen=True, slots=True)
class Bar:
    """An hour or a day. x, width, middle, y and height are percentages of the chart.

    `label` is under the bar, or "". A `running` one has not ended.
    """

    x: str
    width: str
    middle: str
    y: str
    height: str
    label: str
    title: str
    running: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of the line of the period before, in percentages."""

    x1: str
    y1: str
    x2: str
    y2: str


@dataclass(frozen=True, slots=True)
class Top:
    """The value that is written: that of the highest bar. `anchor` keeps it inside the chart."""

    bar: Bar
    value: str
    anchor: str


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table beneath the chart."""

    name: str
    amount: str
    before: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, and the same in rows.

    `scale` are the values of the grid's lines from the top, `grid` their places.
    """

    scale: tuple[str, ...]
    grid: tuple[str, ...]
    bars: tuple[Bar, ...]
    line: tuple[Line, ...]
    top: Top | None
    most: str
    rows: tuple[Row, ...]


def chart(
    names: Sequence[str],
    labels: Sequence[str],
    values: Sequence[int],
    before: Sequence[int],
    *,
    running: int | None,
    key: Actor,
) -> Chart | None:
    """Return the chart of `values`, in minor units, beside those `before`; None if all are zero.

    `labels` are short `names`. The bar `running` has not ended.
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
            x=_percent(PLACE * place + 2, PLACE * len(values)),
            width=_percent(6, PLACE * len(values)),
            middle=_middle(place, len(values)),
            y=_percent(step * LINES - value, step * LINES),
            height=_percent(value, step * LINES),
            label=labels[place] if _labelled(place, len(values)) else "",
            title=f"{names[place]}: {sum_of(key, value)}",
            running=place == running,
        )
        for place, value in enumerate(values)
    )
    return Chart(
        scale=tuple(_number(key, step * line, whole=whole) for line in range(LINES, -1, -1)),
        grid=tuple(_percent(line, LINES) for line in range(LINES + 1)),
        bars=bars,
        line=_line(before, step * LINES),
        top=Top(bars[highest], _number(key, most), _anchor(highest, len(values))) if most else None,
        most=f"{sum_of(key, most)} ({names[highest]})",
        rows=tuple(
            Row(name, sum_of(key, value), sum_of(key, was))
            for name, value, was in zip(names, values, before, strict=True)
        ),
    )


def _line(values: Sequence[int], top: int) -> tuple[Line, ...]:
    """Return a line through the middles of the bars' places; none if all values are zero."""
    points = [
        (_middle(place, len(values)), _percent(top - value, top))
        for place, value in enumerate(values)
    ]
    pieces = pairwise(points) if any(values) else ()
    return tuple(Line(*one, *other) for one, other in pieces)


def _step(most: int) -> int:
    """Return the smallest round number of which LINES reach `most`."""
    power = 1 if most else 0
    while True:
        for step in STEPS:
            if step * power * LINES >= most:
                return step * power
        power *= 10


def _labelled(place: int, count: int) -> bool:
    """Return whether a bar has a label. The last one has, which says where the chart ends."""
    return (count - 1 - place) % -(-count // LABELS_MAX) == 0


def _anchor(place: int, count: int) -> str:
    """Return on which side of its bar a value is written: on phones it is wider than the bars."""
    if 6 * place < count:
        return "start"
    return "end" if 6 * place >= 5 * count else "middle"


def _middle(place: int, count: int) -> str:
    return _percent(PLACE * place + PLACE // 2, PLACE * count)


def _percent(value: int, of: int) -> str:
    """Return a percentage with two decimals, rounded down."""
    hundredths = 10_000 * value // of
    return f"{hundredths // 100}.{hundredths % 100:02}%"


def _number(key: Actor, value: int, *, whole: bool = False) -> str:
    """Return a sum without its currency, and without decimals if all are `whole`."""
    number = sum_of(key, value).partition("\N{NO-BREAK SPACE}")[0]
    return number.partition(".")[0] if whole else number
