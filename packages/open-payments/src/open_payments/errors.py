"""Errors of calls to an Open Payments server, grouped by the possible effect of the call.

    OpenPaymentsError
    ├── NotSent            certainly no effect: the request never reached the server
    │   └── NoSuchHost         the name in its URL does not exist
    ├── Refused            certainly no effect: the server answered 4xx; `reason` says why
    └── OutcomeUnknown     perhaps the full effect: no answer, a 5xx, or an answer cut short
        └── UntrustedAnswer    an answer that contradicts the request, or is malformed
            └── BadRedirect        too many redirects, or one that is not to an https URL

Do not trust two kinds of refusals of a payment: 400 "invalid quote" may be the answer to a
duplicate delivery whose first copy was accepted, and a hostile wallet may refuse a payment that it
has accepted. Messages never contain a token, a nonce or a whole body.

ReturnRefused and its kinds are of the customer's return, and not of a call.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

# Calls that must not be sent again once they may have had their effect, because money may have
# moved, or because the lost answer to a continuation or rotation contained the only valid token.
_ONCE: Final = frozenset(
    {"create_outgoing_payment", "continue_grant", "poll_grant", "rotate_token"}
)


class Reason(StrEnum):
    """The reason of a refusal, found from the status, the code and, in part, the description.

    docs/errors.md of the package explains each. INVALID_QUOTE and BUSY are never definite.
    """

    TOO_FAST = "too_fast"
    NOT_APPROVED = "not_approved"
    GRANT_GONE = "grant_gone"
    TOKEN_INACTIVE = "token_inactive"
    TOKEN_GONE = "token_gone"
    NOT_ROTATED = "not_rotated"
    INSUFFICIENT_GRANT = "insufficient_grant"
    BEYOND_LIMITS = "beyond_limits"
    INVALID_QUOTE = "invalid_quote"
    UNKNOWN_QUOTE = "unknown_quote"
    INVALID_RECEIVER = "invalid_receiver"
    AMOUNT_TOO_SMALL = "amount_too_small"
    INVALID_AMOUNT = "invalid_amount"
    NOT_FOUND = "not_found"
    NOT_OURS = "not_ours"
    WRONG_STATE = "wrong_state"
    CLIENT_UNKNOWN = "client_unknown"
    BAD_SIGNATURE = "bad_signature"
    CLIENT_FORM = "client_form"
    INTERACTION_REQUIRED = "interaction_required"
    BUSY = "busy"
    OTHER = "other"


class OpenPaymentsError(Exception):
    """The base of all errors of this package. `operation` is the client method's name."""

    def __init__(self, message: str, *, operation: str = "") -> None:
        super().__init__(message)
        self.operation = operation

    @property
    def retryable(self) -> bool:
        """Whether the same request can be sent again later, and may then succeed."""
        return self.operation not in _ONCE


class NotSent(OpenPaymentsError):
    """The request did not reach the server."""

    @property
    def retryable(self) -> bool:
        return True


class NoSuchHost(NotSent):
    """The name in the URL certainly does not exist, according to the resolver."""


class OutcomeUnknown(OpenPaymentsError):
    """The request may or may not have had its effect."""


class UntrustedAnswer(OutcomeUnknown):
    """The server's answer contradicts the request or the standard."""

    @property
    def retryable(self) -> bool:
        return False


class BadRedirect(UntrustedAnswer):
    """The wallet address redirects too often, or to a URL that cannot be read."""


class Refused(OpenPaymentsError):
    """The server answered 4xx, or asks for an interaction (200) where none is possible.

    `code` is "" unless the client knows it, because the server could choose any text. `host` is the
    server's host.
    """

    def __init__(
        self,
        message: str,
        *,
        operation: str,
        status: int,
        reason: Reason,
        code: str = "",
        host: str = "",
    ) -> None:
        super().__init__(message, operation=operation)
        self.status = status
        self.reason = reason
        self.code = code
        self.host = host

    @property
    def of_key(self) -> bool:
        """Return whether the refusal was because of the client's key."""
        return self.reason in (Reason.CLIENT_UNKNOWN, Reason.BAD_SIGNATURE)

    @property
    def answered(self) -> str:
        """Return the server and its answer, as in "wallet.example answered 400 invalid_client"."""
        return f"{self.host} answered {self.status} {self.code}".strip()

    @property
    def retryable(self) -> bool:
        # A server that does not know the client may be unable to read the client's keys for a time.
        if self.reason is Reason.BUSY:
            return self.operation not in _ONCE
        return self.reason in (Reason.CLIENT_UNKNOWN, Reason.NOT_ROTATED)


class ReturnRefused(Exception):
    """The query of a return gives no reference to redeem (RFC 9635, section 4.2)."""


class Declined(ReturnRefused):
    """The query reports that the customer did not approve. Anyone can write such a query."""


class NotFromThisServer(ReturnRefused):
    """The query does not prove that it comes from the server of the grant."""
