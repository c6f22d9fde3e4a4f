"""What a refusal means, and what a client should do next: two tables.

`reason` reads status, code and description the way the reference server uses them; `conclude` turns
any error of this package into one of seven next steps. Neither raises: an answer that no row knows
is `Reason.OTHER`.
Source: GNAP error codes (RFC 9635, section 3.6) and the reference server's texts, recorded in
tests.
"""

from __future__ import annotations

from typing import Final

from checkout.open_payments.errors import (
    Conclusion,
    NotSent,
    OpenPaymentsError,
    Reason,
    Refused,
    UntrustedAnswer,
)

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
_TOKENS: Final = frozenset({"rotate_token", "revoke_token"})
_BUSY: Final = frozenset({408, 409, 425, 429})

# At authorization servers the code tells; where one code means several things, the text does, and
# the first row that fits counts. An empty text fits all.
_AT_AUTH_SERVER: Final = (
    ("too_fast", "", Reason.TOO_FAST),
    ("request_denied", "", Reason.NOT_APPROVED),
    ("invalid_continuation", "", Reason.GRANT_GONE),
    ("invalid_interaction", "", Reason.GRANT_GONE),
    ("unknown_interaction", "", Reason.GRANT_GONE),
    ("user_denied", "", Reason.GRANT_GONE),
    ("invalid_rotation", "", Reason.TOKEN_GONE),
    ("invalid_client", "invalid access token", Reason.TOKEN_GONE),
    ("invalid_client", "invalid signature", Reason.BAD_SIGNATURE),
    ("invalid_client", "jwk client identifier", Reason.OTHER),
    ("invalid_client", "", Reason.CLIENT_UNKNOWN),
)

# At resource servers the code repeats the status: status and text tell.
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
)

_BY_REASON: Final = {
    Reason.TOO_FAST: Conclusion.WAIT,
    Reason.NOT_APPROVED: Conclusion.NEW_GRANT,
    Reason.GRANT_GONE: Conclusion.NEW_GRANT,
    Reason.TOKEN_INACTIVE: Conclusion.ROTATE,
    Reason.TOKEN_GONE: Conclusion.NEW_GRANT,
    Reason.INSUFFICIENT_GRANT: Conclusion.NEW_GRANT,
    Reason.BEYOND_LIMITS: Conclusion.NEW_GRANT,
    Reason.INVALID_QUOTE: Conclusion.RECONCILE,
    Reason.UNKNOWN_QUOTE: Conclusion.NEW_QUOTE,
    Reason.INVALID_RECEIVER: Conclusion.GIVE_UP,
    Reason.AMOUNT_TOO_SMALL: Conclusion.GIVE_UP,
    Reason.INVALID_AMOUNT: Conclusion.GIVE_UP,
    Reason.NOT_FOUND: Conclusion.GIVE_UP,
    Reason.WRONG_STATE: Conclusion.RECONCILE,
    Reason.CLIENT_UNKNOWN: Conclusion.RETRY,  # or its keys are out of reach for now
    Reason.BAD_SIGNATURE: Conclusion.GIVE_UP,
    Reason.INTERACTION_REQUIRED: Conclusion.GIVE_UP,
    Reason.OTHER: Conclusion.GIVE_UP,
}

# Where the effect is unknown, what may be repeated decides. A lost continuation or rotation loses
# its token.
_UNKNOWN: Final = {
    "create_outgoing_payment": Conclusion.RECONCILE,
    "continue_grant": Conclusion.NEW_GRANT,
    "rotate_token": Conclusion.NEW_GRANT,
}


def reason(operation: str, status: int, code: str, description: str) -> Reason:
    """Why `operation` (the client method's name) was refused with 4xx `status`; `code` and
    `description` may be ""."""
    text = description.lower()
    if operation == "complete_incoming_payment" and status == 409 and text == "wrong state":
        return Reason.WRONG_STATE
    if status in _BUSY:
        return Reason.BUSY
    if operation in _GRANTS:
        for row_code, row_text, found in _AT_AUTH_SERVER:
            if code == row_code and text.startswith(row_text):
                return found
    else:
        for row_status, row_text, found in _AT_RESOURCE_SERVER:
            if status == row_status and text.startswith(row_text):
                return found
    if status in (404, 410):
        return Reason.TOKEN_GONE if operation in _TOKENS else Reason.NOT_FOUND
    return Reason.OTHER


def conclude(error: OpenPaymentsError) -> Conclusion:
    """What to do next about `error`. RECONCILE always comes before money can move twice."""
    if isinstance(error, NotSent):
        return Conclusion.RETRY
    if isinstance(error, Refused) and error.reason is not Reason.BUSY:
        return _BY_REASON[error.reason]
    fallback = Conclusion.GIVE_UP if isinstance(error, UntrustedAnswer) else Conclusion.RETRY
    return _UNKNOWN.get(error.operation, fallback)
