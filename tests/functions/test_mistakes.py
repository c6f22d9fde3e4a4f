"""Thirty mistakes of newcomers: each answer names the field, the cure, and a line to read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.merchant_api import Answer, a_body, an_item
from tests.stripe_api import StripeApi
from tests.support import SESSION_ID

NATIVE, V1 = "/api/checkout/sessions", "/v1/checkout/sessions"


@pytest.fixture(scope="module")
def api() -> StripeApi:
    return StripeApi()


@dataclass(frozen=True)
class Mistake:
    """A request, and what its answer says: status, field, and the words that cure it."""

    name: str
    status: int
    param: str | None
    cure: str
    body: Any = None
    method: str = "POST"
    path: str = NATIVE
    query: str = ""
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    key: str | None = ""


def priced(**changes: Any) -> dict[str, Any]:
    return a_body(line_items=[{"price_data": an_item()["price_data"] | changes}])


def stripe(**changes: Any) -> dict[str, Any]:
    price = {"currency": "usd", "unit_amount": 1000, "product_data": {"name": "Tea"}}
    items = [{"price_data": price, "quantity": 1}]
    return {"mode": "payment", "success_url": "https://s.example/", "line_items": items} | changes


PRICE = "line_items[0].price_data"
ITEM = "line_items[0]"
MISTAKES = (
    Mistake(
        "a misspelled name, and so a missing one",
        400,
        "sucess_url",
        "Did you mean `success_url`?",
        {
            name: text
            for name, text in a_body(sucess_url="https://s.example").items()
            if name != "success_url"
        },
    ),
    Mistake("another case", 400, "Metadata", "Did you mean `metadata`?", a_body(Metadata={})),
    Mistake("camel case", 400, "lineItems", "Did you mean `line_items`?", a_body(lineItems=[])),
    Mistake(
        "a price of Stripe's catalog",
        400,
        f"{ITEM}.price",
        "Did you mean `price_data`?",
        a_body(line_items=[{"price": "price_1", "quantity": 1}]),
    ),
    Mistake(
        "an amount beside the items",
        400,
        f"{ITEM}.x",
        "Known here: `price_data`, `quantity`.",
        a_body(line_items=[an_item(x=1)]),
    ),
    Mistake("nothing at all", 400, "mode", "This parameter is required.", {}),
    Mistake("no items", 400, "line_items", "at least 1", a_body(line_items=[])),
    Mistake("one item", 400, "line_items", "must be a list", a_body(line_items=an_item())),
    Mistake("items of text", 400, ITEM, "must be an object", a_body(line_items=["tea"])),
    Mistake("dollars", 400, f"{PRICE}.unit_amount", "9.99 USD is 999", priced(unit_amount=9.99)),
    Mistake(
        "dollars in quotes", 400, f"{PRICE}.unit_amount", "without quotes", priced(unit_amount="9")
    ),
    Mistake("a discount", 400, f"{PRICE}.unit_amount", "at least 0", priced(unit_amount=-1)),
    Mistake(
        "a symbol", 400, f"{PRICE}.currency", "three letters, such as usd", priced(currency="$")
    ),
    Mistake("another currency", 400, f"{PRICE}.currency", "USD", priced(currency="eur")),
    Mistake(
        "no name", 400, f"{PRICE}.product_data.name", "empty", priced(product_data={"name": " "})
    ),
    Mistake(
        "half a thing",
        400,
        f"{ITEM}.quantity",
        "whole number",
        a_body(line_items=[an_item(quantity=0.5)]),
    ),
    Mistake(
        "no thing", 400, f"{ITEM}.quantity", "at least 1", a_body(line_items=[an_item(quantity=0)])
    ),
    Mistake("a subscription", 400, "mode", "'payment'", a_body(mode="subscription")),
    Mistake("a path", 400, "success_url", "https", a_body(success_url="/thanks")),
    Mistake("without TLS", 400, "cancel_url", "https", a_body(cancel_url="http://s.example/")),
    Mistake("a minute", 400, "expires_in_seconds", "at least 300", a_body(expires_in_seconds=60)),
    Mistake("a list as metadata", 400, "metadata", "must be an object", a_body(metadata=[])),
    Mistake("a language", 400, "locale", "supported languages are en", a_body(locale="tlh")),
    Mistake("a broken body", 400, None, "JSON", raw=b"{"),
    Mistake("a list as body", 400, None, "object", raw=b"[]"),
    Mistake(
        "a form",
        415,
        None,
        "application/json",
        raw=b"mode=payment",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    ),
    Mistake("no key", 401, None, "Authorization: Bearer", a_body(), key=None),
    Mistake("a key of another place", 401, None, "key", a_body(), key="sk_live_1"),
    Mistake("a missing s", 404, None, "/api/checkout/sessions", path="/api/checkout/session"),
    Mistake("another method", 405, None, "GET and POST", method="PUT"),
    Mistake("another id", 404, None, "same merchant", method="GET", path=f"{NATIVE}/{SESSION_ID}"),
    Mistake("a page too long", 400, "limit", "at most 100", method="GET", query="limit=1000"),
    Mistake(
        "Stripe's way of paging",
        400,
        "starting_after",
        "`cursor`",
        method="GET",
        query=f"starting_after={SESSION_ID}",
    ),
    Mistake("a status", 400, "status", "'completed'", method="GET", query="status=paid"),
    Mistake("v1: misspelled", 400, "sucess_url", "`success_url`", stripe(sucess_url="x"), path=V1),
    Mistake(
        "v1: a subscription",
        400,
        "mode",
        "Only `payment` is supported.",
        stripe(mode="setup"),
        path=V1,
    ),
    Mistake(
        "v1: a price of the catalog",
        400,
        "line_items[0][price]",
        "send `price_data`",
        stripe(line_items=[{"price": "price_1", "quantity": 1}]),
        path=V1,
    ),
    Mistake("v1: an address", 404, None, "/docs/v1", path="/v1/coupons"),
)


def answer(api: StripeApi, made: Mistake) -> Answer:
    if made.path == V1:
        return api.form(V1, made.body)
    options: dict[str, Any] = {"headers": made.headers, "key": made.key}
    if made.raw is not None or made.body is None:
        return api.send(made.method, made.path, query=made.query, raw=made.raw, **options)
    return api.post(made.path, made.body, **options)


@pytest.mark.parametrize("made", MISTAKES, ids=lambda made: made.name)
def test_the_answer_names_the_field_and_the_cure(api: StripeApi, made: Mistake) -> None:
    told = answer(api, made)
    error = told.json["error"]
    assert (told.status, error.get("param")) == (made.status, made.param), error
    assert made.cure in error["message"], error["message"]
    assert error["doc_url"].endswith(f"/docs#{error['code']}")


@pytest.mark.parametrize("made", MISTAKES, ids=lambda made: made.name)
def test_the_message_is_made_of_sentences(api: StripeApi, made: Mistake) -> None:
    message = answer(api, made).json["error"]["message"]
    assert re.fullmatch(r"[A-Z].*[.?]", message), message
    # The words of a validator, which no reader of the reference knows.
    assert not re.search(r"validation|Input should|item after|valid (list|integer|string)", message)


def test_there_are_at_least_thirty() -> None:
    assert len(MISTAKES) >= 30
    assert len({each.name for each in MISTAKES}) == len(MISTAKES)
