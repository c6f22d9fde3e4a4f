"""Sessions at each stage of a payment attempt, made by the rows of the table of transitions."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import IncomingPaymentRef, Instruction, Problem
from checkout.domain.session.record import Session
from checkout.domain.session.transitions import advance
from open_payments.models import Amount, Quote, WalletAddress
from tests.support.basics import NOW, a_session


def of(attempt: int, what: str) -> str:
    """Return the URL of a resource of this attempt."""
    return f"https://wallet.example/{what}/of-{attempt}-"


def after(session: Session, event: Event, seconds: int = 1, **fields: Any) -> Session:
    now = session.updated_at + timedelta(seconds=seconds)
    return advance(session, event, now=now, writer=f"w{session.version}", **fields).after


def submitted(session: Session | None = None, number: int = 1) -> Session:
    start = session or a_session()
    lease = start.updated_at + timedelta(seconds=46)
    return after(
        start, Event.WALLET_SUBMITTED, typed=f" $wallet.example/{number} ", lease_until=lease
    )


def awaiting(session: Session | None = None, number: int = 1) -> Session:
    """A session with its price shown, for the attempt of this number."""
    begun = submitted(session, number)
    wallet = WalletAddress(of(number, "wallets"), "EUR", 2, "https://a.example", "https://r.x")
    held = begun.incoming_payment or IncomingPaymentRef(of(number, "incoming"), NOW)
    stored = after(begun, Event.REFERENCE_STORED, customer=wallet, incoming_payment=held)
    price = Quote(of(number, "quotes"), Amount(20, "EUR", 2), Amount(2000, "USD", 2), None)
    return after(after(stored, Event.REFERENCE_STORED, quote=price), Event.PREPARED, grant="G")


def paying(session: Session | None = None, number: int = 1) -> Session:
    claimed = awaiting(session, number)
    lease = claimed.updated_at + timedelta(seconds=46)
    claimed = after(claimed, Event.APPROVAL_CLAIMED, lease_until=lease)
    sent = Instruction("i", claimed.updated_at + timedelta(seconds=5))
    return after(claimed, Event.PAYMENT_INTENDED, instruction=sent, check_at=NOW)


def processing(session: Session | None = None, number: int = 1) -> Session:
    made = of(number, "outgoing")
    return after(paying(session, number), Event.PAYMENT_CREATED, outgoing_payment=made)


def refused(session: Session | None = None, number: int = 1) -> Session:
    fields: dict[str, Any] = {
        "problem": Problem.PAYMENT_REFUSED,
        "note": "payment_refused: no_funds",
    }
    return after(paying(session, number), Event.PAYMENT_REFUSED, **fields)


PAID = after(processing(refused(), 2), Event.RECONCILED, received=2000, completed_at=NOW)
