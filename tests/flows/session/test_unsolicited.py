"""Money that arrives outside of the payment flow, through each door."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Phase, Problem
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.event_types import LATE_PAYMENT
from checkout.flows.payment.writes import move
from checkout.flows.schedule import sweep
from checkout.flows.session import close as ends
from checkout.flows.session import reconcile
from checkout.ports import CompletionPolicy
from open_payments.errors import NotSent, OutcomeUnknown, Reason, Refused
from open_payments.transports import Request, Response
from tests.support.basics import between
from tests.support.flows import CEDAR, World, answering, lose_answers, on, raising
from tests.support.protected import FENCE, LEASE

End = Callable[..., Session]
ENDS = [ends.expire, ends.cancel]


def look(world: World, session: Session) -> Session:
    """Let the customer's open page ask, a minute after the last write."""
    world.clock.pass_time(60)
    return reconcile.advance_pending(world.services, session.id)


def opened_again(world: World) -> Session:
    """Return an open session that has an incoming payment."""
    session = world.submit(world.create())
    world.transport.before = on("GET", "/carol", raising(NotSent("down")))
    with pytest.raises(Exception, match="could not be reached"):
        world.submit(session, f"{CEDAR}/carol")
    world.transport.before = lambda request: None
    session = world.session(session.id)
    assert (session.status, session.incoming_payment is None) == (Status.OPEN, False)
    return session


# --- before the approval ---


def test_an_open_session_that_was_paid_from_outside_completes_at_the_next_look(
    world: World,
) -> None:
    session = opened_again(world)
    world.pay_from_outside(session, 2000)
    done = look(world, session)
    assert (done.status, done.received) == (Status.COMPLETED, 2000)
    assert [row["type"] for row in world.events()] == ["checkout.session.completed"]


def test_an_awaiting_session_that_was_paid_from_outside_completes_at_the_next_look(
    world: World,
) -> None:
    session = world.submit(world.create())
    world.pay_from_outside(session, 2000)
    done = look(world, session)
    assert done.status is Status.COMPLETED
    assert (done.grant, done.interact_url, done.phase) == (None, None, None)
    assert [task.grant for task in world.tasks.left] == [session.grant]


def test_a_page_has_the_incoming_payment_read_once_a_minute(world: World) -> None:
    session = world.submit(world.create())
    world.forget()
    for _ in range(59):
        world.clock.pass_time(1)
        reconcile.advance_pending(world.services, session.id)
    assert world.transport.sent == []
    for _ in range(62):
        world.clock.pass_time(1)
        reconcile.advance_pending(world.services, session.id)
    assert world.transport.count("GET", "/incoming-payments/") == 2
    assert world.session(session.id).status is Status.AWAITING_APPROVAL


def test_the_sweep_does_not_put_off_the_look_of_the_page(world: World) -> None:
    session = world.submit(world.create())
    world.pay_from_outside(session, 2000)
    done = session
    for second in range(1, 62):
        world.clock.pass_time(1)
        if second in (46, 59):  # the place of the lease has ended
            sweep.run(world.services, until=world.clock.now() + timedelta(seconds=25))
        done = reconcile.advance_pending(world.services, session.id)
        assert (done.status is Status.COMPLETED) is (second >= 60)


def test_a_look_does_not_cost_the_approval(world: World) -> None:
    session, callback = world.awaiting()
    world.clock.pass_time(60)
    services, looked = world.services, []

    def look() -> None:
        looked.append(reconcile.advance_pending(services, session.id))

    merchants = between(services.merchants, "get", look)
    world.services = replace(services, merchants=merchants)
    done = world.finish(session, callback).record
    assert looked
    assert done.status is Status.COMPLETED


def test_a_submission_of_a_paid_session_completes_it_and_asks_for_no_money(world: World) -> None:
    session = opened_again(world)
    world.pay_from_outside(session, 2000)
    world.forget()
    done = world.submit(session, f"{CEDAR}/carol")
    assert done.status is Status.COMPLETED
    assert world.transport.count("POST", "") == 0


def test_a_reused_incoming_payment_costs_one_read_more(world: World) -> None:
    session = world.submit(world.create())
    world.forget()
    world.submit(session)
    assert world.transport.count("GET", "/incoming-payments/") == 1
    assert len(world.transport.sent) == 4, "wallet address, incoming payment, quote, grant"


def test_money_that_comes_while_the_payment_is_refused_completes_at_once(world: World) -> None:
    session, callback = world.awaiting()
    refused = Refused("no", operation="", status=403, reason=Reason.OTHER)

    def pay_and_refuse() -> None:
        world.pay_from_outside(session, 2000)
        raise refused

    world.transport.before = on("POST", "/outgoing-payments", pay_and_refuse)
    assert world.finish(session, callback).record.status is Status.COMPLETED


def test_money_that_comes_during_the_preparation_completes_at_once(world: World) -> None:
    session = world.create()

    def pay_now() -> None:
        world.transport.before = lambda request: None  # the quote is asked for twice
        world.pay_from_outside(world.session(session.id), 2000)

    world.transport.before = on("POST", "/quotes", pay_now)
    # A paid incoming payment is not quoted for, and is read once more.
    assert world.submit(session).status is Status.COMPLETED


def test_money_that_comes_after_the_quote_completes_at_the_next_look(world: World) -> None:
    session = world.create()

    def pay_now(request: Request) -> None:
        if b'"interact"' in (request.body or b""):
            world.pay_from_outside(world.session(session.id), 2000)

    world.transport.before = pay_now
    assert world.submit(session).status is Status.AWAITING_APPROVAL
    assert look(world, session).status is Status.COMPLETED


def test_a_part_from_outside_is_flagged_and_nothing_more_is_asked_for(world: World) -> None:
    session = opened_again(world)
    world.pay_from_outside(session, 500)
    flagged = world.submit(session)
    assert (flagged.status, flagged.received) == (Status.PROCESSING, 500)
    assert flagged.attention is Attention.PARTIAL_PAYMENT
    world.pay_from_outside(session, 1500)
    assert world.settle(flagged, every=60).status is Status.COMPLETED


def test_a_process_that_dies_after_it_found_money_leaves_it_to_the_next_check(world: World) -> None:
    session = opened_again(world)
    world.pay_from_outside(session, 2000)
    found = move(world.services, session, Event.MONEY_FOUND, check_at=world.clock.now(), checks=0)
    assert (found.status, found.received) == (Status.PROCESSING, None)
    assert world.settle(found).status is Status.COMPLETED


def test_a_part_from_outside_is_checked_every_hour_in_the_end(world: World) -> None:
    session = opened_again(world)
    world.pay_from_outside(session, 500)
    flagged = world.submit(session)
    world.settle(flagged, seconds=2 * 3600, every=30)
    world.forget()
    world.settle(flagged, seconds=4 * 3600, every=30)
    assert world.transport.count("GET", "/incoming-payments/") == 4


def test_nothing_is_decided_by_money_while_an_approval_is_claimed(world: World) -> None:
    session, callback = world.awaiting()
    seen: list[Session] = []

    def during() -> None:
        world.clock.pass_time(LEASE.total_seconds() - 1)
        seen.append(reconcile.advance_pending(world.services, session.id))

    world.transport.before = on("POST", "/continue/", during)
    world.finish(session, callback)
    assert seen[0].phase is Phase.CONTINUING


# --- in flight ---


# --- after the end ---


@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("value", [2000, 700, 1])
def test_money_after_the_end_is_flagged_and_told_and_changes_no_state(
    world: World, end: End, value: int
) -> None:
    world.listen()
    session = world.submit(world.create())
    ended = end(world.services, world.key(), session.id)
    world.pay_from_outside(session, value)
    world.sweep(rounds=3)
    after = world.session(session.id)
    assert (after.status, after.received) == (ended.status, value)
    assert after.attention is Attention.LATE_PAYMENT
    assert after.updated_at == ended.updated_at, "the day that counts it stays"
    assert after.needed_at is None
    assert world.incoming(session).completed
    event = world.event()
    assert event.type == LATE_PAYMENT
    body = json.loads(event.body)
    assert (body["amount_received"], body["status"]) == (value, ended.status)
    assert after.event is None, "it is not the event of its end"


def gone_after_the_close() -> Callable[[Request], None]:
    """Return what has the merchant's wallet not answer from the request that closes on."""
    closing: list[Request] = []

    def gone(request: Request) -> None:
        closing.extend([request] if request.url.endswith("/complete") else [])
        if closing:
            raise OutcomeUnknown("the wallet does not answer")

    return gone


def test_late_money_is_told_though_the_close_and_the_read_after_it_get_no_answer(
    world: World,
) -> None:
    session = world.submit(world.create())
    ends.cancel(world.services, world.key(), session.id)
    world.pay_from_outside(session, 700)
    world.transport.before = gone_after_the_close()
    world.sweep()
    after = world.session(session.id)
    assert (after.attention, after.received) == (Attention.LATE_PAYMENT, 700)
    assert after.closed_at is None, "nobody has seen it closed"
    world.transport.before = lambda request: None
    world.sweep(rounds=3)
    after = world.session(session.id)
    assert (after.received, after.check_at) == (700, None)
    assert world.incoming(session).completed


def test_a_part_is_told_though_the_close_and_the_read_after_it_get_no_answer(
    world: World,
) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    now = world.clock.now()
    closing = move(world.services, session, Event.CLOSING_STARTED, closing_at=now)
    world.pay_from_outside(session, 1000)
    world.transport.before = gone_after_the_close()
    after = reconcile.step(world.services, closing)
    assert (after.status, after.attention) == (Status.PROCESSING, Attention.PARTIAL_PAYMENT)
    assert (after.received, after.closed_at) == (1000, None)


def not_there(request: Request) -> Response:
    """Answer as a wallet does that has no such incoming payment (protocol.md section 7)."""
    body = b'{"error": {"code": "401", "description": "Unauthorized"}}'
    return Response(401, {"content-type": "application/json"}, body)


def empty(world: World) -> Callable[[Request], Response]:
    """Answer from a copy of the wallet's books that has not got the money yet."""

    def answer(request: Request) -> Response:
        shown = world.network.handle(request)
        if shown.status != 200:
            return shown
        body = json.loads(shown.body)
        body["receivedAmount"]["value"] = "0"
        return Response(200, shown.headers, json.dumps(body).encode())

    return answer


@pytest.mark.parametrize("later", ["not found", "less"])
def test_a_part_that_was_read_stays_whatever_the_wallet_says_later(
    world: World, later: str
) -> None:
    session = world.pay(world.create(expires_in_seconds=1800), f"{CEDAR}/never-credits")
    world.pay_from_outside(session, 1000)
    told = world.settle(session, seconds=10)
    assert (told.attention, told.received) == (Attention.PARTIAL_PAYMENT, 1000)
    says = not_there if later == "not found" else empty(world)
    answering(world, "GET", "/incoming-payments/", says)
    after = world.settle(told, seconds=8_000, every=60)
    assert after.status is Status.PROCESSING
    assert (after.attention, after.received) == (Attention.PARTIAL_PAYMENT, 1000)
    assert after.incoming_payment == session.incoming_payment
    undecided = after.check_at is not None
    assert undecided is (later == "not found"), "a wallet that contradicts itself is asked again"
    after = world.settle(after, seconds=24 * 3600, every=600)
    assert (after.attention, after.received, after.check_at) == (
        Attention.PARTIAL_PAYMENT,
        1000,
        None,
    )


@pytest.mark.parametrize("later", ["not found", "less"])
def test_late_money_that_was_read_stays_whatever_the_wallet_says_later(
    world: World, later: str
) -> None:
    session = world.submit(world.create(expires_in_seconds=1800))
    ends.cancel(world.services, world.key(), session.id)
    world.pay_from_outside(session, 700)
    world.sweep()
    assert world.session(session.id).received == 700
    says = not_there if later == "not found" else empty(world)
    answering(world, "GET", "/incoming-payments/", says)
    world.clock.pass_time(25 * 3600)
    world.sweep(rounds=3)
    after = world.session(session.id)
    assert (after.attention, after.received, after.check_at) == (
        Attention.LATE_PAYMENT,
        700,
        None,
    )


def test_an_expiry_by_the_clock_is_followed_up_too(world: World) -> None:
    session = world.submit(world.create(expires_in_seconds=1800))
    world.clock.pass_time(1800)
    assert reconcile.view(world.services, session.id).status is Status.EXPIRED
    world.pay_from_outside(session, 2000)
    world.sweep(rounds=3)
    assert world.session(session.id).attention is Attention.LATE_PAYMENT


def test_money_on_its_way_as_the_incoming_payment_was_closed_is_seen(world: World) -> None:
    session = world.submit(world.create())
    ends.cancel(world.services, world.key(), session.id)
    world.sweep()
    closed = world.session(session.id).closed_at
    assert closed is not None
    assert world.incoming(session).completed
    world.clock.pass_time(30)
    world.pay_from_outside(session, 2000, ended=True)
    world.sweep(rounds=2)
    assert world.session(session.id).received == 2000
    assert world.session(session.id).needed_at is None


def test_a_check_of_a_process_whose_clock_is_ahead_is_made_again_behind_the_fence(
    world: World,
) -> None:
    session = world.submit(world.create())
    ends.cancel(world.services, world.key(), session.id)
    world.sweep()
    closed = world.session(session.id)
    assert closed.closed_at is not None
    world.clock.pass_time(10)
    early = reconcile.step(world.services, closed)
    assert early.check_at == closed.closed_at + FENCE
    world.sweep()
    assert world.session(session.id).needed_at is None


def test_money_in_two_late_parts_is_told_twice(world: World) -> None:
    session = world.submit(world.create())
    ends.cancel(world.services, world.key(), session.id)
    world.pay_from_outside(session, 500)
    world.sweep()
    world.pay_from_outside(session, 300, ended=True)
    world.sweep(rounds=2)
    told = [json.loads(row["body"])["amount_received"] for row in world.events()]
    assert sorted(told) == [500, 800]


def test_an_end_without_money_is_over_after_three_rounds_and_tells_nobody(world: World) -> None:
    session = world.submit(world.create())
    ends.cancel(world.services, world.key(), session.id)
    world.sweep(rounds=3)
    after = world.session(session.id)
    assert (after.needed_at, after.received, after.attention) == (None, None, None)
    assert world.events() == []
    world.forget()
    world.sweep(rounds=2)
    assert world.transport.sent == []


def test_a_session_without_an_incoming_payment_owes_nothing_after_its_end(world: World) -> None:
    session = ends.cancel(world.services, world.key(), world.create().id)
    assert session.needed_at is None


@pytest.mark.parametrize("status", [400, 403, 409, 500])
def test_where_the_provider_does_not_close_its_expiry_does(world: World, status: int) -> None:
    refused = Refused("no", operation="", status=status, reason=Reason.OTHER)
    world.transport.before = on("POST", "/complete", raising(refused))
    session = world.submit(world.create(expires_in_seconds=1800))
    ends.cancel(world.services, world.key(), session.id)
    world.sweep(rounds=30)
    assert world.session(session.id).needed_at is not None
    world.pay_from_outside(session, 2000)
    world.sweep(rounds=30)
    assert world.session(session.id).attention is Attention.LATE_PAYMENT
    assert world.session(session.id).needed_at is None


def test_a_wallet_that_cannot_be_asked_for_a_week_is_left_to_the_merchant(world: World) -> None:
    session = world.submit(world.create(expires_in_seconds=1800))
    ends.cancel(world.services, world.key(), session.id)
    world.transport.before = on("", "", raising(NotSent("down")))
    world.sweep(rounds=2)
    world.clock.pass_time(timedelta(days=8).total_seconds())
    world.sweep()
    after = world.session(session.id)
    assert (after.needed_at, after.attention) == (None, Attention.UNDECIDED)


# --- after a payment ---


def test_under_instructed_what_arrives_after_the_end_is_recorded_and_nothing_is_closed() -> None:
    world = World(policy=CompletionPolicy.INSTRUCTED)
    session = world.pay(world.create(expires_in_seconds=1800), f"{CEDAR}/late")
    assert (session.status, session.received) == (Status.COMPLETED, None)
    world.sweep(rounds=2)
    assert world.transport.count("POST", "/complete") == 0
    world.sweep(rounds=60)
    after = world.session(session.id)
    assert (after.received, after.needed_at) == (2000, None)
    assert after.updated_at == session.updated_at


def test_more_than_asked_is_recorded(world: World) -> None:
    session = opened_again(world)
    world.pay_from_outside(session, 2500)
    done = look(world, session)
    assert (done.status, done.amount_received) == (Status.COMPLETED, 2500)


# --- completed by somebody else: at some providers anybody may, and no money can come then ---

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
    session = world.finish(session, callback).record
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
    assert world.finish(session, callback).record.closing_at is not None


def test_a_payment_that_is_closed_while_the_callback_waits_goes_to_the_fence_at_once(
    world: World,
) -> None:
    session, callback = world.awaiting("never-credits")
    world.clock.pass_time(5)
    begun = world.clock.now()
    world.transport.after = on("POST", "/outgoing-payments", lambda: close(world, session))
    session = world.finish(session, callback).record
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
    session = world.finish(session, callback).record
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
    session = world.finish(session, callback).record
    close(world, session)
    world.clock.pass_time(12)
    session = world.settle(session, seconds=20)
    assert session.closing_at is not None
    world.pay_from_outside(session, 2000, ended=True)  # packets from before the close
    assert world.settle(session).status is Status.COMPLETED
