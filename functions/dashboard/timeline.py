"""The history of a session as text, grouped by payment attempt.

The facts about an attempt come from the attempt's own record, never from the session's present
state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.links import began_at_link
from checkout.domain.payment.attempt import EndedBy, Outcome, PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.session.attempts import ENDS, attempts_of
from checkout.domain.session.record import Session
from dashboard import texts
from dashboard.view import readable, short

_AT_ONCE: Final = timedelta(seconds=1)  # shorter times are not shown
_CREATED: Final = "created"  # the name of the first entry of a history
# These events end an attempt from outside. Their steps belong to the session, not to the attempt.
_OF_THE_SESSION: Final = frozenset[str](
    {
        Event.MONEY_FOUND,
        Event.EXPIRY_PASSED,
        Event.EXPIRE_REQUESTED,
        Event.CANCEL_REQUESTED,
        Event.ERASED,
        Event.LATE_PAYMENT,
        Event.REFUND_REQUESTED,
        Event.PAID_ELSEWHERE,
        Event.REFUND_SETTLED,
        Event.DETAILS_GIVEN,
        Event.METADATA_CHANGED,
    }
)
_LAST_STEPS: Final = frozenset(event for event, _ in ENDS) - _OF_THE_SESSION


@dataclass(frozen=True, slots=True)
class TimelineStep:
    """A step of the history.

    `after` is the time since the previous step, `resource` the URL of the step's Open Payments
    resource.
    """

    at: datetime
    after: str | None
    text: str
    detail: str | None
    resource: str | None
    bad: bool


@dataclass(frozen=True, slots=True)
class AttemptGroup:
    """The steps of one attempt, or, if `title` is None, steps that belong to no attempt.

    `said` summarizes the attempt in one line, and `facts` are the known facts by name. `at` is the
    time at which the attempt ended, or began if it has not ended. `took` is the duration of an
    ended attempt. `look` is the CSS class of the attempt's mark.
    """

    title: str | None = None
    look: str = ""
    said: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    number: int | None = None
    took: str | None = None
    at: datetime | None = None
    steps: list[TimelineStep] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Timeline:
    """The groups of steps, oldest first.

    `older` is how many attempts are no longer stored. `newest` is the number of the newest attempt,
    counted from the first.
    """

    chapters: tuple[AttemptGroup, ...]
    older: int
    newest: int
    wallets_given: int
    names_incoming_payment: bool


def timeline(session: Session) -> Timeline:
    """Return the session's history as text.

    The time of creation is taken from the session's record, because the stored history is limited
    in length and may no longer contain the creation.
    """
    attempts = {each.number: each for each in attempts_of(session)}
    given = _count(session, attempts)
    number = given - sum(entry.event == Event.WALLET_SUBMITTED for entry in session.history)
    begun = texts.BY_SERVER
    if began_at_link(session):
        begun = texts.AT_LINK.format(session.line_items[0].title)
    beginning = TimelineStep(session.created_at, None, begun, None, None, bad=False)
    chapters, before, running = [AttemptGroup(steps=[beginning])], session.created_at, False
    for entry in session.history:
        if entry.event == _CREATED:
            continue
        if entry.event == Event.WALLET_SUBMITTED:
            number, running = number + 1, True
            chapters.append(_chapter(number, attempts.get(number), session, entry.at))
        elif running and entry.event in _OF_THE_SESSION:
            running = False
        if not running and chapters[-1].title is not None:
            chapters.append(AttemptGroup())
        attempt = attempts.get(number) if running else None
        described = {step.text for step in chapters[-1].steps}
        chapters[-1].steps.append(_step(entry, attempt, before, described))
        before = entry.at
        if entry.event in _LAST_STEPS and entry.event != Event.WALLET_SUBMITTED:
            running = False
    return Timeline(
        chapters=tuple(chapters),
        older=min(attempts, default=given + 1) - 1,
        newest=given,
        wallets_given=given,
        names_incoming_payment=any(each.incoming_payment for each in attempts.values()),
    )


def _count(session: Session, attempts: dict[int, PaymentAttempt]) -> int:
    described = sum(entry.event == Event.WALLET_SUBMITTED for entry in session.history)
    return max(attempts, default=described)


def _chapter(
    number: int, attempt: PaymentAttempt | None, session: Session, begun: datetime
) -> AttemptGroup:
    title = f"Attempt {number}"
    if attempt is None:  # an old attempt that is no longer stored
        return AttemptGroup(title, number=number, at=begun)
    described = attempt.outcome or (attempt.reported if attempt.approved_at is None else None)
    running = texts.PART_ARRIVED if session.partly_paid else texts.RUNNING
    ended = texts.OUTCOME[described] if described else running
    if _only_reported(attempt):
        ended += f" ({texts.NOT_PROVEN})"
    took = span(attempt.ended_at - attempt.submitted_at) if attempt.ended_at else None
    price = readable(attempt.quote.debit) if attempt.quote else None
    return AttemptGroup(
        f"{title}: {ended}",
        _look(described),
        ", ".join(each for each in (short(attempt.wallet), price, took) if each),
        tuple(_facts(attempt, session)),
        number,
        took,
        attempt.ended_at or begun,
    )


def _look(described: Outcome | None) -> str:
    """Return the CSS class of an attempt's mark. Replaced or canceled attempts did not fail."""
    if described is Outcome.PAID:
        return "completed"
    return "" if described in (None, Outcome.REPLACED, Outcome.CANCELED) else "bad"


def _facts(attempt: PaymentAttempt, session: Session) -> Iterator[tuple[str, str]]:
    """Yield the known facts about an attempt, except those that its steps already show."""
    if attempt.wallet:
        yield "Wallet", attempt.wallet
    elif session.erased or (attempt.typed is None and session.happened(Event.ERASED)):
        yield "Wallet", texts.ERASED
    if attempt.quote:
        yield "Price for the customer", readable(attempt.quote.debit)
    if attempt.outcome is Outcome.PAID and attempt.ended_by is EndedBy.MERCHANT_WALLET:
        yield "Money seen by", texts.ENDED_BY[attempt.ended_by]
    elif attempt.ended_by:
        yield "Ended by", _ended_by(attempt)
    if attempt.reported:
        yield "Reported by the browser", texts.REPORTED[attempt.reported]


def _only_reported(attempt: PaymentAttempt) -> bool:
    """Return whether only the customer's browser has reported how the attempt ended."""
    if attempt.outcome is None:
        return attempt.reported is not None and attempt.approved_at is None
    return attempt.reported is attempt.outcome and attempt.ended_by is EndedBy.CUSTOMER


def _ended_by(attempt: PaymentAttempt) -> str:
    if _only_reported(attempt):
        return "the customer, as far as their browser says"
    assert attempt.ended_by is not None
    return texts.ENDED_BY[attempt.ended_by]


def _step(
    entry: HistoryEntry, attempt: PaymentAttempt | None, before: datetime, described: set[str]
) -> TimelineStep:
    """Return a history entry as a step.

    If a later release has stored an event that is unknown here, the text is the event's name.
    `described` has the texts of the earlier steps in the same group.
    """
    text, resource, detail = texts.STEP.get(entry.event, entry.event), None, _detail(entry)
    if attempt is not None:
        if entry.event == Event.WALLET_SUBMITTED:
            detail = attempt.typed
        elif entry.event == Event.REFERENCE_STORED and attempt.resolved_at is not None:
            text, resource = _stored(entry, attempt, text, described)
        elif entry.event == Event.PAYMENT_CREATED:
            resource = attempt.outgoing_payment
    bad, took = entry.event in texts.BAD_STEPS, entry.at - before
    after = None if took < _AT_ONCE else f"{span(took)} later"
    return TimelineStep(entry.at, after, text, detail, resource, bad)


def _stored(
    entry: HistoryEntry, attempt: PaymentAttempt, text: str, described: set[str]
) -> tuple[str, str | None]:
    """Return the text and URL of a stored resource: first the incoming payment, then the quote."""
    assert attempt.resolved_at is not None
    if entry.at == attempt.resolved_at and texts.INCOMING not in described:
        return texts.INCOMING, attempt.incoming_payment
    if entry.at >= attempt.resolved_at and attempt.quote is not None:
        return texts.QUOTED, attempt.quote.id
    return text, None


def _detail(entry: HistoryEntry) -> str | None:
    """Return the text for an entry's note: a problem's name, perhaps with a kind of error.

    If the merchant's key was refused, the text states the reason and the provider's answer.
    """
    if entry.event == Event.RETURN_REPORTED:
        return texts.REPORTED.get(entry.note or "", entry.note)
    name, _, kind = (entry.note or "").partition(": ")
    said = texts.PROBLEM.get(name)
    reason, _, answered = kind.partition(" ")
    if said and reason in texts.KEY_REFUSED:
        said, kind = texts.KEY_REFUSED[reason], answered.strip("()")
    kind = texts.KIND.get(kind, kind)
    return said + (f" ({kind})" if kind else "") if said else entry.note


def span(length: timedelta) -> str:
    """Return a duration as text, rounded down."""
    seconds = int(length.total_seconds())
    if seconds < 1:
        return "less than a second"
    for unit, size, least in (("day", 86_400, 2), ("hour", 3600, 2), ("minute", 60, 2)):
        if seconds >= least * size:
            return f"{seconds // size} {unit}s"
    return f"{seconds} second{'s' if seconds > 1 else ''}"
