"""Repeating intervals of ISO 8601, counted as Rafiki counts them.

Each period begins at the end of the period before, in UTC. So monthly periods that begin on the
31st move to the 28th in the first February, and stay there. R3 means four periods: the first and
three repetitions.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_REPEATED: Final = re.compile(r"R(-1|\d*)")
_DURATION: Final = re.compile(
    r"P(?=.)(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?=.)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?"
)


@dataclass(frozen=True, slots=True)
class _Length:
    months: int
    rest: timedelta

    @classmethod
    def of(cls, text: str) -> _Length:
        found = _DURATION.fullmatch(text)
        if found is None:
            raise ValueError(f"{text} is no duration")
        years, months, weeks, days, hours, minutes, seconds = (int(n or 0) for n in found.groups())
        rest = timedelta(days, seconds, 0, 0, minutes, hours, weeks)
        if not (years or months or rest):
            raise ValueError(f"{text} is empty")
        return cls(12 * years + months, rest)

    def after(self, moment: datetime, times: int = 1) -> datetime:
        years, month = divmod(moment.month - 1 + times * self.months, 12)
        year, month = moment.year + years, month + 1
        day = min(moment.day, calendar.monthrange(year, month)[1])
        return moment.replace(year=year, month=month, day=day) + times * self.rest


def frequency(text: str) -> str:
    """Return how often a period of the interval `text` begins, such as "each month".

    If the length is not a number of months or of days, the result contains `text` instead.
    """
    length = text.rpartition("/")[2]
    if _DURATION.fullmatch(length):
        found = _Length.of(length)
        if found.months and not found.rest:
            return _each(found.months, "month")
        if found.rest == timedelta(found.rest.days) and not found.months:
            return _each(found.rest.days, "day")
    return f"in each period of {text}"


def _each(number: int, unit: str) -> str:
    return f"each {unit}" if number == 1 else f"every {number} {unit}s"


def period(text: str, at: datetime) -> tuple[datetime, datetime] | None:
    """Return start and end of the period of the interval `text` that contains `at`.

    Return None before the first period and after the last. Raises ValueError if `text` is not an
    interval, or has neither start nor end, such as "P1M".
    """
    head, *ends = text.split("/")
    more: int | None = 0  # periods after the first; None for no end
    repeated = _REPEATED.fullmatch(head)
    if repeated is None:
        ends = [head, *ends]
    else:
        more = int(repeated[1]) if repeated[1] not in ("", "-1") else None
    one, other = ends
    if one.startswith("P"):
        length = _Length.of(one)
        start = length.after(_moment(other), -1)
    else:
        start = _moment(one)
        length = _Length.of(other) if other.startswith("P") else _Length(0, _moment(other) - start)
    if length == _Length(0, timedelta(0)) or length.rest < timedelta(0):
        raise ValueError(f"{text} does not end after its start")
    while start <= at:
        end = length.after(start)
        if at < end:
            return start, end
        if more == 0:
            return None
        more = None if more is None else more - 1
        start = end
    return None


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
