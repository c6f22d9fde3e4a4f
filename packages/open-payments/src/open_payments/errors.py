"""Errors of calls to an Open Payments server, grouped by the possible effect of the call.

    OpenPaymentsError
    ├── NotSent            it certainly had no effect: the request never reached the server
    │   └── NoSuchHost         the name in its URL does not exist
    ├── Refused            it certainly had no effect: the server answered 4xx; `reason` says why
    └── OutcomeUnknown     it may have had its effect: no answer, a 5xx, or an answer cut short
        └── UntrustedAnswer    an answer came and contradicts what was asked, or is malformed
            └── BadRedirect        it redirects too often, or not to an https URL

`flows/` does not trust two kinds of refusals: 400 "invalid quote" may follow an accepted first
delivery, and a hostile wallet may refuse a payment that it has accepted. Messages never contain a
token, a nonce or a whole body.

No call is behind the errors of a return from an approval (RFC 9635, section 4.2):

    ReturnRefused
    ├── Declined             the query reports no approval; not proved
    └── NotFromThisServer    the hash is missing or wrong
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

# Calls that must not be sent again once they may have had their effect: money may have moved, and
# a lost continuation or rotation loses its token.
_ONCE: Final = frozenset(
    {"create_outgoing_payment", "continue_grant", "poll_grant", "rotate_token"}
)


class Reason(StrEnum):
    """The reason of a refusal, from status, code and (at resource servers) the description."""

    TOO_FAST = "too_fast"
    NOT_APPROVED = "not_approved"  # not approved yet, or the interact_ref was already redeemed
    GRANT_GONE = "grant_gone"  # rejected, cancelled, revoked or unknown continuation
    TOKEN_INACTIVE = "token_inactive"  # unknown, expired, rotated or revoked access token
    TOKEN_GONE = "token_gone"  # the token was rotated, revoked or deleted already
    NOT_ROTATED = "not_rotated"  # busy, or another request rotates it: this one had no effect
    INSUFFICIENT_GRANT = "insufficient_grant"
    BEYOND_LIMITS = "beyond_limits"  # the grant does not cover this payment
    INVALID_QUOTE = "invalid_quote"  # expired, used, or the receiver is not payable: never definite
    UNKNOWN_QUOTE = "unknown_quote"
    INVALID_RECEIVER = "invalid_receiver"  # not payable, or the wallets are not connected
    AMOUNT_TOO_SMALL = "amount_too_small"
    INVALID_AMOUNT = "invalid_amount"
    NOT_FOUND = "not_found"  # resource servers answer 401 "Unauthorized" if it does not exist
    NOT_OURS = "not_ours"  # it exists, and another client made it
    WRONG_STATE = "wrong_state"  # complete: already completed or expired
    CLIENT_UNKNOWN = "client_unknown"  # our key or wallet address not found or not readable
    BAD_SIGNATURE = "bad_signature"
    CLIENT_FORM = "client_form"  # the client is an object where a string is wanted, or the reverse
    INTERACTION_REQUIRED = "interaction_required"  # a grant that must not need an interaction
    BUSY = "busy"  # 408, 409, 425, 429: the effect is unknown
    OTHER = "other"


class OpenPaymentsError(Exception):
    """Base of all errors of this package. `operation` is the client method's name."""

    def __init__(self, message: str, *, operation: str = "") -> None:
        super().__init__(message)
        self.operation = operation

    @property
    def retryable(self) -> bool:
        """Whether the same request may be sent again, later, and may then succeed."""
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

    `code` is a code in `reasons`, or "", because the server chose it. `host` is the server's.
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
        """Return whether the server did not accept the client's key."""
        return self.reason in (Reason.CLIENT_UNKNOWN, Reason.BAD_SIGNATURE)

    @property
    def answered(self) -> str:
        """Return server and answer, such as "wallet.example answered 400 invalid_client"."""
        return f"{self.host} answered {self.status} {self.code}".strip()

    @property
    def retryable(self) -> bool:
        # A server that does not know the client may be temporarily unable to read its keys.
        if self.reason is Reason.BUSY:
            return self.operation not in _ONCE
        return self.reason in (Reason.CLIENT_UNKNOWN, Reason.NOT_ROTATED)


class ReturnRefused(Exception):
    """The query of a return from an approval gives no reference to redeem."""


class Declined(ReturnRefused):
    """The query reports that the customer did not approve. Anyone can write such a query."""


class NotFromThisServer(ReturnRefused):
    """The query does not prove that it comes from the server of the grant."""
