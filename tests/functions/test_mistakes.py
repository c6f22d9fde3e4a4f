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
    """A request, and what its answer says: the words that cure it, the field, and the status."""

    name: str
    param: str | None
    cure: str
    body: Any = None
    status: int = 400
    method: str = "POST"
    path: str = NATIVE
    query: str = ""
    raw: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    key: str | None = ""


def native(name: str, param: str, cure: str, /, **changes: Any) -> Mistake:
    """Return a creation with these changes."""
    return Mistake(name, param, cure, a_body(**changes))


def item(name: str, param: str, cure: str, /, **changes: Any) -> Mistake:
    """Return a creation of an item with these changes, of which one is wrong."""
    return Mistake(name, f"{ITEM}.{param}", cure, a_body(line_items=[an_item(**changes)]))


def stripe(name: str, param: str, cure: str, /, **changes: Any) -> Mistake:
    """Return a creation under /v1 with these changes."""
    price = {"currency": "usd", "unit_amount": 1000, "product_data": {"name": "Tea"}}
    items = [{"price_data": price, "quantity": 1}]
    body = {"mode": "payment", "success_url": "https://s.example/", "line_items": items} | changes
    return Mistake(f"v1: {name}", param, cure, body, path=V1)


def query(name: str, param: str, cure: str, query: str, path: str = NATIVE) -> Mistake:
    """Return a GET with a wrong query, of the list unless another path is given."""
    return Mistake(name, param, cure, method="GET", query=query, path=path)


def body(name: str, cure: str, raw: bytes, content_type: str = "application/json") -> Mistake:
    """Return a creation whose body cannot be read."""
    status = 400 if content_type == "application/json" else 415
    return Mistake(name, None, cure, status=status, raw=raw, headers={"Content-Type": content_type})


def address(name: str, cure: str, path: str, method: str = "POST", **more: Any) -> Mistake:
    """Return a request of what is not there."""
    return Mistake(name, more.pop("param", None), cure, status=404, path=path, method=method)


ITEM = "line_items[0]"
AMOUNT, CURRENCY = "price_data.unit_amount", "price_data.currency"
NESTED = "Write nested names with brackets: `line_items[0][quantity]`; in JSON, nest objects."
EXPANDED = "You can expand: `line_items`, `line_items.data.price.product`, `payment_intent`, "
V1_ITEMS = "This must be a list: send `line_items[0][quantity]=…`."
V1_ITEM = "`line_items` is a list: write `line_items[0][quantity]`."
V1_TEXT = "`metadata` must be an object: send `metadata[key]=…`."
LOOKS = "cs_ and 22 letters or digits"
SECONDS = "A time in Unix seconds, such as 1795781486."
PAGES = "Send `next_cursor` of the previous page unchanged."
PARTS = "Known here: `quantity`, `price_data`, `metadata`."
LATIN = "application/json; charset=latin1"
FORM = "application/x-www-form-urlencoded"
PRICE_OF_CATALOG = [{"price": "price_1", "quantity": 1}]
MISTAKES = (
    native(
        "a misspelled name, and so a missing one",
        "sucess_url",
        "Did you mean `success_url`?",
        sucess_url="https://s.example",
        success_url=None,
    ),
    native("another case", "Metadata", "Did you mean `metadata`?", Metadata={}),
    native("camel case", "lineItems", "Did you mean `line_items`?", lineItems=[]),
    native(
        "a price of Stripe's catalog",
        f"{ITEM}.price",
        "Did you mean `price_data`?",
        line_items=PRICE_OF_CATALOG,
    ),
    item("an amount beside the items", "x", "Known here: `price_data`, `quantity`.", x=1),
    Mistake("nothing at all", "mode", "This parameter is required.", {}),
    native("no items", "line_items", "at least 1", line_items=[]),
    native("one item", "line_items", "must be a list", line_items=an_item()),
    native("items of text", ITEM, "must be an object", line_items=["tea"]),
    item("dollars", AMOUNT, "9.99 USD is 999", unit_amount=9.99),
    item("dollars in quotes", AMOUNT, "without quotes", unit_amount="9"),
    item("a discount", AMOUNT, "at least 0", unit_amount=-1),
    item("a symbol", CURRENCY, "three letters, such as usd", currency="$"),
    item("another currency", CURRENCY, "USD", currency="eur"),
    item("no name", "price_data.product_data.name", "empty", name=" "),
    item("half a thing", "quantity", "whole number", quantity=0.5),
    item("no thing", "quantity", "at least 1", quantity=0),
    native("a subscription", "mode", "'payment'", mode="subscription"),
    native("a path", "success_url", "https", success_url="/thanks"),
    native("without TLS", "cancel_url", "https", cancel_url="http://s.example/"),
    native("a minute", "expires_in_seconds", "at least 300", expires_in_seconds=60),
    native("a list as metadata", "metadata", "must be an object", metadata=[]),
    native("a language", "locale", "supported languages are en", locale="tlh"),
    native(
        "a key of metadata", f"metadata.{'x' * 41}", "1 to 40 characters", metadata={"x" * 41: "1"}
    ),
    body("a broken body", "JSON", b"{"),
    body("a list as body", "object", b"[]"),
    body("a form", "application/json", b"mode=payment", FORM),
    body("an empty body", "The body is empty.", b""),
    body("a mark", "begins with a byte order mark", b"\xef\xbb\xbf{}"),
    body("a missing comma", "(line 2, column 1)", b'{"mode":"payment"\n"currency":"USD"}'),
    body("another charset", "in UTF-8", b"{}", LATIN),
    Mistake("no key", None, "Authorization: Bearer", a_body(), 401, key=None),
    Mistake("a key of another place", None, "without quotes", a_body(), 401, key="sk_live_1"),
    Mistake("another method", None, "GET and POST", status=405, method="PUT"),
    Mistake(
        "a parameter in the address", "mode", "Send parameters in the body.", query="mode=payment"
    ),
    address("a missing s", "/api/checkout/sessions", "/api/checkout/session"),
    address("a final slash", "Leave out the final slash.", f"{NATIVE}/"),
    address("another id", "same merchant", f"{NATIVE}/{SESSION_ID}", "GET"),
    address(
        "no id",
        f'A session\'s id looks like {LOOKS}; this is "undefined".',
        f"{NATIVE}/undefined",
        "GET",
    ),
    address("a key for an id", f"looks like {LOOKS}.", f"{NATIVE}/sk_live_1", "GET"),
    query("a page too long", "limit", "at most 100", "limit=1000"),
    query("Stripe's way of paging", "starting_after", "`cursor`", f"starting_after={SESSION_ID}"),
    query("a status", "status", "'completed'", "status=paid"),
    query("a date", "created[gte]", SECONDS, "created[gte]=2026-11-27"),
    query("milliseconds", "created[lt]", "These are milliseconds.", "created[lt]=1795781486000"),
    query("a time alone", "created", "Use `created[gte]` and `created[lt]`.", "created=1795781486"),
    query("a page's number", "cursor", PAGES, "cursor=2"),
    query(
        "a misspelled expansion",
        "expnad",
        "Did you mean `expand`?",
        "expnad=payment_attempts",
        f"{NATIVE}/{SESSION_ID}",
    ),
    stripe("misspelled", "sucess_url", "`success_url`", sucess_url="x"),
    stripe("a subscription", "mode", "Only `payment` is supported.", mode="setup"),
    stripe(
        "a price of the catalog", f"{ITEM}[price]", "send `price_data`", line_items=PRICE_OF_CATALOG
    ),
    stripe("one value", "expand", "This must be a list: send `expand[]=…`.", expand="line_items"),
    stripe("items of text", "line_items", V1_ITEMS, line_items="tea"),
    stripe("one item", "line_items[quantity]", V1_ITEM, line_items={"quantity": "1"}),
    stripe("a text as metadata", "metadata", V1_TEXT, metadata="a"),
    stripe("an object in a value", "mode[x]", "`mode` takes one value", mode={"x": "payment"}),
    stripe(
        "periods for brackets", "line_items.0.quantity", NESTED, **{"line_items.0.quantity": "1"}
    ),
    stripe(
        "the native API's time",
        "expires_in_seconds",
        "Use `expires_at` (Unix seconds).",
        expires_in_seconds="600",
    ),
    stripe(
        "no e-mail address",
        "customer_email",
        "This is not an e-mail address.",
        customer_email="bob",
    ),
    stripe("nothing to expand", "expand[0]", EXPANDED, expand=["charges"]),
    stripe("a name in the answer", f"{ITEM}[x]", PARTS, line_items=[{"quantity": "1", "x": "1"}]),
    stripe("milliseconds", "expires_at", "These are milliseconds.", expires_at="1795781486000"),
    address("v1: an address", "/docs/v1", "/v1/coupons"),
    address("v1: v1 twice", "base to https://pay.example, without /v1.", "/v1/v1/events"),
    address("v1: a final slash", "leave out the final slash.", f"{V1}/"),
    address("v1: no id", f'{LOOKS}; this is "undefined".', f"{V1}/undefined", "GET", param="id"),
    query(
        "v1: a status", "status", "This must be `open`, `complete` or `expired`.", "status=paid", V1
    ),
    query("v1: a date", "created[gte]", SECONDS, "created[gte]=2026-11-27", "/v1/events"),
)


def answer(api: StripeApi, made: Mistake) -> Answer:
    if made.path == V1 and made.body is not None:
        return api.form(V1, made.body)
    options: dict[str, Any] = {"headers": made.headers, "key": made.key}
    if made.raw is not None or made.body is None:
        return api.send(made.method, made.path, query=made.query, raw=made.raw, **options)
    return api.post(made.path, made.body, **options)


@pytest.mark.parametrize("made", MISTAKES, ids=lambda made: made.name)
def test_the_answer_names_the_field_and_the_cure_in_sentences(
    api: StripeApi, made: Mistake
) -> None:
    told = answer(api, made)
    error = told.json["error"]
    message = error["message"]
    assert (told.status, error.get("param")) == (made.status, made.param), error
    assert made.cure in message
    assert error["doc_url"].endswith(f"/docs#{error['code']}")
    assert re.fullmatch(r"[A-Z`].*[.?]", message), message
    # The words of a validator, which no reader of the reference knows.
    assert not re.search(r"validation|Input should|item after|valid (list|integer|string)", message)
