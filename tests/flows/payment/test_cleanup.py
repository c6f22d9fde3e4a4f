from __future__ import annotations

from dataclasses import replace

import pytest

from checkout.adapters.queue import NoQueue
from checkout.domain.payment.events import Event
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import advance
from checkout.flows.payment.cleanup import TryLater, clean_up
from checkout.flows.session import close
from checkout.flows.session.lookup import apply_clock
from checkout.ports import Cleanup, Transaction
from open_payments.errors import NotSent, OutcomeUnknown
from tests.support.flows import CEDAR, World, on, raising


def ended(world: World, how: str, session: Session) -> Session:
    key = world.key()
    if how == "cancel":
        return close.cancel(world.services, key, session.id)
    if how == "expire":
        return close.expire(world.services, key, session.id)
    world.clock.pass_time(24 * 3600)
    return apply_clock(world.services, session)


@pytest.fixture(params=["cancel", "expire", "expiry"])
def how(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


# --- what is handed over ---


def test_an_end_hands_over_the_grant(world: World, how: str) -> None:
    awaiting = world.submit(world.create())
    assert awaiting.grant is not None
    assert awaiting.customer is not None
    done = ended(world, how, awaiting)
    assert done.terminal
    assert world.tasks.left == [
        Cleanup(
            session=awaiting.id,
            merchant=awaiting.merchant,
            auth_server=awaiting.customer.auth_server,
            grant=awaiting.grant,
        )
    ]
    assert done.grant is None
    assert awaiting.grant is not None
    assert awaiting.grant.startswith("v1.")  # sealed
    assert awaiting.grant not in repr(world.tasks.left)


def test_a_session_without_a_wallet_leaves_nothing_behind(world: World, how: str) -> None:
    assert ended(world, how, world.create()).terminal
    assert world.tasks.left == []


def test_a_completed_payment_leaves_nothing_behind(world: World) -> None:
    assert world.pay(world.create()).status is Status.COMPLETED
    assert world.tasks.left == []


def test_a_new_wallet_leaves_the_old_grant_behind_and_keeps_the_incoming_payment() -> None:
    world = World()
    first = world.submit(world.create())
    second = world.submit(first, f"{CEDAR}/carol")
    [task] = world.tasks.left
    assert task.grant == first.grant
    assert second.incoming_payment == first.incoming_payment
    clean_up(world.services, task)
    assert world.finish(second, world.approve(second)).record.status is Status.COMPLETED


def test_an_approval_whose_process_died_leaves_its_grant_behind(world: World) -> None:
    awaiting = world.submit(world.create())
    now = world.clock.now()
    claimed = world.services.sessions.save(
        Transaction(
            advance(awaiting, Event.APPROVAL_CLAIMED, now=now, writer="dead", lease_until=now)
        )
    )
    assert apply_clock(world.services, claimed).status is Status.OPEN
    assert [task.grant for task in world.tasks.left] == [awaiting.grant]


def test_without_a_queue_an_end_is_an_end(world: World, how: str) -> None:
    world.services = replace(world.services, tasks=NoQueue())
    assert ended(world, how, world.submit(world.create())).terminal


# --- what is done with it ---


def left_behind() -> tuple[World, Session, Cleanup]:
    world = World()
    awaiting = world.submit(world.create())
    ended(world, "cancel", awaiting)
    [task] = world.tasks.left
    world.forget()
    return world, awaiting, task


def test_the_grant_is_cancelled_and_twice_is_no_harm() -> None:
    world, session, task = left_behind()
    clean_up(world.services, task)
    assert world.transport.count("DELETE", "/continue/") == 1
    assert session.interact_url is not None
    assert "interact_ref" not in world.network.approve(session.interact_url)
    clean_up(world.services, task)


def test_what_runs_out_first_needs_no_tidying() -> None:
    world, session, task = left_behind()
    world.clock.pass_time(2 * 24 * 3600)
    clean_up(world.services, task)
    assert world.session(session.id).status is Status.CANCELED


@pytest.mark.parametrize("lost", [NotSent("down"), OutcomeUnknown("lost")])
def test_where_the_wallet_does_not_answer_the_task_comes_again(lost: Exception) -> None:
    world, session, task = left_behind()
    world.transport.before = on("", "/continue/", raising(lost))
    with pytest.raises(TryLater):
        clean_up(world.services, task)
    world.transport.before = lambda request: None
    clean_up(world.services, task)
    assert session.interact_url is not None
    assert "interact_ref" not in world.network.approve(session.interact_url)


def test_a_merchant_that_is_gone_has_nothing_to_tidy() -> None:
    world, _, task = left_behind()
    clean_up(world.services, replace(task, merchant="mer_gone"))
    assert world.transport.sent == []
