"""The payment of an instruction is recorded (W7), and nothing that others wrote is lost by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from typing import Any, Final

import pytest

from checkout.domain.ground.errors import Unavailable
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Phase, Problem
from checkout.domain.payment.machine import ALWAYS, Row
from checkout.domain.session import transitions
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import TRANSITIONS, advance
from checkout.flows.payment.writes import move
from checkout.flows.session import reconcile
from open_payments.errors import OutcomeUnknown
from sandbox.wallets.provider import Rules
from tests.support.basics import NOW, a_session
from tests.support.flows import CEDAR, World, interrupt, on, raising

# The fields that W7 itself writes. All else, and the lines of the history, belongs to others.
BY_W7: Final = {
    *("status", "phase", "outgoing_payment", "check_at", "checks"),
    *("version", "writer", "updated_at", "history"),
}
LONG_AGO: Final = timedelta(minutes=5)
CHAIN_MAX: Final = 3


def paying() -> Session:
    return a_session(Status.AWAITING_APPROVAL, phase=Phase.PAYING, check_at=NOW)


def written_by(event: Event, now: Any) -> dict[str, Any]:
    """Fields that this event sets, one of each kind of attribute among them, with a note."""
    marks: dict[str, Any] = {
        "note": f"by {event}",
        "hung_until": now + timedelta(hours=1),  # an attribute of its own
        "attention": Attention.UNDECIDED,
        "problem": Problem.PRICE_CHANGED,  # stored with others in one attribute
    }
    if event is Event.CLOSING_STARTED:
        marks["closing_at"] = now
    if event is Event.CLOSED:
        marks["closed_at"] = now - LONG_AGO
    return marks


def chains(session: Session, before: tuple[Event, ...] = ()) -> Iterator[tuple[Event, ...]]:
    """Yield each order in which the table allows events after W6, while money is in flight."""
    for status, event in TRANSITIONS:
        if status is not session.status or len(before) == CHAIN_MAX:
            continue
        if not TRANSITIONS[status, event].when.holds(session, NOW):
            continue
        yield (*before, event)
        after = advance(session, event, now=NOW, writer="w", **written_by(event, NOW)).after
        if after.payment_in_flight and (*before, event).count(Event.CHECKED) < 2:
            yield from chains(after, (*before, event))


CHAINS: Final = tuple(chains(paying()))


def apply(world: World, session_id: str, chain: tuple[Event, ...]) -> Session:
    for event in chain:
        marks = written_by(event, world.clock.now())
        move(world.services, world.session(session_id), event, **marks)
    return world.session(session_id)


def assert_kept(won: Session, stored: Session) -> None:
    changed = {
        each.name
        for each in fields(Session)
        if getattr(won, each.name) != getattr(stored, each.name)
    }
    assert changed <= BY_W7
    assert stored.history[: len(won.history)] == won.history
    ours = won.phase is Phase.PAYING and won.closing_at is None
    assert (stored.version, stored.history == won.history) == (
        (won.version + 1, False) if ours else (won.version, True)
    )


def test_the_table_allows_something_while_money_is_in_flight() -> None:
    assert (Event.CHECKED,) in CHAINS
    assert (Event.CLOSING_STARTED, Event.CLOSED, Event.PAYMENT_DISPROVED) in CHAINS
    assert len(CHAINS) > 20


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: "-".join(chain))
def test_what_others_write_between_the_201_and_its_record_stays(chain: tuple[Event, ...]) -> None:
    world, won = World(), []
    session, callback = world.awaiting("never-credits")
    others = on("POST", "/outgoing-payments", lambda: won.append(apply(world, session.id, chain)))
    world.transport.after = others
    world.finish(session, callback)
    assert_kept(won[0], world.session(session.id))


@pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: "-".join(chain))
def test_what_others_write_while_a_check_finds_the_payment_stays(chain: tuple[Event, ...]) -> None:
    world, won = World(), []
    session = world.in_doubt("never-credits")
    others = on("GET", "/outgoing-payments/", lambda: won.append(apply(world, session.id, chain)))
    world.transport.after = others
    world.clock.pass_time(10)
    reconcile.advance_pending(world.services, session.id)
    assert_kept(won[0], world.session(session.id))


def test_a_new_row_of_the_table_loses_neither_field_nor_line_of_the_history(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as a note of the merchant, or a sum that is held."""
    row = (Status.AWAITING_APPROVAL, Event.RETURN_REPORTED)
    monkeypatch.setitem(transitions.TRANSITIONS, row, Row(Status.AWAITING_APPROVAL, ALWAYS))
    world = World()
    session, callback = world.awaiting("never-credits")
    noted = on("POST", "/outgoing-payments", lambda: apply(world, session.id, (row[1],)))
    world.transport.after = noted
    world.finish(session, callback)
    stored = world.session(session.id)
    assert (stored.status, stored.problem) == (Status.PROCESSING, Problem.PRICE_CHANGED)
    lines = [(each.event, each.note) for each in stored.history[-2:]]
    assert lines == [("return_reported", "by return_reported"), ("payment_created", None)]


def test_the_201_of_another_instruction_changes_nothing() -> None:
    """The process slept, the wallet had lost the request, and the customer began again."""
    world, second = World(), []
    session, callback = world.awaiting("never-credits")

    def begin_again() -> None:
        world.transport.after = lambda *request: None
        apply(world, session.id, (Event.PAYMENT_REFUSED,))
        again = world.submit(world.session(session.id), f"{CEDAR}/carol")
        approved = world.approve(again)
        world.transport.before = on("POST", "/outgoing-payments", raising(OutcomeUnknown("lost")))
        second.append(world.finish(again, approved).record)

    world.transport.after = on("POST", "/outgoing-payments", begin_again)
    world.finish(session, callback)
    assert world.session(session.id) == second[0]
    assert second[0].phase is Phase.PAYING


def test_a_201_that_loses_each_race_is_left_to_reconciliation(world: World) -> None:
    session, callback = world.awaiting()

    def check_again(times: int) -> None:
        """Let a check come first, each of the next times that something is to be written."""

        def first() -> None:
            apply(world, session.id, (Event.CHECKED,))
            if times > 1:
                check_again(times - 1)

        interrupt(world, "update_item", first)

    world.transport.after = on("POST", "/outgoing-payments", lambda: check_again(5))
    doubtful = world.finish(session, callback).record
    assert (doubtful.phase, doubtful.outgoing_payment) == (Phase.PAYING, None)
    assert world.transport.count("POST", "/outgoing-payments") == 1
    assert world.settle(world.session(session.id)).status is Status.COMPLETED


def test_a_201_is_recorded_although_what_finds_the_payment_cannot_be_written() -> None:
    world = World(rules=Rules(own_payment_ids=True))  # else the row of the quote finds it
    session, callback = world.awaiting()
    fail = raising(Unavailable("throttled"))

    def throttle() -> None:
        interrupt(world, "batch_write_item", fail, times=100)

    world.transport.after = on("POST", "/outgoing-payments", throttle)
    with pytest.raises(Unavailable):
        world.finish(session, callback)
    stored = world.session(session.id)
    assert stored.status is Status.PROCESSING
    assert stored.outgoing_payment is not None
