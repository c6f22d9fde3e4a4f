"""The story of a session: its history in words, grouped by payment attempt.

What is shown of an attempt is in its own record, never taken from the session as it is now.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.attempts import ENDS, attempts_of
from checkout.domain.payment_attempt import EndedBy, Outcome, PaymentAttempt
from checkout.domain.session import HistoryEntry, Session
from checkout.domain.transitions import Event
from checkout.pages import Moment
from dashboard import texts
from dashboard.view import moment, readable

_CREATED: Final = "created"  # the first entry of a history
# These end an attempt from outside: they are told of the session.
_OF_THE_SESSION: Final = frozenset[str](
    {
        Event.MONEY_FOUND,
        Event.EXPIRY_PASSED,
        Event.EXPIRE_REQUESTED,
        Event.CANCEL_REQUESTED,
        Event.ERASED,
        Event.LATE_PAYMENT,
    }
)
_LAST_STEPS: Final = frozenset(event for event, _ in ENDS) - _OF_THE_SESSION


@dataclass(frozen=True, slots=True)
class Step:
    """A step of the history; `after` is the time since the previous step.

    `resource` is the URL of the Open Payments resource that the step is about.
    """

    at: Moment
    after: str | None
    text: str
    detail: str | None
    resource: str | None
    bad: bool


@dataclass(frozen=True, slots=True)
class Chapter:
    """The steps of one attempt, or steps that belong to none; then `title` is None.

    `facts` are what is known of the attempt, by name.
    """

    title: str | None = None
    bad: bool = False
    facts: tuple[tuple[str, str], ...] = ()
    steps: list[Step] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Story:
    """The chapters, oldest first. `older` attempts are only counted."""

    chapters: tuple[Chapter, ...]
    older: int
    wallets_given: int
    names_incoming_payment: bool


def story(session: Session) -> Story:
    """Return the session's story. The creation comes from the record: a history is bounded."""
    attempts = {each.number: each for each in attempts_of(session)}
    given = _count(session, attempts)
    number = given - sum(entry.event == Event.WALLET_SUBMITTED for entry in session.history)
    beginning = Step(
        moment(session.created_at), None, "Created by your server", None, None, bad=False
    )
    chapters, before, running = [Chapter(steps=[beginning])], session.created_at, False
    for entry in session.history:
        if entry.event == _CREATED:
            continue
        if entry.event == Event.WALLET_SUBMITTED:
            number, running = number + 1, True
            chapters.append(_chapter(number, attempts.get(number), session))
        elif running and entry.event in _OF_THE_SESSION:
            running = False
        if not running and chapters[-1].title is not None:
            chapters.append(Chapter())
        attempt = attempts.get(number) if running else None
        told = {step.text for step in chapters[-1].steps}
        chapters[-1].steps.append(_step(entry, attempt, before, told))
        before = entry.at
        if entry.event in _LAST_STEPS and entry.event != Event.WALLET_SUBMITTED:
            running = False
    return Story(
        chapters=tuple(chapters),
        older=min(attempts, default=given + 1) - 1,
        wallets_given=given,
        names_incoming_payment=any(each.incoming_payment for each in attempts.values()),
    )


def _count(session: Session, attempts: dict[int, PaymentAttempt]) -> int:
    told = sum(entry.event == Event.WALLET_SUBMITTED for entry in session.history)
    return max(attempts, default=told)


def _chapter(number: int, attempt: PaymentAttempt | None, session: Session) -> Chapter:
    title = f"Attempt {number}"
    if attempt is None:  # an earlier release kept no more of it than its steps
        return Chapter(title)
    told = attempt.outcome or (attempt.reported if attempt.approved_at is None else None)
    ended = texts.OUTCOME[told] if told else texts.RUNNING
    bad = told not in (None, Outcome.PAID, Outcome.REPLACED, Outcome.CANCELED)
    return Chapter(f"{title}: {ended}", bad, tuple(_facts(attempt, session)))


def _facts(attempt: PaymentAttempt, session: Session) -> Iterator[tuple[str, str]]:
    """Yield what is known of an attempt. What its steps name is not told again."""
    if attempt.wallet:
        yield "Wallet", attempt.wallet
    elif session.erased or (attempt.typed is None and session.happened(Event.ERASED)):
        yield "Wallet", texts.ERASED
    if attempt.quote:
        yield "Price for the customer", readable(attempt.quote.debit)
    if attempt.ended_by:
        yield "Ended by", _ended_by(attempt)
    if attempt.reported:
        yield "Reported by the browser", texts.REPORTED[attempt.reported]


def _ended_by(attempt: PaymentAttempt) -> str:
    if attempt.reported is attempt.outcome and attempt.ended_by is EndedBy.CUSTOMER:
        return "the customer, as far as their browser says"
    assert attempt.ended_by is not None
    return texts.ENDED_BY[attempt.ended_by]


def _step(
    entry: HistoryEntry, attempt: PaymentAttempt | None, before: datetime, told: set[str]
) -> Step:
    """Return an entry in words; an event that this release does not know has its own name.

    `told` are the texts of the chapter's earlier steps.
    """
    text, resource, detail = texts.STEP.get(entry.event, entry.event), None, _detail(entry)
    if attempt is not None:
        if entry.event == Event.WALLET_SUBMITTED:
            detail = attempt.typed
        elif entry.event == Event.REFERENCE_STORED and attempt.resolved_at is not None:
            text, resource = _stored(entry, attempt, text, told)
        elif entry.event == Event.PAYMENT_CREATED:
            resource = attempt.outgoing_payment
    bad, after = entry.event in texts.BAD_STEPS, span(entry.at - before)
    return Step(moment(entry.at), f"{after} later", text, detail, resource, bad)


def _stored(
    entry: HistoryEntry, attempt: PaymentAttempt, text: str, told: set[str]
) -> tuple[str, str | None]:
    """Return the text of what a preparation has stored, and its URL.

    That is the incoming payment, and then the quote.
    """
    assert attempt.resolved_at is not None
    if entry.at == attempt.resolved_at and texts.INCOMING not in told:
        return texts.INCOMING, attempt.incoming_payment
    if entry.at >= attempt.resolved_at and attempt.quote is not None:
        return texts.QUOTED, attempt.quote.id
    return text, None


def _detail(entry: HistoryEntry) -> str | None:
    """Return the note in words: the name of a problem, which the kind of error may follow.

    A refusal of the merchant's key is told in place of the problem, with the provider's answer.
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
    """Return a length of time in words, rounded down."""
    seconds = int(length.total_seconds())
    if seconds < 1:
        return "less than a second"
    for unit, size, least in (("day", 86_400, 2), ("hour", 3600, 2), ("minute", 60, 2)):
        if seconds >= least * size:
            return f"{seconds // size} {unit}s"
    return f"{seconds} second{'s' if seconds > 1 else ''}"
