"""Shop: a demo of a merchant's own server, which uses the API with an API key over HTTP.

The shop fulfills an order only if the API returns the status `completed`, never because a browser
came back. Apart from money (`open_payments.models.Amount`), it imports nothing of the product.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlsplit

import httpx2
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from open_payments.models import Amount
from sandbox.server import Answer, Incoming
from sandbox.terminal import say

BODY_MAX: Final = 4096  # bytes of a form
CURRENCY: Final = "usd"
_SCALE: Final = 2
_SESSION_ID: Final = re.compile(r"cs_(?:test_)?[0-9A-Za-z]{1,64}")
_ORDER: Final = re.compile(r"[0-9a-z-]{1,64}")
_PAGES: Final = Path(__file__).parent / "shop_pages"
_TEMPLATES: Final = Environment(
    loader=FileSystemLoader(_PAGES),
    autoescape=True,
    undefined=StrictUndefined,
)


@dataclass(frozen=True, slots=True)
class Item:
    """A product; `unit_amount` is in the currency's minor units."""

    id: str
    name: str
    description: str
    unit_amount: int

    @property
    def price(self) -> str:
        return Amount(self.unit_amount, CURRENCY.upper(), _SCALE).decimal()


GOODS: Final = (
    Item("beans", "House beans", "One kilogram, roasted this week.", 2000),
    Item("filter", "Filter papers", "A hundred, unbleached.", 450),
    Item("tea", "Mountain tea", "Loose leaves, 100 g.", 1275),
)
_PICTURES: Final = {
    f"/pictures/{item.id}.svg": (_PAGES / "pictures" / f"{item.id}.svg").read_bytes()
    for item in GOODS
}
_CONFIRMING: Final = (
    "Almost there",
    "Your payment is being confirmed. This page refreshes automatically.",
)
# Title and text for a customer who returns, by the session's status.
_RETURNED: Final = {
    "completed": ("Thank you", "Your payment has arrived and your order is on its way."),
    "processing": _CONFIRMING,
    "canceled": ("Not paid", "This order was canceled."),
    "expired": ("Not paid", "The time to pay for this order has run out."),
}
_NOT_YET: Final = ("Not paid yet", "No payment for this order has arrived yet.")


class Shop:
    """The shop. `client` calls the API, with its base URL and the API key set."""

    def __init__(self, client: httpx2.Client, *, own: str, checkout: str, wallets: str) -> None:
        self._client = client
        self._own = own
        self._checkout = checkout
        self._wallets = wallets

    def answer(self, request: Incoming) -> Answer:
        """Return the page or redirect for a request."""
        parts = urlsplit(request.target)
        match (request.method, parts.path):
            case ("GET" | "HEAD", "/"):
                return self._page(
                    "goods.html",
                    goods=GOODS,
                    currency=CURRENCY.upper(),
                    order=secrets.token_hex(6),
                )
            case ("POST", "/buy"):
                form = parse_qs(request.body[:BODY_MAX].decode("utf-8", "replace"))
                return self._buy({name: values[0] for name, values in form.items()})
            case ("GET" | "HEAD", path) if path in _PICTURES:
                return Answer(200, _PICTURE_HEADERS, _PICTURES[path])
            case ("GET" | "HEAD", "/thanks" | "/basket"):
                session_id = parse_qs(parts.query).get("session", [""])[0]
                return self._order(session_id, paid=parts.path == "/thanks")
        return self._message("Not found", "This page does not exist.", 404)

    def _buy(self, form: dict[str, str]) -> Answer:
        item = next((each for each in GOODS if each.id == form.get("item")), None)
        order = form.get("order", "")
        if item is None or not _ORDER.fullmatch(order):
            return self._message("Not found", "This product does not exist.", 400)
        product = {
            "name": item.name,
            "description": item.description,
            "image": f"{self._own}/pictures/{item.id}.svg",
        }
        price = {
            "currency": CURRENCY,
            "unit_amount": item.unit_amount,
            "product_data": product,
        }
        # The order number is the idempotency key, so pressing "Buy" twice creates one session.
        created = self._ask(
            "POST",
            "",
            headers={"Idempotency-Key": order},
            json={
                "mode": "payment",
                "line_items": [{"price_data": price, "quantity": 1}],
                "success_url": f"{self._own}/thanks?session={{CHECKOUT_SESSION_ID}}",
                "cancel_url": f"{self._own}/basket?session={{CHECKOUT_SESSION_ID}}",
                "metadata": {"order": order},
            },
        )
        if created is None:
            return self._message("The checkout does not respond", "Please try again.", 502)
        return Answer(303, [*_HEADERS, ("location", created["url"])])

    def _order(self, session_id: str, *, paid: bool) -> Answer:
        """Return the page of an order, after fetching its session from the API.

        `paid` means that the customer comes from the confirmation page. Anybody can open that URL,
        so `paid` does not prove a payment.
        """
        found = None
        if _SESSION_ID.fullmatch(session_id):
            found = self._ask("GET", f"/{quote(session_id)}")
        if found is None:
            return self._message("Not found", "This order does not exist.", 404)
        approved = paid and found["status"] == "awaiting_approval"
        message = _CONFIRMING if approved else _RETURNED.get(found["status"], _NOT_YET)
        order = found["metadata"].get("order", "")
        total = Amount(found["amount_total"], found["currency"].upper(), _SCALE)
        return self._page(
            "thanks.html",
            refresh=3 if message is _CONFIRMING else None,
            title=message[0],
            lead=message[1],
            order=order,
            session=found,
            unpaid=message is _NOT_YET,
            total=f"{total.decimal()} {total.asset_code}",
        )

    def _ask(self, method: str, path: str, **request: Any) -> dict[str, Any] | None:
        """Return the API's JSON response, or None on failure."""
        try:
            answer = self._client.request(method, f"/api/checkout/sessions{path}", **request)
        except httpx2.HTTPError:
            return None
        if not answer.is_success:
            say(f"shop: the API returned {answer.status_code}: {answer.text}")
            return None
        found: dict[str, Any] = answer.json()
        return found

    def _message(self, title: str, lead: str, status: int = 200) -> Answer:
        return self._page("thanks.html", status, title=title, lead=lead, order="", session={})

    def _page(self, template: str, status: int = 200, **values: Any) -> Answer:
        wallet = self._wallets.replace("http:", "https:")
        port = urlsplit(wallet).port or 0
        html = _TEMPLATES.get_template(template).render(
            {"refresh": None, "total": "", "unpaid": False, **values},
            wallets=self._wallets,
            wallet=f"https://localhost:{port + 1}/alice",
        )
        # form-action allows the checkout, because Chromium applies it also to the redirect after
        # the form, which leads to the hosted page.
        policy = (
            "default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; base-uri 'none'; "
            f"frame-ancestors 'none'; form-action 'self' {self._checkout}"
        )
        headers = [*_HEADERS, ("content-security-policy", policy)]
        return Answer(HTTPStatus(status), headers, html.encode())


_HEADERS: Final = [
    ("content-type", "text/html; charset=utf-8"),
    ("cache-control", "no-store"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
]
_PICTURE_HEADERS: Final = [
    ("content-type", "image/svg+xml"),
    ("cache-control", "max-age=86400"),
    ("content-security-policy", "default-src 'none'"),
    ("x-content-type-options", "nosniff"),
]
