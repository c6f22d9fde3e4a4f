"""Requests that were right, with random changes of their path, query, headers and body."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from sandbox.server import Headers, Incoming
from tests.fuzzing.target import MARKUP
from tests.support.doors import BASE, FORM, Doors, Visitor
from tests.support.flows import CEDAR
from tests.support.merchant_api import SESSIONS, a_body

WORDS: Final = [
    *("", "0", "-1", "1", "9" * 30, "1e9", "NaN", "null", "true", "[]", "{}", "x" * 300, "%00"),
    *("%ff",),
    *("%2e%2e%2f", "../..", "//", "\\", "é", "💶", "\u202e", "%0d%0aX: y", MARKUP, quote(MARKUP)),
    *("{{7*7}}", "' OR '1'='1", "${x}", "cs_" + "0" * 22, "evt_" + "0" * 22, "key_" + "0" * 22),
    *("https://evil.example/", "open", "completed", "2026-03-01", "=1+1", "%zz", "a=b&c=d", ";"),
    *("#",),
]  # fmt: skip
NAMES: Final = [
    *("limit", "cursor", "status", "created[gte]", "created[lt]", "q", "from", "to", "min", "max"),
    *("was", "device", "interact_ref", "hash", "result", "next", "saved", "append", "name"),
    *("locale",),
    *("wallet_address", "form_token", "api_key", "url", "overlap", "since", "after", "id", "x", ""),
]  # fmt: skip
HEADERS: Final = [
    *("Accept", "Accept-Language", "Accept-Encoding", "Authorization", "Content-Encoding"),
    *("Cookie",),
    *("Content-Type", "Expect", "Forwarded", "Host", "Idempotency-Key", "If-None-Match", "Origin"),
    *("Purpose", "Range", "Referer", "Sec-Fetch-Site", "Sec-Purpose", "User-Agent", "X-Custom"),
    *("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Port", "X-Forwarded-Proto"),
    *("X-HTTP-Method",),
]  # fmt: skip
VALUES: Final = [
    *("application/json", FORM, "multipart/form-data; boundary=x", "text/html", "text/plain"),
    *("*/*",),
    *("gzip", "br;q=1.0, *;q=0", "de-DE,de;q=0.9", "xx-" + "y" * 200, "q=" + "1" * 50),
    *("bytes=0-9999",),
    *("prefetch", "cross-site", "same-origin", "https", "javascript", "127.0.0.1", "::1", "a:b:c"),
    *("null", BASE, "https://evil.example", "Bearer x", "Basic eDp5", "100-continue"),
    *("dashboard=x",),
    *WORDS,
]  # fmt: skip
_ITEM: Final = "line_items[0][price_data]"
_STRIPE: Final = {
    "mode": "payment",
    "success_url": "https://shop.example/thanks",
    "cancel_url": "https://shop.example/basket",
    f"{_ITEM}[currency]": "usd",
    f"{_ITEM}[product_data][name]": "Tea",
    f"{_ITEM}[unit_amount]": "1000",
    "line_items[0][quantity]": "2",
    "metadata[order]": "1",
}
METHODS: Final = ["GET", "POST", "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS"]
Change = Callable[[random.Random, Incoming], Incoming]


def right(doors: Doors) -> list[Incoming]:
    """Return requests for every page, form and operation that are answered as they should be."""
    session = doors.create(metadata={"note": MARKUP})
    awaiting, back = doors.approved()
    paid = doors.world.pay(doors.world.session(doors.create().id))
    browser = doors.signed_in()
    found = [*_of_api(doors, session.id), *_of_api(doors, paid.id)]
    for path in (session.id, awaiting.id, paid.id):
        found += [
            _get(f"/pay/{path}{rest}") for rest in ("", "/success", "/status", "/qr", "/logo")
        ]
        found.append(_form(f"/pay/{path}/wallet", {"wallet_address": f"{CEDAR}/alice", "was": "1"}))
    parts = urlsplit(back)
    for method in ("GET", "POST"):
        found.append(replace(_get(f"{parts.path}?{parts.query}"), method=method))
    found.append(_get(f"/pay/{awaiting.id}/grant/callback?result=grant_rejected"))
    return found + list(_of_dashboard(doors, session.id, browser))


def _of_api(doors: Doors, session_id: str) -> Iterator[Incoming]:
    headers = [("Host", "pay.example"), ("Authorization", f"Bearer {doors.key}")]
    asks = [*headers, ("Content-Type", "application/json"), ("Idempotency-Key", "order-1")]
    yield Incoming("POST", SESSIONS, asks, json.dumps(a_body(metadata={"a": "b"})).encode())
    for query in ("", "?limit=2&status=open", "?created[gte]=1&created[lt]=9999999999"):
        yield Incoming("GET", SESSIONS + query, headers)
    yield Incoming("GET", f"{SESSIONS}/{session_id}", headers)
    for end in ("cancel", "expire", "accept_as_paid", "give_up"):
        yield Incoming("POST", f"{SESSIONS}/{session_id}/{end}", asks[:3], b"{}")
    yield Incoming("GET", "/api/health", headers)
    for path in (
        "checkout/sessions?limit=2",
        f"checkout/sessions/{session_id}",
        "events",
        "balance",
    ):
        yield Incoming("GET", f"/v1/{path}", headers)
    yield _form("/v1/checkout/sessions", _STRIPE, headers)
    yield _form(f"/v1/checkout/sessions/{session_id}/expire", {"expand[]": "line_items"}, headers)
    endpoint = {"url": "https://shop.example/v1", "enabled_events[]": "checkout.session.completed"}
    yield _form("/v1/webhook_endpoints", endpoint, headers)


def _of_dashboard(doors: Doors, session_id: str, browser: Visitor) -> Iterator[Incoming]:
    from tests.support.dashboard_routes import FORMS, paths

    cookie = ("Cookie", "; ".join(f"{name}={value}" for name, value in browser.cookies.items()))
    for path in paths("GET"):
        full = path.replace("{file}", "items").replace("{session_id}", session_id)
        page = _get(f"/dashboard{full.replace('{event_id}', 'evt_' + '0' * 22)}")
        yield replace(page, headers=[*page.headers, cookie])
    for path, fields in FORMS.items():
        full = path.replace("{session_id}", session_id).replace("{key_id}", doors.world.key().id)
        typed = {**fields, "form_token": browser.form_token}
        if path == "/keys/{key_id}/revoke":
            continue  # the key that the other requests sign in with
        form = _form(f"/dashboard{full.replace('{event_id}', 'evt_' + '0' * 22)}", typed)
        yield replace(form, headers=[*form.headers, cookie, ("Origin", BASE)])


def _get(target: str) -> Incoming:
    return Incoming("GET", target, [("Host", "pay.example"), ("Accept", "text/html,*/*;q=0.8")])


def _form(target: str, fields: dict[str, str], headers: Headers | None = None) -> Incoming:
    sent = [*(headers or _get(target).headers), ("Content-Type", FORM)]
    return Incoming("POST", target, sent, urlencode(fields).encode())


# --- changes


def path_changed(draw: random.Random, request: Incoming) -> Incoming:
    path, mark, query = request.target.partition("?")
    parts = path.split("/")
    place = draw.randrange(1, len(parts)) if len(parts) > 2 else 1
    how = draw.randrange(4)
    word = quote(draw.choice(WORDS), safe="%/;:@")
    if how == 0 and place > 1:
        parts[place] = word
    elif how == 1:
        parts.insert(place + 1, word)
    elif how == 2 and len(parts) > 3:
        del parts[-1]
    else:
        parts[-1] += word
    return replace(request, target="/".join(parts) + mark + query)


def query_changed(draw: random.Random, request: Incoming) -> Incoming:
    path, _, query = request.target.partition("?")
    pairs = [pair for pair in query.split("&") if pair]
    for _ in range(draw.randrange(1, 4)):
        pair = f"{draw.choice(NAMES)}={quote(draw.choice(WORDS), safe='%[]')}"
        pairs.insert(draw.randrange(len(pairs) + 1), pair)
    if draw.random() < 0.2:
        pairs += pairs
    return replace(request, target=f"{path}?{'&'.join(pairs)}")


def headers_changed(draw: random.Random, request: Incoming) -> Incoming:
    headers = list(request.headers)
    how = draw.randrange(3)
    if how == 0 and headers:
        del headers[draw.randrange(len(headers))]
    elif how == 1 and headers:
        place = draw.randrange(len(headers))
        headers[place] = (headers[place][0], _value(draw))
    else:
        headers.append((draw.choice(HEADERS), _value(draw)))
    return replace(request, headers=headers)


def body_changed(draw: random.Random, request: Incoming) -> Incoming:
    raw = bytearray(request.body or b"{}")
    for _ in range(draw.randrange(1, 5)):
        place = draw.randrange(len(raw) + 1)
        how = draw.randrange(5)
        if how == 0:
            raw[place:place] = draw.choice(WORDS).encode()
        elif how == 1:
            raw[place : place + draw.randrange(1, 9)] = b""
        elif how == 2:
            raw[place:place] = draw.randbytes(draw.randrange(1, 5))
        elif how == 3 and place < len(raw):
            raw[place] ^= 1 << draw.randrange(8)
        else:
            raw[place:place] = raw[: draw.randrange(len(raw) + 1)]
    return replace(request, body=bytes(raw))


def value_changed(draw: random.Random, request: Incoming) -> Incoming:
    """Replace one value, such as a number or a field, and leave the rest readable."""
    text = request.body.decode("utf-8", "replace")
    word = draw.choice(WORDS)
    if text.startswith("{"):
        parts = text.split(": ")
        place = draw.randrange(len(parts))
        rest = parts[place].partition(",")[2]
        parts[place] = f"{json.dumps(word)},{rest}" if rest else parts[place]
        return replace(request, body=": ".join(parts).encode())
    pairs = text.split("&")
    place = draw.randrange(len(pairs))
    pairs[place] = f"{pairs[place].partition('=')[0]}={quote(word)}"
    return replace(request, body="&".join(pairs).encode())


def method_changed(draw: random.Random, request: Incoming) -> Incoming:
    return replace(request, method=draw.choice(METHODS))


CHANGES: Final[list[Change]] = [
    *[path_changed, query_changed, headers_changed, headers_changed],
    *[body_changed, value_changed, value_changed, method_changed],
]


def _value(draw: random.Random) -> str:
    """Return a header's value as a server hands it on: without line breaks, in Latin-1."""
    return draw.choice(VALUES).encode("utf-8").decode("latin-1").replace("\n", "").strip()


def changed(draw: random.Random, request: Incoming) -> Incoming:
    """Return the request with one to three changes; each time from another address."""
    for _ in range(draw.randrange(1, 4)):
        request = draw.choice(CHANGES)(draw, request)
    return replace(request, client=f"203.0.{draw.randrange(256)}.{draw.randrange(256)}")
