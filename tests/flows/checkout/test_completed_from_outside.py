"""Test what follows when somebody else completes the incoming payment: at some providers anybody
may, and then no money can come any more.
"""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from checkout.domain.payment import Attention, Phase, Problem
from checkout.domain.session import Session, Status
from checkout.open_payments.errors import OutcomeUnknown, Reason, Refused
from tests.support.flows import CEDAR, World, lose_answers, on, raising
from tests.support.protected import FENCE

AT_MOST = timedelta(seconds=45)  # from the return until the next wallet can be given


def close(world: World, session: Session) -> None:
    world.network.close(world.incoming(session))


def assert_paid_by_the_next_wallet(world: World, session: Session, begun: datetime) -> None:
    """It is open behind the fence, and the next wallet pays a new incoming payment."""
    closed = session.incoming_payment
    back = world.settle(session, every=3)
    assert (back.status, back.problem) == (Status.OPEN, Problem.PAYMENT_FAILED)
    assert FENCE <= world.clock.now() - begun < AT_MOST
    assert back.incoming_payment is None
    paid = world.pay(back)
    assert paid.status is Status.COMPLETED
    assert paid.incoming_payment != closed
    assert world.received() == 2000


def test_a_payment_refused_because_a_stranger_has_closed_it_goes_to_the_fence_at_once(
    world: World,
) -> None:
    session, callback = world.awaiting("closed-from-outside")
    world.clock.pass_time(5)
    begun = world.clock.now()
    session = world.finish(session, callback).session
    assert (session.phase, session.closing_at) == (Phase.PAYING, world.clock.now())
    assert_paid_by_the_next_wallet(world, session, begun)


def test_a_refusal_by_a_wallet_that_cannot_be_asked_of_a_closed_payment_begins_the_fence(
    world: World,
) -> None:
    session, callback = world.awaiting()
    close(world, session)
    refused = Refused("no", operation="", status=403, reason=Reason.BEYOND_LIMITS)

    def answers(request: object, *_: object) -> None:
        on("POST", "/outgoing-payments", raising(refused))(request)
        on("GET", "/outgoing-payments", raising(OutcomeUnknown("silence")))(request)

    world.transport.before = answers
    assert world.finish(session, callback).session.closing_at is not None


def test_a_payment_that_is_closed_while_the_callback_waits_goes_to_the_fence_at_once(
    world: World,
) -> None:
    session, callback = world.awaiting("never-credits")
    world.clock.pass_time(5)
    begun = world.clock.now()
    world.transport.after = on("POST", "/outgoing-payments", lambda: close(world, session))
    session = world.finish(session, callback).session
    assert (session.status, session.closing_at) == (Status.PROCESSING, begun)
    world.transport.after = lambda *_: None
    assert_paid_by_the_next_wallet(world, session, begun)


@pytest.mark.parametrize("lost", [True, False])
def test_a_payment_that_is_closed_later_goes_to_the_fence_with_the_next_check(
    world: World, lost: bool
) -> None:
    session, callback = world.awaiting("never-credits")
    if lost:
        error = raising(OutcomeUnknown("lost"))
        world.transport.before = on("POST", "/outgoing-payments", error)
    session = world.finish(session, callback).session
    world.transport.before = lambda *_: None
    session = world.settle(session, seconds=20)
    assert session.closing_at is None
    begun = world.clock.now()
    close(world, session)
    session = world.settle(session, seconds=30)
    assert session.closing_at is not None
    back = world.settle(session, every=3)
    assert back.status is Status.OPEN
    assert world.clock.now() - begun < timedelta(seconds=70)


def test_a_part_that_a_stranger_closes_is_the_merchants_to_decide_behind_the_fence(
    world: World,
) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    world.pay_from_outside(session, 1000)
    close(world, session)
    session = world.settle(session, seconds=90)
    assert (session.attention, session.received) == (Attention.PARTIAL_PAYMENT, 1000)
    assert session.closed_at is not None
    assert session.needed_at is None, "nothing more can come"


def test_money_that_was_on_its_way_when_a_stranger_closed_completes_it(world: World) -> None:
    session, callback = world.awaiting("never-credits")
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"))
    session = world.finish(session, callback).session
    close(world, session)
    world.clock.pass_time(12)
    session = world.settle(session, seconds=20)
    assert session.closing_at is not None
    world.pay_from_outside(session, 2000, ended=True)  # packets from before the close
    assert world.settle(session).status is Status.COMPLETED
