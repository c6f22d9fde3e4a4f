"""Values as they go over the wire: in the types of DynamoDB's low-level client, and back.

Times are integer epoch milliseconds, amounts are integers; there is no float.
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

Value = dict[str, Any]  # {"S": "text"}, {"N": "1"}, {"M": {…}}, {"L": […]}
Item = dict[str, Value]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND: Final = timedelta(milliseconds=1)
_PARSED_BY_US = "before-parse.dynamodb"
_REFUSED = 300  # from this HTTP status on, botocore makes an exception of the answer


def milliseconds(at: datetime) -> int:
    """Return epoch milliseconds, rounded down."""
    return (at - _EPOCH) // _MILLISECOND


def moment(value: int) -> datetime:
    return _EPOCH + value * _MILLISECOND


def text(value: str) -> Value:
    # `str.__str__` returns the plain text of an enum's member, and raises TypeError for anything
    # but text.
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


def read_as_sent(client: Any) -> None:
    """Make `client` of DynamoDB read its answers as they are sent. Errors stay botocore's.

    botocore's parser looks up the model of each attribute, which takes 10 µs, most of the time of a
    list. An answer already has the form that the parser would return, except that its bytes are
    base64.
    """
    client.meta.events.register(_PARSED_BY_US, _read)


def _read(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Handle botocore's event.

    Values that are put into the second argument become part of the answer.
    """
    if response_dict["status_code"] < _REFUSED and response_dict["body"]:
        customized_response_dict |= json.loads(response_dict["body"], object_hook=_decoded)
        response_dict["body"] = b""  # nothing is left for the parser


def _decoded(found: dict[str, Any]) -> dict[str, Any]:
    """Return an object of the answer, with bytes decoded.

    Only the type B has a text that is bytes.
    """
    if "B" in found and isinstance(found["B"], str):
        found["B"] = a2b_base64(found["B"])
    return found
