"""Refunds of restored tables, which may have been paid after the moment of the copy.

The payments are counted at the merchant's wallet, never in the refunds.
"""

from __future__ import annotations

from typing import Any

import pytest

from checkout import cli
from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.refund.record import Refund, RefundEvent, RefundProblem, RefundStatus
from checkout.flows.payment.writes import move
from checkout.flows.refund import budget, hold, request
from checkout.ports import StaleRecord
from open_payments.errors import OutcomeUnknown
from sandbox.wallets.state import OutgoingPayment
from tests.support.flows import PREFIX, World, lose_answers, on, raising
from tests.support.refund_books import (
    BOB,
    again,
    allow,
    ask,
    come_back,
    consent,
    fund,
    prepare,
    send,
    wait,
)
from tests.support.refund_books import paid as sold

TABLE = f"{PREFIX}-checkout_sessions"


@pytest.fixture
def world() -> World:
    world = World()
    world.listen("refund.updated")
    fund(world)
    return world


def paid_back(world: World) -> list[OutgoingPayment]:
    """Return the payments that have left the merchant's wallet."""
    world.network.advance()
    outgoing = world.network.state.outgoing.values()
    return [each for each in outgoing if each.wallet == world.shop and each.sent]


def restore(world: World, rows: list[Any]) -> None:
    """Put the rows of a copy in the place of those of now."""
    for row in rows:
        world.dynamo.put_item(TableName=TABLE, Item=row)


def run(world: World) -> int:
    records = DynamoRecords(world.dynamo, PREFIX)
    return cli.main(["hold-refunds"], lambda: world.endpoints, lambda: records)


def time_passes(world: World) -> None:
    for _ in range(30):
        world.sweep()
        world.clock.pass_time(20)


def planned(world: World) -> Refund:
    """Return a refund that the budget is to pay."""
    allow(world)
    refund = ask(world, sold(world, wallet=BOB), 700)
    assert refund.budget_at is not None
    return refund


@pytest.mark.parametrize(("held", "payments"), [(True, 1), (False, 2)])
def test_a_refund_that_was_paid_after_the_copy_is_paid_again_only_if_it_is_not_held(
    world: World, held: bool, payments: int
) -> None:
    refund = planned(world)
    copy = world.dynamo.rows(TABLE)
    time_passes(world)
    assert again(world, refund).status is RefundStatus.SUCCEEDED
    restore(world, copy)
    if held:
        assert run(world) == 0
    time_passes(world)
    assert len(paid_back(world)) == payments


def test_a_held_refund_waits_for_a_person_who_may_pay_or_cancel_it(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    refund = planned(world)
    other = ask(world, sold(world, wallet=BOB), 300)
    assert run(world) == 0
    assert capsys.readouterr().out == (
        "2 refunds are held until a person approves or cancels them.\n"
    )
    held = again(world, refund)
    assert (held.approval_waits, held.held_at) == (True, world.clock.now())
    assert [each["type"] for each in world.events()].count("refund.updated") == 2
    time_passes(world)
    assert paid_back(world) == []
    assert send(world, held).status is RefundStatus.SUCCEEDED
    assert request.cancel(world.services, world.key(), other.id).status is RefundStatus.CANCELED
    assert [each.sent for each in paid_back(world)] == [700]


def test_an_approval_that_was_asked_for_before_the_copy_sends_nothing(world: World) -> None:
    refund = prepare(world, ask(world, sold(world), 700))
    callback = consent(world, refund)
    assert run(world) == 0
    assert come_back(world, refund, callback).status is RefundStatus.NEEDS_APPROVAL
    assert paid_back(world) == []


def test_a_refund_whose_approval_is_being_redeemed_is_left_for_the_next_run(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    refund = prepare(world, ask(world, sold(world), 700))
    callback = consent(world, refund)
    world.transport.before = on("POST", "/continue/", raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        come_back(world, refund, callback)
    assert run(world) == 1
    assert "1 refunds were being changed: run the command again." in capsys.readouterr().err
    world.clock.pass_time(46)
    assert run(world) == 0
    assert again(world, refund).held_at == world.clock.now()


def test_a_refund_that_is_under_way_in_the_copy_is_decided_by_the_wallets(world: World) -> None:
    refund = prepare(world, ask(world, sold(world), 700))
    callback = consent(world, refund)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"), times=9)
    assert come_back(world, refund, callback).status is RefundStatus.SENDING
    world.transport.after = lambda request, response: None
    assert run(world) == 0
    assert again(world, refund).held_at is not None
    assert wait(world, refund).status is RefundStatus.SUCCEEDED
    assert len(paid_back(world)) == 1


def test_if_nothing_of_it_was_sent_it_waits_and_is_still_marked(world: World) -> None:
    refund = prepare(world, ask(world, sold(world), 700))
    callback = consent(world, refund)
    world.transport.before = on("POST", "/outgoing-payments", raising(OutcomeUnknown("away")))
    assert come_back(world, refund, callback).status is RefundStatus.SENDING
    world.transport.before = lambda request: None
    assert run(world) == 0
    found = wait(world, refund)
    assert (found.approval_waits, found.problem) == (True, RefundProblem.NOT_SENT)
    assert found.held_at is not None
    assert paid_back(world) == []


def test_a_refund_that_has_ended_is_left_alone(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    refund = send(world, ask(world, sold(world), 700))
    note = ask(world, sold(world), 700, elsewhere="in cash")
    assert run(world) == 0
    assert "0 refunds are held" in capsys.readouterr().out
    assert (again(world, refund), again(world, note)) == (refund, note)
    with pytest.raises(IllegalTransition):
        move(world.services, refund, RefundEvent.HELD)


def test_a_second_run_changes_nothing_but_what_a_person_has_planned_since(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    refund = planned(world)
    assert run(world) == 0
    held = again(world, refund)
    world.clock.pass_time(60)
    assert run(world) == 0
    assert again(world, refund) == held
    assert capsys.readouterr().out.count("1 refunds are held") == 2
    prepare(world, held)
    world.transport.before = on("POST", "/quotes", raising(OutcomeUnknown("away")))
    world.clock.pass_time(600)  # the price has ended
    assert budget.choose(world.services, world.key(), refund.id).budget_at is not None
    world.transport.before = lambda request: None
    assert run(world) == 0  # a copy of this moment was restored
    time_passes(world)
    assert paid_back(world) == []


def test_what_could_not_be_held_is_reported(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    refund = planned(world)
    world.dynamo.put_item(TableName=TABLE, Item={"id": {"S": "re_damaged"}})
    assert run(world) == 1
    found = capsys.readouterr()
    assert found.out.startswith("1 refunds are held")
    assert "1 refunds cannot be read" in found.err
    monkeypatch.setattr(hold, "hold", raising(StaleRecord(refund)))
    assert run(world) == 1
    assert "1 refunds were being changed: run the command again." in capsys.readouterr().err
