"""Test how much is enough: the tolerance for roundings, and the merchant's word on a part."""

from __future__ import annotations

from datetime import timedelta

import pytest

from checkout.domain.ground.errors import PaymentInProgress, SessionUnexpectedState
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Status
from checkout.flows.session import approve, close, reconcile
from checkout.ports import CompletionPolicy
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from tests.support.flows import CEDAR, World, lose_answers, on, raising
from tests.support.protected import LEASE


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
    session = world.unsent(asked)
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
    assert world.finish(session, callback).record.status is Status.COMPLETED


def test_a_slow_provider_is_asked_no_longer_than_the_customer_waits(world: World) -> None:
    session, callback = world.awaiting("late")
    world.transport.before = on("GET", "/incoming-payments/", lambda: world.clock.pass_time(4))
    began = world.clock.now()
    assert world.finish(session, callback).record.status is Status.PROCESSING
    assert world.clock.now() - began < LEASE


@pytest.mark.parametrize("hangs", ["nobody", "/incoming-payments/", "/outgoing-payments/"])
def test_the_customer_waits_two_and_a_half_seconds_for_a_page(world: World, hangs: str) -> None:
    session, callback = world.awaiting("never-credits")
    world.clock.pass_time(5)  # the pause before the grant may be continued
    send = world.transport.send

    def hang(request: Request, *, timeout: float) -> Response:
        if request.method == "GET" and hangs in request.url:
            world.clock.pass_time(timeout)
            raise OutcomeUnknown("no answer in time")
        return send(request, timeout=timeout)

    world.transport.send = hang  # type: ignore[method-assign]
    began = world.clock.now()
    assert world.finish(session, callback).record.status is Status.PROCESSING
    assert world.clock.now() - began <= timedelta(seconds=2.5)


def test_a_callback_with_all_the_time_ends_after_its_last_look(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approve, "WAIT_FOR_MONEY", 60.0)
    assert world.pay(world.create(), f"{CEDAR}/never-credits").status is Status.PROCESSING


def test_a_part_is_told_while_the_callback_still_waits_for_the_rest(world: World) -> None:
    session, callback = world.awaiting("never-credits")
    told = []

    def half(request: Request, response: Response) -> None:
        if request.method == "GET" and "/incoming-payments/" in request.url:
            now = world.session(session.id)
            told.append((now.received, now.attention))
            if len(told) == 2:
                world.pay_from_outside(now, 1000)

    world.transport.after = half
    partly = world.finish(session, callback).record
    assert (partly.status, partly.received) == (Status.PROCESSING, 1000)
    assert told[:4] == [(None, None)] * 3 + [(1000, Attention.PARTIAL_PAYMENT)]


def test_a_part_is_told_although_the_customers_wallet_does_not_answer(world: World) -> None:
    session, callback = world.awaiting("never-credits")
    looks = []

    def half(request: Request, response: Response) -> None:
        if request.method == "GET" and "/incoming-payments/" in request.url:
            looks.append(request.url)
            if len(looks) == 4:  # from here on the customer's wallet is asked too
                world.pay_from_outside(world.session(session.id), 1000)

    def silent(request: Request) -> None:
        if request.method == "GET" and "/outgoing-payments/" in request.url:
            raise OutcomeUnknown("no answer")

    world.transport.after = half
    world.transport.before = silent
    partly = world.finish(session, callback).record
    assert len(looks) > 4
    assert (partly.status, partly.received) == (Status.PROCESSING, 1000)


def test_money_that_comes_after_the_callback_is_seen_by_the_page_s_first_look(
    world: World,
) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    world.pay_from_outside(session, 2000)
    world.clock.pass_time(0.5)
    waiting = reconcile.advance_pending(world.services, session.id)
    assert waiting.status is Status.PROCESSING, "the callback may still be looking"
    world.clock.pass_time(1)
    assert reconcile.advance_pending(world.services, session.id).status is Status.COMPLETED


def test_a_payment_that_owes_no_check_has_no_first_look(world: World) -> None:
    partly = world.partly_paid()
    assert (partly.status, partly.check_at) == (Status.PROCESSING, None)
    before = world.transport.count("GET", "/incoming-payments/")
    world.clock.pass_time(3)
    reconcile.advance_pending(world.services, partly.id)
    assert world.transport.count("GET", "/incoming-payments/") == before


def test_after_the_first_look_pages_ask_once_per_interval(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    world.clock.pass_time(3)
    before = world.transport.count("GET", "/incoming-payments/")
    for _ in range(5):
        reconcile.advance_pending(world.services, session.id)
    assert world.transport.count("GET", "/incoming-payments/") == before + 1


# --- the merchant decides about a part ---


def test_a_part_that_is_accepted_completes_with_who_accepted_it(world: World) -> None:
    session = world.partly_paid()
    done = close.accept_as_paid(world.services, world.key(), session.id)
    assert (done.status, done.received, done.attention) == (Status.COMPLETED, 1000, None)
    assert done.completed_at == world.clock.now()
    [note] = [e.note for e in done.history if e.event == Event.ACCEPTED_AS_PAID]
    assert note is not None
    assert note.endswith(f"(…{world.key().last_four})")
    assert [row["type"] for row in world.events()] == ["checkout.session.completed"]
    world.sweep(rounds=3)
    assert world.session(session.id).needed_at is None


def test_a_part_that_is_accepted_while_more_may_come_is_closed(world: World) -> None:
    session = world.unsent()
    world.pay_from_outside(session, 1200)
    world.settle(session, seconds=20)
    close.accept_as_paid(world.services, world.key(), session.id)
    world.sweep(rounds=3)
    assert world.incoming(session).completed
    assert world.session(session.id).received == 1200


def test_a_part_can_be_given_up_once_nothing_more_can_come(world: World) -> None:
    world.listen("checkout.session.expired")
    session = world.unsent()
    world.pay_from_outside(session, 1200)
    world.settle(session, seconds=20)
    with pytest.raises(PaymentInProgress, match=r"12\.00 USD of 20\.00 USD has arrived"):
        close.give_up(world.services, world.key(), session.id)
    world.sweep(rounds=3)
    assert world.incoming(session).completed, "the first try has begun to close it"
    done = close.give_up(world.services, world.key(), session.id)
    assert (done.status, done.received, done.needed_at) == (Status.EXPIRED, 1200, None)
    assert [row["type"] for row in world.events()] == ["checkout.session.expired"]
    with pytest.raises(SessionUnexpectedState):
        close.accept_as_paid(world.services, world.key(), session.id)


# --- a payment in doubt that the merchant wants to end ---


@pytest.mark.parametrize("end", [close.cancel, close.expire])
def test_an_end_asked_for_in_doubt_begins_the_fence_and_is_possible_after_it(
    world: World, end: object
) -> None:
    session = world.unsent()
    world.clock.pass_time(35)
    with pytest.raises(PaymentInProgress, match="in about a minute"):
        end(world.services, world.key(), session.id)  # type: ignore[operator]
    assert world.session(session.id).closing_at is not None
    world.sweep(rounds=3)
    assert world.session(session.id).status is Status.OPEN
    assert end(world.services, world.key(), session.id).terminal  # type: ignore[operator]


def test_an_end_asked_for_just_after_the_payment_was_sent_closes_nothing(world: World) -> None:
    session = world.unsent()
    with pytest.raises(PaymentInProgress, match="under way"):
        close.cancel(world.services, world.key(), session.id)
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
    session = world.unsent()
    world.pay_from_outside(session, 700)
    flagged = world.settle(session, seconds=60)
    assert (flagged.status, flagged.received) == (Status.PROCESSING, 700)
    assert flagged.attention is Attention.PARTIAL_PAYMENT


def test_under_instructed_a_wallet_that_cannot_be_read_does_not_hold_up_the_completion() -> None:
    world = World(policy=CompletionPolicy.INSTRUCTED)
    session, callback = world.awaiting()
    unreadable = raising(OutcomeUnknown("no answer"))
    world.transport.before = on("GET", "/incoming-payments/", unreadable)
    done = world.finish(session, callback).record
    assert (done.status, done.received) == (Status.COMPLETED, None)
