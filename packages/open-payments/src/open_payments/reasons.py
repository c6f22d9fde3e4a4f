"""Reasons of refusals, found by status, code and description as the reference server uses them.

The reason of an answer that matches no row is `Reason.OTHER`.
Source: GNAP error codes (RFC 9635, section 3.6) and the reference server's texts, recorded in
tests.
"""

from __future__ import annotations

import re
from typing import Final

from open_payments.errors import Reason

_GRANTS: Final = frozenset(
    {
        "request_grant",
        "request_payment_grant",
        "continue_grant",
        "cancel_grant",
        "rotate_token",
        "revoke_token",
    }
)
_REQUESTS: Final = frozenset({"request_grant", "request_payment_grant"})
_BUSY: Final = frozenset({408, 409, 425, 429})

# For authorization servers the code decides. If a code has several meanings, the text decides, and
# the first row that matches is used. An empty text matches every text.
_AT_AUTH_SERVER: Final = (
    ("too_fast", "", Reason.TOO_FAST),
    ("request_denied", "", Reason.NOT_APPROVED),
    ("invalid_continuation", "", Reason.GRANT_GONE),
    ("invalid_interaction", "", Reason.GRANT_GONE),
    ("unknown_interaction", "", Reason.GRANT_GONE),
    ("user_denied", "", Reason.GRANT_GONE),
    ("invalid_rotation", "", Reason.NOT_ROTATED),  # the code for any other failed rotation
    ("invalid_client", "invalid access token", Reason.TOKEN_GONE),
    ("invalid_client", "invalid signature", Reason.BAD_SIGNATURE),
    ("invalid_client", "jwk client identifier", Reason.OTHER),
    ("invalid_client", "", Reason.CLIENT_UNKNOWN),
)

_CODES: Final = frozenset({"invalid_request", *(row[0] for row in _AT_AUTH_SERVER)})

# A schema's error about the type of the member `client`. Rafiki's validator says
# "… body.client must be string" and "… must match exactly one schema in oneOf".
_CLIENT_FORM: Final = re.compile(
    r"\bclient\b.{0,80}\b(?:must|should|expected|object|string|type)\b"
)

# At resource servers the code only repeats the status, so the status and the text decide.
_AT_RESOURCE_SERVER: Final = (
    (403, "inactive token", Reason.TOKEN_INACTIVE),
    (401, "invalid token", Reason.TOKEN_INACTIVE),
    (403, "insufficient grant", Reason.INSUFFICIENT_GRANT),
    (403, "unauthorized", Reason.BEYOND_LIMITS),
    (401, "unauthorized", Reason.NOT_FOUND),
    (401, "signature validation error: could not", Reason.CLIENT_UNKNOWN),
    (401, "signature validation error", Reason.BAD_SIGNATURE),
    (400, "invalid quote", Reason.INVALID_QUOTE),
    (404, "unknown quote", Reason.UNKNOWN_QUOTE),
    (400, "invalid receiver", Reason.INVALID_RECEIVER),
    (400, "non-positive receive amount", Reason.AMOUNT_TOO_SMALL),
    (400, "invalid amount", Reason.INVALID_AMOUNT),
    (400, "could not get wallet address", Reason.NOT_FOUND),
    (404, "incoming payment does not exist", Reason.NOT_OURS),
    (404, "quote does not exist", Reason.NOT_OURS),
    (404, "outgoing payment does not exist", Reason.NOT_OURS),
)


def reason(operation: str, status: int, code: str, description: str) -> Reason:
    """Return the reason why a server refused `operation` (the client's method) with 4xx `status`.

    `code` and `description` may be "".
    """
    text = description.lower()
    if operation == "complete_incoming_payment" and status == 409 and text == "wrong state":
        return Reason.WRONG_STATE
    if operation in _GRANTS and code == "too_fast":  # some send 429 with it, which alone is BUSY
        return Reason.TOO_FAST
    if status in _BUSY:
        return Reason.BUSY
    if operation in _REQUESTS and _CLIENT_FORM.search(text):
        return Reason.CLIENT_FORM
    if operation in _GRANTS:
        for row_code, row_text, found in _AT_AUTH_SERVER:
            if code == row_code and text.startswith(row_text):
                return found
    else:
        for row_status, row_text, found in _AT_RESOURCE_SERVER:
            if status == row_status and text.startswith(row_text):
                return found
    return Reason.NOT_FOUND if status in (404, 410) else Reason.OTHER


def known_code(code: str) -> str:
    """Return the error `code` of an authorization server if a row above has it, else ""."""
    return code if code in _CODES else ""
