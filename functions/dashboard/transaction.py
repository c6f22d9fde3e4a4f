"""The page of one transaction: a session's details and its history.

A record without a field for grants, tokens, nonces and interact addresses cannot show them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from fastapi import APIRouter, Request, Response

from checkout.domain.attempts import failure_of
from checkout.domain.session import Attention, Phase, Session, Status
from checkout.domain.transitions import Event
from checkout.flows.merchant import actions
from checkout.flows.payment import sessions
from checkout.flows.webhooks import delivery_log
from checkout.pages import Moment
from dashboard import texts
from dashboard.dependencies import Form, Injected, Key, Visited
from dashboard.rendering import page, see
from dashboard.story import Story, story
from dashboard.view import delivered, minor, moment, order_of, plain, readable, wallet_of
from dashboard.webhooks import elsewhere

router = APIRouter(prefix="/transactions/{session_id}")


@dataclass(frozen=True, slots=True)
class Line:
    """A line item."""

    name: str
    description: str | None
    quantity: int
    price: str
    total: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A session's details.

    `sent` is what the customer pays, `received` what has arrived in the merchant's wallet so far.
    `can_close`: a payment is in doubt, and the merchant can have the incoming payment closed.
    `closed`: no more money can arrive. `incoming_payment` is one that no attempt names.
    `ended`: the session is completed, expired or canceled.
    """

    id: str
    url: str
    status: str
    status_text: str
    amount: str
    failure: str | None
    waiting: str
    attention: tuple[str, str] | None
    problem: str | None
    can_end: bool
    can_close: bool
    partly_paid: bool
    closing: bool
    closed: bool
    ended: bool
    late: bool
    created_at: Moment
    expires_at: Moment
    completed_at: Moment | None
    wallet: str | None
    sent: str | None
    received: str | None
    incoming_payment: str | None
    checks: int
    next_check: Moment | None
    success_url: str
    cancel_url: str
    order: str | None
    lines: tuple[Line, ...]
    metadata: tuple[tuple[str, str], ...]
    story: Story


@router.get("")
async def transaction(services: Injected, request: Request, key: Key, session_id: str) -> Response:
    session = sessions.get(services, key, session_id)
    event = delivery_log.of_session(services, session)
    return page(
        request,
        "transaction.html",
        section="",
        s=_shown(session, now=services.clock.now(), base_url=services.base_url),
        webhook=delivered(event) if event else None,
        elsewhere=elsewhere(services, services.known_merchants.get(key.merchant), event)
        if event
        else [],
    )


@router.post("/expire")
async def expire(
    services: Injected, visit: Visited, key: Key, session_id: str, _: Form
) -> Response:
    session = actions.expire_session(services, key, session_id)
    return see(visit, f"/transactions/{session.id}")


@router.post("/cancel")
async def cancel(
    services: Injected, visit: Visited, key: Key, session_id: str, _: Form
) -> Response:
    session = actions.cancel_session(services, key, session_id)
    return see(visit, f"/transactions/{session.id}")


@router.post("/accept_as_paid")
async def accept_as_paid(
    services: Injected, visit: Visited, key: Key, session_id: str, _: Form
) -> Response:
    session = actions.accept_session(services, key, session_id)
    return see(visit, f"/transactions/{session.id}")


@router.post("/give_up")
async def give_up(
    services: Injected, visit: Visited, key: Key, session_id: str, _: Form
) -> Response:
    session = actions.give_up_session(services, key, session_id)
    return see(visit, f"/transactions/{session.id}")


def _shown(session: Session, *, now: datetime, base_url: str) -> Shown:
    status = session.status_at(now)
    endable = status in (Status.OPEN, Status.AWAITING_APPROVAL)
    told, incoming, failure = story(session), session.incoming_payment, failure_of(session)
    return Shown(
        id=session.id,
        url=f"{base_url}/pay/{session.id}",
        status=status.value,
        status_text=texts.STATUS[status],
        amount=minor(session.amount_total, session),
        failure=texts.FAILURE[failure] if failure else None,
        waiting=texts.WAITING[_stage(session, status)],
        attention=_attention(session),
        problem=texts.PROBLEM[session.problem] if session.problem else None,
        can_end=endable and session.phase is None,
        can_close=session.may_close(now),
        partly_paid=session.partly_paid,
        closing=session.closing_at is not None,
        closed=session.check_at is None,
        ended=session.terminal,
        late=session.happened(Event.LATE_PAYMENT),
        created_at=moment(session.created_at),
        expires_at=moment(session.expires_at),
        completed_at=moment(session.completed_at) if session.completed_at else None,
        wallet=wallet_of(session),
        sent=_sent(session),
        received=_received(session),
        incoming_payment=None if told.names_incoming_payment or not incoming else incoming.id,
        checks=session.checks,
        next_check=moment(session.check_at) if session.check_at else None,
        success_url=session.success_url,
        cancel_url=session.cancel_url,
        order=order_of(session),
        lines=tuple(
            Line(
                name=item.name,
                description=item.description,
                quantity=item.quantity,
                price=minor(item.unit_amount, session),
                total=minor(item.unit_amount * item.quantity, session),
            )
            for item in session.line_items
        ),
        metadata=tuple((name, plain(value)) for name, value in session.metadata.items()),
        story=told,
    )


def _stage(session: Session, status: Status) -> str:
    if session.partly_paid:
        return "partly_paid_for_good" if session.check_at is None else "partly_paid"
    if session.closing_at is not None and session.payment_in_flight:
        return "closing"
    if session.phase is Phase.CONTINUING:
        return "continuing"
    if session.phase is Phase.PAYING:
        return "paying"
    if status is Status.PROCESSING and session.quote is None:
        return "found"
    if status is Status.COMPLETED and session.received is None:
        return "instructed"
    if status is Status.COMPLETED and _missing(session) > 0:
        return "accepted" if session.happened(Event.ACCEPTED_AS_PAID) else "short"
    if status is Status.EXPIRED and session.happened(Event.GIVEN_UP):
        return "given_up"
    return status.value


def _attention(session: Session) -> tuple[str, str] | None:
    if session.attention is None:
        return None
    what, todo = texts.ATTENTION[session.attention]
    if session.terminal and session.attention is Attention.UNDECIDED:
        what, todo = texts.UNACCOUNTED
    received = readable(replace(session.receive, value=session.received or 0))
    return what.format(received=received, asked=readable(session.receive)), todo


def _sent(session: Session) -> str | None:
    """Return what the customer pays, if it is known; what has arrived may be from anybody."""
    if session.erased:
        return texts.ERASED
    if session.received and session.outgoing_payment is None:
        return texts.OUTSIDE
    return readable(session.quote.debit) if session.quote else None


def _received(session: Session) -> str | None:
    if session.received is None:
        return None
    received = readable(replace(session.receive, value=session.received))
    missing = _missing(session)
    if missing == 0 or session.received == 0:
        return received
    difference = readable(replace(session.receive, value=abs(missing)))
    return f"{received}, {difference} {'less' if missing > 0 else 'more'} than asked"


def _missing(session: Session) -> int:
    return session.receive.value - (session.received or 0)
