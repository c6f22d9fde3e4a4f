from __future__ import annotations

from datetime import timedelta

import pytest

from checkout.domain.ground.errors import (
    AmountTooSmallForWallet,
    CheckoutError,
    MerchantWalletError,
    RateLimited,
    SessionBusy,
    SessionUnexpectedState,
    Unavailable,
    WalletInvalid,
    WalletUnavailable,
    WalletUnreachable,
)
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.record import Status
from checkout.domain.session.transitions import advance
from checkout.flows.session import lookup
from checkout.ports import Transaction
from open_payments.errors import NotSent, OutcomeUnknown, Reason, Refused
from open_payments.transports import Request, Response
from sandbox.wallets.provider import Rules
from tests.support.flows import CEDAR, HARBOR, World, answering, interrupt, on, raising
from tests.support.protected import LEASE


def test_a_wallet_address_leads_to_a_price_and_a_page_to_approve_it_on(world: World) -> None:
    session = world.submit(world.create())
    assert session.status is Status.AWAITING_APPROVAL
    assert session.quote is not None
    assert session.quote.receive.value == 2000
    assert session.quote.debit.asset_code == "EUR"
    assert session.interact_url is not None
    assert session.customer is not None
    assert session.customer.id == f"{CEDAR}/alice"
    assert world.session(session.id) == session
    callback = world.network.approve(session.interact_url)
    assert callback.startswith(f"{world.services.base_url}/pay/{session.id}/grant/callback?")


@pytest.mark.parametrize("typed", [f"{CEDAR}/ALICE", " $LOCALHOST:4101/alice/"])
def test_a_wallet_address_may_be_typed_in_many_ways(world: World, typed: str) -> None:
    session = world.pay(world.create(), typed)
    assert session.status is Status.COMPLETED
    assert session.customer is not None
    assert session.customer.id == f"{CEDAR}/alice"


def test_a_wallet_address_that_redirects_pays_from_the_wallet_it_leads_to(world: World) -> None:
    session = world.pay(world.create(), f"{CEDAR}/redirects")
    assert session.status is Status.COMPLETED
    assert session.customer is not None
    assert session.customer.id == f"{HARBOR}/bob"
    read = [url for method, url in world.transport.sent if method == "GET"]
    assert read.count(f"{HARBOR}/bob") == 1
    bob = world.network.account(f"{HARBOR}/bob")
    assert bob is not None
    assert bob.balance == 10_000_00 - 2000


@pytest.mark.parametrize(
    "location",
    [f"{CEDAR}/alice", "http://localhost:4201/bob", "https://me@localhost:4201/bob", "", "#x"],
)
def test_a_wallet_address_with_a_bad_redirect_is_invalid_and_says_so(
    world: World, location: str
) -> None:
    moved = Response(302, {"location": location}, b"")
    answering(world, "GET", f"{CEDAR}/alice", lambda request: moved)
    session = world.create()
    with pytest.raises(WalletInvalid, match="redirects too often, or to an address that is not"):
        world.submit(session)
    after = world.session(session.id)
    assert (after.status, after.problem) == (Status.OPEN, Problem.WALLET_INVALID)


@pytest.mark.parametrize("strings", [True, False])
def test_the_form_of_client_that_a_server_wants_is_learned_once(strings: bool) -> None:
    world = World(rules=Rules(client_strings=strings, client_objects=not strings))
    grants = [CEDAR.replace("4101", "4102/"), HARBOR.replace("4201", "4202/")]
    asked = []
    for _ in range(2):
        world.transport.sent.clear()
        assert world.pay(world.create()).status is Status.COMPLETED
        asked.append([world.transport.count("POST", f"{each}") for each in grants])
    # Customer's: quote, payment and continuation; merchant's: incoming payments, kept for later.
    assert asked == [[3 if strings else 4, 1 if strings else 2], [2, 0]]


@pytest.mark.parametrize(
    ("typed", "error", "problem"),
    [
        ("not a wallet", WalletInvalid, None),
        (f"{CEDAR}/nobody", WalletInvalid, Problem.WALLET_INVALID),
        ("https://localhost:9/alice", WalletUnreachable, Problem.WALLET_UNREACHABLE),
        (f"{CEDAR}/unpeered", WalletUnavailable, Problem.WALLET_UNAVAILABLE),
        (f"{CEDAR}/too-small", AmountTooSmallForWallet, Problem.AMOUNT_TOO_SMALL_FOR_WALLET),
    ],
)
def test_a_wallet_that_cannot_pay_leaves_the_session_open_and_says_why(
    world: World, typed: str, error: type[CheckoutError], problem: Problem | None
) -> None:
    session = world.create()
    with pytest.raises(error):
        world.submit(session, typed)
    after = world.session(session.id)
    assert (after.status, after.problem) == (Status.OPEN, problem)
    assert after.lease_until is None
    assert world.pay(after).status is Status.COMPLETED


@pytest.mark.parametrize(
    ("part", "error"),
    [
        ("4101/alice", WalletUnreachable),
        ("4202", MerchantWalletError),  # the merchant's authorization server
        ("/incoming-payments", MerchantWalletError),
        ("/quotes", WalletUnavailable),
        ("4102", WalletUnavailable),  # the customer's authorization server
    ],
)
@pytest.mark.parametrize("answered", [True, False])
def test_a_failure_of_any_preparation_call_is_safe(
    world: World, part: str, error: type[CheckoutError], answered: bool
) -> None:
    session = world.create()
    lost = on("", part, raising(OutcomeUnknown("lost")))
    setattr(world.transport, "after" if answered else "before", lost)
    with pytest.raises(error):
        world.submit(session)
    assert world.session(session.id).status is Status.OPEN
    setattr(world.transport, "after" if answered else "before", lambda *request: None)
    assert world.pay(session).status is Status.COMPLETED
    assert world.received() == 2000


def test_the_incoming_payment_is_used_again_by_the_next_try(world: World) -> None:
    session = world.create()
    first = world.submit(session)
    second = world.submit(first, f"{CEDAR}/carol")
    assert first.incoming_payment == second.incoming_payment
    assert world.transport.count("POST", "/incoming-payments") == 1


def test_an_incoming_payment_that_was_closed_elsewhere_is_replaced(world: World) -> None:
    session = world.submit(world.create())
    world.incoming(session).completed = True
    for seconds in (0, 34):  # what was sent before it was closed may still arrive
        world.clock.pass_time(seconds)
        with pytest.raises(MerchantWalletError, match="in a minute"):
            world.submit(session)
    world.clock.pass_time(1)
    again = world.submit(session)
    assert again.incoming_payment != session.incoming_payment
    assert again.closed_at is None
    assert world.pay(again).status is Status.COMPLETED


def test_a_second_submission_while_one_is_at_work_is_told_to_wait(world: World) -> None:
    session = world.create()
    seen: list[Exception] = []

    def during(request: Request) -> None:
        if "/quotes" in request.url and not seen:
            with pytest.raises(SessionBusy) as busy:
                world.submit(session, f"{CEDAR}/carol")
            seen.append(busy.value)

    world.transport.before = during
    assert world.submit(session).status is Status.AWAITING_APPROVAL
    assert seen


def test_a_preparation_that_died_is_free_again_once_its_lease_has_lapsed(world: World) -> None:
    session = world.create()
    change = advance(
        session,
        Event.WALLET_SUBMITTED,
        now=world.clock.now(),
        writer="dead",
        lease_until=world.clock.now() + LEASE,
    )
    world.services.sessions.save(Transaction(change))
    with pytest.raises(SessionBusy):
        world.submit(session)
    world.clock.pass_time(LEASE.total_seconds())
    assert world.submit(session).status is Status.AWAITING_APPROVAL


def test_ten_submissions_in_ten_minutes_are_enough(world: World) -> None:
    session = world.create()
    for _ in range(10):
        with pytest.raises(WalletUnavailable):
            world.submit(session, f"{CEDAR}/unpeered")
        world.clock.pass_time(1)
    with pytest.raises(RateLimited) as limited:
        world.submit(session)
    assert limited.value.retry_after == 586  # ten times half a second for its second try
    world.clock.pass_time(limited.value.retry_after)
    assert world.submit(session).status is Status.AWAITING_APPROVAL


def test_a_slow_wallet_is_not_waited_for_beyond_the_deadline(world: World) -> None:
    world.transport.before = lambda request: world.clock.sleep(9)
    session = world.create()
    with pytest.raises(CheckoutError):
        world.submit(session)
    assert world.session(session.id).status is Status.OPEN
    assert world.clock.now() - session.created_at < LEASE


@pytest.mark.parametrize("answers", [True, False])
def test_a_session_whose_time_runs_out_while_a_wallet_is_asked_has_expired(
    world: World, answers: bool
) -> None:
    session = world.create()
    world.clock.pass_time(
        (session.expires_at - timedelta(seconds=2) - world.clock.now()).total_seconds()
    )

    def slowly() -> None:
        world.clock.pass_time(3)
        if not answers:
            raise NotSent("down")

    world.transport.before = on("POST", "/quotes", slowly)
    with pytest.raises(SessionUnexpectedState if answers else WalletUnreachable):
        world.submit(session)
    assert lookup.get(world.services, world.key(), session.id).status is Status.EXPIRED


def test_who_has_lost_its_lease_while_a_wallet_was_asked_tells_the_customer_to_try_again(
    world: World,
) -> None:
    """The clock of the process that takes the session over is ahead."""
    session = world.create()

    def take_over() -> None:
        later = world.clock.now() + LEASE
        found, interrupted = world.session(session.id), Problem.PREPARATION_INTERRUPTED
        failed = Event.PREPARATION_FAILED
        change = advance(found, failed, now=later, writer="sweep", problem=interrupted)
        world.services.sessions.save(Transaction(change))

    world.transport.before = on("POST", "/quotes", take_over)
    with pytest.raises(SessionBusy):
        world.submit(session)
    assert world.session(session.id).status is Status.OPEN


def test_a_session_that_cannot_be_opened_again_at_once_is_opened_when_its_lease_is_over(
    world: World,
) -> None:
    session = world.create()

    def down() -> None:
        interrupt(world, "get_item", raising(Unavailable("The data store is not answering.")))
        raise NotSent("down")

    world.transport.before = on("GET", "/alice", down)
    with pytest.raises(WalletUnreachable):
        world.submit(session)
    assert world.session(session.id).status is Status.PREPARING
    world.sweep()
    assert world.session(session.id).status is Status.OPEN


@pytest.mark.parametrize(
    ("shop", "currency", "amount", "wallet", "units"),
    [
        ("shop", "usd", 2000, "alice", 2000),  # EUR to USD
        ("shop", "usd", 2000, "bob", 2000),  # USD to USD, within one provider
        ("shop-jpy", "jpy", 500, "alice", 500),  # scale 0
        ("shop-kwd", "kwd", 1234, "alice", 1234),  # three digits
        ("shop-scale9", "usd", 2000, "alice", 20_000_000_000),
        ("shop", "usd", 2000, "jpy", 2000),
        ("shop", "usd", 2000, "scale9", 2000),
        ("shop", "usd", 1, "alice", 1),
    ],
)
def test_the_merchant_receives_exactly_the_amount(
    shop: str, currency: str, amount: int, wallet: str, units: int
) -> None:
    world = World(shop=f"{HARBOR}/{shop}")
    customer = f"{HARBOR}/bob" if wallet == "bob" else f"{CEDAR}/{wallet}"
    before = world.network.account(customer)
    assert before is not None
    balance = before.balance
    session = world.pay(world.create(amount, currency), customer)
    assert session.status is Status.COMPLETED
    assert world.received() == units
    assert session.quote is not None
    after = world.network.account(customer)
    assert after is not None
    assert balance - after.balance == session.quote.debit.value


def test_metadata_and_line_items_are_never_sent_to_a_wallet_provider(world: World) -> None:
    bodies: list[bytes] = []
    world.transport.before = lambda request: bodies.append(request.body or b"")
    world.pay(world.create(metadata_json='{"order":"private-4711"}'))
    assert not any(b"4711" in body or b"Tea" in body for body in bodies)


def test_a_receiver_that_was_called_invalid_once_is_tried_again() -> None:
    """Two quotes at once between providers that have never met: one of them finds no receiver."""
    world, asked = World(), []
    session = world.create()
    refused = Refused("no", operation="", status=400, reason=Reason.INVALID_RECEIVER)

    def refuse_once() -> None:
        asked.append(world.clock.now())
        if len(asked) == 1:
            raise refused

    world.transport.before = on("POST", "/quotes", refuse_once)
    assert world.submit(session).status is Status.AWAITING_APPROVAL
    assert asked[1] - asked[0] == timedelta(seconds=0.5)


def test_a_receiver_that_stays_invalid_is_tried_twice_and_then_not_connected(world: World) -> None:
    with pytest.raises(WalletUnavailable, match="not connected"):
        world.submit(world.create(), f"{CEDAR}/unpeered")
    assert world.transport.count("POST", "/quotes") == 2


def test_a_receiver_that_was_just_paid_from_outside_is_paid(world: World) -> None:
    session, asked = world.create(), []

    def pay() -> None:
        asked.append(world.clock.now())
        if len(asked) == 1:
            world.pay_from_outside(world.session(session.id), 2000)

    world.transport.before = on("POST", "/quotes", pay)
    paid = world.submit(session)
    assert (paid.status, paid.received) == (Status.COMPLETED, 2000)
    assert world.transport.count("POST", "/outgoing-payments") == 0


def test_a_receiver_that_is_invalid_and_cannot_be_read_is_not_connected(world: World) -> None:
    world.transport.before = on("GET", "/incoming-payments/", raising(NotSent("down")))
    with pytest.raises(WalletUnavailable, match="not connected"):
        world.submit(world.create(), f"{CEDAR}/unpeered")
