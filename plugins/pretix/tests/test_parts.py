"""Less than the price: the part that has arrived is booked, and the rest stays open."""

from __future__ import annotations

from decimal import Decimal

import pytest
from shop import Bought, Shop
from world import World, until

HALF = Decimal("10.00")


@pytest.fixture(scope="module")
def halved(shop: Shop) -> Bought:
    """An order of which a half has arrived, and whose session waits for the merchant."""
    bought = shop.order()
    shop.world.pay(bought.page, "partial")
    bought.has(("confirmed", "10.00"), ("pending", "10.00"), status="n")
    return bought


def test_a_half_is_booked_and_the_order_stays_open(halved: Bought, world: World) -> None:
    assert world.session(halved.session)["status"] == "processing"
    assert world.received(halved.session) == halved.booked() == HALF
    assert "paid" not in halved.seen_in_list().lower()
    assert "Received in your wallet: 10.00 USD" in halved.seen_by_organizer()
    assert "A payment of $10.00 is still pending" in halved.seen_by_customer().text


def test_while_the_rest_may_arrive_it_cannot_be_paid_a_second_time(
    halved: Bought, shop: Shop
) -> None:
    shown = halved.seen_by_customer()
    assert "choose another payment method" not in shown.text
    refused = halved.customer.get(f"{halved.own_path}pay/change")
    assert "A payment is currently pending" in refused.text
    assert shop.pay_again(halved) == halved.page


def test_accepted_as_paid_in_the_checkout_it_is_still_a_half_in_pretix(
    halved: Bought, shop: Shop, world: World
) -> None:
    world.api("POST", f"/api/checkout/sessions/{halved.session}/accept_as_paid")
    world.wait_for(halved.session, "completed")
    halved.customer.get(world.session(halved.session)["success_url"])
    assert halved.payments() == [("confirmed", HALF), ("pending", HALF)]
    assert halved.order.status == "n"
    rest = shop.pay_again(halved)
    assert rest != halved.page
    world.pay(rest)
    halved.has(("confirmed", "10.00"), ("confirmed", "10.00"), status="p")
    newest = rest.rpartition("/")[2]
    assert world.session(newest)["amount_total"] == 1000
    assert world.received(halved.session, newest) == halved.booked() == 2 * HALF
    until(lambda: "paid" in halved.seen_in_list().lower(), halved.seen_in_list)
