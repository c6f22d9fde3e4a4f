"""Bytes that two programs could read differently, at every door that reads a body or a query.

Ambiguous input is refused before anything is stored, asked or sent.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.strict_json import parse_object
from checkout.web import BODY_MAX
from dashboard.dependencies import parts
from tests.attacks.hostile import assert_open_and_unpaid
from tests.support.attack_counts import Attack
from tests.support.cases import PICTURES
from tests.support.doors import BASE, FORM, Doors
from tests.support.flows import CEDAR
from tests.support.hosted_pages import Answer
from tests.support.merchant_api import a_body, an_item

WHOLE = json.dumps(a_body())
BARE = WHOLE[1:-1]  # the members, without the braces
LINE = json.dumps(an_item())
MISSING = f"/cs_{'0' * 22}"


def with_first(member: str) -> str:
    return f"{{{member},{BARE}}}"


def with_last(member: str) -> str:
    return f"{{{BARE},{member}}}"


def with_item(**changes: Any) -> str:
    return json.dumps(a_body(line_items=[an_item(**changes)]))


# Bodies of a creation that one parser or another would take for a whole one.
TEXTS = {
    "nothing": "",
    "a blank": " ",
    "null": "null",
    "a list": f"[{WHOLE}]",
    "a string": json.dumps(WHOLE),
    "two objects": WHOLE + WHOLE,
    "an object a line": f"{WHOLE}\n{WHOLE}",
    "a comma behind": f"{WHOLE},",
    "a comma at the end": f"{{{BARE},}}",
    "a bracket too many": f"{WHOLE}}}",
    "cut short": WHOLE[:-1],
    "cut in a string": WHOLE[:60],
    "a comment": f"/*x*/{WHOLE}",
    "a comment behind": f"{WHOLE}//x",
    "a hash comment": f"#x\n{WHOLE}",
    "single quotes": WHOLE.replace('"', "'"),
    "names without quotes": WHOLE.replace('"mode"', "mode"),
    "JSON with a guard": f")]}}',\n{WHOLE}",
    "JSONP": f"x({WHOLE})",
    "a form feed": f"\f{WHOLE}",
    "a no-break space": f"\u00a0{WHOLE}",
    "a line separator": f"{WHOLE}\u2028",
    "a nul behind": f"{WHOLE}\x00",
    "a byte order mark": f"\ufeff{WHOLE}",
    "a raw line break in a string": WHOLE.replace("payment", "pay\nment"),
    "a raw tab in a string": WHOLE.replace("payment", "pay\tment"),
    "an unknown escape": WHOLE.replace("payment", r"pa\yment"),
    "a short escape": WHOLE.replace("payment", r"\u00"),
    "half a surrogate": WHOLE.replace('"Tea"', r'"\ud800"'),
    "surrogates the wrong way": WHOLE.replace('"Tea"', r'"\udc00\ud800"'),
    "half a surrogate in a name": with_last(r'"metadata":{"\ud800":1}'),
    "the first mode doubled": with_first('"mode":"payment"'),
    "the last mode doubled": with_last('"mode":"payment"'),
    "an escaped name doubled": with_last(r'"\u006dode":"payment"'),
    "a nested name doubled": WHOLE.replace('"quantity"', '"quantity": 1, "quantity"'),
    "a product's name doubled": WHOLE.replace('"name"', '"name": "Gold", "name"'),
    "a price doubled": WHOLE.replace('"unit_amount"', '"unit_amount": 1, "unit_amount"'),
    "metadata's name doubled": with_last('"metadata":{"a":1,"a":2}'),
    "items doubled": with_first(f'"line_items":[{LINE}]'),
    "a name in other case": with_last('"MODE":"payment"'),
    "a name with a blank": with_last('"mode ":"payment"'),
    "a name with a nul": with_last('"mode\\u0000":"payment"'),
    "a look-alike name": with_last('"m\u043ede":"payment"'),
    "a full-width name": with_last('"\uff4dode":"payment"'),
    "a dotted name": with_last('"line_items.0.quantity":1'),
    "a bracketed name": with_last('"line_items[0][quantity]":1'),
    "__proto__": with_last('"__proto__":{"amount_total":1}'),
    "constructor": with_last('"constructor":{"prototype":{}}'),
    "$ref": with_last('"$ref":"#"'),
    "amount_total": with_last('"amount_total":1'),
    "status": with_last('"status":"completed"'),
    "merchant": with_last('"merchant":"mer_1"'),
    "id": with_last('"id":"cs_0000000000000000000000"'),
    "NaN": WHOLE.replace("1000", "NaN"),
    "Infinity": WHOLE.replace("1000", "Infinity"),
    "minus Infinity": WHOLE.replace("1000", "-Infinity"),
    "1e400": WHOLE.replace("1000", "1e400"),
    "1e3": WHOLE.replace("1000", "1e3"),
    "1000.0": WHOLE.replace("1000", "1000.0"),
    "01000": WHOLE.replace("1000", "01000"),
    "+1000": WHOLE.replace("1000", "+1000"),
    "0x3e8": WHOLE.replace("1000", "0x3e8"),
    "1_000": WHOLE.replace("1000", "1_000"),
    "1000n": WHOLE.replace("1000", "1000n"),
    "-0": WHOLE.replace("1000", "-0"),
    "-1000": WHOLE.replace("1000", "-1000"),
    "beyond 2^53": WHOLE.replace("1000", "9007199254740993"),
    "beyond 2^64": WHOLE.replace("1000", "18446744073709552616"),
    "a body of digits": WHOLE.replace("1000", "1" * 5_000),
    "digits of Arabic": WHOLE.replace("1000", "\u0661\u0660"),
    "an amount as text": WHOLE.replace("1000", '"1000"'),
    "an amount as a list": WHOLE.replace("1000", "[1000]"),
    "an amount as true": WHOLE.replace("1000", "true"),
    "a quantity below": with_item(quantity=-1),
    "a quantity of nothing": with_item(quantity=0),
    "a product that overflows": with_item(unit_amount=999_999_999_999, quantity=1_000_000),
    "nested lists": '{"a":' + "[" * 40 + "]" * 40 + "}",
    "nested objects": '{"a":' * 40 + "1" + "}" * 40,
    "very nested": "[" * 100_000,
    "many names": json.dumps({str(number): 1 for number in range(20_000)}),
    "a long name": json.dumps({"x" * 200_000: 1}),
    "many items": json.dumps(a_body(line_items=[an_item()] * 101)),
    "too large": WHOLE + " " * BODY_MAX,
}
ENCODED = {
    "UTF-16": WHOLE.encode("utf-16"),
    "UTF-16 without a mark": WHOLE.encode("utf-16-le"),
    "UTF-32": WHOLE.encode("utf-32"),
    "UTF-7": WHOLE.replace("Tea", "+ADw-").encode() + b"+",
    "Latin-1": with_item(name="Thé").encode().replace(b"\\u00e9", b"\xe9"),
    "an overlong slash": WHOLE.encode().replace(b"Tea", b"\xc0\xaf"),
    "an overlong nul": WHOLE.encode().replace(b"Tea", b"\xc0\x80"),
    "a surrogate in UTF-8": WHOLE.encode().replace(b"Tea", b"\xed\xa0\x80"),
    "beyond Unicode": WHOLE.encode().replace(b"Tea", b"\xf4\x90\x80\x80"),
    "half a character": WHOLE.encode().replace(b"Tea", b"\xf0\x9f"),
    "gzip": b"\x1f\x8b\x08\x00" + WHOLE.encode(),
    "CBOR": b"\xa1\x64mode\x67payment",
    "bytes": bytes(range(256)),
}
TYPES = [
    *("", "text/plain", "text/json", "application/jsonp", "application/json5"),
    *("application/x-ndjson",),
    *(FORM, "multipart/form-data; boundary=x", "application/json-patch+json"),
    *("application/ld+json",),
    *("application/json; charset=utf-16", "application/json; charset=utf-7", "application/jsonx"),
    *("application/json, text/plain", "text/plain; application/json", "application /json"),
    *("application/json; charset=utf-8; charset=utf-16", "application/octet-stream", "*/*", "json"),
]  # fmt: skip


def is_refused(answer: Answer, *statuses: int) -> None:
    assert answer.status in (statuses or (400,)), answer.status
    assert answer.json["error"]["type"] == "invalid_request_error"


def test_no_session_is_made_of_such_a_body(shared: Doors, attack: Attack) -> None:
    def attempt(raw: bytes) -> None:
        with shared.nothing_happens():
            is_refused(shared.call("POST", "", raw), 400, 413)

    attack.each({name: text.encode() for name, text in TEXTS.items()} | ENCODED, attempt)


def test_no_session_is_ended_with_such_a_body(shared: Doors, attack: Attack) -> None:
    """Ending takes no parameters, so that none is ever taken for another."""
    session = shared.create()

    def attempt(raw: bytes) -> None:
        with shared.nothing_happens():
            for end in ("cancel", "expire"):
                is_refused(shared.call("POST", f"/{session.id}/{end}", raw), 400, 413)

    bodies = {name: text.encode() for name, text in TEXTS.items() if name != "nothing"}
    attack.each(bodies | ENCODED, attempt)


def test_no_body_is_read_as_another_type(shared: Doors, attack: Attack) -> None:
    session = shared.create()

    def attempt(content_type: str) -> None:
        headers = {"Content-Type": content_type}
        with shared.nothing_happens():
            for path, raw in (("", WHOLE.encode()), (f"/{session.id}/cancel", b"{}")):
                answer = shared.call("POST", path, raw, headers=headers)
                is_refused(answer, 415)
                assert answer.code == "content_type_invalid"

    attack.each(TYPES, attempt)


QUERIES = [
    *("limit=1&limit=1", "limit=1&limit=100", "status=open&status=completed", "cursor=&cursor="),
    *("created[gte]=1&created[gte]=2", "created%5Bgte%5D=1&created[gte]=2", "created[gte=1"),
    *("created[]=1", "created[gte][]=1", "created[gte][lt]=1", "created.gte=1", "created[GTE]=1"),
    *("created=gte", "created[lte]=1", "created[gte]=1e9", "created[gte]=0x1", "created[gte]=-1"),
    *("created[gte]=%D9%A1", "created[gte]=1%00", "created[gte]=9999999999999", "created[lt]=NaN"),
    *("limit[]=1", "limit=1;limit=2", "limit=1,2", "limit=%31%30%30%30", "limit=1%20", "limit=+1"),
    *("limit=１", "limit=1.0", "limit=true", "limit=null", "limit=", "limit", "LIMIT=1"),
    *("limit%00=1",),
    *("status=OPEN", "status=open%20", "status[]=open", "status=open,expired", "status=%6Fpen%00"),
    *("merchant=mer_1", "key=x", "offset=1", "page=1", "starting_after=x", "q=x", "expand[]=x"),
    *("%=1",),
    *("x" * 4000, "&".join(f"a{number}=1" for number in range(1500)), "%ff=1", "limit=%ff", "[]=1"),
]  # fmt: skip


def test_no_list_is_given_for_such_a_query(shared: Doors, attack: Attack) -> None:
    def attempt(query: str) -> None:
        with shared.nothing_happens():
            is_refused(shared.call("GET", query=query))

    attack.each(QUERIES, attempt)


AUTHORIZATIONS: dict[str, Any] = {
    "none": None,
    "empty": "",
    "a word": "Bearer",
    "no scheme": "{key}",
    "Basic": "Basic {key}",
    "Token": "Token {key}",
    "doubled": "Bearer {key}, Bearer {key}",
    "two keys": "Bearer {key} {key}",
    "quoted": 'Bearer "{key}"',
    "a tab": "Bearer\t{key}",
    "in capitals": "Bearer {capitals}",
    "cut": "Bearer {cut}",
    "longer": "Bearer {key}0",
    "percent": "Bearer %73k{rest}",
    "a nul": "Bearer {key}\x00",
    "another prefix": "Bearer pk{rest}",
    "like": "Bearer sk\uff3f{rest}",
    "a star": "Bearer *",
    "long": "Bearer sk_" + "a" * 8000,
    "JSON": 'Bearer {{"key": "{key}"}}',
    "a none token": "Bearer eyJhbGciOiJub25lIn0.e30.",
}


def test_no_key_is_read_out_of_such_a_header(shared: Doors, attack: Attack) -> None:
    key = shared.key

    def attempt(form: str | None) -> None:
        found = {"key": key, "capitals": key.upper(), "cut": key[:-1], "rest": key[2:]}
        headers = {"X-Api-Key": key, "Api-Key": key, "Cookie": f"api_key={key}"}
        if form is not None:
            headers["Authorization"] = form.format(**found)
        with shared.nothing_happens():
            for method, path in (("GET", ""), ("POST", ""), ("GET", MISSING)):
                query = f"api_key={key}&access_token={key}"
                answer = shared.call(method, path, key=None, headers=headers, query=query)
                assert answer.status == 401, answer.status
                assert key not in answer.body

    attack.each(AUTHORIZATIONS, attempt)


# --- forms

WALLET = "wallet_address=https%3A%2F%2Flocalhost%3A4101%2Falice"
FORMS = {
    "nothing": b"",
    "an empty wallet": b"wallet_address=",
    "the wallet doubled": f"{WALLET}&{WALLET}".encode(),
    "the wallet doubled, encoded": f"{WALLET}&wallet%5faddress=x".encode(),
    "the wallet in brackets": WALLET.replace("address=", "address[]=").encode(),
    "the wallet by number": WALLET.replace("address=", "address[0]=").encode(),
    "the wallet in other case": WALLET.replace("wallet", "Wallet").encode(),
    "another field": f"{WALLET}&amount=1".encode(),
    "a field without a name": f"{WALLET}&=1".encode(),
    "a price doubled": f"{WALLET}&was=1&was=2".encode(),
    "a price below": f"{WALLET}&was=-1".encode(),
    "a price of text": f"{WALLET}&was=1e3".encode(),
    "a price of Arabic": f"{WALLET}&was=%D9%A1".encode(),
    "a price too long": f"{WALLET}&was={'1' * 21}".encode(),
    "a nul": f"{WALLET}%00".encode(),
    "a line break": f"{WALLET}%0d%0aHost:x".encode(),
    "a right-to-left mark": f"{WALLET}%e2%80%aex".encode(),
    "UTF-16": WALLET.encode("utf-16"),
    "JSON": b'{"wallet_address":"https://localhost:4101/alice"}',
    "many fields": f"{WALLET}&{'&'.join(f'a{number}=' for number in range(5000))}".encode(),
    "too large": f"{WALLET}&x={'x' * BODY_MAX}".encode(),
    "a long wallet": b"wallet_address=https%3A%2F%2F" + b"a" * 100_000,
    "bytes": bytes(range(256)),
}


def test_no_wallet_is_asked_for_such_a_form(shared: Doors, attack: Attack) -> None:
    session = shared.create()

    def attempt(raw: bytes) -> None:
        with shared.nothing_happens():
            answer = shared.pay("POST", f"/{session.id}/wallet", raw)
            assert answer.status in (400, 413, 424), answer.status
            assert "<b>" not in answer.body

    attack.each(FORMS, attempt)


OTHER_WALLETS = {
    "semicolons": f"{WALLET};amount=1".encode(),
    "not UTF-8": f"{WALLET}%ff".encode(),
    "an overlong slash": f"{WALLET}%c0%af".encode(),
    "half a surrogate": f"{WALLET}%ed%a0%80".encode(),
    "a path parameter": f"{WALLET}%3Bx".encode(),
}


def test_a_wallet_with_other_bytes_is_another_wallet(doors: Doors, attack: Attack) -> None:
    """There is none at that address; Alice is not asked in its place."""

    def attempt(raw: bytes) -> None:
        session = doors.create()
        doors.world.transport.sent.clear()
        assert doors.pay("POST", f"/{session.id}/wallet", raw).status == 424
        assert_open_and_unpaid(doors.world, session)
        assert f"{CEDAR}/alice" not in {url for _, url in doors.world.transport.sent}

    attack.each(OTHER_WALLETS, attempt)


JSON_FORMS = [
    *("{}", "[]", "null", '"https://localhost:4101/alice"', '{"wallet_address":null}'),
    *('{"wallet_address":["https://localhost:4101/alice"]}', '{"wallet_address":{}}'),
    *('{"wallet_address":1}', '{"wallet_address":""}', '{"wallet_address":true}'),
    '{"wallet_address":"https://localhost:4101/alice","wallet_address":"x"}',
    '{"wallet_address":"https://localhost:4101/alice","was":"1"}',
    '{"wallet_address":"https://localhost:4101/alice","amount":1}',
    '{"Wallet_Address":"https://localhost:4101/alice"}',
    '{"wallet_address":"https://localhost:4101/alice\\u0000"}',
    '{"wallet_address":"https://localhost:4101/alice\\ud800"}',
    '{"wallet_address":"\\nhttps://localhost:4101/al ice"}',
    "wallet_address=https%3A%2F%2Flocalhost%3A4101%2Falice",
]


@pytest.mark.parametrize("content_type", ["application/json", "text/plain"])
def test_no_wallet_is_asked_for_such_json(shared: Doors, attack: Attack, content_type: str) -> None:
    session = shared.create()
    headers = {"Content-Type": content_type, "Accept": "application/json"}

    def attempt(text: str) -> None:
        with shared.nothing_happens():
            path = f"/{session.id}/wallet"
            answer = shared.pay("POST", path, text.encode(), headers=headers)
            assert answer.status in (400, 415, 424), answer.status

    attack.each(JSON_FORMS, attempt)


def multipart(*fields: tuple[str, bytes], boundary: str = "x", end: bytes = b"--x--\r\n") -> bytes:
    return (
        b"".join(
            f"--{boundary}\r\nContent-Disposition: {head}\r\n\r\n".encode() + content + b"\r\n"
            for head, content in fields
        )
        + end
    )


PICTURE = PICTURES["image/jpeg"]
LOGO = 'form-data; name="logo"; filename="a.jpg"'
SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'
UPLOADS: dict[str, tuple[str, list[tuple[str, bytes]]]] = {
    "no boundary": ("multipart/form-data", [(LOGO, PICTURE)]),
    "another boundary": ("multipart/form-data; boundary=y", [(LOGO, PICTURE)]),
    "an empty boundary": ("multipart/form-data; boundary=", [(LOGO, PICTURE)]),
    "a mixed body": ("multipart/mixed; boundary=x", [(LOGO, PICTURE)]),
    "the logo doubled": ("multipart/form-data; boundary=x", [(LOGO, PICTURE), (LOGO, PICTURE)]),
    "no logo": ("multipart/form-data; boundary=x", []),
    "an empty logo": ("multipart/form-data; boundary=x", [(LOGO, b"")]),
    "no name": ("multipart/form-data; boundary=x", [("form-data", PICTURE)]),
    "a name in a star": ("multipart/form-data; boundary=x", [("form-data; name*=logo", PICTURE)]),
    "a script": ("multipart/form-data; boundary=x", [(LOGO, SVG)]),
    "a page": ("multipart/form-data; boundary=x", [(LOGO, b"<html><script>alert(1)</script>")]),
    "a picture and a page": ("multipart/form-data; boundary=x", [(LOGO, PICTURE + b"<script>")]),
    "a page and a picture": ("multipart/form-data; boundary=x", [(LOGO, b"<script>" + PICTURE)]),
    "a gif": ("multipart/form-data; boundary=x", [(LOGO, b"GIF89a" + b"\x00" * 20)]),
    "a pdf": ("multipart/form-data; boundary=x", [(LOGO, b"%PDF-1.7")]),
    "a zip": ("multipart/form-data; boundary=x", [(LOGO, b"PK\x03\x04")]),
    "too large": ("multipart/form-data; boundary=x", [(LOGO, b"\xff\xd8\xff" + b"x" * BODY_MAX)]),
}


def test_no_such_upload_becomes_a_logo(doors: Doors, attack: Attack) -> None:
    browser = doors.signed_in()

    def attempt(case: tuple[str, list[tuple[str, bytes]]]) -> None:
        content_type, fields = case
        token = ('form-data; name="form_token"', browser.form_token.encode())
        headers = {"Content-Type": content_type}
        with doors.nothing_happens():
            raw = multipart(token, *fields)
            answer = doors.dashboard("POST", "/settings", raw, visitor=browser, headers=headers)
            assert answer.status in (303, 400, 413, 415), answer.status  # 303: saved nothing

    attack.each(UPLOADS, attempt)


# --- whatever comes

_PIECES = st.sampled_from(
    [*b'{}[]":,\\/tfn0123456789eE+-. \n', *b"\xef\xbb\xbf\xed\xa0\x80\xc0\x80\x00"]
)
_PARTS = st.sampled_from(
    [
        *(b"--x", b"--", b"x", b"\r\n", b"\n", b"\r\n\r\n", b"\x00", b"\xff", b": ", b"content"),
        *(b"Content-Disposition: form-data", b'; name="a"', b'; name="', b"Content-Type: x"),
    ]
)


@given(st.lists(_PIECES, max_size=40).map(bytes))
def test_what_is_read_is_read_by_the_library_alike(raw: bytes) -> None:
    """Our parser takes less than Python's own, and never reads another value."""
    try:
        found = parse_object(raw)
    except CheckoutError:
        return
    assert found == json.loads(raw)
    assert json.loads(json.dumps(found)) == found


@settings(max_examples=60)
@given(st.lists(_PARTS, max_size=12).map(b"".join), st.sampled_from(["x", '"x"', "", "-", "xx"]))
def test_any_bytes_are_a_form_with_a_file_or_refused(raw: bytes, boundary: str) -> None:
    try:
        found = parts(f"multipart/form-data; boundary={boundary}", raw)
    except CheckoutError:
        return
    assert all(content in raw for content in found.values())


@given(
    st.dictionaries(
        st.text("abc_", min_size=1, max_size=9),
        st.binary(max_size=60).filter(lambda content: b"--x" not in content),
        max_size=4,
    )
)
def test_each_byte_of_a_file_arrives(fields: dict[str, bytes]) -> None:
    raw = multipart(*((f'form-data; name="{name}"', each) for name, each in fields.items()))
    assert parts("multipart/form-data; boundary=x", raw) == {
        name: content + b"" for name, content in fields.items()
    }


METHODS = ["TRACE", "CONNECT", "PROPFIND", "PURGE", "get", "GET ", "POST\x00", "", "OPTIONS", "PUT"]


def test_no_other_method_does_anything(shared: Doors, attack: Attack) -> None:
    session = shared.create()
    override = {"X-HTTP-Method-Override": "POST", "X-Method-Override": "POST"}

    def attempt(method: str) -> None:
        with shared.nothing_happens():
            for path in ("", f"/{session.id}", f"/{session.id}/cancel"):
                answer = shared.call(method, path, a_body(), headers=override)
                assert answer.status in (400, 404, 405), answer.status
            query = f"_method=POST&{quote(BASE, safe='')}"
            for path in (f"/{session.id}/wallet", f"/{session.id}/grant/callback"):
                answer = shared.pay(method, path, WALLET.encode(), query=query, headers=override)
                assert answer.status in (400, 404, 405), answer.status

    attack.each(METHODS, attempt)
