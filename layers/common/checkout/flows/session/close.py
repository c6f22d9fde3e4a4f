"""End a session at its merchant's request: expire, cancel, accept a partial payment, give up.

No wallet is called here. A queued task later cancels an abandoned grant at the customer's wallet.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from checkout.domain.ground.errors import (
    CheckoutError,
    PaymentInProgress,
    SessionBusy,
    SessionUnexpectedState,
)
from checkout.domain.merchant.people import Actor
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change, IllegalTransition
from checkout.domain.session.record import Session, Status
from checkout.flows.idempotency import Reserve
from checkout.flows.payment.writes import change, write_decided
from checkout.flows.session import lookup
from checkout.flows.session.lookup import apply_clock
from checkout.ports import StaleRecord
from checkout.services import Services

_VERB: Final = {
    Event.EXPIRE_REQUESTED: "expired",
    Event.CANCEL_REQUESTED: "canceled",
    Event.ACCEPTED_AS_PAID: "accepted as paid",
    Event.GIVEN_UP: "given up",
}


def expire(
    services: Services, key: Actor, session_id: str, reserve: Reserve[Session] | None = None
) -> Session:
    """Expire a session that is open or awaits an approval.

    `reserve` makes the stored answer to the request's idempotency key, which is written together
    with the session. Raises ResourceMissing, SessionUnexpectedState, PaymentInProgress,
    SessionBusy.
    """
    return _end(services, lookup.own(services, key, session_id), Event.EXPIRE_REQUESTED, reserve)


def cancel(
    services: Services, key: Actor, session_id: str, reserve: Reserve[Session] | None = None
) -> Session:
    """Cancel a session that is open or awaits an approval. Raises as `expire` does."""
    return _end(services, lookup.own(services, key, session_id), Event.CANCEL_REQUESTED, reserve)


def cancel_at_till(services: Services, session: Session) -> Session:
    """Cancel a sale for the till (a shop's sales screen) that began it. Raises as `cancel` does."""
    return _end(services, session, Event.CANCEL_REQUESTED, None, note="at the till")


def accept_as_paid(
    services: Services, key: Actor, session_id: str, reserve: Reserve[Session] | None = None
) -> Session:
    """Complete a partly paid session, because the merchant accepts it as paid.

    Raises as `expire` does.
    """
    now = services.clock.now()
    session = lookup.own(services, key, session_id)
    return _end(services, session, Event.ACCEPTED_AS_PAID, reserve, note=_by(key), completed_at=now)


def give_up(
    services: Services, key: Actor, session_id: str, reserve: Reserve[Session] | None = None
) -> Session:
    """Expire a partly paid session if no more money can arrive.

    Raises as `expire` does. PaymentInProgress means that the incoming payment is being closed.
    """
    session = lookup.own(services, key, session_id)
    return _end(services, session, Event.GIVEN_UP, reserve, note=_by(key))


def _by(key: Actor) -> str:
    return f"by {key.label}"


def _end(
    services: Services,
    session: Session,
    event: Event,
    reserve: Reserve[Session] | None,
    **changes: Any,
) -> Session:
    def ending(current: Session) -> Change[Session]:
        return _ending(services, current, event, changes)

    try:
        return write_decided(services, session, ending, reserve)
    except IllegalTransition as illegal:
        current = illegal.record
        if event is not Event.ACCEPTED_AS_PAID:
            current = _hasten(services, current)
        raise _refusal(current, event) from None
    except StaleRecord:
        raise SessionBusy(
            "This session is being changed by other requests; try again shortly."
        ) from None


def _ending(
    services: Services, session: Session, event: Event, changes: dict[str, Any]
) -> Change[Session]:
    """Return the change that ends the session.

    If necessary, first writes what the time alone has changed (flows/session/lookup.py).
    """
    try:
        return change(services, session, event, **changes)
    except IllegalTransition:
        current = apply_clock(services, session)
        if current.version == session.version:
            raise
        return change(services, current, event, **changes)


def _hasten(services: Services, session: Session) -> Session:
    """Begin to close the incoming payment if a payment is in doubt.

    The merchant wants to end the session. Once the incoming payment is closed and, after a wait,
    read, it is certain how much has arrived.
    """

    def closing(current: Session) -> Change[Session] | None:
        now = services.clock.now()
        if not current.may_close(now):
            return None
        return change(services, current, Event.CLOSING_STARTED, closing_at=now, check_at=now)

    try:
        return write_decided(services, session, closing)
    except StaleRecord as stale:
        current: Session = stale.current
        return current


def _refusal(session: Session, event: Event) -> CheckoutError:
    verb = _VERB[event]
    if session.partly_paid:
        some = replace(session.receive, value=session.received or 0)
        when = "." if session.check_at is None else ", about a minute after its closing has begun."
        return PaymentInProgress(
            f"{some} of {session.receive} has arrived, so the session cannot be {verb}. You can "
            f"accept it as paid, or give it up{when}"
        )
    if session.payment_in_flight and session.closing_at is not None:
        return PaymentInProgress(
            "The outcome of a payment for this session is not known yet, so the session cannot be "
            f"{verb} now. Its incoming payment is being closed. Try again in about a minute."
        )
    if session.payment_in_flight or session.phase is not None:
        return PaymentInProgress(
            f"A payment for this session is under way; it cannot be {verb} now."
        )
    if event in (Event.ACCEPTED_AS_PAID, Event.GIVEN_UP):
        wanted = "only a part of the payment has arrived"
    else:
        wanted = f"it is {Status.OPEN} or {Status.AWAITING_APPROVAL}"
    return SessionUnexpectedState(
        f"This session is {session.status}; it can be {verb} only while {wanted}."
    )
