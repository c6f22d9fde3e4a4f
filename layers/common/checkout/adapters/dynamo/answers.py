"""Read DynamoDB's answers as they are sent.

botocore's parser looks up the model of each attribute, which takes 10 µs: of a list, most of the
time. An answer has the form that the parser would give it already, except that its bytes are
base64.
"""

from __future__ import annotations

import json
from binascii import a2b_base64
from typing import Any

_PARSED_BY_US = "before-parse.dynamodb"
_REFUSED = 300  # from this HTTP status on, botocore makes an exception of the answer


def read_as_sent(client: Any) -> None:
    """Make `client` of DynamoDB read its answers by this module. Errors stay botocore's."""
    client.meta.events.register(_PARSED_BY_US, _read)


def _read(
    response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
) -> None:
    """Handle botocore's event: what is put into the second argument is part of the answer."""
    if response_dict["status_code"] < _REFUSED and response_dict["body"]:
        customized_response_dict |= json.loads(response_dict["body"], object_hook=_decoded)
        response_dict["body"] = b""  # nothing is left for the parser


def _decoded(found: dict[str, Any]) -> dict[str, Any]:
    """Return an object of the answer; the value of a type is a text in the type B alone."""
    if "B" in found and isinstance(found["B"], str):
        found["B"] = a2b_base64(found["B"])
    return found
