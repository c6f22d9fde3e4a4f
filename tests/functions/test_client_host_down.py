"""Nobody answers at the address of our client documents for ten minutes, so no wallet knows us.

Customers read true sentences meanwhile, and every payment that was under way ends as it began.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from checkout.domain.session import Status
from checkout.flows.merchant import setup
from tests.support.flows import World
from tests.support.hosted_pages import Customer, customer


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


def test_a_customer_who_returns_then_is_not_charged_reads_so_and_pays_later(
    buyer: Customer,
) -> None:
    world, session = buyer.world, buyer.world.create()
    assert buyer.form(session, "https://localhost:4101/alice").status == 303
    back = world.network.approve(str(world.session(session.id).interact_url))
    before = world.network.state.accounts[world.shop].balance
    world.client_host_down = True
    assert buyer.back_from(back).location == f"/pay/{session.id}"
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
