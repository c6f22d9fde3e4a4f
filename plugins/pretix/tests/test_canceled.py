"""Orders that are canceled: before, during and after the payment; and money that comes late."""

from __future__ import annotations

from decimal import Decimal
from unittest import mock

from pretix_checkout_sessions import booking
from shop import Bought, Shop
from world import World, until

FULL = Decimal("20.00")


def overpaid(bought: Bought) -> None:
    until(lambda: "overpaid" in bought.seen_in_list().lower(), bought.seen_in_list)


def test_canceled_before_the_payment_nobody_can_pay(shop: Shop, world: World) -> None:
    bought = shop.order()
    shop.cancel(bought)
    bought.has(("canceled", "20.00"), status="c")
    assert world.session(bought.session)["status"] == "canceled"
    assert bought.booked() == world.received(bought.session) == 0
    assert "canceled" in bought.seen_in_list().lower()
    assert "cannot be continued" in bought.customer.get(shop.pay_path(bought)).text


def test_canceled_while_the_customer_approves_nothing_is_paid(shop: Shop, world: World) -> None:
    bought = shop.order()
    browser, approval = world.prepare(bought.page)
    callback = world.approved(approval)
    shop.cancel(bought)
    bought.has(("canceled", "20.00"), status="c")
    world.come_back(browser, callback)
    assert world.session(bought.session)["status"] == "canceled"
    assert bought.booked() == world.received(bought.session) == 0


def test_canceled_while_money_is_under_way_the_payment_stays_and_is_booked(
    shop: Shop, world: World
) -> None:
    bought = shop.order()
    world.pay(bought.page, "late")
    assert world.session(bought.session)["status"] == "processing"
    shop.cancel(bought)
    assert bought.order.status == "c"
    assert bought.payments() == [("pending", FULL)]
    assert "payment_in_progress" not in bought.seen_by_organizer()
    bought.has(("confirmed", "20.00"), status="c")
    assert world.received(bought.session) == bought.booked() == FULL
    overpaid(bought)


def test_canceled_after_the_payment_it_is_refunded(shop: Shop, world: World) -> None:
    bought = shop.order()
    world.pay(bought.page)
    bought.has(("confirmed", "20.00"), status="p")
    shop.cancel(bought)
    assert bought.order.status == "c"
    assert bought.payments() == [("confirmed", FULL)]
    overpaid(bought)
    shop.refund(bought, "20.00")
    world.approve_refund(bought.refund_ids()[0])
    bought.has_refunds(("done", "20.00"))
    assert world.session(bought.session)["amount_refunded"] == 2000
    assert bought.booked() == 0


def test_money_that_comes_after_the_cancellation_is_booked_as_overpaid(
    shop: Shop, world: World
) -> None:
    bought = shop.order()
    world.prepare(bought.page, "paid-from-outside")  # it has arrived, and nobody has looked yet
    shop.cancel(bought)
    bought.has(("confirmed", "20.00"), status="c")
    assert world.received(bought.session) == bought.booked() == FULL
    overpaid(bought)


def test_an_order_paid_after_its_time_is_paid(shop: Shop, world: World) -> None:
    bought = shop.order()
    shop.expire(bought)
    assert bought.order.status == "e"
    world.pay(bought.page)
    bought.has(("confirmed", "20.00"), status="p")
    assert world.received(bought.session) == bought.booked() == FULL


def test_an_order_paid_after_its_time_and_sold_out_shows_its_money(
    shop: Shop, world: World
) -> None:
    bought = shop.order()
    shop.expire(bought)
    with shop.sold_out():
        world.pay(bought.page)
        bought.has(("confirmed", "20.00"), status="e")
        assert world.received(bought.session) == bought.booked() == FULL
        overpaid(bought)


def test_late_money_of_an_old_session_ends_the_new_one(shop: Shop, world: World) -> None:
    bought = shop.order()
    with mock.patch.object(booking, "book"):  # nobody looks until the new session is there
        world.prepare(bought.page, "paid-from-outside")
        world.api("POST", f"/api/checkout/sessions/{bought.session}/expire")
        until(
            lambda: world.session(bought.session)["amount_received"] == 2000,
            lambda: str(world.session(bought.session)),
        )
        newest = shop.pay_again(bought).rpartition("/")[2]
    assert newest != bought.session
    metadata = world.session(bought.session)["metadata"]
    assert shop.deliver({"id": bought.session, "metadata": metadata}) == 200
    bought.has(("canceled", "20.00"), ("confirmed", "20.00"), status="p")
    assert world.session(newest)["status"] == "canceled"
    assert world.received(bought.session, newest) == bought.booked() == FULL


def test_another_payment_method_ends_the_session(shop: Shop, world: World) -> None:
    bought = shop.order()
    page = bought.customer.get(f"{bought.own_path}pay/change")
    shown = bought.customer.send(page, "form:has([name=payment])", payment="manual")
    bought.customer.send(shown, "form:has([name=csrfmiddlewaretoken])")
    assert world.session(bought.session)["status"] == "canceled"
    assert bought.payments()[0] == ("canceled", FULL)
