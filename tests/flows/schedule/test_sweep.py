from __future__ import annotations

import logging
import re
from datetime import timedelta

import pytest

from checkout.domain.session import Attention, Problem, Session, Status
from checkout.domain.transitions import Event, advance
from checkout.flows.payment import reconcile
from checkout.flows.schedule import sweep
from checkout.flows.schedule.sweep import Counts
from checkout.open_payments.errors import NotSent
from checkout.open_payments.transport import Request
from tests.product import CEDAR, PREFIX, World, interrupt, raising

MINUTE = 60
DAY = 24 * 3600


def round_of(world: World, *, limit: int = 200, seconds: float = 50) -> Counts:
    until = world.clock.now() + timedelta(seconds=seconds)
    return sweep.run(world.services, until=until, limit=limit)


def rounds(world: World, count: int) -> Counts:
    """One round a minute; what the last one did."""
    for _ in range(count):
        world.clock.pass_time(MINUTE)
        counts = round_of(world)
    return counts


def poison(world: World, session: Session) -> None:
    """A record that no code of ours can read."""
    world.dynamo.update_item(
        TableName=f"{PREFIX}-checkout_sessions",
        Key={"id": {"S": session.id}},
        UpdateExpression="REMOVE #amount",
        ExpressionAttributeNames={"#amount": "amount_total"},
    )


# --- what a round does ---


def test_a_session_past_its_expiry_is_expired(world: World) -> None:
    session = world.create(expires_in_seconds=1800)
    world.clock.pass_time(1800)
    counts = round_of(world)
    assert (counts.checked, dict(counts.moved)) == (1, {"expiry_passed": 1})
    assert world.session(session.id).status is Status.EXPIRED
    assert round_of(world) == Counts()


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (Event.WALLET_SUBMITTED, Problem.PREPARATION_INTERRUPTED),
        (Event.APPROVAL_CLAIMED, Problem.APPROVAL_UNUSABLE),
    ],
)
def test_what_a_dead_process_left_behind_is_opened_when_its_lease_has_lapsed(
    world: World, event: Event, problem: Problem
) -> None:
    session = world.create()
    if event is Event.APPROVAL_CLAIMED:
        session = world.submit(session)
    now = world.clock.now()
    until = now + timedelta(seconds=45)
    change = advance(session, event, now=now, writer="dead", lease_until=until)
    world.services.sessions.save(change)
    assert round_of(world) == Counts()
    counts = rounds(world, 1)
    assert counts.checked == 1
    opened = world.session(session.id)
    assert (opened.status, opened.problem) == (Status.OPEN, problem)
    assert world.pay(opened).status is Status.COMPLETED


@pytest.mark.parametrize("first", [1, 9, 10, 11, 59])
def test_a_payment_whose_answer_was_lost_completes_with_nobody_watching(first: int) -> None:
    """In 95 seconds, whenever the first round comes."""
    world = World()
    session = world.in_doubt()
    begun = world.clock.now()
    world.clock.pass_time(first)
    counts = round_of(world)
    while world.session(session.id).payment_in_flight:
        counts = rounds(world, 1)
    assert counts.moved == {"reconciled": 1}
    assert world.session(session.id).status is Status.COMPLETED
    assert world.clock.now() - begun <= timedelta(seconds=95)
    assert [event["session"] for event in world.events()] == [session.id]
    assert world.queue.messages == [event["id"] for event in world.events()]


def test_money_that_arrives_when_the_page_is_closed_completes_the_session(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/late")
    assert session.status is Status.PROCESSING
    rounds(world, 3)
    assert world.session(session.id).status is Status.COMPLETED


@pytest.mark.parametrize("first", [1, 9, 11, 31, 59])
@pytest.mark.parametrize("wallet", ["no-funds", "never-credits"])
def test_a_payment_that_never_comes_opens_the_session_within_the_bound(
    world: World, wallet: str, first: int
) -> None:
    """The quote's life and 5 minutes, whenever the first round comes."""
    session = world.pay(world.create(), f"{CEDAR}/{wallet}")
    assert session.quote is not None
    assert session.quote.expires_at is not None
    bound = session.quote.expires_at + timedelta(minutes=5)
    world.clock.pass_time(first)
    round_of(world)
    while world.session(session.id).payment_in_flight:
        rounds(world, 1)
        assert world.clock.now() <= bound
    opened = world.session(session.id)
    assert (opened.status, opened.problem) == (Status.OPEN, Problem.PAYMENT_FAILED)
    assert world.pay(opened).status is Status.COMPLETED


def test_two_rounds_at_once_do_no_more_than_one(world: World) -> None:
    doubtful = [world.in_doubt() for _ in range(3)]
    world.clock.pass_time(MINUTE)
    others: list[Counts] = []
    step = world.transport.before

    def meanwhile(request: Request) -> None:
        world.transport.before = step
        others.append(round_of(world))

    world.transport.before = meanwhile
    counts = round_of(world)
    assert len(others) == 1
    assert counts.failed == others[0].failed == 0
    assert {world.session(session.id).status for session in doubtful} == {Status.COMPLETED}
    assert len(world.events()) == 3
    assert world.transport.count("POST", "/outgoing-payments") == 3


# --- what it is bounded by ---


def test_a_round_looks_at_no_more_than_its_limit_the_longest_due_first(world: World) -> None:
    created = []
    for _ in range(5):
        created.append(world.create(expires_in_seconds=1800))
        world.clock.pass_time(1)
    world.clock.pass_time(1800)
    counts = round_of(world, limit=3)
    assert (counts.checked, counts.not_reached) == (3, 1)  # one more is asked for, to know of it
    statuses = [world.session(session.id).status for session in created]
    assert statuses == [Status.EXPIRED] * 3 + [Status.OPEN] * 2
    assert round_of(world, limit=3).checked == 2
    assert round_of(world, limit=3) == Counts()


def test_a_round_whose_time_is_over_begins_nothing_more(world: World) -> None:
    for _ in range(3):
        world.in_doubt()
    world.clock.pass_time(MINUTE)
    world.transport.after = lambda request, response: world.clock.pass_time(1)
    counts = round_of(world, seconds=1)
    assert (counts.checked, counts.not_reached) == (1, 2)
    world.deliver_hinted()
    assert round_of(world, seconds=0) == Counts(not_reached=2)


def test_a_poisoned_record_stops_no_other_and_starves_none(world: World) -> None:
    poisoned = [world.create(expires_in_seconds=1800) for _ in range(4)]
    for session in poisoned:
        poison(world, session)
    world.clock.pass_time(60)  # due behind the poisoned ones
    good = [world.create(expires_in_seconds=1800) for _ in range(12)]
    world.clock.pass_time(1800)
    for left in (9, 6, 3, 0):
        counts = round_of(world, limit=3)
        assert (counts.checked, counts.failed) == (3, 4)
        assert sum(world.session(s.id).status is Status.OPEN for s in good) == left
    assert round_of(world, limit=3) == Counts(failed=4)


def test_a_failure_is_logged_without_the_sessions_address_or_the_errors_text(
    world: World,
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = world.create(expires_in_seconds=1800)
    poison(world, session)
    world.clock.pass_time(1800)
    with caplog.at_level(logging.WARNING):
        round_of(world)
    assert re.search(r"KeyError at (decode|<dictcomp>):[0-9]+", caplog.text)
    assert session.id not in caplog.text


def test_a_provider_that_hangs_holds_up_no_others_sessions(world: World) -> None:
    hanging = [world.in_doubt() for _ in range(4)]
    world.clock.pass_time(30)
    good = [world.create(expires_in_seconds=1800) for _ in range(3)]
    world.clock.pass_time(1800)

    def hang(request: Request) -> None:
        world.clock.pass_time(20)
        raise NotSent("no answer")

    world.transport.before = hang
    counts = round_of(world, seconds=50)
    assert {world.session(session.id).status for session in good} == {Status.EXPIRED}
    assert counts.checked == 3 + 3  # the others of the provider had what time was left
    assert counts.not_reached == 1
    world.transport.before = lambda request: None
    world.clock.pass_time(MINUTE)
    assert round_of(world).checked == 4
    assert {world.session(session.id).status for session in hanging} == {Status.COMPLETED}


# --- what it cannot decide ---


def test_a_provider_down_for_long_is_shown_to_the_merchant_and_asked_once_an_hour() -> None:
    world = World()
    session = world.pay(world.create(expires_in_seconds=DAY), f"{CEDAR}/late")
    world.transport.before = raising(NotSent("down"))
    counts = rounds(world, 59)
    assert counts.needs_attention == 0
    assert world.session(session.id).attention is None
    rounds(world, 3)
    assert world.session(session.id).attention is Attention.UNDECIDED
    looked = [rounds(world, 1) for _ in range(180)]
    assert sum(counts.checked for counts in looked) == 3
    assert sum(counts.needs_attention for counts in looked) == 3
    world.transport.before = lambda request: None
    rounds(world, 61)
    done = world.session(session.id)
    assert (done.status, done.attention) == (Status.COMPLETED, None)


def test_what_is_proven_never_to_come_needs_no_attention_any_more(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    world.transport.before = raising(NotSent("down"))
    rounds(world, 70)
    assert world.session(session.id).attention is Attention.UNDECIDED
    world.transport.before = lambda request: None
    rounds(world, 64)
    opened = world.session(session.id)
    assert (opened.status, opened.attention) == (Status.OPEN, None)


def test_a_partial_payment_stays_visible_until_its_incoming_payments_end(world: World) -> None:
    session = world.pay(world.create(expires_in_seconds=DAY), f"{CEDAR}/never-credits")
    world.pay_from_outside(session, 1000)
    rounds(world, 70)
    assert world.session(session.id).attention is Attention.PARTIAL_PAYMENT
    looked = sum(rounds(world, 1).checked for _ in range(120))
    assert looked == 2
    assert session.incoming_payment is not None
    rest = session.incoming_payment.expires_at - world.clock.now()
    world.clock.pass_time(rest.total_seconds() + 3600)
    rounds(world, 3)
    flagged = world.session(session.id)
    assert (flagged.status, flagged.due_at()) == (Status.PROCESSING, None)
    assert round_of(world) == Counts()


# --- what happens meanwhile ---


def test_a_queue_that_takes_nothing_does_not_stop_the_sessions(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.pay(world.create())
    session = world.create(expires_in_seconds=1800)
    world.clock.pass_time(1800)
    monkeypatch.setattr(world.queue, "enqueue", raising(RuntimeError("no queue")))
    counts = round_of(world)
    assert (counts.failed, counts.enqueued) == (1, 0)
    assert world.session(session.id).status is Status.EXPIRED


def test_a_session_that_the_index_alone_still_knows_is_nothing(world: World) -> None:
    world.create(expires_in_seconds=1800)
    world.clock.pass_time(1800)
    rows = world.dynamo._tables[f"{PREFIX}-checkout_sessions"].items
    interrupt(world, "get_item", rows.clear)
    counts = round_of(world)
    assert (counts.checked, counts.failed) == (0, 0)


def test_a_payment_that_a_page_checks_at_the_same_time_is_left_to_it(world: World) -> None:
    session = world.in_doubt()
    world.clock.pass_time(MINUTE)
    page = reconcile.advance_pending
    interrupt(world, "update_item", lambda: page(world.services, session.id))
    assert round_of(world).failed == 0
    assert world.session(session.id).status is Status.COMPLETED
    assert len(world.events()) == 1
