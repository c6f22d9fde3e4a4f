"""U+0000 is refused in each text of both APIs, by name.

Shops store what they get back, and PostgreSQL takes no such text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.basics import SESSION_ID
from tests.support.merchant_api import MerchantApi, a_body
from tests.support.stripe_api import StripeApi

DOCS: Final = Path(__file__).parents[2] / "docs"
NATIVE: Final = json.loads((DOCS / "openapi.json").read_text("utf-8"))
STRIPE: Final = json.loads((DOCS / "openapi-v1.json").read_text("utf-8"))
KEY: Final = object()  # the name of a pair, and not its value

Place = tuple[Any, ...]


def texts(schema: dict[str, Any], document: dict[str, Any]) -> Iterator[Place]:
    """Yield the place of each text of a body: names, and indexes of lists."""
    if "$ref" in schema:
        named = schema["$ref"].rpartition("/")[2]
        yield from texts(document["components"]["schemas"][named], document)
    kinds = schema.get("type", ())
    if kinds == "string" or "string" in kinds:
        yield ()
    for each in (*schema.get("anyOf", ()), *schema.get("allOf", ())):
        yield from texts(each, document)
    inside = {**schema.get("properties", {})}
    if "items" in schema:
        inside[0] = schema["items"]
    if schema.get("additionalProperties"):
        yield (KEY,)
        inside["a"] = schema["additionalProperties"]
    for name, each in inside.items():
        for place in texts(each, document):
            yield (name, *place)


def posts(document: dict[str, Any]) -> list[tuple[str, Place]]:
    """Return each text of each POST, with the path that it is sent to."""
    found = []
    for path, methods in document["paths"].items():
        body = methods.get("post", {}).get("requestBody")
        if body:
            schema = body["content"]["application/json"]["schema"]
            where = re.sub(r"\{\w+\}", SESSION_ID, path)
            found += [(where, place) for place in dict.fromkeys(texts(schema, document))]
    return found


def with_nul(body: Any, place: Place) -> Any:
    """Return the body with U+0000 at this place, made as far as it was not there."""
    if not place:
        return f"{body if isinstance(body, str) else 'x'}\0"
    first, *rest = place
    if first is KEY:
        return {**(body or {}), "b\0": "c"}
    if isinstance(first, int):
        return [with_nul(body[0] if body else None, tuple(rest))]
    return {**(body or {}), first: with_nul((body or {}).get(first), tuple(rest))}


def shown(place: Place) -> str:
    return "/".join("b" if each is KEY else str(each) for each in place)


def native(place: Place) -> str:
    """The parameter as the native API names it; of metadata, the whole."""
    first, *rest = place if "metadata" not in place else place[: place.index("metadata") + 1]
    return str(first) + "".join(
        f"[{each}]" if isinstance(each, int) else f".{each}" for each in rest
    )


def bracketed(place: Place) -> str:
    """The parameter as Stripe's libraries name it."""
    first, *rest = ("b\0" if each is KEY else str(each) for each in place)
    return first + "".join(f"[{each}]" for each in rest)


@pytest.mark.parametrize(
    ("path", "place"), posts(NATIVE), ids=lambda each: shown(each) if type(each) is tuple else each
)
def test_in_the_native_api(path: str, place: Place) -> None:
    api = MerchantApi()
    valid: dict[str, Any] = a_body() if "sessions" in path else {"session": SESSION_ID}
    if "questions" in place:
        valid["collect"] = {"questions": [{"label": "Size", "kind": "text"}]}
    answer = api.post(path, with_nul(valid, place), key=api.refunder)
    assert (answer.status, answer.code) == (400, "parameter_invalid"), answer
    error = answer.json["error"]
    assert error["param"] == native(place)
    assert "U+0000" in error["message"]


@pytest.mark.parametrize(
    ("path", "place"), posts(STRIPE), ids=lambda each: shown(each) if type(each) is tuple else each
)
def test_under_v1(path: str, place: Place) -> None:
    api, body = StripeApi(), with_nul(None, place)
    if "webhook_endpoints" in path:
        answers = [api.manage("POST", path, body)]
    else:
        answers = [each(path, body, key=api.refunder) for each in (api.form, api.post)]
    for answer in answers:
        assert (answer.status, answer.code) == (400, "parameter_invalid"), answer
        error = answer.json["error"]
        assert error["param"] == bracketed(place)
        assert "U+0000" in error["message"]


def test_each_kind_of_text_is_among_them() -> None:
    """As docs/api.md and docs/stripe.md name them."""
    product = ("line_items", 0, "price_data", "product_data")
    sessions, refunds = "/api/checkout/sessions", "/api/checkout/refunds"
    assert {
        (sessions, (*product, "name")),
        (sessions, (*product, "description")),
        (sessions, ("client_reference_id",)),
        (sessions, ("metadata", "a")),
        (sessions, ("metadata", KEY)),
        (refunds, ("paid_elsewhere",)),
        (refunds, ("metadata", KEY)),
    } <= set(posts(NATIVE))
    assert {
        ("/v1/checkout/sessions", (*product, "metadata", "a")),
        ("/v1/checkout/sessions", ("payment_intent_data", "description")),
        ("/v1/refunds", ("metadata", KEY)),
        ("/v1/webhook_endpoints", ("description",)),
    } <= set(posts(STRIPE))
