from __future__ import annotations

import logging
import re
import threading
import time
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.adapters.dynamo import index_keys
from checkout.adapters.runtime import Threads
from checkout.domain.ground.errors import Unavailable
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Phase, Problem
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import advance
from checkout.flows.schedule import sweep
from checkout.flows.schedule.sweep import Counts
from checkout.flows.session import reconcile
from checkout.ports import Transaction
from open_payments.errors import NotSent, OutcomeUnknown
from open_payments.transports import Request
from open_payments.urls import authority
from tests.support.basics import NOW, between
from tests.support.flows import CEDAR, HARBOR, PREFIX, World, interrupt, raising
from tests.support.protected import ACCOUNT_FOR, CHECK_AFTER, FENCE, SEND_WITHIN

MINUTE = 60
DAY = 24 * 3600


def round_of(world: World, *, seconds: float = 50) -> Counts:
    return sweep.run(world.services, until=world.clock.now() + timedelta(seconds=seconds))


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
        UpdateExpression="REMOVE #status",
        ExpressionAttributeNames={"#status": "status"},
    )


# --- what a round does ---


def test_a_session_past_its_expiry_is_expired(world: World) -> None:
    session = world.abandoned(expires_in_seconds=1800)
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
    world.services.sessions.save(Transaction(change))
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


def test_a_round_whose_time_is_over_begins_nothing_more_and_tells_how_much_is_left() -> None:
    world = World()
    payments = [world.in_doubt() for _ in range(3)]
    carts = [world.abandoned(expires_in_seconds=1800) for _ in range(4)]
    world.clock.pass_time(1800)
    world.transport.after = lambda request, response: world.clock.pass_time(1)
    counts = round_of(world, seconds=1.5)
    assert (counts.checked, counts.not_reached) == (1, 6)  # a read takes a second of 0.6 * 1.5
    assert counts.oldest_payment > timedelta(minutes=29)
    nothing = round_of(world, seconds=0)
    assert nothing == Counts(not_reached=6, oldest_payment=nothing.oldest_payment)
    assert nothing.oldest_payment > timedelta(minutes=29)
    world.transport.after = lambda request, response: None
    assert round_of(world).checked == 6
    world.deliver_hinted()
    assert round_of(world) == Counts()
    assert {world.session(each.id).status for each in payments} == {Status.COMPLETED}
    assert {world.session(each.id).status for each in carts} == {Status.EXPIRED}


def test_payments_come_before_carts_that_have_been_due_for_longer(world: World) -> None:
    carts = [world.abandoned(expires_in_seconds=1800) for _ in range(3)]
    world.clock.pass_time(1800 - 30)
    payment = world.in_doubt()
    world.clock.pass_time(3600)
    seen: list[str] = []
    get = world.services.sessions.get

    def noting(session_id: str) -> Session | None:
        seen.append(session_id)
        return get(session_id)

    noted = between(world.services.sessions, "none", lambda: None)
    noted.get = noting
    world.services = replace(world.services, sessions=noted)
    round_of(world)
    assert seen[0] == payment.id
    assert set(seen[1:]) == {each.id for each in carts}


def test_a_poisoned_record_stops_no_other(world: World) -> None:
    poisoned = [world.abandoned(expires_in_seconds=1800) for _ in range(4)]
    for session in poisoned:
        poison(world, session)
    world.clock.pass_time(60)  # due behind the poisoned ones
    good = [world.abandoned(expires_in_seconds=1800) for _ in range(12)]
    world.clock.pass_time(1800)
    counts = round_of(world)
    assert (counts.checked, counts.failed, counts.not_reached) == (12, 4, 4)
    assert {world.session(each.id).status for each in good} == {Status.EXPIRED}
    assert round_of(world) == Counts(failed=4, not_reached=4)


def test_a_record_of_a_kind_that_this_release_does_not_know_stops_no_other(world: World) -> None:
    due = world.abandoned(expires_in_seconds=1800)
    item = world.dynamo.get_item(
        TableName=f"{PREFIX}-checkout_sessions", Key={"id": {"S": due.id}}, ConsistentRead=True
    )["Item"]
    other = item | {"id": {"S": "re_" + due.id[3:]}}
    world.dynamo.put_item(TableName=f"{PREFIX}-checkout_sessions", Item=other)
    world.clock.pass_time(1800)
    counts = round_of(world)
    assert (counts.checked, counts.failed) == (1, 1)
    assert world.session(due.id).status is Status.EXPIRED


def test_a_failure_is_logged_without_the_sessions_address_or_the_errors_text(
    world: World,
    caplog: pytest.LogCaptureFixture,
) -> None:
    session = world.abandoned(expires_in_seconds=1800)
    poison(world, session)
    world.clock.pass_time(1800)
    with caplog.at_level(logging.WARNING):
        round_of(world)
    assert re.search(r"TypeError at decode:[0-9]+", caplog.text)
    assert session.id not in caplog.text


def hang(world: World, part: str, *, seconds: float = 20) -> None:
    """Let servers with `part` in their address keep every request waiting, and never answer."""

    def hanging(request: Request) -> None:
        if part in request.url:
            world.clock.pass_time(seconds)
            raise OutcomeUnknown("no answer")

    world.transport.before = hanging


def test_a_merchants_provider_that_hangs_holds_up_no_others_sessions(world: World) -> None:
    hanging = [world.in_doubt() for _ in range(4)]
    world.clock.pass_time(30)
    good = [world.abandoned(expires_in_seconds=1800) for _ in range(3)]
    world.clock.pass_time(1800)
    hang(world, HARBOR)
    counts = round_of(world, seconds=50)
    assert {world.session(session.id).status for session in good} == {Status.EXPIRED}
    assert (counts.checked, counts.not_reached) == (3 + 2, 2)
    world.transport.before = lambda request: None
    world.clock.pass_time(MINUTE)
    assert round_of(world).checked == 4
    assert {world.session(session.id).status for session in hanging} == {Status.COMPLETED}


def test_customers_wallets_that_hang_hold_up_no_payment(world: World) -> None:
    """The merchant's wallet is asked about all payments first; its word completes them."""
    hostile = [world.pay(world.create(), f"{CEDAR}/never-credits") for _ in range(8)]
    honest = world.in_doubt()
    world.clock.pass_time(MINUTE)
    hang(world, CEDAR)
    begun = world.clock.now()
    counts = round_of(world)
    paid = world.session(honest.id)
    assert paid.status is Status.COMPLETED
    assert paid.completed_at is not None
    assert paid.completed_at - begun <= timedelta(seconds=20)  # its own wallet hangs as well
    assert counts.not_reached == 0
    assert {world.session(each.id).status for each in hostile} == {Status.PROCESSING}


def test_a_wallet_that_hung_is_left_alone_for_longer_and_longer(world: World) -> None:
    session = world.pay(world.create(expires_in_seconds=DAY), f"{CEDAR}/never-credits")
    hang(world, CEDAR)
    asked = []
    for minute in range(6):
        world.clock.pass_time(MINUTE)
        before = world.clock.now()
        assert round_of(world).checked == 1  # its merchant's wallet is asked each time
        if world.clock.now() > before:
            asked.append(minute)
    assert asked == [0, 2]  # then for as long as the payment has been in doubt: to the quote's end
    assert world.session(session.id).hung_until is not None
    rounds(world, 2)
    opened = world.session(session.id)
    assert (opened.status, opened.hung_until) == (Status.OPEN, None)


def test_many_checks_at_one_provider_leave_room_for_another(world: World) -> None:
    """With threads: one in a provider's half of them waits for the others."""
    payments = [world.in_doubt() for _ in range(12)]
    world.clock.pass_time(MINUTE)
    at_once, most, lock = Counter[str](), Counter[str](), threading.Lock()

    def enter(request: Request) -> None:
        with lock:
            host = authority(request.url)
            at_once[host] += 1
            most[host] = max(most[host], at_once[host])
        time.sleep(0.01)

    def leave(request: Request, response: object) -> None:
        with lock:
            at_once[authority(request.url)] -= 1

    world.transport.before, world.transport.after = enter, leave
    world.services = replace(world.services, run_concurrently=Threads(16))
    counts = round_of(world)
    assert (counts.checked, counts.failed, counts.not_reached) == (12, 0, 0)
    assert {world.session(each.id).status for each in payments} == {Status.COMPLETED}
    assert most[authority(HARBOR)] >= 2


def test_a_session_that_is_decided_between_the_halves_of_its_check_is_left_alone(
    world: World,
) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    world.clock.pass_time(MINUTE)
    page = reconcile.advance_pending

    def meanwhile(request: Request) -> None:
        if CEDAR in request.url:
            world.transport.before = lambda request: None
            world.clock.pass_time(1200)  # the quote has expired: the page begins the fence
            page(world.services, session.id)

    world.transport.before = meanwhile
    counts = round_of(world, seconds=5000)
    assert (counts.checked, counts.failed) == (1, 0)
    assert world.session(session.id).closing_at is not None


def test_a_customers_wallet_that_cannot_be_asked_by_a_mistake_of_ours_stops_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(2):
        world.pay(world.create(), f"{CEDAR}/never-credits")
    world.clock.pass_time(MINUTE)
    real, mistakes = reconcile.ask_customer, iter([raising(TypeError("ours"))])
    monkeypatch.setattr(
        reconcile, "ask_customer", lambda *given, **more: next(mistakes, real)(*given, **more)
    )
    counts = round_of(world)
    assert (counts.checked, counts.failed, counts.not_reached) == (1, 1, 0)


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
    assert (flagged.status, index_keys.due_at(flagged)) == (Status.PROCESSING, None)
    assert round_of(world) == Counts()


# --- what happens meanwhile ---


def test_a_queue_that_takes_nothing_does_not_stop_the_sessions(
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.pay(world.create())
    session = world.abandoned(expires_in_seconds=1800)
    world.clock.pass_time(1800)
    monkeypatch.setattr(world.queue, "enqueue", raising(RuntimeError("no queue")))
    counts = round_of(world)
    assert (counts.failed, counts.enqueued) == (1, 0)
    assert world.session(session.id).status is Status.EXPIRED


@pytest.mark.parametrize("lane", ["urgent", "later", "both"])
def test_an_index_of_sessions_that_fails_delays_no_webhook(
    world: World, monkeypatch: pytest.MonkeyPatch, lane: str
) -> None:
    """The events that were due are enqueued, whichever read of the sessions' index fails."""
    world.pay(world.create())
    world.clock.pass_time(DAY)
    told = len(world.queue.messages)
    read = world.services.sessions.due

    def fails(*args: Any, urgent: bool, **options: Any) -> Any:
        if lane == "both" or urgent is (lane == "urgent"):
            raise Unavailable("no index")
        return read(*args, urgent=urgent, **options)

    monkeypatch.setattr(world.services.sessions, "due", fails)
    with pytest.raises(Unavailable):
        round_of(world)
    assert len(world.queue.messages) == told + 1


def test_an_index_of_events_that_fails_delays_no_session(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = world.abandoned(expires_in_seconds=1800)
    world.clock.pass_time(1800)
    monkeypatch.setattr(world.services.events, "due", raising(Unavailable("no index")))
    counts = round_of(world)
    assert (counts.failed, counts.enqueued) == (1, 0)
    assert world.session(session.id).status is Status.EXPIRED


def test_money_after_the_end_is_looked_for_until_the_seventh_day(world: World) -> None:
    """A provider may be down over a long weekend: nothing is given up before ACCOUNT_FOR."""
    session = world.submit(world.create(expires_in_seconds=1800))
    world.transport.before = raising(NotSent("down"))
    world.clock.pass_time(1800)
    rounds(world, 2)
    ended = world.session(session.id)
    assert ended.status is Status.EXPIRED
    last = ended.incoming_payment_ends_at + FENCE + ACCOUNT_FOR
    while world.clock.now() < last - timedelta(hours=2):
        world.clock.pass_time(4 * 3600 - MINUTE)
        rounds(world, 1)
        assert world.session(session.id).check_at is not None, world.clock.now()
    world.clock.pass_time(4 * 3600)
    rounds(world, 1)
    done = world.session(session.id)
    assert (done.check_at, done.attention) == (None, Attention.UNDECIDED)


def test_a_session_that_the_index_alone_still_knows_is_nothing(world: World) -> None:
    world.abandoned(expires_in_seconds=1800)
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


@pytest.mark.parametrize(("takes", "moves"), [(36, 0), (20, 1)])
def test_a_session_keeps_the_place_of_its_preparation_until_the_first_check_is_due(
    world: World, takes: int, moves: int
) -> None:
    """Each change of place in the index costs two write units."""
    session = world.submit(world.create())
    place = session.look_at
    assert place is not None
    assert (index_keys.due_at(session), index_keys.urgent(session), session.lease_until) == (
        place,
        True,
        None,
    )
    world.clock.pass_time(takes)
    callback = world.approve(session)
    seen = []
    services = world.services

    def noting() -> None:
        stored = world.session(session.id)
        seen.append((stored.phase, index_keys.due_at(stored), index_keys.urgent(stored)))

    world.services = replace(services, sessions=between(services.sessions, "save", noting, times=9))
    assert world.finish(session, callback).record.status is Status.COMPLETED
    sooner = NOW + timedelta(seconds=takes) + SEND_WITHIN + CHECK_AFTER
    assert {at for _, at, _ in seen} == {place, *[sooner] * moves}
    assert {urgent for *_, urgent in seen} == {True}
    assert [phase for phase, *_ in seen] == [None, Phase.CONTINUING, Phase.PAYING, None]
    assert index_keys.due_at(world.session(session.id)) is None


def test_who_takes_longer_is_passed_by_the_sweep_once_and_leaves_the_first_lane(
    world: World,
) -> None:
    session = world.submit(world.create())
    callback = world.approve(session)
    world.clock.pass_time(46)
    until = world.clock.now() + timedelta(seconds=50)
    assert [sweep.run(world.services, until=until).checked for _ in range(2)] == [1, 0]
    waiting = world.session(session.id)
    assert (waiting.look_at, index_keys.urgent(waiting), index_keys.due_at(waiting)) == (
        None,
        False,
        session.expires_at,
    )
    assert world.finish(waiting, callback).record.status is Status.COMPLETED


def test_a_checked_payment_is_due_when_the_next_check_is(world: World) -> None:
    session = world.in_doubt("never-credits")
    world.clock.pass_time(60)
    assert round_of(world).checked > 0
    checked = world.session(session.id)
    assert (checked.look_at, index_keys.due_at(checked)) == (None, checked.check_at)


def test_any_number_of_poisoned_records_that_are_due_hides_no_payment(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They stay the longest due, and each shard names four only."""
    monkeypatch.setattr(sweep, "NAMED_MAX", 4)
    poisoned = [world.in_doubt() for _ in range(60)]
    for session in poisoned:
        poison(world, session)
    world.transport.after = lambda *_: None
    world.clock.pass_time(60)
    session = world.in_doubt("late")
    for _ in range(3):
        world.sweep()
    assert world.session(session.id).status is Status.COMPLETED
