from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode

import httpx2
import pytest

from sandbox.server import Answer, Incoming
from sandbox.shop import GOODS, Shop

SESSION_ID = "cs_0123456789abcdefABCDEF"
SESSION = {
    "id": SESSION_ID,
    "status": "open",
    "url": f"http://localhost:4000/pay/{SESSION_ID}",
    "amount_total": 2000,
    "currency": "usd",
    "metadata": {"order": "abc-beans"},
}


class Api:
    """The merchant API as the shop sees it: records requests and responds with `session`."""

    def __init__(self) -> None:
        self.session: dict[str, Any] = dict(SESSION)
        self.status = 201
        self.asked: list[httpx2.Request] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.asked.append(request)
        return httpx2.Response(self.status, json=self.session)


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def shop(api: Api) -> Shop:
    return _shop(api)


def _shop(api: Callable[[httpx2.Request], httpx2.Response]) -> Shop:
    client = httpx2.Client(base_url="http://api", transport=httpx2.MockTransport(api))
    return Shop(
        client,
        own="http://localhost:4010",
        checkout="http://localhost:4000",
        wallets="http://localhost:4100",
    )


class Page(HTMLParser):
    """The text and the form fields of a page."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self.words: list[str] = []
        self.fields: list[dict[str, str | None]] = []
        self.tags: list[str] = []
        self.feed(answer.body.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "input":
            self.fields.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def get(shop: Shop, target: str) -> Answer:
    return shop.answer(Incoming("GET", target, []))


def buy(shop: Shop, **form: str) -> Answer:
    return shop.answer(Incoming("POST", "/buy", [], urlencode(form).encode()))


def test_the_shops_page_shows_every_item_with_its_price(shop: Shop) -> None:
    page = Page(get(shop, "/"))
    for item in GOODS:
        assert item.name in page.text
        assert f"{item.price} USD" in page.text
    assert page.tags.count("h1") == 1
    assert page.tags.count("form") == len(GOODS)


def test_each_item_has_its_picture_on_the_page_and_in_the_session(shop: Shop, api: Api) -> None:
    for item in GOODS:
        picture = get(shop, f"/pictures/{item.id}.svg")
        assert (picture.status, dict(picture.headers)["content-type"]) == (200, "image/svg+xml")
        assert picture.body.startswith(b"<svg ")
        buy(shop, item=item.id, order="a")
        product = json.loads(api.asked[-1].content)["line_items"][0]["price_data"]["product_data"]
        assert product["image"] == f"http://localhost:4010/pictures/{item.id}.svg"
    assert get(shop, "/pictures/../shop.py").status == 404


def test_each_look_at_the_shop_is_an_order_of_its_own(shop: Shop) -> None:
    def orders() -> set[str | None]:
        fields = Page(get(shop, "/")).fields
        return {field["value"] for field in fields if field["name"] == "order"}

    first, second = orders(), orders()
    assert len(first) == len(GOODS)
    assert not first & second


def test_buying_creates_a_session_and_sends_the_customer_to_it(shop: Shop, api: Api) -> None:
    answer = buy(shop, item="beans", order="abc-beans")
    assert answer.status == 303
    assert dict(answer.headers)["location"] == SESSION["url"]
    (asked,) = api.asked
    assert asked.headers["idempotency-key"] == "abc-beans"
    body = json.loads(asked.content)
    (line,) = body["line_items"]
    assert line["price_data"]["unit_amount"] == 2000
    assert line["price_data"]["currency"] == "usd"
    assert body["success_url"] == "http://localhost:4010/thanks?session={CHECKOUT_SESSION_ID}"
    assert body["cancel_url"] == "http://localhost:4010/basket?session={CHECKOUT_SESSION_ID}"


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"item": "gold", "order": "a"},
        {"item": "beans"},
        {"item": "beans", "order": "a\nb"},
        {"item": "beans", "order": "x" * 65},
    ],
)
def test_an_order_that_is_none_asks_nobody(shop: Shop, api: Api, form: dict[str, str]) -> None:
    assert buy(shop, **form).status == 400
    assert api.asked == []


def test_an_api_that_refuses_is_told_as_a_page(shop: Shop, api: Api) -> None:
    api.status = 503
    answer = buy(shop, item="beans", order="abc")
    assert answer.status == 502
    assert "try again" in Page(answer).text


def test_an_api_that_does_not_answer_is_told_as_a_page() -> None:
    def lost(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("gone", request=request)

    assert buy(_shop(lost), item="beans", order="abc").status == 502


@pytest.mark.parametrize(
    ("status", "words", "looks_again"),
    [
        ("completed", "Thank you", False),
        ("processing", "being confirmed", True),
        ("awaiting_approval", "being confirmed", True),
        ("open", "Not paid yet", False),
        ("preparing", "Not paid yet", False),
        ("canceled", "was canceled", False),
        ("expired", "time to pay", False),
    ],
)
def test_who_comes_back_is_told_what_the_api_says(
    shop: Shop, api: Api, status: str, words: str, looks_again: bool
) -> None:
    api.status, api.session = 200, {**SESSION, "status": status}
    answer = get(shop, f"/thanks?session={SESSION_ID}")
    page = Page(answer)
    assert words in page.text
    assert ("on its way" in page.text) is (status == "completed")
    assert "20.00 USD" in page.text
    assert (b'http-equiv="refresh"' in answer.body) is looks_again
    assert str(api.asked[0].url) == f"http://api/api/checkout/sessions/{SESSION_ID}"


@pytest.mark.parametrize("session", ["", "cs_", "../keys", "cs_1%2F..", "cs_é"])
def test_what_cannot_be_a_session_is_not_asked_for(shop: Shop, api: Api, session: str) -> None:
    assert get(shop, f"/thanks?session={session}").status == 404
    assert api.asked == []


def test_what_a_merchant_wrote_is_shown_as_text(shop: Shop, api: Api) -> None:
    api.status = 200
    api.session = {**SESSION, "metadata": {"order": "<script>alert(1)</script>"}}
    page = Page(get(shop, f"/thanks?session={SESSION_ID}"))
    assert "script" not in page.tags
    assert "<script>" in page.text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("open", "Continue to payment"),
        ("awaiting_approval", "Continue to payment"),
        ("completed", "Thank you"),  # paid in another tab
        ("canceled", "was canceled"),
    ],
)
def test_who_left_the_payment_is_told_what_the_api_says(
    shop: Shop, api: Api, status: str, words: str
) -> None:
    api.status, api.session = 200, {**SESSION, "status": status}
    assert words in Page(get(shop, f"/basket?session={SESSION_ID}")).text


def test_an_unknown_address_has_its_page(shop: Shop) -> None:
    assert get(shop, "/nowhere").status == 404


def test_the_form_may_lead_to_the_hosted_page_and_nowhere_else(shop: Shop) -> None:
    policy = dict(get(shop, "/").headers)["content-security-policy"]
    assert "form-action 'self' http://localhost:4000" in policy
    assert "default-src 'none'" in policy
