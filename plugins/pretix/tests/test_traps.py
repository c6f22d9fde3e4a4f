"""Traps for payment plugins: lost answers, lost webhooks, frames, private addresses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from unittest import mock

from browser import Browser
from django.conf import settings
from django_scopes import scope
from pretix.base.models import Event, OrderPayment
from pretix.helpers import monkeypatching
from pretix_checkout_sessions.checkout import Checkout
from pretix_checkout_sessions.payment import CheckoutSessions
from pretix_checkout_sessions.signals import look_again
from shop import Shop
from world import World

FULL = Decimal("20.00")


@contextmanager
def setting(shop: Shop, name: str, value: str) -> Iterator[None]:
    """A setting of the payment method, changed behind the back of its form."""
    own, name = shop.event_now().settings, f"payment_checkoutsessions_{name}"
    before = own.get(name)
    own.set(name, value)
    try:
        yield
    finally:
        own.set(name, before)


def currency_of(shop: Shop, code: str) -> None:
    with scope(organizer=shop.organizer):
        Event.objects.filter(pk=shop.event.pk).update(currency=code)


@contextmanager
def private_addresses_refused(world: World) -> Iterator[None]:
    """pretix refuses the checkout's address, and not that of pretix to this process."""
    blocks = monkeypatching.should_block_access

    def only_the_checkout(address: Any) -> Any:
        return (False, None) if address[1] == settings.PRETIX_PORT else blocks(address)

    with mock.patch.object(monkeypatching, "should_block_access", only_the_checkout):
        settings.ALLOW_HTTP_TO_PRIVATE_NETWORKS = False
        try:
            yield
        finally:
            settings.ALLOW_HTTP_TO_PRIVATE_NETWORKS = True


def test_a_private_address_is_refused_with_a_message(shop: Shop, world: World) -> None:
    with private_addresses_refused(world):
        saved = shop.save_settings(base_url="https://localhost:1", api_key=world.api_key)
        assert "gave no answer" in saved.text
        plain = shop.save_settings(base_url=world.url, api_key=world.api_key)
        assert "must begin with https://" in plain.text
        assert "in the section [pretix] of pretix.cfg" in plain.text


def test_customers_read_which_wallets_can_pay_before_they_choose(shop: Shop) -> None:
    def said() -> str:
        with scope(organizer=shop.organizer):
            return CheckoutSessions(shop.event_now()).payment_form_render(None)

    assert "a provider that supports Open Payments" in said()
    with setting(shop, "wallets", "GateHub <b>"):
        assert "one of these providers: GateHub &lt;b&gt;." in said()


def test_an_order_survives_a_checkout_that_does_not_answer(shop: Shop, world: World) -> None:
    bought = shop.order()
    with scope(organizer=shop.organizer):
        payment = OrderPayment.objects.get(order__code=bought.code)
    told = {"id": bought.session, "metadata": world.session(bought.session)["metadata"]}
    for address, refused in ((world.url, True), ("http://localhost:9", False)):
        with setting(shop, "base_url", address):
            if refused:
                with private_addresses_refused(world):
                    shown = bought.customer.get(shop.pay_path(bought))
                    assert shop.deliver(told) == 503
            else:
                shown = bought.customer.get(shop.pay_path(bought))
                assert shop.deliver(told) == 503
            assert "Please try again later" in shown.text
            assert shown.status == 200
    assert shop.pay_again(bought) == bought.page
    assert payment.state == "pending"


def test_the_settings_are_checked_with_the_checkout(shop: Shop, world: World) -> None:
    said = shop.save_settings(base_url=world.url, api_key="sk_" + "x" * 30)
    assert "The checkout does not accept this" in said.text
    assert "x" * 30 not in said.text
    currency_of(shop, "EUR")
    try:
        said = shop.save_settings(base_url=world.url, api_key=world.api_key)
        assert "in USD, and the event in EUR" in said.text
    finally:
        currency_of(shop, "USD")


def test_one_endpoint_is_made_and_again_only_if_it_is_gone(shop: Shop, world: World) -> None:
    def own() -> list[dict[str, Any]]:
        found = world.api("GET", "/v1/webhook_endpoints")["data"]
        return [each for each in found if each["url"].startswith(shop.url)]

    (before,) = own()
    assert "saved" in shop.save_settings(base_url=world.url).text
    assert own() == [before]
    world.api("DELETE", f"/v1/webhook_endpoints/{before['id']}")
    bought = shop.order()
    world.pay(bought.page)
    world.wait_for(bought.session, "completed")
    assert bought.payments() == [("pending", FULL)]
    look_again(sender=None)  # pretix's periodic task
    bought.has(("confirmed", "20.00"), status="p")
    assert "saved" in shop.save_settings(base_url=world.url + "/").text
    (after,) = own()
    assert after["id"] != before["id"]
    again = shop.order()
    world.pay(again.page)
    again.has(("confirmed", "20.00"), status="p")


def forget_session(shop: Shop, code: str) -> None:
    """As if the answer to the creation of the session had been lost."""
    with scope(organizer=shop.organizer):
        OrderPayment.objects.filter(order__code=code).update(info="{}")


def test_after_a_lost_answer_the_same_session_is_found_again(shop: Shop) -> None:
    bought = shop.order()
    forget_session(shop, bought.code)
    assert shop.pay_again(bought) == bought.page


def test_a_session_whose_answer_was_lost_is_booked_by_its_tag(shop: Shop, world: World) -> None:
    bought = shop.order()
    forget_session(shop, bought.code)
    world.pay(bought.page)
    bought.has(("confirmed", "20.00"), status="p")
    assert world.received(bought.session) == bought.booked()


def test_the_payment_page_leaves_the_frame_of_the_widget(shop: Shop) -> None:
    customer = Browser(shop.url)
    customer.get(f"/{shop.slug}/?iframe=1&take_cart_id=")
    page = shop.cart_to_payment(customer)
    assert page.url.startswith(f"{shop.url}/redirect/"), page.url
    assert "framebreak=true" in page.url
    assert page.answer.headers.get("X-Frame-Options") is None


def test_a_session_that_is_made_while_the_order_is_canceled_is_ended(
    shop: Shop, world: World
) -> None:
    bought = shop.order()
    world.api("POST", f"/api/checkout/sessions/{bought.session}/expire")
    made, create = [], Checkout.create_session

    def meanwhile(*given: Any, **named: Any) -> dict[str, Any]:
        made.append(create(*given, **named)["id"])
        shop.cancel(bought)
        return {"id": made[0], "url": "https://never.example"}

    with mock.patch.object(Checkout, "create_session", meanwhile):
        shown = bought.customer.get(shop.pay_path(bought))
    assert shown.url == f"{shop.url}{bought.own_path}"
    assert world.session(made[0])["status"] == "canceled"
    assert bought.payments() == [("canceled", FULL)]
