"""Payment attempts and the last payment error, as merchants see them in the API."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from checkout.domain.ground.json_values import amount, timestamp
from checkout.domain.payment.attempt import Outcome, PaymentAttempt
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.attempts import attempts_of, failed
from checkout.domain.session.record import Session, Status
from checkout.open_payments.errors import Reason

# By the problem, or by the outcome of an attempt without a problem.
MESSAGES: Final[Mapping[str, str]] = {
    Problem.WALLET_UNREACHABLE: "The customer's wallet provider did not answer.",
    Problem.WALLET_INVALID: "There is no wallet at the address that the customer gave.",
    Problem.WALLET_UNAVAILABLE: "The customer's wallet could not prepare this payment.",
    Problem.AMOUNT_TOO_SMALL_FOR_WALLET: "The amount is too small for the customer's wallet.",
    Problem.MERCHANT_WALLET_ERROR: "Your own wallet provider failed.",
    Problem.PREPARATION_INTERRUPTED: "The preparation was interrupted.",
    Problem.APPROVAL_UNUSABLE: "The customer's approval could not be used: it was declined, was "
    "lost, or came too late.",
    Problem.PRICE_CHANGED: "The price rose above what the customer had approved.",
    Problem.PAYMENT_REFUSED: "The customer's wallet refused the payment, such as for lack of "
    "funds.",
    Problem.PAYMENT_FAILED: "The customer's wallet accepted the payment, but no money arrived.",
    Outcome.DECLINED: "The customer declined, as their browser reported. The report is not signed.",
    Outcome.TIMED_OUT: "The approval took too long, as the customer's browser reported. The report "
    "is not signed.",
}

# In place of it, by the reason that begins the detail: the merchant's key was not accepted.
KEY_MESSAGES: Final[Mapping[str, str]] = {
    Reason.CLIENT_UNKNOWN: "A wallet provider did not find your key at your wallet address: it was "
    "removed there, or could not be read.",
    Reason.BAD_SIGNATURE: "A wallet provider says that the key at your wallet address is not the "
    "one that this service signs with.",
}


def public_attempts(session: Session) -> list[dict[str, Any]]:
    """Return the session's payment attempts, oldest first.

    The number of the first one shows how many older ones are not kept.
    """
    return [public_attempt(each, session) for each in attempts_of(session)]


def public_attempt(attempt: PaymentAttempt, session: Session) -> dict[str, Any]:
    """Return one attempt. Unknown and future values are null."""
    quote = attempt.quote
    expires_at = quote.expires_at if quote else None
    return {
        "object": "payment_attempt",
        "number": attempt.number,
        "outcome": attempt.outcome,
        "ended_by": attempt.ended_by,
        "error": _error(attempt),
        "reported_by_browser": attempt.reported,
        "wallet_typed": attempt.typed,
        "customer_wallet": attempt.wallet,
        "incoming_payment": attempt.incoming_payment,
        "quote": quote.id if quote else None,
        "customer_debit": amount(quote.debit) if quote else None,
        "quote_expires_at": _time(expires_at),
        "outgoing_payment": attempt.outgoing_payment,
        "amount_received": session.minor_units(attempt.received),
        "submitted_at": _time(attempt.submitted_at),
        "wallet_resolved_at": _time(attempt.resolved_at),
        "prepared_at": _time(attempt.prepared_at),
        "reported_at": _time(attempt.reported_at),
        "approved_at": _time(attempt.approved_at),
        "sent_at": _time(attempt.sent_at),
        "accepted_at": _time(attempt.accepted_at),
        "ended_at": _time(attempt.ended_at),
    }


def last_payment_error(session: Session) -> dict[str, str] | None:
    """Return the error of the last failed attempt, or None once the session is paid.

    For a session of an earlier release, which stored no attempts, it is the problem of the session.
    """
    if session.status is Status.COMPLETED:
        return None
    for attempt in reversed(attempts_of(session)):
        if (error := _error(attempt)) is not None:
            return error
    return _said(session.problem, "") if session.problem else None


def _error(attempt: PaymentAttempt) -> dict[str, str] | None:
    """Return the error of an attempt that failed, or was declined according to the browser."""
    if failed(attempt):
        return _said(attempt.problem or str(attempt.outcome), attempt.detail or "")
    running = attempt.outcome is None and attempt.approved_at is None
    return _said(attempt.reported, "") if running and attempt.reported else None


def _said(code: str, detail: str) -> dict[str, str]:
    message = MESSAGES[code]
    reason, _, answered = detail.partition(" ")
    if reason in KEY_MESSAGES:
        message, detail = KEY_MESSAGES[reason], answered.strip("()")
    return {"code": str(code), "message": f"{message} ({detail})" if detail else message}


def _time(at: datetime | None) -> str | None:
    return timestamp(at) if at is not None else None
