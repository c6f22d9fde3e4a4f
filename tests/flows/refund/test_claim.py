"""A customer whose wallet is gone names another one by a link, and the merchant approves that."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.domain.ground.errors import (
    RateLimited,
    RefundUnexpectedState,
    ResourceMissing,
    SessionBusy,
    WalletInvalid,
    WalletUnreachable,
)
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.refund.record import AmountMode, Refund, RefundEvent, RefundStatus
from checkout.domain.session.record import Session
from checkout.flows.payment.writes import move
from checkout.flows.refund import alternative_wallet, budget, request
from open_payments.errors import OutcomeUnknown
from tests.support import services
from tests.support.flows import CEDAR, HARBOR, PREFIX, World, on, raising
from tests.support.refund_books import (
    again,
    allow,
    ask,
    balance,
    come_back,
    consent,
    payments,
    prepare,
    send,
    stored,
    wait,
)

GONE, ALICE, CAROL, BOB = (
    f"{CEDAR}/refund-gone",
    f"{CEDAR}/alice",
    f"{CEDAR}/carol",
    f"{HARBOR}/bob",
)
# The price that the customer has paid for 20.00 USD, in cents of euros.
PRICE = 1854


@pytest.fixture
def sold(world: World) -> Session:
    return world.pay(world.create(2000), GONE)


def link_of(world: World, refund: Refund) -> str:
    """Make a link; return its token."""
    made = alternative_wallet.offer(world.services, world.key(), refund.id)
    address, _, token = made.link.rpartition("/")
    assert address.endswith(f"/pay/{refund.session}/claim")
    return token


def take(world: World, sold: Session, token: str, typed: str, client: str | None = None) -> Refund:
    return alternative_wallet.take(world.services, sold.id, token, typed, client=client)


def test_the_other_wallet_gets_exactly_what_the_customer_paid(world: World, sold: Session) -> None:
    had, before = world.received(), balance(world, CAROL)
    refund = ask(world, sold)
    with pytest.raises(WalletInvalid):
        prepare(world, refund)
    named = take(world, sold, link_of(world, refund), CAROL)
    assert (named.status, named.wallet, named.claimed) == (RefundStatus.NEEDS_APPROVAL, CAROL, 1)
    assert (balance(world, CAROL), world.received()) == (before, had), "nothing moves by itself"
    world.sweep(rounds=30)
    assert balance(world, CAROL) == before
    assert send(world, named).status is RefundStatus.SUCCEEDED
    assert balance(world, CAROL) == before + PRICE
    assert world.session(sold.id).refundable == 0


def test_a_link_works_once(world: World, sold: Session) -> None:
    refund = ask(world, sold)
    token = link_of(world, refund)
    take(world, sold, token, CAROL)
    assert take(world, sold, token, ALICE).wallet == CAROL
    assert alternative_wallet.find(world.services, sold.id, token).id == refund.id
    assert take(world, sold, link_of(world, refund), ALICE).wallet == ALICE, "the shop asks again"


def test_the_last_link_is_the_only_one(world: World, sold: Session) -> None:
    refund = ask(world, sold)
    first, second = link_of(world, refund), link_of(world, refund)
    for wrong in (first, second[:-1], second + "x", second.swapcase(), ""):
        with pytest.raises(ResourceMissing):
            take(world, sold, wrong, CAROL)
    assert again(world, refund).wallet == GONE
    assert take(world, sold, second, CAROL).wallet == CAROL


def test_a_link_opens_its_own_refund_only(world: World, sold: Session) -> None:
    mine, other = ask(world, sold, 500), ask(world, sold, 700)
    token = link_of(world, other)
    assert take(world, sold, token, CAROL).id == other.id
    assert again(world, mine).wallet == GONE
    elsewhere = world.pay(world.create(2000), ALICE)
    for session in (elsewhere.id, world.create().id, "cs_none"):
        with pytest.raises(ResourceMissing):
            alternative_wallet.take(world.services, session, token, CAROL, client=None)


def test_nobody_else_makes_a_link(world: World, sold: Session) -> None:
    refund = ask(world, sold)
    stranger = replace(world.key(), merchant=world.merchant.id + "x")
    with pytest.raises(ResourceMissing):
        alternative_wallet.offer(world.services, stranger, refund.id)


def test_no_token_is_stored_in_the_clear(world: World, sold: Session) -> None:
    refund = ask(world, sold)
    token = link_of(world, refund)
    assert token not in str(stored(world, refund))
    assert token not in repr(again(world, refund))
    assert str(again(world, refund).claim) not in repr(again(world, refund))


def test_a_link_ends_with_the_refund(world: World, sold: Session) -> None:
    refund = ask(world, sold)
    token = link_of(world, refund)
    world.clock.pass_time(timedelta(days=30).total_seconds())
    assert take(world, sold, token, CAROL).wallet == GONE
    with pytest.raises(RefundUnexpectedState):
        link_of(world, refund)
    world.sweep(rounds=3)
    assert again(world, refund).status is RefundStatus.CANCELED
    assert take(world, sold, token, CAROL).wallet == GONE


def test_no_link_is_made_of_a_refund_that_is_sent_or_over(world: World, sold: Session) -> None:
    sale = world.pay(world.create(2000), f"{CEDAR}/refund-hangs")
    refund = ask(world, sale)
    token = link_of(world, refund)
    sending = send(world, refund)
    assert sending.status is RefundStatus.SENDING
    with pytest.raises(RefundUnexpectedState):
        link_of(world, refund)
    assert take(world, sale, token, CAROL).wallet != CAROL
    proven = wait(world, sending)
    assert proven.status is RefundStatus.NEEDS_APPROVAL
    assert take(world, sale, token, CAROL).wallet == CAROL, "the old attempt is proven dead"
    done = send(world, again(world, refund))
    assert done.status is RefundStatus.SUCCEEDED
    with pytest.raises(RefundUnexpectedState):
        link_of(world, refund)
    assert take(world, sale, token, ALICE).wallet == CAROL


def test_an_approval_of_the_old_wallet_pays_nobody(world: World) -> None:
    """The merchant is at their wallet when the customer names another one."""
    sale = world.pay(world.create(2000), ALICE)
    refund = ask(world, sale)
    token, prepared = link_of(world, refund), prepare(world, refund)
    callback, sold = consent(world, prepared), payments(world)
    named = take(world, sale, token, CAROL)
    come_back(world, prepared, callback)
    assert payments(world) == sold
    assert (named.grant, named.quote, named.incoming_payment) == (None, None, None)
    before = balance(world, ALICE), balance(world, CAROL)
    assert send(world, named).status is RefundStatus.SUCCEEDED
    assert (balance(world, ALICE), balance(world, CAROL)) == (before[0], before[1] + PRICE)


def test_no_wallet_is_named_while_an_approval_is_redeemed(world: World, sold: Session) -> None:
    refund = ask(world, sold, wallet=ALICE)
    token, prepared = link_of(world, refund), prepare(world, refund)
    lease = world.clock.now() + timedelta(seconds=30)
    move(world.services, prepared, RefundEvent.APPROVAL_CLAIMED, lease_until=lease)
    with pytest.raises(SessionBusy):
        take(world, sold, token, CAROL)
    with pytest.raises(RefundUnexpectedState):
        link_of(world, refund)


def test_a_claim_gives_way_to_a_cancellation(world: World, sold: Session) -> None:
    refund = ask(world, sold)
    token = link_of(world, refund)
    canceling = on("GET", "/carol", lambda: request.cancel(world.services, world.key(), refund.id))
    world.transport.before = canceling
    with pytest.raises(SessionBusy):
        take(world, sold, token, CAROL)
    assert (again(world, refund).status, again(world, refund).wallet) == (
        RefundStatus.CANCELED,
        GONE,
    )


def test_the_budget_pays_no_wallet_that_a_customer_has_named(world: World) -> None:
    """Only an approval in the merchant's own wallet confirms another receiver."""
    sale = world.pay(world.create(2000), ALICE)
    allow(world)
    refund = ask(world, sale, by_budget=False)
    take(world, sale, link_of(world, refund), CAROL)
    before, sold = balance(world, CAROL), payments(world)
    with pytest.raises(RefundUnexpectedState):
        budget.choose(world.services, world.key(), refund.id)
    with pytest.raises(IllegalTransition):
        move(
            world.services,
            again(world, refund),
            RefundEvent.BUDGET_CHOSEN,
            budget_at=world.clock.now(),
        )
    world.sweep(rounds=20)
    assert (balance(world, CAROL), payments(world)) == (before, sold)
    assert send(world, again(world, refund)).status is RefundStatus.SUCCEEDED


def test_a_refund_that_the_budget_is_to_pay_has_no_link(world: World, sold: Session) -> None:
    allow(world)
    refund = ask(world, sold)
    assert refund.budget_at is not None
    with pytest.raises(RefundUnexpectedState):
        link_of(world, refund)


def test_a_wallet_of_another_currency_is_refused_where_the_amount_is_fixed(
    world: World, sold: Session
) -> None:
    refund = ask(world, sold)
    token = link_of(world, refund)
    with pytest.raises(WalletInvalid, match="USD") as refused:
        take(world, sold, token, BOB)
    assert refused.value.mistake == alternative_wallet.CURRENCY
    assert take(world, sold, token, CAROL).wallet == CAROL, "the link is still good"
    request.cancel(world.services, world.key(), refund.id)
    at_cost = ask(world, sold, mode=AmountMode.AT_COST)
    assert take(world, sold, link_of(world, at_cost), BOB).wallet == BOB


@pytest.mark.parametrize(
    ("typed", "error"),
    [
        ("no wallet", WalletInvalid),
        (f"{CEDAR}/nobody", WalletInvalid),
        ("https://localhost:9/x", WalletUnreachable),
        ("https://169.254.169.254/latest/meta-data", WalletInvalid),
    ],
)
def test_what_is_no_wallet_changes_nothing(
    world: World, sold: Session, typed: str, error: type[Exception]
) -> None:
    refund = ask(world, sold)
    token = link_of(world, refund)
    if typed.startswith("https://localhost:9"):
        world.transport.before = on("GET", "localhost:9", raising(OutcomeUnknown("down")))
    with pytest.raises(error):
        take(world, sold, token, typed)
    assert again(world, refund).wallet == GONE
    world.transport.before = lambda request: None
    assert take(world, sold, token, CAROL).wallet == CAROL


def test_who_tries_many_addresses_is_stopped(world: World, sold: Session) -> None:
    """A link is no way to have our servers ask other hosts."""
    limits = services.limits(world.core.clock, world.dynamo, PREFIX, 30)
    world.services = replace(world.services, limits=limits)
    token = link_of(world, ask(world, sold))
    wallets = [f"{CEDAR}/nobody{number}" for number in range(100)]
    asked = world.transport.count("GET", "/nobody")
    refused = 0
    for wallet in wallets:
        try:
            take(world, sold, token, wallet, client="192.0.2.7")
        except RateLimited:
            refused += 1
        except WalletInvalid:
            pass
    assert refused >= 60
    assert world.transport.count("GET", "/nobody") - asked == 100 - refused
