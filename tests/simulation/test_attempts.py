"""Each check of payment attempts can fail: it is shown what it must catch."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.payment_attempt import Outcome
from checkout.domain.session import Session, Status
from checkout.domain.session_events import Event
from sandbox.wallets.state import State
from tests.simulation.attempts import Attempts
from tests.support.attempts import after, awaiting, processing, refused, submitted

PAID = after(processing(refused(), 2), Event.RECONCILED, received=2000)


def caught(before: Session, event: Event, now: Session, given: int) -> list[str]:
    found: list[str] = []
    checks = Attempts(State, lambda check, told: found.append(check))
    checks._given[now.id] = given - (event is Event.WALLET_SUBMITTED)
    checks.written(before, now, event)
    return found


def changed(session: Session, place: int, **fields: Any) -> Session:
    attempts = list(session.payment_attempts)
    attempts[place] = replace(attempts[place], **fields)
    return replace(session, payment_attempts=tuple(attempts))


def typed_right(session: Session) -> Session:
    """The session with its wallets typed as their documents name them."""
    attempts = tuple(
        replace(each, typed=each.wallet or each.typed) for each in session.payment_attempts
    )
    return replace(session, payment_attempts=attempts)


GOOD = [
    (refused(), Event.WALLET_SUBMITTED, submitted(refused(), 2), 2),
    (processing(refused(), 2), Event.RECONCILED, PAID, 2),
    (awaiting(), Event.CANCEL_REQUESTED, after(awaiting(), Event.CANCEL_REQUESTED), 1),
    (awaiting(), Event.MONEY_FOUND, after(awaiting(), Event.MONEY_FOUND), 1),
]


@pytest.mark.parametrize("case", GOOD, ids=lambda case: str(case[1]))
def test_a_right_write_is_let_pass(case: tuple[Session, Event, Session, int]) -> None:
    before, event, now, given = case
    assert caught(typed_right(before), event, typed_right(now), given) == []


LAST, TRYING = PAID.payment_attempts[-1], processing(refused(), 2)
BAD: list[tuple[str, Event, Session]] = [
    ("attempt_is_never_lost", Event.RECONCILED, replace(PAID, payment_attempts=(LAST,))),
    ("ended_attempt_never_changes", Event.RECONCILED, changed(PAID, 0, outcome=Outcome.FAILED)),
    ("attempt_agrees_with_state", Event.RECONCILED, changed(PAID, 1, outcome=Outcome.FAILED)),
    ("attempt_agrees_with_state", Event.RECONCILED, changed(PAID, 1, outcome=None)),
    ("attempt_agrees_with_state", Event.RECONCILED, replace(PAID, status=Status.OPEN)),
    ("attempt_agrees_with_state", Event.MONEY_FOUND, TRYING),
    ("attempt_agrees_with_state", Event.CHECKED, changed(TRYING, 0, outcome=None)),
    ("attempt_has_its_evidence", Event.RECONCILED, changed(PAID, 1, outgoing_payment=None)),
    ("evidence_is_its_own", Event.RECONCILED, changed(PAID, 1, wallet="https://w.example/other")),
]


@pytest.mark.parametrize("case", BAD, ids=lambda case: case[0])
def test_a_wrong_write_is_caught(case: tuple[str, Event, Session]) -> None:
    check, event, now = case
    assert check in caught(TRYING, event, now, 2)
    assert "attempt_is_never_lost" not in caught(TRYING, event, PAID, 2)
