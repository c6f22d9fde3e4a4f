"""Record money that arrives outside of the payment flow.

Anyone with the URL of an incoming payment can pay it until it is closed, even before the customer
approves or after the session has ended (domain/session/transitions.py, "Money from outside").
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import FENCE, Attention
from checkout.domain.session.record import Session, Status
from checkout.flows.payment import proof
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import move
from checkout.flows.session import completion
from checkout.ports import CompletionPolicy

# While a session waits, the customer's open page causes a read of the incoming payment this often.
LOOK_EVERY: Final = timedelta(minutes=1)


def may_look(session: Session, now: datetime) -> bool:
    """Return whether a waiting session with an incoming payment may be checked for money now."""
    waiting = session.status in (Status.OPEN, Status.AWAITING_APPROVAL) and session.phase is None
    has_one = waiting and session.incoming_payment is not None
    return has_one and now >= session.updated_at + LOOK_EVERY


def found(calls: WalletCalls, session: Session, seen: proof.IncomingPaymentState) -> Session:
    """Decide, by the money in its incoming payment, a session that has no approval yet.

    Without money, returns the session as it is. Raises IllegalTransition, StaleRecord.
    """
    if seen.received == 0:
        return session
    now = calls.services.clock.now()
    session = move(calls.services, session, Event.MONEY_FOUND, check_at=now, checks=0)
    return completion.decide_by_money(calls, session, seen)


def account(calls: WalletCalls, session: Session) -> Session:
    """Take one step to find out what the incoming payment of an ended session received.

    Closes the incoming payment. Once it was seen closed and the time FENCE has passed, reads it
    again and records the result. Money in an expired or canceled session is flagged as soon as it
    is seen, and creates an event. Exception: with the policy `instructed`, the money of a completed
    session may still be on its way, so the incoming payment is not closed. Raises open_payments
    errors.
    """
    paid = session.status is Status.COMPLETED
    instructed = calls.services.completion_policy is CompletionPolicy.INSTRUCTED
    if session.closed_at is not None or (paid and instructed):
        seen = proof.read(calls, session)
    else:
        seen = proof.read_and_close(calls, session)
    fields: dict[str, Any] = {}
    event = Event.CHECKED
    whole = paid and seen.received >= session.receive.value
    if whole or (session.closed_at is not None and seen.begun_at >= session.closed_at + FENCE):
        fields["check_at"] = None
    elif session.closed_at is None and seen.closed:
        now = calls.services.clock.now()
        fields |= {"closed_at": now, "check_at": now + FENCE}
        event = Event.CLOSED
    if seen.received > (session.received or 0):
        fields["received"] = seen.received
        if not paid:
            fields["attention"] = Attention.LATE_PAYMENT
            event = Event.LATE_PAYMENT
    return move(calls.services, session, event, **fields) if fields else session
