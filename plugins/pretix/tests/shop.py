"""A real pretix with one event, used as its organizer and its customers use it: by its pages."""

from __future__ import annotations

import hmac
import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any

import requests
from browser import Browser, Page, led_to
from django.conf import settings
from django.utils.timezone import now
from django_scopes import scope
from pretix.base.models import Event, Order, OrderPayment, OrderRefund, Organizer, Team, User
from world import World, until

PLUGIN = "pretix_checkout_sessions"
PRICE = Decimal("20.00")
PASSWORD = "organizer-of-tests"


@dataclass
class Bought:
    """An order, and the page to which its customer was led to pay it."""

    shop: Shop
    customer: Browser
    code: str
    page: str

    @property
    def session(self) -> str:
        return self.page.rpartition("/")[2]

    @property
    def order(self) -> Order:
        with scope(organizer=self.shop.organizer):
            return Order.objects.get(code=self.code)

    @property
    def own_path(self) -> str:
        return f"/{self.shop.slug}/order/{self.code}/{self.order.secret}/"

    def payments(self) -> list[tuple[str, Decimal]]:
        """State and amount of each payment, the oldest first."""
        with scope(organizer=self.shop.organizer):
            found = OrderPayment.objects.filter(order__code=self.code).order_by("local_id")
            return [(each.state, each.amount) for each in found]

    def refunds(self) -> list[tuple[str, Decimal]]:
        with scope(organizer=self.shop.organizer):
            found = OrderRefund.objects.filter(order__code=self.code).order_by("local_id")
            return [(each.state, each.amount) for each in found]

    def refund_ids(self) -> list[str]:
        """The checkout's ids of the refunds."""
        with scope(organizer=self.shop.organizer):
            found = OrderRefund.objects.filter(order__code=self.code).order_by("local_id")
            return [each.info_data.get("refund") for each in found]

    def booked(self) -> Decimal:
        """The sum of pretix's payments, less its refunds."""
        with scope(organizer=self.shop.organizer):
            return Decimal(Order.objects.get(code=self.code).payment_refund_sum)

    def seen_by_organizer(self) -> str:
        """The text of the order's page for its organizer."""
        return self.shop.admin.get(f"{self.shop.control}/orders/{self.code}/").text

    def seen_in_list(self) -> str:
        """The order's line in the organizer's list of orders."""
        page = self.shop.admin.get(f"{self.shop.control}/orders/?query={self.code}")
        row = page.soup.find("a", string=re.compile(self.code)).find_parent("tr")
        return " ".join(row.get_text(" ").split())

    def seen_by_customer(self) -> Page:
        return self.customer.get(self.own_path)

    def has(self, *payments: tuple[str, str], status: str) -> None:
        """Wait until the order has this status and exactly these payments."""
        wanted = [(state, Decimal(amount)) for state, amount in payments]

        def done() -> bool:
            return self.payments() == wanted and self.order.status == status

        until(done, lambda: f"{status} {wanted}, not {self.order.status} {self.payments()}")

    def has_refunds(self, *refunds: tuple[str, str]) -> None:
        wanted = [(state, Decimal(amount)) for state, amount in refunds]
        told = f"/api/checkout/refunds?session={self.session}"
        until(
            lambda: self.refunds() == wanted,
            lambda: f"{wanted}, not {self.refunds()}: {self.shop.world.api('GET', told)}",
        )


class Shop:
    """pretix at its address, the organizer signed in, and the plugin set up as its README says."""

    slug = "band/concert"

    def __init__(self, url: str, world: World) -> None:
        self.url = url
        self.world = world
        self.control = "/control/event/band/concert"
        self._open_for_business()
        self.admin = Browser(url)
        page = self.admin.get("/control/login")
        fields = {"email": "organizer@pretix.example", "password": PASSWORD}
        self.admin.send(page, "form.form-signin", **fields)
        self._set_up()

    def _open_for_business(self) -> None:
        """An empty installation's first organizer, event and ticket."""
        self.organizer = Organizer.objects.create(name="Band", slug="band")
        user = User.objects.create_user("organizer@pretix.example", PASSWORD)
        team = Team.objects.create(
            organizer=self.organizer,
            name="All",
            all_events=True,
            all_event_permissions=True,
            all_organizer_permissions=True,
        )
        team.members.add(user)
        with scope(organizer=self.organizer):
            self.event = Event.objects.create(
                organizer=self.organizer,
                name="Concert",
                slug="concert",
                currency="USD",
                date_from=now() + timedelta(days=60),
                live=True,
                plugins="pretix.plugins.manualpayment",
            )
            self.event.settings.timezone = "UTC"
            self.event.settings.attendee_names_asked = False
            self.event.settings.payment_manual__enabled = True
            item = self.event.items.create(name="Ticket", default_price=PRICE, admission=True)
            quota = self.event.quotas.create(name="Tickets", size=None)
            quota.items.add(item)
            self.item = item

    def _set_up(self) -> None:
        path = f"{self.control}/settings/plugins"
        page = self.admin.get(path)
        assert "Checkout Sessions" in page.text
        self.admin.send(page, "form:has([name^='plugin:'])", **{f"plugin:{PLUGIN}": "enable"})
        shown = self.save_settings(base_url=self.world.url, api_key=self.world.api_key)
        assert "saved" in shown.text, shown.text[-3000:]
        assert self.world.api_key not in shown.answer.text

    def save_settings(self, **fields: str) -> Page:
        page = self.admin.get(f"{self.control}/settings/payment/checkoutsessions")
        prefix = "payment_checkoutsessions_"
        named = {f"{prefix}{name}": value for name, value in fields.items()}
        return self.admin.send(
            page, f"form:has([name={prefix}base_url])", **{f"{prefix}_enabled": "on", **named}
        )

    def event_now(self) -> Event:
        """The event with its settings, as they are stored now."""
        with scope(organizer=self.organizer):
            return Event.objects.get(pk=self.event.pk)

    def deliver(self, told: Any, secret: str | None = None, at: float | None = None) -> int:
        """Send the plugin a delivery, by default signed with its own secret and now."""
        kept = json.loads(
            Organizer.objects.get(slug="band").settings.get("checkoutsessions_endpoints")
        )
        secret = secret or next(iter(kept.values()))["secret"]
        body = told if isinstance(told, bytes) else json.dumps(told).encode()
        sent_at = int(at or time.time())
        signed = hmac.new(secret.encode(), f"{sent_at}.".encode() + body, "sha256").hexdigest()
        headers = {"Checkout-Signature": f"t={sent_at},v1={signed}"}
        url = f"{self.url}/_checkoutsessions/webhook/band/"
        return requests.post(url, data=body, headers=headers, timeout=60).status_code

    def order(self, customer: Browser | None = None) -> Bought:
        """Buy one ticket, up to the page on which it is paid."""
        customer = customer or Browser(self.url)
        url = led_to(self.cart_to_payment(customer))
        identity = url.rpartition("/")[2]
        session = self.world.session(identity)
        return Bought(self, customer, session["metadata"]["pretix_order"], url)

    def cart_to_payment(self, customer: Browser) -> Page:
        """Put a ticket into the cart and order it; return the last page."""
        shown = customer.get(f"/{self.slug}/")
        item = {f"item_{self.item.pk}": "1"}
        customer.send(shown, "form:has([name^=item_])", **item)
        page = customer.get(f"/{self.slug}/checkout/start")
        for _ in range(5):
            if page.answer.is_redirect or "/checkout/" not in page.url:
                break
            form = "form:has([name=csrfmiddlewaretoken])"
            fields = {}
            if page.soup.select("[name=email]"):
                fields = {"email": "fan@fans.example"}
            elif page.soup.select("[name=payment]"):
                fields = {"payment": "checkoutsessions"}
            page = customer.send(page, form, **fields)
        return page

    def pay_again(self, bought: Bought) -> str:
        """Follow the customer's link on the page of the order; return where it leads."""
        page = bought.seen_by_customer()
        link = page.soup.select_one("a[href*='/checkoutsessions/pay/']")
        assert link is not None, page.text
        return led_to(bought.customer.get(link["href"]))

    def pay_path(self, bought: Bought) -> str:
        """The address of the way to pay, whether or not the page of the order still shows it."""
        from pretix_checkout_sessions.payment import address_to_pay

        with scope(organizer=self.organizer):
            return address_to_pay(OrderPayment.objects.filter(order__code=bought.code).last())

    def cancel_refund(self, bought: Bought) -> Page:
        """Cancel the last refund in pretix, which tells nobody."""
        with scope(organizer=self.organizer):
            refund = OrderRefund.objects.filter(order__code=bought.code).last()
        path = f"{self.control}/orders/{bought.code}/refunds/{refund.pk}/cancel"
        return self.admin.send(self.admin.get(path), "form[method=post]")

    def cancel(self, bought: Bought) -> Page:
        """Cancel the order as its organizer."""
        path = f"{self.control}/orders/{bought.code}/transition?status=c"
        return self.admin.send(self.admin.get(path), "form[method=post]", status="c")

    def expire(self, bought: Bought) -> None:
        """Let the time of the order pass."""
        with scope(organizer=self.organizer):
            Order.objects.filter(code=bought.code).update(
                expires=now() - timedelta(days=1), status=Order.STATUS_EXPIRED
            )

    @contextmanager
    def sold_out(self) -> Iterator[None]:
        with scope(organizer=self.organizer):
            self.event.quotas.update(size=0)
        try:
            yield
        finally:
            with scope(organizer=self.organizer):
                self.event.quotas.update(size=None)

    def refund(self, bought: Bought, amount: str, *, keep: bool = True) -> Page:
        """Refund as the organizer, by the forms of the order's page."""
        path = f"{self.control}/orders/{bought.code}/refund"
        start = self.admin.get(path)
        fields = {"start-mode": "partial", "start-partial_amount": amount}
        fields["start-action"] = "do_nothing" if keep else "mark_refunded"
        chosen = self.admin.send(start, "form[method=post]", **fields)
        given: dict[str, Any] = {"perform": "true"}
        first = chosen.soup.select_one("[name^=refund-]:not([name*=giftcard])")
        assert first is not None, chosen.text
        given[first["name"]] = amount if first.get("type") == "text" else "on"
        return self.admin.send(chosen, "form[method=post]", **given)


def site() -> str:
    return str(settings.SITE_URL)
