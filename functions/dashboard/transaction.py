"""One session for its page: everything that is known, and its story in plain words.

What is not a field here cannot get onto the page: grants, tokens, nonces and interact addresses
have none.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.session import HistoryEntry, Phase, Problem, Session, Status
from checkout.domain.transitions import Event
from checkout.domain.webhooks import Delivery, GivenUp, WebhookEvent
from checkout.open_payments.models import Amount
from dashboard import texts
from dashboard.view import Moment, minor, moment, readable

_ANSWER_SHOWN: Final = 200  # characters of what the endpoint answered


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    description: str | None
    quantity: int
    price: str
    total: str


@dataclass(frozen=True, slots=True)
class Step:
    """`resource` is the Open Payments resource that it was about; `after` the time since the step
    before.
    """

    at: Moment
    after: str | None
    text: str
    detail: str | None
    resource: str | None
    bad: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """`sent` is what the customer pays, `received` what the merchant's wallet is known to hold of
    it.
    """

    id: str
    url: str
    status: str
    status_text: str
    amount: str
    waiting: str
    attention: tuple[str, str] | None
    problem: str | None
    can_end: bool
    created_at: Moment
    expires_at: Moment
    completed_at: Moment | None
    wallet: str | None
    sent: str | None
    received: str | None
    incoming_payment: str | None
    quote: str | None
    outgoing_payment: str | None
    wallets_given: int
    checks: int
    next_check: Moment | None
    success_url: str
    cancel_url: str
    lines: tuple[Line, ...]
    metadata: tuple[tuple[str, str], ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Attempt:
    at: Moment
    outcome: str
    took: str | None
    answer: str | None
    bad: bool


@dataclass(frozen=True, slots=True)
class Delivered:
    """How the merchant was told."""

    id: str
    type: str
    status: str
    bad: bool
    given_up: str | None
    next_at: Moment | None
    attempts: tuple[Attempt, ...]


def shown(session: Session, *, now: datetime, base_url: str) -> Shown:
    """`session`, settled, as it stands at `now`."""
    status = session.status_at(now)
    endable = status in (Status.OPEN, Status.AWAITING_APPROVAL)
    return Shown(
        id=session.id,
        url=f"{base_url}/pay/{session.id}",
        status=status.value,
        status_text=texts.STATUS[status],
        amount=minor(session.amount_total, session),
        waiting=texts.WAITING[_stage(session, status)],
        attention=texts.ATTENTION[session.attention] if session.attention else None,
        problem=texts.PROBLEM[session.problem] if session.problem else None,
        can_end=endable and session.phase is None,
        created_at=moment(session.created_at),
        expires_at=moment(session.expires_at),
        completed_at=moment(session.completed_at) if session.completed_at else None,
        wallet=session.customer.id if session.customer else None,
        sent=readable(session.quote.debit) if session.quote else None,
        received=_received(session),
        incoming_payment=session.incoming_payment.id if session.incoming_payment else None,
        quote=session.quote.id if session.quote else None,
        outgoing_payment=session.outgoing_payment,
        wallets_given=sum(e.event == Event.WALLET_SUBMITTED for e in session.history),
        checks=session.checks,
        next_check=moment(session.check_at) if session.check_at else None,
        success_url=session.success_url,
        cancel_url=session.cancel_url,
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
        metadata=tuple((name, _plain(value)) for name, value in session.metadata.items()),
        steps=tuple(_steps(session)),
    )


def delivered(event: WebhookEvent) -> Delivered:
    pending, unwanted = event.ended_at is None, event.given_up is GivenUp.NO_ENDPOINT
    return Delivered(
        id=event.id,
        type=event.type,
        status=texts.NOT_SENT if unwanted else texts.DELIVERY[event.status],
        bad=event.given_up is not None and not unwanted,
        given_up=texts.GIVEN_UP[event.given_up] if event.given_up else None,
        next_at=moment(event.next_at) if pending else None,
        attempts=tuple(_attempt(delivery) for delivery in event.deliveries),
    )


def _stage(session: Session, status: Status) -> str:
    if session.closing_at is not None and session.payment_in_flight:
        return "closing"
    if session.phase is Phase.CONTINUING:
        return "continuing"
    if session.phase is Phase.PAYING:
        return "paying"
    if status is Status.COMPLETED and session.received is None:
        return "instructed"
    return status.value


def _received(session: Session) -> str | None:
    if session.received is None:
        return None
    code, scale = session.receive.asset_code, session.receive.asset_scale
    return readable(Amount(session.received, code, scale))


def _steps(session: Session) -> Iterator[Step]:
    """The history in words; "created" is told from the record, since a long history loses its
    beginning. Of a preparation's references the first is the incoming payment, the
    last before it was ready the quote.
    """
    yield Step(moment(session.created_at), None, "Created by your server", None, None, bad=False)
    before = session.created_at
    given = 0
    history = [entry for entry in session.history if entry.event in set(Event)]
    for place, entry in enumerate(history):
        event = Event(entry.event)
        follows = history[place + 1].event if place + 1 < len(history) else None
        given += event is Event.WALLET_SUBMITTED
        text, resource = texts.STEP[event], None
        if event is Event.REFERENCE_STORED and follows == Event.PREPARED:
            text, resource = texts.QUOTED, session.quote.id if session.quote else None
        elif event is Event.REFERENCE_STORED and history[place - 1].event == Event.WALLET_SUBMITTED:
            stored = session.incoming_payment
            text, resource = texts.INCOMING, stored.id if stored else None
        elif event is Event.PAYMENT_CREATED:
            resource = session.outgoing_payment
        detail = _detail(entry)
        if event is Event.WALLET_SUBMITTED and given > 1:
            detail = f"Try number {given}."
        after = _span(entry.at - before)
        yield Step(moment(entry.at), after, text, detail, resource, event in texts.BAD_STEPS)
        before = entry.at


def _detail(entry: HistoryEntry) -> str | None:
    """A note is ours: the name of a problem, maybe with what kind of error it came of."""
    name, _, kind = (entry.note or "").partition(": ")
    if name in {problem.value for problem in Problem}:
        return texts.PROBLEM[Problem(name)] + (f" ({kind})" if kind else "")
    return entry.note


def _attempt(delivery: Delivery) -> Attempt:
    if delivery.status is not None:
        outcome = f"Answered {delivery.status}"
    elif delivery.duration_ms is None:
        outcome = "Begun; how it ended is not known"
    else:
        outcome = f"No answer: {delivery.error}"
    return Attempt(
        at=moment(delivery.at),
        outcome=outcome,
        took=f"{delivery.duration_ms} ms" if delivery.duration_ms is not None else None,
        answer=(delivery.answer or "")[:_ANSWER_SHOWN] or None,
        bad=not delivery.succeeded,
    )


def _span(span: timedelta) -> str:
    """In whole milliseconds, seconds or minutes, whichever is the largest that says something."""
    milliseconds = span // timedelta(milliseconds=1)
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    seconds = milliseconds // 1000
    if seconds < 120:
        return f"{seconds}.{milliseconds % 1000 // 100} s"
    return f"{seconds // 60} min" if seconds < 7200 else f"{seconds // 3600} h"


def _plain(value: object) -> str:
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)
