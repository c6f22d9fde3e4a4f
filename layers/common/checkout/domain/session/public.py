"""Checkout sessions, their payment attempts and their customers' details as merchants see them.

The types are in `checkout/answers.py`. They have no fields for grants, tokens, nonces, interact
addresses, merchant ids or servers, so none of these can be shown. A session has the fields of
spec.md, in the order of spec.md, then newer fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Final, cast

from checkout.domain.ground.addresses import Address
from checkout.domain.ground.json_values import amount, compact, optional_time, timestamp
from checkout.domain.payment.attempt import Outcome, PaymentAttempt
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.attempts import attempts_of, failed
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.record import LineItem, Session, Status
from checkout.domain.webhooks.event_types import COMPLETED, WITH_AMOUNT
from open_payments.errors import Reason

if TYPE_CHECKING:
    from checkout import answers

# The key of a message is the attempt's problem, or the outcome of an attempt without a problem.
MESSAGES: Final[Mapping[str, str]] = {
    Problem.WALLET_UNREACHABLE: "The customer's wallet provider did not give a usable answer.",
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
    Outcome.DECLINED: "According to their browser, the customer declined. This report is not "
    "signed.",
    Outcome.TIMED_OUT: "According to the customer's browser, the approval took too long. This "
    "report is not signed.",
}

# If a wallet did not accept the merchant's key, one of these messages replaces the message above.
# The key of a message is the reason with which the attempt's detail begins.
KEY_MESSAGES: Final[Mapping[str, str]] = {
    Reason.CLIENT_UNKNOWN: "A wallet provider did not find your key at your wallet address: the "
    "key was removed there, or could not be read.",
    Reason.BAD_SIGNATURE: "A wallet provider says that the key at your wallet address is not the "
    "one that this service signs with.",
}


def public_session(
    session: Session, *, base_url: str, now: datetime, details: CustomerDetails = NONE_GIVEN
) -> answers.Session:
    """Return `session` as its merchant sees it at `now`, with the details of its customer.

    After its expiry the session is shown as `expired`, even before that status is written.
    `base_url` has no trailing slash. Amounts are in minor units.
    """
    return {
        "id": session.id,
        "object": "checkout.session",
        "status": session.status_at(now).value,
        "url": f"{base_url}/pay/{session.id}",
        "amount_total": session.amount_total,
        "currency": session.currency,
        "mode": "payment",
        "line_items": [_line_item(item) for item in session.line_items],
        "metadata": dict(session.metadata),
        "success_url": session.success_url,
        "cancel_url": session.cancel_url,
        "customer_wallet": session.customer.id if session.customer else None,
        "incoming_payment": session.incoming_payment.id if session.incoming_payment else None,
        "outgoing_payment": session.outgoing_payment,
        "expires_at": timestamp(session.expires_at),
        "created_at": timestamp(session.created_at),
        "completed_at": optional_time(session.completed_at),
        "amount_received": session.amount_received,
        "client_reference_id": session.client_reference_id,
        "customer_debit": amount(session.customer_debit),
        "amount_refunded": session.refunded,
        "customer_details": _details(details),
    }


def event_body(session: Session, event_type: str = COMPLETED) -> str:
    """Return the seven fields of spec.md "Events", in the same order, as compact JSON.

    Events about late and partial payments, which spec.md does not contain, also have
    `amount_received`.
    """
    body: answers.Event = {
        "id": session.id,
        "status": session.status,
        "amount_total": session.amount_total,
        "currency": session.currency,
        "metadata": dict(session.metadata),
        "outgoing_payment": session.outgoing_payment,
        "customer_wallet": session.customer.id if session.customer else None,
    }
    received = {"amount_received": session.amount_received} if event_type in WITH_AMOUNT else {}
    return compact({**body, **received})


def _line_item(item: LineItem) -> answers.LineItem:
    product: answers.Product = {"name": item.name}
    if item.description is not None:
        product["description"] = item.description
    if item.image is not None:
        product["image"] = item.image
    return {
        "price_data": {
            "currency": item.currency,
            "product_data": product,
            "unit_amount": item.unit_amount,
        },
        "quantity": item.quantity,
    }


def _details(details: CustomerDetails) -> answers.CustomerDetails | None:
    """Return the details, with null for each that was not given; None if none was given."""
    if details == NONE_GIVEN:
        return None
    return {
        "email": details.email,
        "name": details.name,
        "phone": details.phone,
        "shipping_address": _address(details.shipping),
        "billing_address": _address(details.billing),
        "answers": [
            {"key": each.key, "label": each.label, "value": each.value, "shown": each.shown}
            for each in details.answers
        ],
    }


def _address(address: Address | None) -> answers.Address | None:
    return cast("answers.Address", asdict(address)) if address is not None else None


def public_attempts(session: Session) -> list[answers.PaymentAttempt]:
    """Return the session's payment attempts, oldest first.

    The number of the first attempt shows how many older ones were dropped.
    """
    return [public_attempt(each, session) for each in attempts_of(session)]


def public_attempt(attempt: PaymentAttempt, session: Session) -> answers.PaymentAttempt:
    """Return one attempt. Values that are unknown, or not known yet, are null."""
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
        "quote_expires_at": optional_time(expires_at),
        "outgoing_payment": attempt.outgoing_payment,
        "amount_received": session.minor_units(attempt.received),
        "submitted_at": timestamp(attempt.submitted_at),
        "wallet_resolved_at": optional_time(attempt.resolved_at),
        "prepared_at": optional_time(attempt.prepared_at),
        "reported_at": optional_time(attempt.reported_at),
        "approved_at": optional_time(attempt.approved_at),
        "sent_at": optional_time(attempt.sent_at),
        "accepted_at": optional_time(attempt.accepted_at),
        "ended_at": optional_time(attempt.ended_at),
    }


def last_payment_error(session: Session) -> answers.PaymentError | None:
    """Return the error of the last failed attempt, or None once the session is paid."""
    if session.status is Status.COMPLETED:
        return None
    for attempt in reversed(attempts_of(session)):
        if (error := _error(attempt)) is not None:
            return error
    return None


def _error(attempt: PaymentAttempt) -> answers.PaymentError | None:
    """Return the error of an attempt that failed, or that the browser has reported as declined."""
    if failed(attempt):
        return _said(attempt.problem or str(attempt.outcome), attempt.detail or "")
    running = attempt.outcome is None and attempt.approved_at is None
    return _said(attempt.reported, "") if running and attempt.reported else None


def _said(code: str, detail: str) -> answers.PaymentError:
    message = MESSAGES[code]
    reason, _, answered = detail.partition(" ")
    if reason in KEY_MESSAGES:
        message, detail = KEY_MESSAGES[reason], answered.strip("()")
    return {"code": str(code), "message": f"{message} ({detail})" if detail else message}
