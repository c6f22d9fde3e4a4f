"""Payment attempts: each with its own evidence, never lost, never changed after its end."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.payment.attempt import EndedBy, Outcome, PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import (
    Attention,
    Instruction,
    Phase,
    Problem,
)
from checkout.domain.session.attempts import CHARACTERS_MAX, ENDS, attempts_of, failure_of, running
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import TRANSITIONS
from tests.support.attempts import after, awaiting, of, paying, processing, refused, submitted
from tests.support.basics import NOW, a_session
from tests.support.protected import ATTEMPTS_KEPT

LIVE = (Status.PREPARING, Status.AWAITING_APPROVAL, Status.PROCESSING)


def test_an_attempt_that_runs_shows_what_is_known_so_far() -> None:
    first = submitted()
    assert attempts_of(first) == (PaymentAttempt(1, first.updated_at, typed="$wallet.example/1"),)
    whole = running(processing())
    assert whole is not None
    assert whole.wallet == of(1, "wallets")
    assert whole.incoming_payment == of(1, "incoming")
    assert whole.outgoing_payment == of(1, "outgoing")
    assert whole.quote is not None
    times = (whole.resolved_at, whole.prepared_at, whole.approved_at, whole.sent_at)
    assert list(times) == sorted(each for each in times if each)
    assert whole.accepted_at is not None
    assert (whole.outcome, whole.ended_at) == (None, None)


def test_little_of_a_running_attempt_is_stored() -> None:
    (stored,) = processing().payment_attempts
    assert stored == PaymentAttempt(
        1, stored.submitted_at, typed="$wallet.example/1", resolved_at=stored.resolved_at
    )


def test_an_attempt_without_a_wallet_has_not_that_of_the_one_before() -> None:
    again = submitted(refused(), 2)
    assert again.customer is not None
    second = attempts_of(again)[-1]
    assert (second.number, second.wallet, second.incoming_payment) == (2, None, None)


def test_a_refused_attempt_keeps_its_evidence_when_the_next_one_pays() -> None:
    session = after(processing(refused(), 2), Event.RECONCILED, received=2000, completed_at=NOW)
    first, second = attempts_of(session)
    assert (first.outcome, first.ended_by, first.detail) == (
        Outcome.REFUSED,
        EndedBy.CUSTOMER_WALLET,
        "no_funds",
    )
    assert (first.wallet, first.received) == (of(1, "wallets"), None)
    assert first.quote is not None
    assert first.quote.id == of(1, "quotes")
    assert (second.outcome, second.ended_by) == (Outcome.PAID, EndedBy.MERCHANT_WALLET)
    assert (second.outgoing_payment, second.received) == (of(2, "outgoing"), 2000)
    assert second.incoming_payment == first.incoming_payment


CLOSING: dict[str, Any] = {"closing_at": NOW, "closed_at": NOW - timedelta(days=1)}
PART: dict[str, Any] = {"attention": Attention.PARTIAL_PAYMENT, "received": 5, "check_at": None}
ENDINGS: list[tuple[Session, Event, dict[str, Any], Outcome, EndedBy]] = [
    (awaiting(), Event.WALLET_SUBMITTED, {}, Outcome.REPLACED, EndedBy.CUSTOMER),
    (awaiting(), Event.MONEY_FOUND, {}, Outcome.REPLACED, EndedBy.OUTSIDE_PAYMENT),
    (awaiting(), Event.CANCEL_REQUESTED, {}, Outcome.CANCELED, EndedBy.MERCHANT),
    (awaiting(), Event.EXPIRE_REQUESTED, {}, Outcome.CANCELED, EndedBy.MERCHANT),
    (
        submitted(),
        Event.PREPARATION_FAILED,
        {"problem": Problem.WALLET_INVALID},
        Outcome.FAILED,
        EndedBy.CUSTOMER,
    ),
    (
        submitted(),
        Event.PREPARATION_FAILED,
        {"problem": Problem.WALLET_UNREACHABLE},
        Outcome.FAILED,
        EndedBy.CUSTOMER_WALLET,
    ),
    (
        paying(),
        Event.PAYMENT_REFUSED,
        {"problem": Problem.APPROVAL_UNUSABLE, "note": "approval_unusable: not sent in time"},
        Outcome.TIMED_OUT,
        EndedBy.CHECKOUT,
    ),
    (
        replace(processing(), **CLOSING),
        Event.PAYMENT_DISPROVED,
        {"problem": Problem.PAYMENT_FAILED},
        Outcome.FAILED,
        EndedBy.CHECKOUT,
    ),
    (processing(), Event.RECONCILED, {}, Outcome.PAID, EndedBy.CUSTOMER_WALLET),
    (
        replace(processing(), **PART),
        Event.ACCEPTED_AS_PAID,
        {},
        Outcome.PAID_IN_PART,
        EndedBy.MERCHANT,
    ),
    (replace(processing(), **PART), Event.GIVEN_UP, {}, Outcome.PAID_IN_PART, EndedBy.MERCHANT),
]


@pytest.mark.parametrize("case", ENDINGS, ids=lambda case: f"{case[1]} {case[3]}")
def test_an_attempt_ends_as_the_event_says(
    case: tuple[Session, Event, dict[str, Any], Outcome, EndedBy],
) -> None:
    session, event, fields, outcome, by = case
    ended = after(session, event, **fields).payment_attempts[0]
    assert (ended.outcome, ended.ended_by) == (outcome, by)
    assert ended.ended_at == session.updated_at + timedelta(seconds=1)
    assert ended.received == (0 if event is Event.PAYMENT_DISPROVED else session.received)


def test_time_that_runs_out_ends_an_attempt_but_is_no_failure() -> None:
    session = after(awaiting(), Event.EXPIRY_PASSED, seconds=100_000)
    (attempt,) = attempts_of(session)
    assert (attempt.outcome, attempt.ended_by) == (Outcome.TIMED_OUT, EndedBy.EXPIRY)
    assert failure_of(session) is None


@pytest.mark.parametrize("event", [Event.WALLET_SUBMITTED, Event.EXPIRY_PASSED])
def test_what_the_browser_reported_is_told_of_an_attempt_that_nothing_else_is_known_of(
    event: Event,
) -> None:
    session = after(awaiting(), Event.RETURN_REPORTED, reported=Outcome.DECLINED, note="declined")
    waits = running(session)
    assert waits is not None
    assert (waits.reported, waits.reported_at) == (Outcome.DECLINED, session.updated_at)
    assert session.status is Status.AWAITING_APPROVAL
    assert failure_of(session) is Outcome.DECLINED
    seconds = 100_000 if event is Event.EXPIRY_PASSED else 1
    ended = after(session, event, seconds).payment_attempts[0]
    assert (ended.outcome, ended.ended_by) == (Outcome.DECLINED, EndedBy.CUSTOMER)
    assert ended.reported is Outcome.DECLINED


def test_a_report_does_not_hide_that_the_payment_was_made() -> None:
    session = after(awaiting(), Event.RETURN_REPORTED, reported=Outcome.DECLINED)
    claimed = after(session, Event.APPROVAL_CLAIMED, lease_until=NOW + timedelta(days=1))
    assert failure_of(claimed) is None
    sent = Instruction("i", claimed.updated_at)
    intended = after(claimed, Event.PAYMENT_INTENDED, instruction=sent, check_at=NOW)
    made = after(intended, Event.PAYMENT_CREATED, outgoing_payment="https://w.example/out")
    (attempt,) = attempts_of(after(made, Event.RECONCILED, received=2000))
    assert (attempt.outcome, attempt.reported) == (Outcome.PAID, Outcome.DECLINED)


def test_the_last_failure_is_the_sessions_until_it_is_paid() -> None:
    assert failure_of(a_session()) is None
    assert failure_of(submitted()) is None
    assert failure_of(refused()) is Outcome.REFUSED
    assert failure_of(submitted(refused(), 2)) is None
    assert failure_of(after(processing(refused(), 2), Event.RECONCILED, received=2000)) is None
    assert failure_of(processing()) is None
    assert failure_of(after(awaiting(), Event.CANCEL_REQUESTED)) is None


def test_the_newest_attempts_are_kept_whole_and_the_older_ones_counted() -> None:
    session = a_session()
    for number in range(1, ATTEMPTS_KEPT + 6):
        session = refused(session, number)
    kept = attempts_of(session)
    assert [each.number for each in kept] == list(range(6, ATTEMPTS_KEPT + 6))
    assert submitted(session).payment_attempts[-1].number == ATTEMPTS_KEPT + 6


def test_long_urls_of_a_wallet_cannot_make_a_record_too_large() -> None:
    session = a_session()
    for number in range(1, 9):
        prepared = awaiting(session, number)
        assert prepared.quote is not None
        long = replace(prepared.quote, id="https://w.example/" + "q" * 4000)
        session = after(replace(prepared, quote=long), Event.CANCEL_REQUESTED)
        session = replace(session, status=Status.OPEN)
    kept = session.payment_attempts
    assert sum(each.characters for each in kept) <= CHARACTERS_MAX
    assert [each.number for each in kept] == list(range(kept[0].number, 9))
    assert len(kept) > 3


def test_only_the_beginning_of_what_was_typed_is_kept() -> None:
    session = after(a_session(), Event.WALLET_SUBMITTED, typed="x" * 2048)
    assert session.payment_attempts[0].typed == "x" * 200


def test_every_event_that_ends_an_attempt_has_an_outcome_and_no_other_has() -> None:
    ending = {
        event
        for (status, event), row in TRANSITIONS.items()
        if status in LIVE and row.to not in LIVE
    }
    ending |= {Event.WALLET_SUBMITTED, Event.MONEY_FOUND}
    assert {event for event, _ in ENDS} == {event.value for event in ending}


def test_a_session_in_two_minds_is_never_shown_as_running() -> None:
    """A record that runs in a session that does not: another release went on with it."""
    odd = replace(awaiting(), status=Status.OPEN, phase=Phase.PAYING)
    (attempt,) = attempts_of(odd)
    assert (attempt.outcome, attempt.wallet) == (None, None)
    assert running(odd) is None
