"""Test what only some worlds have, and the counting of checks."""

from __future__ import annotations

import json
import types
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from checkout.adapters.dynamo.records import session_from, session_item
from checkout.domain.payment.in_flight import Instruction
from checkout.domain.session.record import Status
from checkout.flows.session import prepare
from open_payments.transports import Response
from tests.simulation import actors, probes, replica, swarm
from tests.simulation.boundaries import BEGINNING, Process, SimDynamo, moment
from tests.simulation.faults import Rates, Wider
from tests.simulation.providers import KINDS, SHOP
from tests.simulation.refunding import Refunding
from tests.simulation.sim_world import SimWorld
from tests.support.basics import a_session
from tests.support.protected import LEASE

SEEDS = range(1, 400)


def test_a_part_of_the_worlds_is_plain_and_each_of_the_rest_is_drawn() -> None:
    drawn = [swarm.drawn(seed) for seed in SEEDS]
    plain = [each for each in drawn if each.plain]
    assert 100 < len(plain) < 200
    assert set(plain) == {swarm.Swarm()}
    for name in swarm.Swarm.__slots__:
        assert any(getattr(each, name) != getattr(plain[0], name) for each in drawn), name
    assert drawn == [swarm.drawn(seed) for seed in SEEDS]


def test_what_is_beside_the_storms_is_in_some_and_not_in_others() -> None:
    drawn = [swarm.beside(seed) for seed in SEEDS]
    for name in swarm.Beside.__slots__:
        assert {getattr(each, name) for each in drawn} == {True, False}, name


def test_a_drawn_lease_is_in_force_for_one_world() -> None:
    with swarm.in_force(swarm.Swarm(lease=timedelta(seconds=90))):
        assert vars(prepare)["LEASE"] == timedelta(seconds=90)
    assert vars(prepare)["LEASE"] == LEASE


def test_a_provider_is_down_for_days_from_early_on() -> None:
    rates = Rates(down_from=100_000)
    assert swarm.down_for_long(swarm.Swarm(), rates) is rates
    down = swarm.down_for_long(swarm.Swarm(down_for=swarm.DAY), rates)
    assert down.down_until - down.down_from == swarm.DAY
    assert down.down == "https://localhost:4201/"


def test_a_later_release_stores_what_this_one_can_read() -> None:
    session = a_session(Status.AWAITING_APPROVAL)
    item = session_item(session)
    request: dict[str, Any] = {"TransactItems": [{"Put": {"Item": item}}]}
    assert swarm.of_a_later_release(request)
    stored = request["TransactItems"][0]["Put"]["Item"]
    assert stored["later"]
    assert replace(session_from(stored), later_json=None) == session
    assert not swarm.of_a_later_release({"Item": {"id": {"S": "evt_1"}}})


def test_a_batch_may_be_done_in_part() -> None:
    world = SimWorld(1)
    world.swarm = replace(world.swarm, partial=1.0)
    world.faults.rates = Rates()
    rows = [{"PutRequest": {"Item": {"id": {"S": f"search#{n}"}}}} for n in range(5)]
    answers: list[Any] = []
    client = SimDynamo(Process(world, "p1", 0))

    def put() -> None:
        items = {"sim-checkout_sessions": rows}
        answers.append(client.batch_write_item(RequestItems=items))

    world.scheduler.spawn("writer", put)
    world.scheduler.run(until=10_000)
    left = answers[0]["UnprocessedItems"]["sim-checkout_sessions"]
    done = len(world.tables.rows("sim-checkout_sessions"))
    assert done + len(left) == len(rows)
    assert left
    assert world.faults.counts[Wider.PARTIAL.value] == 1


def test_a_replica_shows_what_was_there_a_moment_ago() -> None:
    world = SimWorld(1)
    behind = replica.Replica(world.network, world._true_now)
    incoming: Any = types.SimpleNamespace(
        id="in-1", received=types.SimpleNamespace(value=2000), completed=True
    )
    behind._note(incoming, moment(5_000))
    world.scheduler.now = 5_500
    body = json.dumps({"receivedAmount": {"value": "2000"}, "completed": True}).encode()
    answer = Response(200, {}, body)
    shown = json.loads(behind.behind(answer, "in-1", 600).body)
    assert (shown["receivedAmount"]["value"], shown["completed"]) == ("0", False)
    assert json.loads(behind.behind(answer, "in-1", 400).body) == json.loads(body)
    assert behind.behind(Response(404, {}, b"{}"), "in-1", 600).status == 404


def test_crowded_lists_are_of_wallets_that_refuse_what_they_pay() -> None:
    kinds = {each.name: swarm.crowded(swarm.Swarm(crowded=True), each) for each in KINDS}
    changed = [each.name for each in KINDS if kinds[each.name] != each]
    assert changed == ["4xx, pays", "4xx, pays, no lists"]
    assert kinds["4xx, pays, no lists"].rules == {"own_payment_ids": True}


@pytest.mark.parametrize(("status", "caught"), [(Status.COMPLETED, []), (Status.OPEN, ["x"])])
def test_a_row_is_deleted_at_its_time_and_one_that_lives_is_caught(
    status: Status, caught: list[str]
) -> None:
    world = SimWorld(1)
    session = a_session(status, expires_at=BEGINNING + timedelta(days=900))
    world.checker.sessions[session.id] = session
    world.tables.put_item(
        TableName="sim-checkout_sessions",
        Item=session_item(session) | {"ttl": {"N": str(int(BEGINNING.timestamp()))}},
    )
    actors.delete(world, BEGINNING - timedelta(seconds=1), chance=1.0)
    assert not world.faults.counts
    actors.delete(world, BEGINNING, chance=1.0)
    assert world.faults.counts[Wider.DELETED.value] == 1
    found = [each.check for each in world.violations]
    assert found == ["only_what_ended_is_deleted" for _ in caught]


def test_what_ended_must_have_gone_in_the_end() -> None:
    world = SimWorld(1)
    session = a_session(Status.COMPLETED)
    world.checker.sessions[session.id] = session
    world.checker.aged()
    assert [each.check for each in world.violations] == ["what_ended_is_deleted"]


def test_money_that_no_session_knows_is_caught() -> None:
    world = SimWorld(1)
    world.checker.elsewhere()
    assert world.violations == []
    world.network.state.accounts[SHOP].balance = 5
    world.checker.elsewhere()
    assert [each.check for each in world.violations] == ["no_money_is_elsewhere"]


def test_each_condition_of_a_check_is_counted_where_its_precondition_holds() -> None:
    function = checking.__code__
    try:
        assert probes._instrument(cast(types.FunctionType, checking)) == ["late", "bare"]
        probes.COUNTS.clear()
        told: list[str] = []
        for waiting in (False, True, True):
            checking(told.append, waiting=waiting, late=False)
        assert told == ["bare"] * 3
        assert probes.COUNTS == {"late": 2, "bare": 3}
    finally:
        checking.__code__ = function


def checking(fail: Any, *, waiting: bool, late: bool) -> None:
    if waiting and late:
        fail("late")
    for _ in range(1):
        fail("bare")


@pytest.mark.parametrize(("sent", "shown"), [("1", "1"), ("2", "1"), ("9", "4")])
def test_a_witness_that_shows_less_than_it_sent_never_shows_nothing(
    monkeypatch: pytest.MonkeyPatch, sent: str, shown: str
) -> None:
    """In world 827400800 one unit was sent, and by rounding neither wallet showed any."""
    world = SimWorld(1)
    world.refunding = Refunding("shop stops midway", {}, frozen=True)
    monkeypatch.setattr(world.checker.refunds, "stopped", lambda url: True)
    body = json.dumps({"sentAmount": {"value": sent}}).encode()
    answer = world._of_a_refund("https://localhost:4201/x", Response(200, {}, body))
    assert json.loads(answer.body)["sentAmount"]["value"] == shown


def test_money_that_is_seen_too_late_is_caught() -> None:
    world = SimWorld(1)
    instruction = Instruction("i", BEGINNING)
    session = a_session(Status.PROCESSING, instruction=instruction)
    world.checker._whole_at[session.id] = moment(60_000)
    world.checker._in_time(session)  # it still storms
    world.calm_since = BEGINNING
    world.scheduler.now = 60_000 + 6 * 60_000
    world.checker._in_time(session)
    assert world.violations == []
    world.scheduler.now += 2 * 60_000
    world.checker._in_time(session)
    assert [each.check for each in world.violations] == ["decided_within_minutes"]


def test_a_row_that_is_deleted_before_its_check_is_caught() -> None:
    world = SimWorld(1)
    session = a_session(Status.EXPIRED, check_at=BEGINNING + timedelta(hours=1))
    world.checker.sessions[session.id] = session
    world.checker.deleted(session_item(session), BEGINNING)
    assert [each.check for each in world.violations] == ["nothing_is_deleted_before_its_check"]
