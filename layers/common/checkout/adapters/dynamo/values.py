"""Values in the types of DynamoDB's low-level client, and back.

Times are integer epoch milliseconds, amounts are integers; there is no float.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

Value = dict[str, Any]  # {"S": "text"}, {"N": "1"}, {"M": {…}}, {"L": […]}
Item = dict[str, Value]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)


def milliseconds(at: datetime) -> int:
    """Return epoch milliseconds; what is finer is cut off."""
    return (at - _EPOCH) // _MILLISECOND


def moment(value: int) -> datetime:
    return _EPOCH + value * _MILLISECOND


def text(value: str) -> Value:
    # `str.__str__` gives the plain text of an enum's member, and TypeError for what is no text.
    return {"S": str.__str__(value)}


def number(value: int) -> Value:
    return {"N": str(value)}


def instant(value: datetime) -> Value:
    return number(milliseconds(value))


def texts(values: Iterable[str]) -> Value:
    return {"L": [text(value) for value in values]}


def text_from(value: Value) -> str:
    result: str = value["S"]
    return result


def number_from(value: Value) -> int:
    return int(value["N"])


def instant_from(value: Value) -> datetime:
    return moment(number_from(value))
