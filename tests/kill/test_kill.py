"""A process is killed (SIGKILL) before and after every write to AWS and every call to a wallet,
from the session's creation to W8 and in reconciliation; the scheduled job finds what is left.

Time is simulated, and shared by all processes: the job looks every 60 seconds, beginning 20, 40 or
60 seconds after the death.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import pytest

from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.record import FIRST_MESSAGE
from tests.kill.child import AMOUNT, at_work
from tests.kill.place import SWEEP_EVERY, one_round
from tests.kill.stage import PLENTY, Stage, staged
from tests.support.sample import sample

pytestmark = [pytest.mark.cloud, pytest.mark.first]

QUOTE_LIFE = timedelta(minutes=5)
VISIBLE = timedelta(seconds=95)  # the money is there, or the wallet shows the payment
IN_DOUBT = QUOTE_LIFE + timedelta(minutes=5)
UNPAID = timedelta(seconds=45) + SWEEP_EVERY  # no payment was instructed: the lease lapses
SECRETS = {"grant", "token", "interact_url"}
SAME = ("alice", "carol", "scale9")


@pytest.fixture(scope="module")
def stage(emulator: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(emulator, tmp_path_factory.mktemp("kill")) as made:
        yield made


@dataclass
class Sale:
    """One session, and what the child is to do with it."""

    session: Session
    flow: str
    job: dict[str, str]
    callback: dict[str, str] | None = None


def submitting(stage: Stage, wallet: str) -> Sale:
    session = stage.create()
    return Sale(session, "submit", {"session": session.id, "wallet": stage.wallet(wallet)})


def submitting_again(stage: Stage, wallet: str) -> Sale:
    """Another wallet, while the first one's approval is pending."""
    session = stage.submit(stage.create(), "alice")
    return Sale(session, "submit", {"session": session.id, "wallet": stage.wallet(wallet)})


def returning(stage: Stage, wallet: str) -> Sale:
    session = stage.submit(stage.create(), wallet)
    callback = stage.approve(session)
    return Sale(session, "finish", {"session": session.id, **callback}, callback)


def returning_late(stage: Stage, wallet: str) -> Sale:
    """The quote is about to expire."""
    sale = returning(stage, wallet)
    stage.clock.sleep((QUOTE_LIFE - timedelta(seconds=5)).total_seconds())
    return sale


def returned(stage: Stage, wallet: str) -> Session:
    session = stage.submit(stage.create(), wallet)
    return stage.finish(session, stage.approve(session))


def in_doubt(stage: Stage, wallet: str) -> Sale:
    """The customer is back and the payment is out of sight; now the scheduled job looks."""
    session = returned(stage, wallet)
    assert session.payment_in_flight
    return Sale(session, "reconcile", {"session": session.id})


def cut_off(stage: Stage, wallet: str) -> Sale:
    """The process of the callback died after W7; now the scheduled job looks."""
    sale = returning(stage, wallet)
    assert stage.run(sale.flow, sale.job, die_at=5, after=True).status == signal.SIGKILL
    assert stage.session(sale.session.id).outgoing_payment is not None
    return Sale(sale.session, "reconcile", {"session": sale.session.id})


def submitting_paid(stage: Stage, wallet: str) -> Sale:
    """Another wallet, after a stranger has paid."""
    sale = submitting_again(stage, wallet)
    stage.pay_from_outside(sale.session, AMOUNT)
    return sale


def canceled_and_paid(stage: Stage, wallet: str) -> Sale:
    """A stranger pays after the merchant has canceled; now the scheduled job looks."""
    session = stage.submit(stage.create(), wallet)
    stage.cancel(session)
    stage.pay_from_outside(session, AMOUNT)
    return Sale(session, "reconcile", {"session": session.id})


@dataclass(frozen=True)
class Scenario:
    """`calls` are all marked points: their name in transitions.py, and what the boundary sees."""

    begin: Callable[[Stage, str], Sale]
    calls: tuple[str, ...]
    wallets: tuple[str, str, str] = SAME


_PAY = (
    "W6 update_item",
    "C8 POST outgoing-payments",
    "W7 update_item",
    "C9 POST grant",
    "C9 GET incoming-payments",
    "W8 transact_write_items",
    "enqueue send_message_batch",
)
_PRICE = ("C4 POST grant", "C5 POST quotes", "W3 update_item", "C6 POST grant", "W4 update_item")
_WALLET = ("C1 GET wallet", "C2 POST grant", "C3 POST incoming-payments", "W2 update_item")
_READ = ("C0 POST grant", "C0 GET incoming-payments")
_FENCE = (
    "close POST complete",
    "look GET incoming-payments",
    "closed update_item",
    "look update_item",
    "look GET incoming-payments",
    "verdict update_item",
)
_AGAIN = ("W1 update_item", "cleanup send_message", *_READ, "C1 GET wallet", "W2 update_item")
SCENARIOS = {
    "submission": Scenario(submitting, ("W1 update_item", *_WALLET, *_PRICE)),
    "another wallet": Scenario(submitting_again, (*_AGAIN, *_PRICE)),
    "callback": Scenario(returning, ("W5 update_item", "C7 POST continue", *_PAY)),
    "callback with a new quote": Scenario(
        returning_late,
        ("W5 update_item", "C7 POST continue", "C4 POST grant", "C5 POST quotes", *_PAY),
    ),
    "callback that sees the payment fail": Scenario(
        returning,
        (
            *("W5 update_item", "C7 POST continue", "W6 update_item", "C8 POST outgoing-payments"),
            *("W7 update_item", "C9 POST grant"),
            *("C9 GET incoming-payments",) * 5,
            "C9 GET outgoing-payments",
            "closing update_item",
        ),
        wallets=("no-funds",) * 3,
    ),
    "callback that finds the incoming payment closed by a stranger": Scenario(
        returning,
        (
            *("W5 update_item", "C7 POST continue", "W6 update_item", "C8 POST outgoing-payments"),
            *("look POST grant", "look GET incoming-payments", "closing update_item"),
        ),
        wallets=("closed-from-outside",) * 3,
    ),
    "payment found": Scenario(
        in_doubt,
        (
            "look update_item",
            "look POST grant",
            "look GET incoming-payments",
            "look GET outgoing-payments",
            "W7 update_item",
            "W8 transact_write_items",
            "enqueue send_message_batch",
        ),
        wallets=("dies-after-create",) * 3,
    ),
    "payment disproved that the callback saw fail": Scenario(
        in_doubt,
        (
            "look update_item",
            "look POST grant",
            "look GET incoming-payments",
            *_FENCE,
        ),
        wallets=("no-funds",) * 3,
    ),
    "payment disproved": Scenario(
        cut_off,
        (
            "look update_item",
            "look POST grant",
            "look GET incoming-payments",
            "look GET outgoing-payments",
            "closing update_item",
            "look update_item",
            "look GET incoming-payments",
            *_FENCE,
        ),
        wallets=("no-funds",) * 3,
    ),
}
FROM_OUTSIDE = {
    "paid before a second submission": Scenario(
        submitting_paid,
        (
            "W1 update_item",
            "cleanup send_message",
            *_READ,
            "found update_item",
            "W8 transact_write_items",
            "enqueue send_message_batch",
        ),
    ),
    "paid after a cancellation": Scenario(
        canceled_and_paid,
        (
            "look update_item",
            *_READ,
            "told transact_write_items",
            "enqueue send_message_batch",
            "due send_message_batch",  # the next round: nobody has sent the event yet
            "due update_item",
            "look update_item",
            "look GET incoming-payments",
            "verdict update_item",
        ),
    ),
}


def points(scenarios: dict[str, Scenario]) -> list[Any]:
    return [
        pytest.param(name, at, after, id=f"{name}, {'after' if after else 'before'} {at} {call}")
        for name, scenario in scenarios.items()
        for at, call in enumerate(scenario.calls, start=1)
        for after in (False, True)
    ]


@pytest.mark.parametrize("name", [*SCENARIOS, *FROM_OUTSIDE])
def test_the_marked_points_are_all_there_are(stage: Stage, name: str) -> None:
    scenario = (SCENARIOS | FROM_OUTSIDE)[name]
    sale = scenario.begin(stage, scenario.wallets[0])
    ended = stage.run(sale.flow, sale.job)
    assert ended.calls == [call.split(" ", 1)[1] for call in scenario.calls]
    assert (ended.errors, ended.status) == ([], 0)
    session = stage.session(sale.session.id)
    if not session.terminal:
        session = pay(stage, session, sale.callback)
    assert session.terminal
    # Else the rounds of another test would find it, and count.
    await_webhook(stage, session, stage.clock.now(), VISIBLE)


@pytest.mark.parametrize(("name", "at", "after"), points(SCENARIOS))
def test_killed_there_the_session_recovers_and_is_paid_once(
    stage: Stage, name: str, at: int, after: bool
) -> None:
    scenario = SCENARIOS[name]
    for seed, wallet in sample(enumerate(scenario.wallets), of=3):
        held, moved = stage.received(), stage.payments()
        sale = scenario.begin(stage, wallet)
        ended = stage.run(sale.flow, sale.job, die_at=at, after=after)
        assert ended.status == signal.SIGKILL, ended
        assert len(ended.calls) == at

        session = recover(stage, sale.session.id, held, first_look=20.0 * (seed + 1))
        completed = session.status is Status.COMPLETED
        assert stage.received() - held == (AMOUNT if completed else 0)
        assert stage.events(session) == ["checkout.session.completed"] * completed
        if not completed:
            session = pay(stage, session, sale.callback)
        check_paid_once(stage, session, held, moved)


@pytest.mark.parametrize(("name", "at", "after"), points(FROM_OUTSIDE))
def test_killed_there_money_from_outside_is_recorded_and_told_once(
    stage: Stage, name: str, at: int, after: bool
) -> None:
    sale = FROM_OUTSIDE[name].begin(stage, "alice")
    ended = stage.run(sale.flow, sale.job, die_at=at, after=after)
    assert ended.status == signal.SIGKILL, ended
    session, killed_at = stage.session(sale.session.id), stage.clock.now()
    while at_work(session) or not session.terminal:
        stage.clock.sleep(SWEEP_EVERY.total_seconds())
        one_round(stage.services)
        session = stage.session(session.id)
        if session.status in (Status.OPEN, Status.AWAITING_APPROVAL):  # the customer comes again
            session = stage.submit(session, "alice")
        assert stage.clock.now() - killed_at <= 4 * SWEEP_EVERY, session.status
    ends = {Status.COMPLETED: "completed", Status.CANCELED: "late_payment"}
    assert stage.events(session) == [f"checkout.session.{ends[session.status]}"]
    assert session.received == AMOUNT
    assert "due_at" not in stage.stored(session)
    await_webhook(stage, session, stage.clock.now(), VISIBLE)


CREATION = ("answer put_item", "session put_item")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(len(CREATION)), ids=CREATION)
def test_killed_at_creation_the_same_request_again_makes_one_session(
    stage: Stage, at: int, after: bool
) -> None:
    for seed in sample(range(3), of=3):
        held, moved, begun = stage.received(), stage.payments(), stage.clock.now()
        key = f"order {at} {after} {seed}"
        job = {"api_key": stage.api_key, "idempotency_key": key}
        ended = stage.run("create", job, die_at=at + 1, after=after)
        assert (ended.status, ended.calls) == (signal.SIGKILL, ["put_item"] * (at + 1))
        assert stage.created_since(begun) == (after and CREATION[at] == "session put_item")
        session = stage.create(key)
        assert stage.created_since(begun) == 1
        check_paid_once(stage, pay(stage, session, None), held, moved)


DELIVERY = ("lease put_item", "try POST webhook", "outcome put_item")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("at", range(len(DELIVERY)), ids=DELIVERY)
def test_killed_in_a_delivery_the_event_is_delivered_all_the_same(
    stage: Stage, at: int, after: bool
) -> None:
    """Twice only where the merchant had got it and nobody was left to note that.

    An event keeps its first place in the index `due` for a minute, so the sweep comes that later.
    """
    for seed in sample(range(3), of=3):
        session = returned(stage, "alice")
        assert session.event is not None
        ended = stage.run("deliver", {"event": session.event}, die_at=at + 1, after=after)
        assert (ended.status, len(ended.calls)) == (signal.SIGKILL, at + 1)
        killed_at = stage.clock.now()
        stage.clock.sleep(20.0 * (seed + 1))
        await_webhook(stage, session, killed_at, VISIBLE + FIRST_MESSAGE)
        unnoted = (DELIVERY[at], after) in (("try POST webhook", True), ("outcome put_item", False))
        assert stage.got(session) == 1 + unnoted


def test_the_marked_points_of_a_delivery_are_all_there_are(stage: Stage) -> None:
    session = returned(stage, "alice")
    assert session.event is not None
    ended = stage.run("deliver", {"event": session.event})
    assert ended.calls == [call.split(" ", 1)[1] for call in DELIVERY]
    assert (ended.errors, ended.status) == ([], 0)
    stage.send_hinted()
    assert stage.got(session) == 1


def recover(stage: Stage, session_id: str, held: int, *, first_look: float) -> Session:
    """The scheduled job's rounds, until the session is done or the customer can go on; in time."""
    killed_at = stage.clock.now()
    session = stage.session(session_id)
    bound = UNPAID
    if session.payment_in_flight or session.terminal:
        bound = VISIBLE if stage.received() > held else IN_DOUBT
    stage.clock.sleep(first_look)
    while not at_rest(session):
        one_round(stage.services)
        session = stage.session(session_id)
        took = stage.clock.now() - killed_at
        assert took <= bound, (took, session.status, session.phase)
        stage.clock.sleep(0 if at_rest(session) else SWEEP_EVERY.total_seconds())
    await_webhook(stage, session, killed_at, bound)
    return session


def await_webhook(stage: Stage, session: Session, killed_at: datetime, bound: timedelta) -> None:
    """Until the merchant has been told, with no help but the scheduled job's; in time."""
    stage.send_hinted()
    while not stage.delivered(session):
        one_round(stage.services)
        stage.send_hinted()
        assert stage.clock.now() - killed_at <= bound, session.event
        stage.clock.sleep(0 if stage.delivered(session) else SWEEP_EVERY.total_seconds())
    assert stage.got(session) >= (session.event is not None)


def at_rest(session: Session) -> bool:
    idle = session.phase is None and session.lease_until is None
    waiting = session.status in (Status.OPEN, Status.AWAITING_APPROVAL)
    return session.terminal or (idle and waiting)


def pay(stage: Stage, session: Session, callback: dict[str, str] | None) -> Session:
    """The customer opens the same link again, and goes on from what they find."""
    if session.status is Status.AWAITING_APPROVAL and session.phase is None:
        session = stage.finish(session, callback or stage.approve(session))
    if session.payment_in_flight:  # by a wallet that fails
        session = recover(stage, session.id, PLENTY, first_look=20.0)
    if session.status is Status.COMPLETED:
        return session
    assert session.status is Status.OPEN
    session = stage.submit(session, "alice")
    return stage.finish(session, stage.approve(session))


def check_paid_once(stage: Stage, session: Session, held: int, moved: int) -> None:
    """Now, and when every quote, grant and packet has had its time."""
    assert session.status is Status.COMPLETED
    await_webhook(stage, session, stage.clock.now(), VISIBLE)
    told = stage.got(session)
    stage.clock.sleep(3600)
    one_round(stage.services)
    stage.send_hinted()
    assert stage.got(session) == told == 1
    assert stage.received() - held == AMOUNT
    assert stage.payments() - moved == 1
    assert stage.events(session) == ["checkout.session.completed"]
    stored = stage.stored(session)
    assert not SECRETS & set(stored)
    assert "due_at" not in stored
