"""Test how much is enough: the tolerance for roundings, and the merchant's word on a part."""

from __future__ import annotations

import pytest

from checkout.domain.errors import CheckoutError, PaymentInProgress, SessionUnexpectedState
from checkout.domain.payment import Attention
from checkout.domain.session import Session, Status
from checkout.domain.session_events import Event
from checkout.flows.checkout import ends
from checkout.open_payments.errors import OutcomeUnknown
from checkout.ports.wallets import CompletionPolicy
from tests.product import CEDAR, World, lose_answers, on, raising
from tests.protected import LEASE


def in_flight(world: World, amount: int) -> Session:
    """Return a payment in doubt, of which nothing has arrived."""
    session = world.submit(world.create(amount))
    callback = world.approve(session)
    lost = raising(OutcomeUnknown("lost on the way"))
    world.transport.before = on("POST", "/outgoing-payments", lost)
    return world.finish(session, callback).session


def tolerate(world: World, units: int) -> None:
    world.services.merchants.replace(world.stored().changed(tolerance=units))


@pytest.mark.parametrize(
    ("tolerance", "asked", "received", "enough"),
    [
        (1, 2, 1, False),
        (1, 99, 98, False),
        (1, 100, 99, True),
        (1, 100, 98, False),
        (1, 101, 100, True),
        (1, 101, 99, False),
        (1, 2000, 1999, True),
        (1, 2000, 1998, False),
        (0, 2000, 1999, False),
        (50, 2000, 1980, True),  # a hundredth, at most
        (50, 2000, 1979, False),
        (50, 199, 198, True),
        (50, 199, 197, False),
        (1, 1, 1, True),
    ],
)
def test_what_may_be_missing(tolerance: int, asked: int, received: int, enough: bool) -> None:
    world = World()
    tolerate(world, tolerance)
    session = in_flight(world, asked)
    world.pay_from_outside(session, received)
    session = world.settle(session, seconds=60)
    assert session.received == received
    assert session.status is (Status.COMPLETED if enough else Status.PROCESSING)
    assert session.attention is (None if enough else Attention.PARTIAL_PAYMENT)


def test_a_wallet_that_always_keeps_one_unit_back_costs_the_merchant_one_unit(
    world: World,
) -> None:
    for number in range(1, 4):
        done = world.pay(world.create(), f"{CEDAR}/one-short")
        assert (done.status, done.amount_received) == (Status.COMPLETED, 1999)
        assert world.received() == number * 1999
        world.sweep(rounds=3)
        after = world.session(done.id)
        assert world.incoming(after).completed, "the merchant has the money"
        assert after.needed_at is None


def test_the_event_of_a_short_payment_is_sent_once_with_the_amount_asked(world: World) -> None:
    done = world.pay(world.create(), f"{CEDAR}/one-short")
    world.sweep(rounds=3)
    [event] = world.events()
    assert (event["type"], event["session"]) == ("checkout.session.completed", done.id)
    assert '"amount_total":2000' in event["body"]


def test_a_read_that_is_lost_after_the_payment_is_made_again(world: World) -> None:
    session, callback = world.awaiting()
    world.transport.after = lose_answers("/incoming-payments/", OutcomeUnknown("lost"))
    assert world.finish(session, callback).session.status is Status.COMPLETED


def test_a_slow_provider_is_asked_no_longer_than_the_customer_waits(world: World) -> None:
    session, callback = world.awaiting("late")
    world.transport.before = on("GET", "/incoming-payments/", lambda: world.clock.pass_time(4))
    began = world.clock.now()
    assert world.finish(session, callback).session.status is Status.PROCESSING
    assert world.clock.now() - began < LEASE


# --- the merchant decides about a part ---


def partly_paid(world: World) -> Session:
    session = world.pay(world.create(), f"{CEDAR}/partial")
    return world.settle(session, seconds=120)


def test_a_part_that_is_accepted_completes_with_who_accepted_it(world: World) -> None:
    session = partly_paid(world)
    done = ends.accept_as_paid(world.services, world.key(), session.id)
    assert (done.status, done.received, done.attention) == (Status.COMPLETED, 1000, None)
    assert done.completed_at == world.clock.now()
    [note] = [e.note for e in done.history if e.event == Event.ACCEPTED_AS_PAID]
    assert note is not None
    assert note.endswith(f"(…{world.key().last_four})")
    assert [row["type"] for row in world.events()] == ["checkout.session.completed"]
    world.sweep(rounds=3)
    assert world.session(session.id).needed_at is None


def test_a_part_that_is_accepted_while_more_may_come_is_closed(world: World) -> None:
    session = in_flight(world, 2000)
    world.pay_from_outside(session, 1200)
    world.settle(session, seconds=20)
    ends.accept_as_paid(world.services, world.key(), session.id)
    world.sweep(rounds=3)
    assert world.incoming(session).completed
    assert world.session(session.id).received == 1200


def test_a_part_can_be_given_up_once_nothing_more_can_come(world: World) -> None:
    world.listen("checkout.session.expired")
    session = in_flight(world, 2000)
    world.pay_from_outside(session, 1200)
    world.settle(session, seconds=20)
    with pytest.raises(PaymentInProgress, match=r"12\.00 USD of 20\.00 USD has arrived"):
        ends.give_up(world.services, world.key(), session.id)
    world.sweep(rounds=3)
    assert world.incoming(session).completed, "the first try has begun to close it"
    done = ends.give_up(world.services, world.key(), session.id)
    assert (done.status, done.received, done.needed_at) == (Status.EXPIRED, 1200, None)
    assert [row["type"] for row in world.events()] == ["checkout.session.expired"]
    with pytest.raises(SessionUnexpectedState):
        ends.accept_as_paid(world.services, world.key(), session.id)


@pytest.mark.parametrize("decide", [ends.accept_as_paid, ends.give_up])
def test_only_a_partly_paid_session_can_be_decided(world: World, decide: object) -> None:
    for session in (world.create(), world.pay(world.create())):
        with pytest.raises(SessionUnexpectedState, match="only a part"):
            decide(world.services, world.key(), session.id)  # type: ignore[operator]


# --- a payment in doubt that the merchant wants to end ---


@pytest.mark.parametrize("end", [ends.cancel, ends.expire])
def test_an_end_asked_for_in_doubt_begins_the_fence_and_is_possible_after_it(
    world: World, end: object
) -> None:
    session = in_flight(world, 2000)
    world.clock.pass_time(35)
    with pytest.raises(PaymentInProgress, match="in about a minute"):
        end(world.services, world.key(), session.id)  # type: ignore[operator]
    assert world.session(session.id).closing_at is not None
    world.sweep(rounds=3)
    assert world.session(session.id).status is Status.OPEN
    assert end(world.services, world.key(), session.id).terminal  # type: ignore[operator]


def test_an_end_asked_for_just_after_the_payment_was_sent_closes_nothing(world: World) -> None:
    session = in_flight(world, 2000)
    with pytest.raises(PaymentInProgress, match="under way"):
        ends.cancel(world.services, world.key(), session.id)
    assert world.session(session.id).closing_at is None


# --- the policy `instructed` ---


def test_under_instructed_a_payment_that_the_wallet_calls_failed_does_not_complete() -> None:
    world = World(policy=CompletionPolicy.INSTRUCTED)
    session = world.in_doubt("no-funds")
    world.clock.pass_time(10)
    world.transport.after = lambda request, response: None
    back = world.settle(session)
    assert (back.status, world.events()) == (Status.OPEN, [])


def test_under_instructed_a_part_found_behind_the_fence_is_flagged() -> None:
    world = World(policy=CompletionPolicy.INSTRUCTED)
    session = in_flight(world, 2000)
    world.pay_from_outside(session, 700)
    flagged = world.settle(session, seconds=60)
    assert (flagged.status, flagged.received) == (Status.PROCESSING, 700)
    assert flagged.attention is Attention.PARTIAL_PAYMENT


def test_under_instructed_a_wallet_that_cannot_be_read_does_not_hold_up_the_completion() -> None:
    world = World(policy=CompletionPolicy.INSTRUCTED)
    session, callback = world.awaiting()
    unreadable = raising(OutcomeUnknown("no answer"))
    world.transport.before = on("GET", "/incoming-payments/", unreadable)
    done = world.finish(session, callback).session
    assert (done.status, done.received) == (Status.COMPLETED, None)


def test_another_merchants_part_is_not_there(world: World) -> None:
    session = partly_paid(world)
    other = world.key()
    object.__setattr__(other, "merchant", "mer_other")
    with pytest.raises(CheckoutError, match="No such"):
        ends.accept_as_paid(world.services, other, session.id)
