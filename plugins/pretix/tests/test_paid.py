"""Orders that are paid."""

from __future__ import annotations

from decimal import Decimal

from shop import Shop
from world import World, until


def test_an_order_is_paid_and_told_by_webhook_alone(shop: Shop, world: World) -> None:
    before = world.balance()
    bought = shop.order()
    assert bought.payments() == [("pending", Decimal("20.00"))]
    assert "pending" in bought.seen_in_list().lower()
    world.pay(bought.page)
    bought.has(("confirmed", "20.00"), status="p")
    assert "paid" in bought.seen_in_list().lower()
    seen = bought.seen_by_organizer()
    assert bought.session in seen
    assert "Received in your wallet: 20.00 USD" in seen
    assert world.received(bought.session) == bought.booked() == Decimal("20.00")
    assert world.balance() - before == Decimal("20.00")


def test_a_customer_who_comes_back_sees_the_order_paid(shop: Shop, world: World) -> None:
    bought = shop.order()
    session = world.session(bought.session)
    assert session["client_reference_id"] == bought.code
    assert bought.order.secret not in str(session), "the address of the order stays in the shop"
    back = bought.customer.get(session["cancel_url"])
    assert back.url.startswith(f"{shop.url}{bought.own_path}")
    assert "is still pending" in back.text
    world.pay(bought.page)
    paid = f"{shop.url}{bought.own_path}?paid=yes"
    until(
        lambda: bought.customer.get(session["success_url"]).url == paid,
        lambda: str(bought.payments()),
    )
    bought.has(("confirmed", "20.00"), status="p")


def test_the_way_to_pay_leads_to_the_same_session_until_it_has_ended(
    shop: Shop, world: World
) -> None:
    bought = shop.order()
    assert shop.pay_again(bought) == bought.page
    world.api("POST", f"/api/checkout/sessions/{bought.session}/expire")
    again = shop.pay_again(bought)
    assert again != bought.page
    assert shop.pay_again(bought) == again
    world.pay(again)
    bought.has(("confirmed", "20.00"), status="p")
    newest = again.rpartition("/")[2]
    assert world.received(bought.session, newest) == bought.booked()
    gone = bought.customer.get(f"{shop.pay_path(bought)}")
    assert "cannot be continued" in gone.text
