"""The table against the specification, written a second time here: double entry."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Instruction, Phase, Problem
from checkout.domain.payment.machine import Change, IllegalTransition
from checkout.domain.payment.mandate_transitions import MANDATE_TRANSITIONS
from checkout.domain.refund.transitions import REFUND_TRANSITIONS
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import TRANSITIONS, advance
from checkout.domain.webhooks.event_types import OPTIONAL, PAYMENT_FAILED
from tests.support.basics import GAVE_A_WALLET, NOW, a_session
from tests.support.protected import FENCE, SECRETS

LATER = NOW + timedelta(days=2)  # past every expiry

# spec.md "States and transitions" and the further arrows of decisions.md "States": the statuses an
# event leads from, and where to. Events that keep a session's status are in neither table.
SPECIFIED = {
    "wallet submission": ["open > preparing", "awaiting_approval > preparing"],
    "preparation steps all succeed": ["preparing > awaiting_approval"],
    "preparation failure": ["preparing > open"],
    "grant callback": ["awaiting_approval > processing"],
    "reconciliation finishes": ["processing > completed"],
    "POST .../expire": ["open > expired", "awaiting_approval > expired"],
    "POST .../cancel": ["open > canceled", "awaiting_approval > canceled"],
    "`expires_at` passes": ["open > expired", "preparing > expired", "awaiting_approval > expired"],
    "approval unusable": ["awaiting_approval > open"],
    "payment disproved": ["awaiting_approval > open", "processing > open"],
    "paid from outside": [
        "open > processing",
        "preparing > processing",
        "awaiting_approval > processing",
    ],
    "POST .../accept_as_paid": ["processing > completed"],
    "POST .../give_up": ["processing > expired"],
}
TRIGGER = {
    Event.WALLET_SUBMITTED: "wallet submission",
    Event.PREPARED: "preparation steps all succeed",
    Event.PREPARATION_FAILED: "preparation failure",
    Event.PAYMENT_CREATED: "grant callback",
    Event.RECONCILED: "reconciliation finishes",
    Event.EXPIRE_REQUESTED: "POST .../expire",
    Event.CANCEL_REQUESTED: "POST .../cancel",
    Event.EXPIRY_PASSED: "`expires_at` passes",
    Event.APPROVAL_LOST: "approval unusable",
    Event.PAYMENT_REFUSED: "approval unusable",
    Event.PAYMENT_DISPROVED: "payment disproved",
    Event.MONEY_FOUND: "paid from outside",
    Event.ACCEPTED_AS_PAID: "POST .../accept_as_paid",
    Event.GIVEN_UP: "POST .../give_up",
}


def move(session: Session, event: Event, **changes: Any) -> Change[Session]:
    return advance(session, event, now=NOW, writer="w", **changes)


def paying(**changes: object) -> Session:
    instruction = Instruction("a", NOW + timedelta(seconds=5))
    values: dict[str, object] = {"phase": Phase.PAYING, "instruction": instruction, "check_at": NOW}
    return a_session(Status.AWAITING_APPROVAL, **{**values, **changes})


def test_the_table_is_the_specifications_and_nothing_more() -> None:
    moves = {
        (TRIGGER[event], f"{source.value} > {row.to.value}")
        for (source, event), row in TRANSITIONS.items()
        if row.to is not source
    }
    assert moves == {(trigger, move) for trigger, made in SPECIFIED.items() for move in made}


def test_what_cannot_move_is_terminal() -> None:
    left = {source for (source, _), row in TRANSITIONS.items() if row.to is not source}
    assert {status for status in Status if a_session(status).terminal} == set(Status) - left


@pytest.mark.parametrize(("status", "event"), list(product(Status, Event)), ids=str)
def test_every_pair_is_a_row_or_a_refusal_that_changes_nothing(
    status: Status, event: Event
) -> None:
    for phase, time, lease in product((None, *Phase), (NOW, LATER), (None, NOW, LATER)):
        session = a_session(status, phase=phase, lease_until=lease, check_at=NOW)
        row = TRANSITIONS.get((status, event))
        if row is None or not row.when.holds(session, time):
            with pytest.raises(IllegalTransition) as refused:
                advance(session, event, now=time, writer="w")
            assert refused.value.record is session
            continue
        change = advance(session, event, now=time, writer="w")
        assert change.before is session
        assert change.after.status is row.to
        assert change.after.version == session.version + 1
        assert change.after.writer == "w"
        assert (change.webhook, change.beside) == (row.webhook, row.beside)


def test_only_endings_failures_late_and_partial_payments_make_webhook_events() -> None:
    ends = {cell: row for cell, row in TRANSITIONS.items() if row.to is not cell[0]}
    assert {row.to: row.webhook for row in ends.values() if row.webhook} == {
        Status.OPEN: "checkout.session.payment_failed",
        Status.COMPLETED: "checkout.session.completed",
        Status.EXPIRED: "checkout.session.expired",
        Status.CANCELED: "checkout.session.canceled",
    }
    assert all(row.webhook for row in ends.values() if a_session(Status(row.to)).terminal)
    failed = {event for (_, event), row in ends.items() if row.webhook == PAYMENT_FAILED}
    assert failed == {Event.PAYMENT_REFUSED, Event.PAYMENT_DISPROVED}
    late = {cell for cell, row in TRANSITIONS.items() if row.webhook and cell not in ends}
    assert late == {
        (Status.EXPIRED, Event.LATE_PAYMENT),
        (Status.CANCELED, Event.LATE_PAYMENT),
        (Status.PROCESSING, Event.PART_ARRIVED),
    }


def test_each_optional_webhook_event_is_made_by_a_row() -> None:
    tables = (TRANSITIONS, REFUND_TRANSITIONS, MANDATE_TRANSITIONS)
    rows = [row for table in tables for row in table.values()]
    made = {name for row in rows for name in (row.webhook, row.beside)}
    assert set(OPTIONAL) - {"refund.created"} <= made, "a new record's"


def test_an_ending_leaves_no_secret_behind() -> None:
    held = dict.fromkeys(SECRETS, "sealed")
    for event in (Event.CANCEL_REQUESTED, Event.EXPIRE_REQUESTED):
        after = move(a_session(Status.AWAITING_APPROVAL, **held), event).after
        assert [getattr(after, name) for name in SECRETS] == [None, None, None]
    after = move(a_session(Status.PROCESSING, token="sealed"), Event.RECONCILED).after
    assert after.token is None


def test_a_new_wallet_removes_what_the_old_approval_left() -> None:
    left = {"grant": "old", "interact_url": "https://w/i", "problem": Problem.PRICE_CHANGED}
    session = a_session(Status.AWAITING_APPROVAL, **left)
    after = move(session, Event.WALLET_SUBMITTED, lease_until=LATER).after
    assert (after.grant, after.interact_url, after.quote, after.problem) == (None,) * 4
    assert after.lease_until == LATER


def test_the_intent_to_pay_removes_nonces_and_continuation_and_keeps_the_token() -> None:
    session = paying(phase=Phase.CONTINUING, lease_until=LATER, grant="g")
    after = move(session, Event.PAYMENT_INTENDED, token="t").after
    assert (after.phase, after.grant, after.token) == (Phase.PAYING, None, "t")
    with pytest.raises(IllegalTransition):  # it needs a live lease
        move(replace(session, lease_until=NOW), Event.PAYMENT_INTENDED)


@pytest.mark.parametrize("event", [Event.EXPIRE_REQUESTED, Event.CANCEL_REQUESTED])
def test_only_a_payment_that_is_not_in_flight_can_be_taken_back(event: Event) -> None:
    for in_flight in (paying(), paying(phase=Phase.CONTINUING, lease_until=LATER)):
        with pytest.raises(IllegalTransition):
            move(in_flight, event)
    assert move(paying(phase=Phase.CONTINUING, lease_until=NOW), event).after.phase is None


def test_time_never_ends_a_session_with_a_payment_in_flight() -> None:
    for session in (paying(), a_session(Status.PROCESSING, check_at=NOW)):
        assert session.status_at(LATER) is session.status
        with pytest.raises(IllegalTransition):
            advance(session, Event.EXPIRY_PASSED, now=LATER, writer="w")


def test_a_payment_is_disproved_only_behind_the_fence() -> None:
    closed = paying(closing_at=NOW - FENCE, closed_at=NOW - FENCE)
    assert move(closed, Event.PAYMENT_DISPROVED).after.incoming_payment is None
    early = replace(closed, closed_at=NOW - FENCE + timedelta(milliseconds=1))
    for session in (early, replace(closed, closed_at=None), paying()):
        with pytest.raises(IllegalTransition):
            move(session, Event.PAYMENT_DISPROVED)


def test_a_refusal_of_the_wallet_counts_only_while_nobody_closes() -> None:
    assert move(paying(), Event.PAYMENT_REFUSED).after.status is Status.OPEN
    with pytest.raises(IllegalTransition):
        move(paying(closing_at=NOW), Event.PAYMENT_REFUSED)


def test_the_wallets_answer_is_written_however_late() -> None:
    assert not move(paying(), Event.PAYMENT_CREATED).in_time
    assert move(a_session(Status.OPEN), Event.WALLET_SUBMITTED).in_time


def test_the_history_tells_each_step_but_not_each_look() -> None:
    after = move(paying(), Event.CHECKED).after
    assert after.history == ()
    after = move(after, Event.PAYMENT_REFUSED, note="why").after
    assert [(entry.event, entry.note) for entry in after.history] == [("payment_refused", "why")]


@pytest.mark.parametrize(
    ("session", "due"),
    [
        (a_session(Status.OPEN), None),  # the clock ends it
        (a_session(Status.OPEN, history=GAVE_A_WALLET), a_session(Status.OPEN).expires_at),
        (a_session(Status.PREPARING, lease_until=NOW), NOW),
        (paying(phase=Phase.CONTINUING, lease_until=NOW), NOW),
        (paying(check_at=LATER), LATER),
        (a_session(Status.PROCESSING, check_at=LATER), LATER),
        (a_session(Status.COMPLETED), None),
        (a_session(Status.CANCELED), None),
    ],
)
def test_a_session_is_due_when_it_owes_something(session: Session, due: object) -> None:
    assert session.needed_at == due
