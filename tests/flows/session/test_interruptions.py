"""Test the payment flows where a wallet answers oddly or somebody else writes in between."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from checkout.domain.ground.errors import (
    CheckoutError,
    Unavailable,
    WalletInvalid,
    WalletUnavailable,
    WalletUnreachable,
)
from checkout.domain.payment.in_flight import Phase, Problem
from checkout.domain.session.public import public_attempts
from checkout.domain.session.record import Session, Status
from checkout.flows.session import close, reconcile
from open_payments.errors import NotSent
from open_payments.transports import Request, Response
from tests.flows.deadly import Killed
from tests.support.flows import CEDAR, World, answering, interrupt, on, raising

Answer = Callable[[Request], Response]


unreachable = raising(NotSent("down"))


def status(code: int) -> Answer:
    return lambda request: Response(code, {}, b"no")


# --- preparation ---


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (lambda request: Response(200, {}, b"{}"), WalletInvalid),
        (status(404), WalletInvalid),
        (status(410), WalletInvalid),
        (status(429), WalletUnreachable),
        (status(503), WalletUnreachable),
        (unreachable, WalletUnreachable),
    ],
)
def test_a_wallet_document_that_cannot_be_used_says_why(
    world: World, answer: Answer, error: type[CheckoutError]
) -> None:
    session = world.create()
    answering(world, "GET", "/alice", answer)
    with pytest.raises(error):
        world.submit(session)
    assert world.session(session.id).status is Status.OPEN


@pytest.mark.parametrize("code", [400, 401, 403, 406, 451])
def test_a_wallets_server_that_refuses_us_is_not_taken_for_one_that_has_no_such_wallet(
    world: World, code: int
) -> None:
    session = world.create()
    answering(world, "GET", "/alice", status(code))
    with pytest.raises(WalletUnreachable, match=f"refused to answer .* .{code}.") as told:
        world.submit(session)
    assert told.value.refused
    after = world.session(session.id)
    assert (after.status, after.problem) == (Status.OPEN, Problem.WALLET_UNREACHABLE)
    [attempt] = public_attempts(after)
    assert attempt["error"] == {
        "code": "wallet_unreachable",
        "message": "The customer's wallet provider did not give a usable answer. "
        f"(refused with {code})",
    }


@pytest.mark.parametrize("answer", [status(404), unreachable])
def test_an_incoming_payment_that_cannot_be_read_before_its_end_is_used_again(
    world: World, answer: Answer
) -> None:
    session = world.submit(world.create())
    assert session.incoming_payment is not None
    answering(world, "GET", "/incoming-payments/", answer)
    with pytest.raises(WalletUnavailable):
        world.submit(session, f"{CEDAR}/unpeered")
    after = world.session(session.id)
    assert after.incoming_payment == session.incoming_payment


def test_a_wallet_that_takes_no_request_for_approval_leaves_the_session_open(world: World) -> None:
    session = world.create()

    def refusing(request: Request) -> None:
        if b'"interact"' in (request.body or b""):
            raise NotSent("down")

    world.transport.before = refusing
    with pytest.raises(CheckoutError):
        world.submit(session)
    assert world.session(session.id).status is Status.OPEN


def test_a_preparation_that_is_interrupted_opens_the_session_at_once(world: World) -> None:
    session = world.create()
    world.transport.before = raising(Killed())
    with pytest.raises(Killed):
        world.submit(session)
    after = world.session(session.id)
    assert (after.status, after.problem) == (Status.OPEN, Problem.PREPARATION_INTERRUPTED)


def test_of_two_submissions_at_once_the_first_to_write_is_the_one_that_counts(world: World) -> None:
    session = world.create()
    interrupt(world, "update_item", lambda: world.submit(session))
    with pytest.raises(CheckoutError):
        world.submit(session, f"{CEDAR}/carol")
    after = world.session(session.id)
    assert after.status is Status.AWAITING_APPROVAL
    assert after.customer is not None
    assert after.customer.id == f"{CEDAR}/alice"


def test_a_failure_of_the_store_in_the_middle_leaves_what_the_lease_ends(world: World) -> None:
    session = world.create()

    def unavailable(request: Request) -> None:
        world.transport.before = lambda request: None
        interrupt(world, "update_item", raising(Unavailable("the store does not answer")))

    world.transport.before = unavailable
    with pytest.raises(Unavailable):
        world.submit(session)
    after = world.session(session.id)
    assert (after.status, after.problem) == (Status.OPEN, Problem.PREPARATION_INTERRUPTED)


# --- approval and payment ---


@pytest.mark.parametrize("ending", [close.cancel, close.expire])
def test_a_callback_that_an_end_overtakes_asks_nobody_and_shows_the_end(
    world: World, ending: Callable[..., Session]
) -> None:
    session, callback = world.awaiting()
    interrupt(world, "update_item", lambda: ending(world.services, world.key(), session.id))
    shown = world.finish(session, callback).record
    assert shown == world.session(session.id)
    assert shown.status in (Status.CANCELED, Status.EXPIRED)
    assert world.transport.count("POST", "/continue/") == 0
    assert world.received() == 0


def test_of_two_callbacks_at_once_the_loser_shows_what_the_winner_made_of_it(world: World) -> None:
    session, callback = world.awaiting()
    interrupt(world, "update_item", lambda: world.finish(session, callback))
    assert world.finish(session, callback).record == world.session(session.id)
    assert world.session(session.id).status is Status.COMPLETED
    assert world.received() == 2000


@pytest.mark.parametrize(
    ("part", "wait"), [("/continue/", 0), ("/quotes", 700)], ids=["continuation", "new quote"]
)
@pytest.mark.parametrize("answer", [status(400), unreachable])  # the latter for good
def test_an_approval_that_cannot_be_used_opens_the_session(
    world: World, part: str, wait: int, answer: Answer
) -> None:
    session, callback = world.awaiting()
    world.clock.pass_time(wait)
    answering(world, "POST", part, answer)
    back = world.finish(session, callback).record
    assert (back.status, back.problem) == (Status.OPEN, Problem.APPROVAL_UNUSABLE)
    assert world.received() == 0


def test_a_refusal_of_a_wallet_that_cannot_be_asked_leaves_the_payment_in_doubt() -> None:
    world = World()
    session, callback = world.awaiting()

    world.transport.before = on("GET", "/outgoing-payments", raising(NotSent("down")))
    answering(world, "POST", "/outgoing-payments", status(400))
    doubtful = world.finish(session, callback).record
    assert doubtful.phase is Phase.PAYING


def test_a_payment_that_a_sweep_has_completed_meanwhile_is_shown_as_it_is(world: World) -> None:
    session, callback = world.awaiting()

    def swept() -> None:
        world.clock.pass_time(60)
        reconcile.step(world.services, world.session(session.id))

    world.transport.after = on("POST", "/outgoing-payments", swept)
    assert world.finish(session, callback).record.status is Status.COMPLETED
    assert len(world.events()) == 1


# --- the witness ---


def test_money_in_another_asset_is_not_believed(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/late")
    network = world.network

    def other(request: Request) -> Response:
        answer = network.handle(request)
        body = json.loads(answer.body)
        euros = {"value": "2000", "assetCode": "EUR", "assetScale": 2}
        body |= {name: euros for name in ("incomingAmount", "receivedAmount") if name in body}
        return Response(answer.status, answer.headers, json.dumps(body).encode())

    answering(world, "GET", "/incoming-payments/", other)
    assert world.settle(session, seconds=60).payment_in_flight
    world.transport.network = network
    assert world.settle(session).status is Status.COMPLETED


def unanswered(world: World) -> Session:
    """A payment that was sent, and whose answer was lost: it has no name yet."""
    session, callback = world.awaiting()
    network = world.network

    def lost(request: Request) -> Response:
        network.handle(request)
        return Response(502, {}, b"Bad Gateway")

    answering(world, "POST", "/outgoing-payments", lost)
    return world.finish(session, callback).record


def test_a_payment_with_an_id_of_its_own_is_found_in_the_list(world: World) -> None:
    session = unanswered(world)
    answering(world, "GET", "/outgoing-payments/", status(404))
    done = world.settle(session)
    assert done.status is Status.COMPLETED
    assert done.outgoing_payment is not None


@pytest.mark.parametrize("endless", [True, False])
def test_a_list_that_shows_no_payment_leaves_it_to_the_merchants_wallet(endless: bool) -> None:
    world = World()
    session = unanswered(world)
    pages: list[str] = []

    def handle(request: Request) -> Response:
        if "/outgoing-payments/" in request.url:
            return Response(404, {}, b"no")
        pages.append(request.url)
        info = {"hasNextPage": endless, "hasPreviousPage": False, "endCursor": f"more-{len(pages)}"}
        return Response(200, {}, json.dumps({"result": [], "pagination": info}).encode())

    answering(world, "GET", "/outgoing-payments", handle)
    done = world.settle(session)
    assert (done.status, done.outgoing_payment) == (Status.COMPLETED, None)
    assert (len(pages) > 1) is endless
    assert world.clock.now() - session.updated_at < timedelta(minutes=10)
