"""Test the merchant API with bad input. No input alone ever gives a 5xx."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.basics import SESSION_ID
from tests.support.doors import logged
from tests.support.merchant_api import SESSIONS, Answer, MerchantApi, a_body, an_item

ENDS = ("expire", "cancel", "accept_as_paid", "give_up")
API = MerchantApi()  # nothing here is ever stored, so all cases may share it


def assert_refused(answer: Answer, status: int, code: str, param: str | None = None) -> None:
    assert (answer.status, answer.code) == (status, code), answer
    error = answer.json["error"]
    assert error.get("param") == param
    named = ["param"] if param else []
    assert list(error) == ["type", "code", "message", *named, "doc_url", "request_id"]
    assert error["doc_url"].endswith(f"/docs#{code}")
    assert error["message"]
    assert error["request_id"] == answer.headers["request-id"]
    assert re.fullmatch(r"req_[0-9A-Za-z]{22}", error["request_id"])
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["content-type"] == "application/json"
    assert not API.rows("checkout_sessions")
    assert all(logged(row) for row in API.rows("idempotency_keys"))


def priced(**changes: Any) -> dict[str, Any]:
    """A body whose item's price_data is changed; a change to None removes the field."""
    price = an_item()["price_data"] | changes
    kept = {name: value for name, value in price.items() if value is not None}
    return a_body(line_items=[{"price_data": kept}])


def each(
    field: str, values: Sequence[Any], code: str, param: str = ""
) -> list[tuple[dict[str, Any], str, str]]:
    """One case a value, in a field of the body."""
    return [({**a_body(), field: value}, code, param or field) for value in values]


def each_item(
    field: str, values: Sequence[Any], code: str, param: str
) -> list[tuple[dict[str, Any], str, str]]:
    """One case a value, in a field of the only line item."""
    return [(a_body(line_items=[an_item(**{field: value})]), code, param) for value in values]


PRICE = "line_items[0].price_data"
NAME = f"{PRICE}.product_data.name"
DESCRIPTION = f"{PRICE}.product_data.description"
IMAGE = f"{PRICE}.product_data.image"
PICTURES = ["http://shop.example/a.png", "javascript:alert(1)", "data:image/png;base64,AA==", "a"]
SIZE = {"label": "Size", "kind": "dropdown", "options": ["S", "L"]}
COUNTRY = "collect.ships_to[1]"
OPTIONS, LABEL = "collect.questions[0].options", "collect.questions[0].label"
SECOND = "line_items[1].price_data.currency"
INTEGER, UNKNOWN = "parameter_invalid_integer", "parameter_unknown"
INVALID = "parameter_invalid"
CREATE_CASES: list[tuple[dict[str, Any], str, str]] = [
    # missing
    ({}, "parameter_missing", "mode"),
    (a_body(mode=None), "parameter_missing", "mode"),
    (a_body(line_items=None), "parameter_missing", "line_items"),
    (a_body(success_url=None), "parameter_missing", "success_url"),
    (a_body(cancel_url=None), "parameter_missing", "cancel_url"),
    (a_body(line_items=[{}]), "parameter_missing", PRICE),
    (priced(currency=None), "parameter_missing", f"{PRICE}.currency"),
    (priced(unit_amount=None), "parameter_missing", f"{PRICE}.unit_amount"),
    (priced(product_data=None), "parameter_missing", f"{PRICE}.product_data"),
    (priced(product_data={}), "parameter_missing", NAME),
    # unknown
    (a_body(sucess_url="https://shop.example/"), "parameter_unknown", "sucess_url"),
    (a_body(line_items=[an_item(price=1)]), "parameter_unknown", "line_items[0].price"),
    *each("line_items", [[an_item(), an_item(Quantity=1)]], UNKNOWN, "line_items[1].Quantity"),
    (a_body(**{"x" * 5000: 1}), "parameter_unknown", "x" * 200),
    # wrong types and lengths
    *each("mode", ["subscription", "", 1, [], True, None], INVALID),
    *each("line_items", [{}, "x", 1, [], [an_item()] * 101, None], INVALID),
    *each("line_items", [[None], [1], ["x"], [[]]], INVALID, "line_items[0]"),
    *each("metadata", ["x", 1, [], [1], True, None], INVALID),
    *each("metadata", [{"": 1}], INVALID),
    *each("metadata", [{"x" * 41: 1}], INVALID, f"metadata.{'x' * 41}"),
    *each("metadata", [{"a": "x" * 501}, {"a": []}, {"a": {}}], INVALID, "metadata.a"),
    *each("metadata", [{str(number): number for number in range(51)}], INVALID),
    *each_item("name", ["", " ", "\n\t", "x" * 201, 1, None, ["x"]], INVALID, NAME),
    *each_item("description", ["x" * 1001, 1, None], INVALID, DESCRIPTION),
    *each_item("image", [1, None, []], INVALID, IMAGE),
    *each_item("image", PICTURES, "url_invalid", IMAGE),
    *each_item("currency", ["", "us", "usdd", "us1", "u d"], INVALID, f"{PRICE}.currency"),
    *each_item("currency", ["usd\n", "ÜSD", "ſſſ", 840, None], INVALID, f"{PRICE}.currency"),
    # integers
    *each_item("unit_amount", [True, "12", 12.0, 1e2, None, [1]], INTEGER, f"{PRICE}.unit_amount"),
    *each_item("quantity", [True, "12", 12.0, None], INTEGER, "line_items[0].quantity"),
    *each_item("quantity", [0, -1, 1_000_001], INTEGER, "line_items[0].quantity"),
    *each("expires_in_seconds", [299, 86_401, 0, -1], INTEGER),
    *each("expires_in_seconds", [True, "300", 300.0, [], None], INTEGER),
    *each("locale", ["", "xx", "en-" + "a" * 33, 1, True, None, ["en"]], INVALID),
    # details of customers
    *each("collect", ["email", 1, [], {}, {"questions": []}], INVALID),
    *each("collect", [{"email": "yes"}, {"email": True}], INVALID, "collect.email"),
    *each("collect", [{"Email": "required"}], "parameter_unknown", "collect.Email"),
    *each("collect", [{"email": "optional", "ships_to": ["DE"]}], INVALID, "collect.ships_to"),
    *each("collect", [{"shipping": "optional", "ships_to": ["de", "XX"]}], INVALID, COUNTRY),
    *each("collect", [{"questions": [{**SIZE, "options": []}]}], INVALID, OPTIONS),
    *each("collect", [{"questions": [{**SIZE, "options": ["S", "S"]}]}], INVALID, OPTIONS),
    *each("collect", [{"questions": [{**SIZE, "kind": "text"}]}], INVALID, OPTIONS),
    *each("collect", [{"questions": [SIZE] * 4}], INVALID, "collect.questions"),
    *each("collect", [{"questions": [{**SIZE, "label": " "}]}], INVALID, LABEL),
    *each("collect", [{"questions": [{**SIZE, "label": "x" * 101}]}], INVALID, LABEL),
    *each("customer_email", ["", "ana", "ana@localhost", "a" * 243 + "@example.com"], INVALID),
    *each("customer_email", ["ana@example.com\nBcc: eva@example.com", 1, None, []], INVALID),
    # amounts
    *each_item("unit_amount", [-1], "amount_too_small", f"{PRICE}.unit_amount"),
    *each_item("unit_amount", [10**12], "amount_too_large", f"{PRICE}.unit_amount"),
    *each_item("unit_amount", [0], "amount_too_small", "line_items"),
    *each("line_items", [[an_item(unit_amount=10**12 - 1, quantity=1001)]], "amount_too_large"),
    # currencies
    *each("line_items", [[an_item(), an_item(currency="eur")]], "currency_mismatch", SECOND),
    *each_item("currency", ["EUR"], "currency_not_supported", f"{PRICE}.currency"),
    # addresses (tests/domain/ground/test_grammar.py has them all)
    *each("success_url", ["", "http://shop.example/", "x" * 3000], "url_invalid"),
    *each("success_url", [1, [], {}, None], INVALID),
    *each("cancel_url", ["//shop.example"], "url_invalid"),
]


@pytest.mark.parametrize(
    ("body", "code", "param"), CREATE_CASES, ids=lambda value: str(value)[:40] if value else ""
)
def test_a_wrong_field_is_named(body: dict[str, Any], code: str, param: str) -> None:
    assert_refused(API.post(SESSIONS, body), 400, code, param)


# tests/domain/ground/test_strict_json.py has more.
@pytest.mark.parametrize("raw", [b"", b"[]", b"{", b'{"a":1,"a":1}', b"[" * 200_000, b"\xff{}"])
@pytest.mark.parametrize("path", [SESSIONS, f"{SESSIONS}/{SESSION_ID}/expire"])
def test_what_is_no_plain_json_object_is_invalid_json(path: str, raw: bytes) -> None:
    if raw == b"" and path != SESSIONS:
        assert_refused(API.post(path, raw), 404, "resource_missing")
    else:
        assert_refused(API.post(path, raw), 400, "invalid_json")


@pytest.mark.parametrize("path", [SESSIONS, f"{SESSIONS}/{SESSION_ID}/cancel"])
def test_a_body_over_256_kib_is_too_large_and_exactly_that_is_not(path: str) -> None:
    assert_refused(API.post(path, b" " * (256 * 1024 + 1)), 413, "body_too_large")
    assert_refused(API.post(path, b" " * (256 * 1024)), 400, "invalid_json")


@pytest.mark.parametrize("action", ENDS)
def test_ending_takes_no_parameters(action: str) -> None:
    answer = API.post(f"{SESSIONS}/{SESSION_ID}/{action}", {"reason": "x"})
    assert_refused(answer, 400, "parameter_unknown", "reason")


def each_query(name: str, values: Sequence[str], code: str) -> list[tuple[str, str, str]]:
    return [(f"{name}={value}", code, name) for value in values]


QUERY_CASES = [
    *each_query("limit", ["0", "101", "-5", "x", "", "1.0", "1e1", "+5", "%205", "null"], INTEGER),
    *each_query("limit", ["%D9%A3", "0x5", "9" * 400], INTEGER),
    *each_query("created[gte]", ["-1", "x", "", "1.5", "10000000000"], INTEGER),
    *each_query("created[lt]", ["yesterday"], INTEGER),
    *each_query("status", ["", "paid", "OPEN", "open,expired"], INVALID),
    *each_query("cursor", ["", "x", "%01", "%FF", "é", "a" * 4000, "bnVsbA"], "cursor_invalid"),
    *each_query("cursor", ["%00"], INVALID),
    ("limit=1&limit=2", "parameter_invalid", "limit"),
    ("starting_after=cs_1", "parameter_unknown", "starting_after"),
    ("created=1", "parameter_unknown", "created"),
    ("created_gte=1", "parameter_unknown", "created_gte"),
    ("created[gt]=1", "parameter_unknown", "created[gt]"),
    ("%ff%00=1", "parameter_unknown", "\ufffd\x00"),
]


@pytest.mark.parametrize(("query", "code", "param"), QUERY_CASES)
def test_a_wrong_query_is_named(query: str, code: str, param: str) -> None:
    assert_refused(API.send("GET", SESSIONS, query=query), 400, code, param)


PRIVATE = [
    ("POST", SESSIONS),
    ("GET", SESSIONS),
    ("GET", f"{SESSIONS}/{SESSION_ID}"),
    *(("POST", f"{SESSIONS}/{SESSION_ID}/{end}") for end in ENDS),
]


@pytest.mark.parametrize(("method", "path"), PRIVATE)
@pytest.mark.parametrize(
    ("authorization", "code"),
    [
        (None, "api_key_missing"),
        ("Basic abc", "api_key_missing"),
        ("Bearer sk_" + "a" * 43, "api_key_invalid"),
        ("Bearer sk_" + "é" * 9000, "api_key_invalid"),
    ],
)
def test_without_a_valid_key_every_door_is_closed_before_the_body_is_read(
    method: str, path: str, authorization: str | None, code: str
) -> None:
    headers = {"Authorization": authorization} if authorization is not None else {}
    answer = API.send(method, path, query="limit=x", raw=b"{", headers=headers, key=None)
    assert_refused(answer, 401, code)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json["error"]["type"] == "authentication_error"


# tests/attacks/test_ids_and_cursors.py has more.
@pytest.mark.parametrize("session_id", ["cs_" + "0" * 22, "x", "cs_" + "é" * 22, "\x00", "a/b"])
def test_an_id_that_nothing_has_is_missing(session_id: str) -> None:
    for method, rest in [("GET", ""), *(("POST", f"/{end}") for end in ENDS)]:
        answer = API.send(method, f"{SESSIONS}/{session_id}{rest}")
        assert_refused(answer, 404, "resource_missing")


def test_another_merchants_session_cannot_be_told_from_a_missing_one() -> None:
    api = MerchantApi()
    session = api.store()
    for method, rest in [("GET", ""), *(("POST", f"/{end}") for end in ENDS)]:
        foreign = api.send(method, f"{SESSIONS}/{session.id}{rest}", key=api.other_secret)
        missing = api.send(method, f"{SESSIONS}/cs_{'0' * 22}{rest}", key=api.other_secret)
        assert foreign.status == missing.status == 404
        assert foreign.json["error"]["message"] == missing.json["error"]["message"]
        assert foreign.code == missing.code
    assert api.get(SESSIONS, key=api.other_secret).json["data"] == []
    assert api.stored(session.id) == session


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("PUT", SESSIONS, "GET, POST"),
        ("DELETE", SESSIONS, "GET, POST"),
        ("OPTIONS", SESSIONS, "GET, POST"),
        ("PATCH", f"{SESSIONS}/{SESSION_ID}", "GET"),
        ("POST", f"{SESSIONS}/{SESSION_ID}", "GET"),
        *(("GET", f"{SESSIONS}/{SESSION_ID}/{end}", "POST") for end in ENDS),
        ("POST", "/api/health", "GET"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(method: str, path: str, allowed: str) -> None:
    answer = API.send(method, path)
    assert_refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == allowed


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/api",
        "/api/",
        f"{SESSIONS}/",
        "/api/checkout",
        "/API/health",
        "/doc",
        "/openapi.json",
        f"{SESSIONS}/{SESSION_ID}/pay",
        "//api/health",
    ],
)
def test_an_unknown_address_is_missing(path: str) -> None:
    assert_refused(API.send("GET", path), 404, "resource_missing")


# --- whatever comes


_GOOD = st.sampled_from(["usd", "payment", "https://shop.example/", 1000, 300, 0, -1])
_NAMES = st.sampled_from(["price_data", "currency", "product_data", "name", "unit_amount", "x"])
_NUMBERS = st.booleans() | st.integers(-(10**20), 10**20) | st.floats()
_VALUES = st.recursive(
    _GOOD | _NUMBERS | st.none() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_NAMES | st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)
_FIELD = st.sampled_from([*a_body(), "metadata", "expires_in_seconds", "locale", "x"])
SHARED = MerchantApi()


def assert_no_surprise(answer: Answer) -> None:
    assert answer.status in (200, 201, 400, 404, 413, 415), answer
    if answer.status >= 400:
        named = {"type", "code", "message", "doc_url", "request_id"}
        assert set(answer.json["error"]) - {"param"} == named
    assert answer.headers["request-id"]


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(_FIELD, _VALUES, max_size=3), st.booleans())
def test_no_json_value_anywhere_gives_a_5xx(changes: dict[str, Any], item: bool) -> None:
    body = a_body(line_items=[an_item() | changes]) if item else a_body() | changes
    assert_no_surprise(SHARED.post(SESSIONS, json.dumps(body).encode()))


@settings(max_examples=150)
@given(
    st.binary(max_size=300),
    st.integers(0, 300),
    st.sampled_from([SESSIONS, f"{SESSIONS}/{SESSION_ID}/cancel"]),
)
def test_no_bytes_anywhere_give_a_5xx(noise: bytes, place: int, path: str) -> None:
    assert_no_surprise(SHARED.post(path, noise))
    raw = json.dumps(a_body()).encode()
    assert_no_surprise(SHARED.post(path, raw[:place] + noise[:8] + raw[place:]))


@settings(max_examples=150)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["limit", "cursor", "status", "created[gte]", "created[lt]"]),
            st.text(max_size=12) | st.integers().map(str),
        ),
        max_size=3,
    )
)
def test_no_query_gives_a_5xx(pairs: list[tuple[str, str]]) -> None:
    assert_no_surprise(SHARED.get(SESSIONS, dict(pairs)))


_ACTIONS = ("/expire", "/cancel", "/accept_as_paid", "/give_up")  # routes of POST alone: 405
_IDS = st.text(max_size=40).filter(lambda text: "\n" not in text and not text.endswith(_ACTIONS))


@settings(max_examples=100)
@given(_IDS, st.text(max_size=40))
def test_no_id_and_no_idempotency_key_gives_a_5xx(session_id: str, key: str) -> None:
    assert_no_surprise(SHARED.get(f"{SESSIONS}/x{session_id}"))
    assert_no_surprise(SHARED.post(SESSIONS, a_body(), headers={"Idempotency-Key": key}))
