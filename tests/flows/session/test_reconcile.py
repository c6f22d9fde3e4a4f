from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Phase, Problem
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.session.record import Session, Status
from checkout.domain.session.transitions import advance
from checkout.flows.payment.writes import move
from checkout.flows.retry_on_conflict import TRIES
from checkout.flows.session import reconcile
from checkout.ports import CompletionPolicy, StaleRecord, Transaction
from open_payments.errors import NotSent, OutcomeUnknown, Reason, Refused
from open_payments.transports import Request, Response
from tests.support.flows import CEDAR, World, answering, interrupt, on, raising
from tests.support.protected import FENCE, STRAY_404


def test_money_that_arrives_late_completes_the_session_when_it_arrives(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/late")
    assert session.status is Status.PROCESSING
    assert world.events() == []
    assert world.settle(session).status is Status.COMPLETED
    assert world.received() == 2000
    assert len(world.events()) == 1


def test_a_wallet_without_money_can_pay_in_the_end_with_the_same_link(world: World) -> None:
    session, callback = world.awaiting("no-funds")
    begun = world.clock.now()
    session = world.finish(session, callback).record
    assert session.status is Status.PROCESSING
    assert session.closing_at is not None, "the callback's own look has seen that it failed"
    back = world.settle(session, every=3)
    assert (back.status, back.problem) == (Status.OPEN, Problem.PAYMENT_FAILED)
    assert FENCE <= world.clock.now() - begun < timedelta(seconds=45)
    assert back.incoming_payment is None
    assert world.pay(back).status is Status.COMPLETED
    assert world.received() == 2000


def test_a_callback_asks_a_wallet_that_hangs_no_longer_than_the_customer_waits(
    world: World,
) -> None:
    session, callback = world.awaiting("never-credits")
    world.clock.pass_time(5)  # the pause before the grant may be continued
    begun = world.clock.now()
    asked: list[float] = []
    send = world.transport.send

    def sent(request: Request, *, timeout: float) -> Response:
        if request.method == "GET" and "/outgoing-payments/" in request.url:
            asked.append((world.clock.now() - begun).total_seconds())
            world.clock.pass_time(timeout)
            raise OutcomeUnknown("no answer in time")
        return send(request, timeout=timeout)

    world.transport.send = sent  # type: ignore[method-assign]
    assert world.finish(session, callback).record.status is Status.PROCESSING
    assert asked == [1.0]
    assert world.clock.now() - begun <= timedelta(seconds=4)


def test_trap_09_a_payment_that_says_neither_failed_nor_sent_is_not_believed(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    back = world.settle(session)
    assert (back.status, back.problem) == (Status.OPEN, Problem.PAYMENT_FAILED)
    assert world.events() == []


def test_a_wallet_that_lies_about_failure_cannot_hide_the_money(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/says-failed")
    assert world.settle(session).status is Status.COMPLETED
    assert world.received() == 2000


def test_half_of_the_money_is_flagged_for_the_merchant_and_closed_once_the_wallet_gives_up(
    world: World,
) -> None:
    session = world.pay(world.create(), f"{CEDAR}/partial")
    assert (session.attention, session.received) == (Attention.PARTIAL_PAYMENT, 1000), "at once"
    assert session.closing_at is not None
    session = world.settle(session, seconds=120)
    assert session.status is Status.PROCESSING
    assert (session.attention, session.received) == (Attention.PARTIAL_PAYMENT, 1000)
    assert session.closed_at is not None
    assert world.incoming(session).completed
    assert session.needed_at is None


def test_half_of_the_money_is_waited_on_until_the_incoming_payments_end(world: World) -> None:
    """The customer's wallet says nothing of a failure: the other half may come."""
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    world.pay_from_outside(session, 1000)
    session = world.settle(session, seconds=3600, every=10)
    assert (session.attention, session.closing_at) == (Attention.PARTIAL_PAYMENT, None)
    assert session.incoming_payment is not None
    world.clock.pass_time((session.incoming_payment.expires_at - world.clock.now()).total_seconds())
    world.settle(session, seconds=25)
    world.pay_from_outside(session, 500, ended=True)  # it was on its way
    session = world.settle(session, seconds=120)
    assert (session.status, session.received) == (Status.PROCESSING, 1500)
    assert session.needed_at is None


def test_under_instructed_the_wallets_word_suffices() -> None:
    world = World(policy=CompletionPolicy.INSTRUCTED)
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    assert session.status is Status.COMPLETED
    assert session.received is None
    assert world.received() == 0


def test_received_money_completes_even_where_the_wallet_cannot_be_asked(world: World) -> None:
    session = world.in_doubt()

    world.transport.before = on("", "4101", raising(NotSent("down")))
    done = world.settle(session)
    assert done.status is Status.COMPLETED
    assert done.outgoing_payment is None
    assert world.received() == 2000


def test_a_request_that_never_arrived_is_disproved_behind_the_fence(world: World) -> None:
    doubtful, begun = world.unsent(), world.clock.now()
    back = world.settle(doubtful)
    assert (back.status, back.problem) == (Status.OPEN, Problem.PAYMENT_FAILED)
    waited = world.clock.now() - begun
    assert timedelta(minutes=5) < waited < timedelta(minutes=10)
    assert "closed" in [entry.event for entry in back.history]
    world.transport.before = lambda request: None
    assert world.pay(back).status is Status.COMPLETED


def test_no_verdict_while_the_merchants_provider_is_down(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/no-funds")
    world.transport.before = on("", ":42", raising(NotSent("down")))
    assert world.settle(session, seconds=1200).status is Status.PROCESSING
    world.transport.before = lambda request: None
    assert world.settle(session).status is Status.OPEN


def test_an_expired_incoming_payment_that_vanished_counts_as_closed(world: World) -> None:
    session = world.pay(world.create(expires_in_seconds=300), f"{CEDAR}/never-credits")
    world.clock.pass_time(300 + 15 * 60 + 60)
    back = world.settle(session)
    assert back.status is Status.EXPIRED
    assert world.events() == []


def test_a_paid_session_past_its_expiry_still_completes(world: World) -> None:
    session = world.in_doubt()
    world.clock.pass_time(24 * 3600 + 60)
    assert world.settle(session).status is Status.COMPLETED


def test_a_token_that_ran_out_is_rotated_and_kept(world: World) -> None:
    session = world.in_doubt()
    world.clock.pass_time(700)
    done = world.settle(session)
    assert done.status is Status.COMPLETED
    assert done.outgoing_payment is not None
    assert world.transport.count("POST", "/token/") >= 1


def test_a_token_that_was_rotated_is_kept_although_another_writer_came_between(
    world: World,
) -> None:
    session = world.in_doubt()
    world.clock.pass_time(700)

    def another_writes() -> None:
        move(world.services, world.session(session.id), Event.CHECKED)

    world.transport.after = on("POST", ":4102/token/", another_writes)
    before = world.session(session.id)
    with pytest.raises(StaleRecord):
        reconcile.step(world.services, before)
    kept = world.session(session.id)
    assert kept.payment_in_flight
    assert before.token != kept.token
    world.transport.after = lambda request, response: None
    done = world.settle(session)
    assert (done.status, done.outgoing_payment is None) == (Status.COMPLETED, False)


def test_a_token_that_was_rotated_is_not_put_into_a_session_that_is_open_again(
    world: World,
) -> None:
    session = world.in_doubt()
    world.clock.pass_time(700)

    def another_opens() -> None:
        refused = {"note": "refused", "problem": Problem.PAYMENT_REFUSED}
        move(world.services, world.session(session.id), Event.PAYMENT_REFUSED, **refused)

    world.transport.after = on("POST", ":4102/token/", another_opens)
    with pytest.raises(StaleRecord):
        reconcile.step(world.services, world.session(session.id))
    opened = world.session(session.id)
    assert (opened.status, opened.token) == (Status.OPEN, None)


def test_a_wallet_that_renews_the_token_and_then_fails_does_not_stop_the_fence(
    world: World,
) -> None:
    """Each check of a long undecided payment renews the token: it must not lose to itself."""
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    renewed: list[str] = []

    def fails(request: Request) -> None:
        if request.method == "POST" and ":4102/token/" in request.url:
            renewed.append(request.url)
        elif renewed and "/outgoing-payments" in request.url:
            raise OutcomeUnknown("lost on the way")

    world.transport.before = fails
    world.clock.pass_time(3 * 3600)
    closing = reconcile.step(world.services, world.session(session.id))
    assert renewed
    assert closing.closing_at is not None


def test_however_many_pages_poll_the_wallets_are_asked_once_per_interval(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    world.clock.pass_time(10)
    world.transport.sent.clear()
    for _ in range(50):
        reconcile.advance_pending(world.services, session.id)
    assert world.transport.count("GET", "/incoming-payments/") == 1
    assert world.transport.count("GET", "/outgoing-payments/") == 1


def test_a_session_that_owes_nothing_costs_one_read(world: World) -> None:
    session = world.pay(world.create())
    world.dynamo.calls.clear()
    world.transport.sent.clear()
    reconcile.advance_pending(world.services, session.id)
    assert list(world.dynamo.calls) == ["get_item"]
    assert world.transport.sent == []


@pytest.mark.parametrize("step", ["closing", "closed"])
def test_money_that_shows_while_closing_completes(world: World, step: str) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    while step not in str([entry.event for entry in session.history]):
        session = world.settle(session, seconds=1)
    incoming = world.incoming(session)
    incoming.received = replace(incoming.received, value=2000)
    assert world.settle(session).status is Status.COMPLETED


@pytest.mark.parametrize("status", [404, 410])
def test_a_stray_404_right_after_the_expiry_does_not_disprove_a_payment(status: int) -> None:
    """A page of something in between, on the deciding read: the money is there."""
    world = World()
    session = world.in_doubt()
    assert session.incoming_payment is not None
    page = Response(status, {"content-type": "text/html"}, b"<h1>Not here</h1>")
    answering(world, "GET", "/incoming-payments/", lambda request: page)
    cannot_be_asked = raising(NotSent("the customer's wallet cannot be asked"))
    world.transport.before = on("", ":4101", cannot_be_asked)
    left = session.incoming_payment.expires_at - world.clock.now()
    world.clock.pass_time(left.total_seconds())
    doubtful = world.settle(session, seconds=800, every=10)
    assert doubtful.payment_in_flight
    world.transport.network, world.transport.before = world.network, lambda request: None
    assert world.settle(doubtful, seconds=4_000, every=10).status is Status.COMPLETED
    assert world.received() == 2000


def test_a_refused_grant_does_not_disprove_a_payment(world: World) -> None:
    """A new process asks for a token first; a missing incoming payment is refused the same way."""
    session = world.in_doubt()
    assert session.incoming_payment is not None
    auth_server = world.stored().auth_server
    answering(world, "POST", auth_server, lambda request: Response(404, {}, b"no"))
    world.transport.before = on("", ":4101", raising(NotSent("it cannot be asked")))
    world.restart()
    left = session.incoming_payment.expires_at + STRAY_404 - world.clock.now()
    world.clock.pass_time(left.total_seconds())
    doubtful = world.settle(session, seconds=800, every=10)
    assert doubtful.payment_in_flight
    world.transport.network, world.transport.before = world.network, lambda request: None
    assert world.settle(doubtful, seconds=4_000, every=10).status is Status.COMPLETED


# --- somebody else at the same time ---


def _checked(world: World, session_id: str) -> Session:
    """Another page has checked the session and found nothing."""
    session = world.session(session_id)
    later = world.clock.now() + timedelta(seconds=1)
    change = advance(
        session, Event.CHECKED, now=world.clock.now(), writer="another page", check_at=later
    )
    saved: Session = world.services.sessions.save(Transaction(change))
    return saved


def test_of_two_pages_that_poll_at_once_one_asks_the_wallets(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    world.clock.pass_time(10)
    world.transport.sent.clear()
    poll = reconcile.advance_pending
    interrupt(world, "update_item", lambda: poll(world.services, session.id))
    assert poll(world.services, session.id) == world.session(session.id)
    assert world.transport.count("GET", "/incoming-payments/") == 1


def test_a_completion_gives_way_to_another_pages_check_and_is_written_once(world: World) -> None:
    session = world.in_doubt()
    world.clock.pass_time(60)
    interrupt(world, "transact_write_items", lambda: _checked(world, session.id))
    assert world.settle(session, seconds=60).status is Status.COMPLETED
    assert len(world.events()) == 1


def test_a_completion_that_somebody_else_has_written_is_theirs(world: World) -> None:
    session = world.in_doubt()
    world.clock.pass_time(60)

    def complete() -> None:
        reconcile.step(world.services, world.session(session.id))

    interrupt(world, "transact_write_items", complete)
    done = reconcile.advance_pending(world.services, session.id)
    assert done == world.session(session.id)
    assert done.status is Status.COMPLETED
    assert len(world.events()) == 1


def test_a_completion_that_never_gets_its_turn_is_left_to_the_next_poll(world: World) -> None:
    session = world.in_doubt()
    world.clock.pass_time(60)
    interrupt(world, "transact_write_items", lambda: _checked(world, session.id), times=TRIES)
    assert reconcile.advance_pending(world.services, session.id).payment_in_flight
    assert world.events() == []
    assert world.settle(session).status is Status.COMPLETED
    assert len(world.events()) == 1


def test_a_session_that_has_ended_is_not_checked_again(world: World) -> None:
    done = world.pay(world.create())
    with pytest.raises(StaleRecord) as stale:
        reconcile.step(world.services, done)
    assert stale.value.current == done


# --- the policy, the token, the fence ---


def test_a_payment_in_flight_completes_by_the_wallets_word_once_the_policy_is_instructed() -> None:
    world = World()
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    world.services = replace(world.services, completion_policy=CompletionPolicy.INSTRUCTED)
    done = world.settle(session)
    assert (done.status, done.received) == (Status.COMPLETED, None)


def test_under_instructed_a_payment_that_is_found_again_suffices() -> None:
    world = World(policy=CompletionPolicy.INSTRUCTED)
    done = world.settle(world.in_doubt("never-credits"))
    assert done.status is Status.COMPLETED
    assert done.outgoing_payment is not None


def test_without_a_token_the_merchants_wallet_alone_decides(world: World) -> None:
    session = world.in_doubt()
    change = advance(session, Event.CHECKED, now=world.clock.now(), writer="test", token=None)
    done = world.settle(world.services.sessions.save(Transaction(change)))
    assert (done.status, done.outgoing_payment) == (Status.COMPLETED, None)
    assert world.transport.count("GET", "/outgoing-payments/") == 0


def test_a_wallet_that_refuses_to_be_asked_decides_nothing(world: World) -> None:
    session = world.in_doubt()
    answering(world, "GET", "/outgoing-payments", lambda request: Response(403, {}, b"no"))
    done = world.settle(session)
    assert (done.status, done.outgoing_payment) == (Status.COMPLETED, None)
    assert world.received() == 2000


def test_a_read_that_begins_before_the_fence_is_over_decides_nothing(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    while session.closed_at is None:
        session = world.settle(session, seconds=1)
    early = reconcile.step(world.services, session)
    assert early.payment_in_flight
    assert world.settle(early).status is Status.OPEN


@pytest.mark.parametrize("status", [200, 403, 404, 500])
def test_an_incoming_payment_that_stays_open_disproves_nothing(world: World, status: int) -> None:
    session = world.pay(world.create(), f"{CEDAR}/never-credits")

    def ignoring(request: Request) -> Response:
        assert session.incoming_payment is not None
        payment = replace(request, method="GET", url=session.incoming_payment.id)
        return replace(world.network.handle(payment), status=status)

    answering(world, "POST", "/complete", ignoring)
    while session.closing_at is None:
        session = world.settle(session, seconds=1)
    doubtful = world.settle(session, seconds=30)
    assert (doubtful.payment_in_flight, doubtful.closed_at) == (True, None)
    world.transport.network = world.network
    assert world.settle(doubtful).status is Status.OPEN


def test_a_payment_that_is_not_found_by_its_id_is_found_in_the_list_among_others(
    world: World,
) -> None:
    world.pay(world.create())
    doubtful = world.in_doubt()
    world.transport.after = lambda request, response: None
    world.pay(world.create())

    def unknown(request: Request, response: Response) -> None:
        if request.method == "GET" and "/outgoing-payments/" in request.url:
            raise Refused("no", operation="", status=404, reason=Reason.NOT_FOUND)

    world.transport.after = unknown
    done = world.settle(doubtful)
    assert done.status is Status.COMPLETED
    assert done.outgoing_payment is not None
    assert done.quote is not None
    assert done.outgoing_payment.rsplit("/")[-1] == done.quote.id.rsplit("/")[-1]


def test_money_that_shows_before_anybody_knew_of_the_payment_completes(world: World) -> None:
    session = world.in_doubt("never-credits")
    answering(world, "GET", "/outgoing-payments", lambda request: Response(404, {}, b"no"))
    while session.closing_at is None:
        session = world.settle(session, seconds=10)
    assert session.phase is Phase.PAYING
    incoming = world.incoming(session)
    incoming.received = replace(incoming.received, value=2000)
    done = world.settle(session)
    assert (done.status, done.outgoing_payment) == (Status.COMPLETED, None)


# --- the fence, whatever the merchant's provider says to the close ---

CLOSE_ANSWERS = {
    "409 of other words": (409, b'{"error":{"description":"Already done."}}'),
    "400": (400, b"{}"),
    "403": (403, b"{}"),
    "405": (405, b""),
    "204": (204, b""),
    "an empty 200": (200, b""),
    "500": (500, b""),
}


def _answer_the_close(world: World, status: int, body: bytes, *, closes: bool) -> None:
    """Have the merchant's provider close incoming payments, or not, and answer in this way."""
    handle = world.network.handle

    def answering(request: Request) -> Response:
        if not request.url.endswith("/complete"):
            return handle(request)
        if closes:
            handle(request)
        return Response(status, {}, body)

    world.network.handle = answering  # type: ignore[method-assign]


def _lose_the_payment(world: World, *, arrived: bool) -> Session:
    """Return a payment in doubt, whose customer's wallet never answers again."""
    session = world.submit(world.create(expires_in_seconds=1800))
    callback = world.approve(session)

    def silent(request: Request, response: Response | None = None) -> None:
        if "/outgoing-payments" in request.url:
            raise OutcomeUnknown("silence")

    if arrived:
        world.transport.after = silent
    else:
        world.transport.before = silent
    doubtful = world.finish(session, callback).record
    assert doubtful.phase is Phase.PAYING
    return doubtful


@pytest.mark.parametrize("arrived", [True, False])
@pytest.mark.parametrize("answer", CLOSE_ANSWERS)
def test_what_is_seen_decides_whatever_is_said_to_the_close(answer: str, arrived: bool) -> None:
    status, body = CLOSE_ANSWERS[answer]
    world = World()
    _answer_the_close(world, status, body, closes=True)
    decided = world.settle(_lose_the_payment(world, arrived=arrived))
    assert decided.status is (Status.COMPLETED if arrived else Status.OPEN)
    assert world.received() == (2000 if arrived else 0)


@pytest.mark.parametrize("arrived", [True, False])
def test_a_provider_that_never_closes_is_decided_by_the_incoming_payments_expiry(
    arrived: bool,
) -> None:
    world = World()
    _answer_the_close(world, 403, b"{}", closes=False)
    doubtful = _lose_the_payment(world, arrived=arrived)
    decided = world.settle(doubtful, seconds=3 * 3600, every=30)
    assert decided.status is (Status.COMPLETED if arrived else Status.EXPIRED)


def test_a_provider_that_never_closes_and_heeds_no_expiry_is_decided_a_day_after_the_session() -> (
    None
):
    world = World()
    _answer_the_close(world, 405, b"", closes=False)
    handle = world.network.handle

    def lasting(request: Request) -> Response:
        response = handle(request)
        if "/incoming-payments" not in request.url:
            return response
        body = re.sub(rb'"expiresAt":"[^"]*"', b'"expiresAt":"2036-01-01T00:00:00Z"', response.body)
        return replace(response, body=body)

    world.network.handle = lasting  # type: ignore[method-assign]
    doubtful = _lose_the_payment(world, arrived=False)
    day_after = doubtful.expires_at + timedelta(hours=24)
    undecided = world.settle(doubtful, seconds=25 * 3600 - 3600, every=60)
    assert undecided.payment_in_flight
    assert world.settle(undecided, seconds=3 * 3600, every=60).status is Status.EXPIRED
    assert timedelta(0) <= world.clock.now() - day_after <= timedelta(hours=2)


def test_a_quote_that_names_no_end_holds_a_session_for_ten_minutes() -> None:
    world = World()
    handle = world.network.handle

    def endless(request: Request) -> Response:
        response = handle(request)
        if "/quotes" not in request.url:
            return response
        return replace(response, body=re.sub(rb',"expiresAt":"[^"]*"', b"", response.body))

    world.network.handle = endless  # type: ignore[method-assign]
    doubtful, begun = world.unsent(), world.clock.now()
    assert doubtful.quote is not None
    assert doubtful.quote.expires_at is None
    assert world.settle(doubtful).status is Status.OPEN
    assert timedelta(minutes=10) < world.clock.now() - begun < timedelta(minutes=13)


def test_a_step_that_another_writer_has_made_impossible_is_a_lost_race(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = world.in_doubt()
    world.clock.pass_time(60)
    moved = raising(IllegalTransition(session, Event.CHECKED))
    monkeypatch.setattr(reconcile, "_ask_wallet", moved)
    with pytest.raises(StaleRecord):
        reconcile.step(world.services, session)
