"""The payment attempts of a session: how a transition writes them, and how they are read.

An attempt begins when the customer gives a wallet (the write W1 of transitions.py). While the
attempt runs, its evidence (wallet, quote, payments) is in the fields of the session, and a short
record contains the start time and the typed text. The transition that ends the attempt copies the
evidence into this record. The copy is made from the session as it was before the transition,
because the transition may remove the evidence. So an attempt needs no write of its own, and the
evidence of one attempt cannot appear in the next.

    field of the session        belongs to the running attempt if
    customer, incoming_payment  the write W2 of this attempt stored them; W1 keeps earlier values
    quote                       the field is set; W1 removes an earlier quote
    outgoing_payment            the field is set; the end of an unpaid attempt removes its payment
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from itertools import takewhile
from typing import Any, Final

from checkout.domain.payment.attempt import EndedBy, Outcome, PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.record import Session, Status

KEPT_MAX: Final = 20
# A hostile wallet's URLs may be 2048 characters long; a stored record must stay below 400 KB.
CHARACTERS_MAX: Final = 24_000
TYPED_MAX: Final = 200
DETAIL_MAX: Final = 200

_TIMES: Final = {
    Event.PREPARED: "prepared_at",
    Event.APPROVAL_CLAIMED: "approved_at",
    Event.PAYMENT_INTENDED: "sent_at",
    Event.PAYMENT_CREATED: "accepted_at",
}
_LIVE: Final = (Status.PREPARING, Status.AWAITING_APPROVAL, Status.PROCESSING)

# The outcome of the running attempt, by the event that ends it and, if it matters, by the problem.
ENDS: Final[Mapping[tuple[str, Problem | None], tuple[Outcome, EndedBy]]] = {
    (Event.WALLET_SUBMITTED, None): (Outcome.REPLACED, EndedBy.CUSTOMER),
    (Event.PREPARATION_FAILED, None): (Outcome.FAILED, EndedBy.CUSTOMER_WALLET),
    (Event.PREPARATION_FAILED, Problem.WALLET_INVALID): (Outcome.FAILED, EndedBy.CUSTOMER),
    (Event.PREPARATION_FAILED, Problem.MERCHANT_WALLET_ERROR): (
        Outcome.FAILED,
        EndedBy.MERCHANT_WALLET,
    ),
    (Event.PREPARATION_FAILED, Problem.PREPARATION_INTERRUPTED): (Outcome.FAILED, EndedBy.CHECKOUT),
    (Event.APPROVAL_LOST, None): (Outcome.FAILED, EndedBy.CUSTOMER_WALLET),
    (Event.APPROVAL_LOST, Problem.MERCHANT_WALLET_ERROR): (Outcome.FAILED, EndedBy.MERCHANT_WALLET),
    (Event.APPROVAL_LOST, Problem.PRICE_CHANGED): (Outcome.PRICE_CHANGED, EndedBy.CUSTOMER_WALLET),
    (Event.PAYMENT_REFUSED, None): (Outcome.REFUSED, EndedBy.CUSTOMER_WALLET),
    (Event.PAYMENT_REFUSED, Problem.MERCHANT_WALLET_ERROR): (
        Outcome.FAILED,
        EndedBy.MERCHANT_WALLET,
    ),
    (Event.PAYMENT_REFUSED, Problem.WALLET_UNREACHABLE): (Outcome.FAILED, EndedBy.CUSTOMER_WALLET),
    (Event.PAYMENT_REFUSED, Problem.APPROVAL_UNUSABLE): (Outcome.TIMED_OUT, EndedBy.CHECKOUT),
    (Event.PAYMENT_DISPROVED, None): (Outcome.FAILED, EndedBy.CHECKOUT),
    (Event.MONEY_FOUND, None): (Outcome.REPLACED, EndedBy.OUTSIDE_PAYMENT),
    (Event.RECONCILED, None): (Outcome.PAID, EndedBy.MERCHANT_WALLET),
    (Event.ACCEPTED_AS_PAID, None): (Outcome.PAID_IN_PART, EndedBy.MERCHANT),
    (Event.GIVEN_UP, None): (Outcome.PAID_IN_PART, EndedBy.MERCHANT),
    (Event.EXPIRY_PASSED, None): (Outcome.TIMED_OUT, EndedBy.EXPIRY),
    (Event.EXPIRE_REQUESTED, None): (Outcome.CANCELED, EndedBy.MERCHANT),
    (Event.CANCEL_REQUESTED, None): (Outcome.CANCELED, EndedBy.MERCHANT),
}
# These outcomes do not show what the customer did at the wallet, so a report by the customer's
# browser replaces them.
_UNREPORTED: Final = (ENDS[Event.WALLET_SUBMITTED, None], ENDS[Event.EXPIRY_PASSED, None])
_WRITTEN: Final = {event for event, _ in ENDS} | {Event.REFERENCE_STORED, Event.RETURN_REPORTED}
_NO_FAILURE: Final = (Outcome.REPLACED, Outcome.CANCELED, Outcome.PAID, Outcome.PAID_IN_PART)


def attempts_of(session: Session) -> tuple[PaymentAttempt, ...]:
    """Return the session's attempts, oldest first; a running attempt has its evidence so far.

    The `number` of the first attempt shows how many older ones were dropped.
    """
    kept = session.payment_attempts
    if not kept or kept[-1].outcome is not None or session.status not in _LIVE:
        return kept
    return (*kept[:-1], _with_evidence(kept[-1], session))


def running(session: Session) -> PaymentAttempt | None:
    """Return the attempt that has not ended, with its evidence so far, or None."""
    found = attempts_of(session)[-1:]
    return found[0] if found and found[0].outcome is None and session.status in _LIVE else None


def failed(attempt: PaymentAttempt) -> bool:
    """Return whether the attempt failed. An end by the session's expiry is not a failure."""
    if attempt.outcome is None or attempt.ended_by is EndedBy.EXPIRY:
        return False
    return attempt.outcome not in _NO_FAILURE


def failure_of(session: Session) -> Outcome | None:
    """Return the failure of the last attempt, or None.

    Returns None if the session is paid, or a payment is in flight. If an attempt waits for its
    approval, and the customer's browser has reported DECLINED or TIMED_OUT, returns that report.
    """
    if session.payment_in_flight or session.status is Status.COMPLETED:
        return None
    last = attempts_of(session)[-1:]
    if not last:
        return None
    if last[0].outcome is None:
        return last[0].reported if session.phase is None else None
    return last[0].outcome if failed(last[0]) else None


class Concern(StrEnum):
    """A filter for the merchant's list of sessions."""

    FAILED = "failed"
    DECLINED = "declined"
    ATTENTION = "attention"
    PAYMENT = "payments"  # a customer gave a wallet

    def holds(self, session: Session) -> bool:
        """Return whether the filter shows this session."""
        if self is Concern.PAYMENT:
            return session.wallet_given
        if self is Concern.ATTENTION:
            return session.needs_attention
        failure = failure_of(session)
        declined = failure is Outcome.DECLINED
        return declined if self is Concern.DECLINED else failure is not None and not declined


def recorded(
    before: Session,
    event: Event,
    *,
    at: datetime,
    typed: str | None,
    reported: Outcome | None,
    note: str | None,
    changes: Mapping[str, Any],
) -> tuple[PaymentAttempt, ...]:
    """Return the attempts after `event`. `changes` are the fields that the event sets."""
    kept = before.payment_attempts
    if event not in _WRITTEN:
        return kept
    current, problem = running(before), changes.get("problem")
    end = ENDS.get((event, problem)) or ENDS.get((event, None))
    if current is not None and end is not None:
        received = (
            0 if event == Event.PAYMENT_DISPROVED else changes.get("received", before.received)
        )
        if end[0] is Outcome.PAID and received is None:
            # The wallet's report alone has completed the session (CompletionPolicy).
            end = (Outcome.PAID, EndedBy.CUSTOMER_WALLET)
        ended = _ended(current, end, at, problem, note, received)
        kept = (*kept[:-1], ended)
    elif (
        current is not None
        and event == Event.REFERENCE_STORED
        and changes.get("customer") is not None
    ):
        kept = (*kept[:-1], replace(kept[-1], resolved_at=at))
    elif current is not None and event == Event.RETURN_REPORTED:
        kept = (*kept[:-1], replace(kept[-1], reported=reported, reported_at=at))
    if event == Event.WALLET_SUBMITTED:
        text = typed.strip()[:TYPED_MAX] if typed else None
        number = 1 + (kept[-1].number if kept else 0)
        kept = (*kept, PaymentAttempt(number=number, submitted_at=at, typed=text))
    return _bounded(kept)


def _with_evidence(attempt: PaymentAttempt, session: Session) -> PaymentAttempt:
    """Return the running attempt with its evidence from the session's fields."""
    since = _since(session)
    times: dict[str, Any] = {name: since.get(event) for event, name in _TIMES.items()}
    known = attempt.resolved_at is not None
    incoming = session.incoming_payment
    return replace(
        attempt,
        wallet=session.customer.id if known and session.customer else None,
        incoming_payment=incoming.id if known and incoming else None,
        quote=session.quote,
        outgoing_payment=session.outgoing_payment,
        received=session.received,
        **times,
    )


def _since(session: Session) -> dict[str, datetime]:
    """Return when each event first happened since the last wallet was given."""
    since = takewhile(
        lambda entry: entry.event != Event.WALLET_SUBMITTED, reversed(session.history)
    )
    return {entry.event: entry.at for entry in since}


def _ended(
    attempt: PaymentAttempt,
    end: tuple[Outcome, EndedBy],
    at: datetime,
    problem: Problem | None,
    note: str | None,
    received: int | None,
) -> PaymentAttempt:
    outcome, by = end
    if attempt.reported is not None and end in _UNREPORTED:
        outcome, by = attempt.reported, EndedBy.CUSTOMER
    detail = _detail(problem, note)
    return replace(
        attempt,
        outcome=outcome,
        ended_by=by,
        ended_at=at,
        problem=problem.value if problem else None,
        detail=detail[:DETAIL_MAX] if detail else None,
        received=received,
    )


def _detail(problem: Problem | None, note: str | None) -> str | None:
    if problem is None or note is None:
        return None
    return note.removeprefix(problem.value).removeprefix(": ")


def _bounded(kept: tuple[PaymentAttempt, ...]) -> tuple[PaymentAttempt, ...]:
    """Return the newest attempts, as many as a session keeps (KEPT_MAX, CHARACTERS_MAX)."""
    kept = kept[-KEPT_MAX:]
    while len(kept) > 1 and sum(each.characters for each in kept) > CHARACTERS_MAX:
        kept = kept[1:]
    return kept
