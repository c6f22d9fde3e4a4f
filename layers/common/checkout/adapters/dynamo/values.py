"""Values in the types of DynamoDB's low-level client, and back.

Times are integer epoch milliseconds, amounts are integers; there is no float. An absent attribute
is None.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeVar

Value = dict[str, Any]  # {"S": "text"}, {"N": "1"}, {"M": {…}}, {"L": […]}
Item = dict[str, Value]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)

T = TypeVar("T")


def milliseconds(at: datetime) -> int:
    """Epoch milliseconds; what is finer is cut off."""
    return (at - _EPOCH) // _MILLISECOND


def moment(value: int) -> datetime:
    return _EPOCH + value * _MILLISECOND


def text(value: str) -> Value:
    return {"S": value}


def number(value: int) -> Value:
    return {"N": str(value)}


def instant(value: datetime) -> Value:
    return number(milliseconds(value))


def present(**values: Value | None) -> Item:
    return {name: value for name, value in values.items() if value is not None}


def optional(encode: Callable[[T], Value], value: T | None) -> Value | None:
    return None if value is None else encode(value)


def read(item: Mapping[str, Value], name: str, decode: Callable[[Value], T]) -> T | None:
    return decode(item[name]) if name in item else None


def text_from(value: Value) -> str:
    result: str = value["S"]
    return result


def number_from(value: Value) -> int:
    return int(value["N"])


def instant_from(value: Value) -> datetime:
    return moment(number_from(value))
