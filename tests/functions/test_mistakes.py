"""Thirty mistakes of newcomers: each answer names the field, the cure, and a line to read."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.support.basics import SESSION_ID
from tests.support.merchant_api import Answer, a_body, an_item
from tests.support.stripe_api import StripeApi

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
    Mistake("a key of another place", 401, None, "without quotes", a_body(), key="sk_live_1"),
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
    Mistake(
        "v1: a list that is one value",
        400,
        "expand",
        "This must be a list: send `expand[]=…`.",
        stripe(expand="line_items"),
        path=V1,
    ),
    Mistake(
        "v1: items of text",
        400,
        "line_items",
        "This must be a list: send `line_items[0][quantity]=…`.",
        stripe(line_items="tea"),
        path=V1,
    ),
    Mistake(
        "v1: one item",
        400,
        "line_items[quantity]",
        "`line_items` is a list: write `line_items[0][quantity]`.",
        stripe(line_items={"quantity": "1"}),
        path=V1,
    ),
    Mistake(
        "v1: a text as metadata",
        400,
        "metadata",
        "`metadata` must be an object: send `metadata[key]=…`.",
        stripe(metadata="a"),
        path=V1,
    ),
    Mistake(
        "v1: an object in a value",
        400,
        "mode[x]",
        "`mode` takes one value",
        stripe(mode={"x": "payment"}),
        path=V1,
    ),
    Mistake(
        "v1: periods for brackets",
        400,
        "line_items.0.quantity",
        "Write nested names with brackets: `line_items[0][quantity]`; in JSON, nest objects.",
        {"mode": "payment", "line_items.0.quantity": "1"},
        path=V1,
    ),
    Mistake(
        "v1: the native API's time",
        400,
        "expires_in_seconds",
        "Use `expires_at` (Unix seconds).",
        stripe(expires_in_seconds="600"),
        path=V1,
    ),
    Mistake(
        "v1: no e-mail address",
        400,
        "customer_email",
        "This is not an e-mail address.",
        stripe(customer_email="bob"),
        path=V1,
    ),
    Mistake(
        "v1: nothing to expand",
        400,
        "expand[0]",
        "Can be expanded: `line_items`, `line_items.data.price.product`, `payment_intent`, ",
        stripe(expand=["charges"]),
        path=V1,
    ),
    Mistake(
        "v1: a name in the answer",
        400,
        "line_items[0][x]",
        "Known here: `quantity`, `price_data`, `metadata`.",
        stripe(line_items=[{"quantity": "1", "x": "1"}]),
        path=V1,
    ),
    Mistake(
        "v1: milliseconds",
        400,
        "expires_at",
        "These are milliseconds.",
        stripe(expires_at="1795781486000"),
        path=V1,
    ),
    Mistake("v1: an address", 404, None, "/docs/v1", path="/v1/coupons"),
    Mistake(
        "v1: v1 twice", 404, None, "base to https://pay.example, without /v1.", path="/v1/v1/events"
    ),
    Mistake(
        "v1: a final slash", 404, None, "leave out the final slash.", path="/v1/checkout/sessions/"
    ),
    Mistake(
        "v1: a status",
        400,
        "status",
        "This must be `open`, `complete` or `expired`.",
        method="GET",
        path="/v1/checkout/sessions",
        query="status=paid",
    ),
    Mistake(
        "v1: a date",
        400,
        "created[gte]",
        "A time in Unix seconds, such as 1795781486.",
        method="GET",
        path="/v1/events",
        query="created[gte]=2026-11-27",
    ),
    Mistake(
        "v1: no id",
        404,
        "id",
        'cs_ and 22 letters or digits; this is "undefined".',
        method="GET",
        path="/v1/checkout/sessions/undefined",
    ),
    Mistake("a final slash", 404, None, "Leave out the final slash.", path=f"{NATIVE}/"),
    Mistake(
        "no id",
        404,
        None,
        'A session\'s id looks like cs_ and 22 letters or digits; this is "undefined".',
        method="GET",
        path=f"{NATIVE}/undefined",
    ),
    Mistake(
        "a key for an id",
        404,
        None,
        "looks like cs_ and 22 letters or digits.",
        method="GET",
        path=f"{NATIVE}/sk_live_1",
    ),
    Mistake(
        "a misspelled expansion",
        400,
        "expnad",
        "Did you mean `expand`?",
        method="GET",
        path=f"{NATIVE}/{SESSION_ID}",
        query="expnad=payment_attempts",
    ),
    Mistake(
        "a parameter in the address",
        400,
        "mode",
        "Send parameters in the body.",
        method="POST",
        query="mode=payment",
    ),
    Mistake("an empty body", 400, None, "The body is empty.", raw=b""),
    Mistake("a mark", 400, None, "begins with a byte order mark", raw=b"\xef\xbb\xbf{}"),
    Mistake("a comma", 400, None, "(line 2, column 1)", raw=b'{"mode":"payment",\n}'),
    Mistake(
        "another charset",
        415,
        None,
        "in UTF-8",
        raw=b"{}",
        headers={"Content-Type": "application/json; charset=latin1"},
    ),
    Mistake(
        "a date",
        400,
        "created[gte]",
        "A time in Unix seconds, such as 1795781486.",
        method="GET",
        query="created[gte]=2026-11-27",
    ),
    Mistake(
        "milliseconds",
        400,
        "created[lt]",
        "These are milliseconds.",
        method="GET",
        query="created[lt]=1795781486000",
    ),
    Mistake(
        "a time alone",
        400,
        "created",
        "Use `created[gte]` and `created[lt]`.",
        method="GET",
        query="created=1795781486",
    ),
    Mistake(
        "a number of a page",
        400,
        "cursor",
        "Send `next_cursor` of the page before, unchanged.",
        method="GET",
        query="cursor=2",
    ),
    Mistake(
        "a key of metadata",
        400,
        f"metadata.{'x' * 41}",
        "1 to 40 characters",
        a_body(metadata={"x" * 41: "1"}),
    ),
)


def answer(api: StripeApi, made: Mistake) -> Answer:
    if made.path == V1 and made.body is not None:
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
    assert re.fullmatch(r"[A-Z`].*[.?]", message), message
    # The words of a validator, which no reader of the reference knows.
    assert not re.search(r"validation|Input should|item after|valid (list|integer|string)", message)


def test_there_are_at_least_thirty() -> None:
    assert len(MISTAKES) >= 30
    assert len({each.name for each in MISTAKES}) == len(MISTAKES)
