"""Each way a payment can go wrong, as the customer lives it: the same link pays in the end.

On the way there, no page says "paid" before the money is there, and none says "not charged" while
that is not certain.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from checkout.domain.session.record import Session, Status
from checkout.flows.merchant import setup
from checkout.flows.session import reconcile
from tests.support.flows import CEDAR, World
from tests.support.hosted_pages import Answer, Customer, customer

pytestmark = pytest.mark.untraced

PAID = "Paid. Thank you!"
NOT_CHARGED = "You have not been charged."
WATCHED = 1_200  # seconds


def declines(world: World, browser: Customer, session: Session) -> None:
    awaiting = world.submit(session)
    told = browser.get(world.network.decline(str(awaiting.interact_url)))
    assert "declined" in told.body
    assert NOT_CHARGED in told.body


def lets_the_approval_time_out(world: World, browser: Customer, session: Session) -> None:
    awaiting = world.submit(session, f"{CEDAR}/interact-timeout")
    world.clock.pass_time(601)
    told = browser.get(world.network.approve(str(awaiting.interact_url)))
    assert "This approval is no longer valid" in told.body
    assert NOT_CHARGED in told.body


def closes_the_tab(world: World, browser: Customer, session: Session) -> None:
    world.submit(session)
    world.clock.pass_time(3_600)
    told = browser.open(session)
    assert NOT_CHARGED in told.body or "Nothing is paid until you approve" in told.body


def comes_back_after_the_quote_has_run_out(
    world: World, browser: Customer, session: Session
) -> None:
    awaiting = browser.submitted(f"{CEDAR}/expensive-renewal", session)
    reference, presented = world.approve(awaiting)
    world.clock.pass_time(301)
    query = {"interact_ref": reference, "hash": presented}
    back = browser.open(session, "/grant/callback", params=query)
    assert back.location.endswith(session.id)
    told = browser.open(session)
    assert "went up after you approved it" in told.body
    assert NOT_CHARGED in told.body


def has_no_money(world: World, browser: Customer, session: Session) -> None:
    doubtful = world.pay(session, f"{CEDAR}/no-funds")
    assert doubtful.status is Status.PROCESSING
    for _ in range(WATCHED):
        told = browser.open(session)
        if world.session(session.id).status is Status.OPEN:
            assert "The shop has received no money" in told.body
            return
        assert NOT_CHARGED not in told.body
        assert PAID not in told.body
        world.clock.pass_time(1)
    raise AssertionError("never decided")


@pytest.mark.parametrize(
    "mishap",
    [
        declines,
        lets_the_approval_time_out,
        closes_the_tab,
        comes_back_after_the_quote_has_run_out,
        has_no_money,
    ],
    ids=lambda mishap: mishap.__name__,
)
def test_a_customer_who(mishap: Callable[[World, Customer, Session], None]) -> None:
    world = World()
    with customer(world) as browser:
        session = world.create()
        mishap(world, browser, session)
        assert world.received() == 0
        assert PAID not in browser.open(session).body
        done = world.pay(world.session(session.id))
        assert done.status is Status.COMPLETED
        assert world.received() == 2000
        assert PAID in browser.open(session, "/success").body


def test_a_wallet_that_accepts_everything_and_sends_nothing_never_completes_a_session() -> None:
    world = World()
    with customer(world) as browser:
        session = world.pay(world.create(), f"{CEDAR}/never-credits")
        for _ in range(WATCHED):
            assert PAID not in browser.open(session).body
            session = reconcile.advance_pending(world.services, session.id)
            if session.status is Status.OPEN:
                break
            world.clock.pass_time(1)
    assert session.status is Status.OPEN
    assert world.events() == []


# --- nobody answers at the address of our client documents for ten minutes, so no wallet knows us


@pytest.fixture
def buyer() -> Iterator[Customer]:
    world = World()
    setup.replace_key(world.services, setup.NewMerchant("", world.shop))
    assert world.pay(world.create()).status is Status.COMPLETED
    with customer(world) as found:
        yield found


def minute(world: World) -> None:
    world.clock.pass_time(60)
    world.sweep()


def test_a_customer_who_comes_then_is_told_that_the_shop_cannot_be_paid_now(
    buyer: Customer,
) -> None:
    world, session = buyer.world, buyer.world.create()
    world.client_host_down = True
    for _ in range(10):
        page = buyer.form(session, "https://localhost:4101/alice").page
        assert "The shop cannot take payments at the moment." in page.main
        assert "You have not been charged." in page.main
        assert world.session(session.id).status is Status.OPEN
        minute(world)
    world.client_host_down = False
    assert world.pay(world.session(session.id)).status is Status.COMPLETED


def waited(buyer: Customer, back: str, *, up_in: int = 999) -> Answer:
    """Follow the wallet's link as often as the page says; our host is up after so many tries."""
    while (answer := buyer.back_from(back)).status == 200:
        assert "Your wallet needs a moment" in answer.page.main
        assert answer.headers["refresh"] == "10"
        buyer.world.clock.pass_time(10)
        up_in -= 1
        buyer.world.client_host_down = up_in > 0
    return answer


def test_a_customer_who_returns_while_our_host_is_down_for_a_minute_pays_with_one_approval(
    buyer: Customer,
) -> None:
    world, session = buyer.world, buyer.world.create()
    assert buyer.form(session, "https://localhost:4101/alice").status == 303
    back = world.network.approve(str(world.session(session.id).interact_url))
    before = world.network.state.accounts[world.shop].balance
    world.client_host_down = True
    assert waited(buyer, back, up_in=4).location == f"/pay/{session.id}/success"
    assert world.session(session.id).status is Status.COMPLETED
    assert world.network.state.accounts[world.shop].balance == before + 2000


def test_a_customer_who_returns_then_is_not_charged_reads_so_and_pays_later(
    buyer: Customer,
) -> None:
    world, session = buyer.world, buyer.world.create()
    assert buyer.form(session, "https://localhost:4101/alice").status == 303
    back = world.network.approve(str(world.session(session.id).interact_url))
    before = world.network.state.accounts[world.shop].balance
    world.client_host_down = True
    assert waited(buyer, back).location == f"/pay/{session.id}"
    for _ in range(10):
        page = buyer.ask("GET", f"/pay/{session.id}").page
        assert "The shop cannot take payments at the moment." in page.main
        assert "You have not been charged." in page.main
        minute(world)
    assert world.network.state.accounts[world.shop].balance == before
    world.client_host_down = False
    assert world.pay(world.session(session.id)).status is Status.COMPLETED
    assert world.network.state.accounts[world.shop].balance == before + 2000


def test_a_customer_whose_payment_is_in_doubt_reads_not_to_pay_again_and_then_that_it_is_paid(
    buyer: Customer,
) -> None:
    world = buyer.world
    session = world.in_doubt()
    world.client_host_down = True
    for _ in range(10):
        page = buyer.ask("GET", f"/pay/{session.id}").page
        assert "You approved the payment." in page.main
        assert "Do not pay again." in page.main
        minute(world)
        assert world.session(session.id).payment_in_flight
    world.client_host_down = False
    for _ in range(12):
        minute(world)
    assert world.session(session.id).status is Status.COMPLETED
    assert "Paid" in buyer.ask("GET", f"/pay/{session.id}").page.main
