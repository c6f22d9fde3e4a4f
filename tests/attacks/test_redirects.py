"""Redirect targets: where a customer or a merchant is sent, and who may choose it.

The doors: `success_url` and `cancel_url`, the wallet's page for the approval, the return from it,
the sign-in's `next`, and the headers that name a host. None leads to where somebody else wants.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest

from tests.attacks.hostile import assert_open_and_unpaid, hostile
from tests.attacks.texts import EVIL, NO_LINKS
from tests.support.attack_counts import Attack
from tests.support.doors import BASE, Doors, Visitor
from tests.support.hosted_pages import Answer

# With return hosts set to shop.example and shop.example:8443's host.
OTHER_HOSTS = [
    *(f"https://{EVIL}/", f"https://shop.example.{EVIL}/", f"https://{EVIL}/shop.example"),
    *(f"https://{EVIL}?shop.example", f"https://{EVIL}#shop.example"),
    *(f"https://{EVIL}/@shop.example",),
    *("https://notshop.example/", "https://a.shop.example/", "https://shop.example.example/"),
    *("https://shop-example/", "https://shop.exampl/", "https://example/"),
    *("https://xn--shop.example/",),
    *("https://shop.example../", "https://127.0.0.1/", "https://[2606:4700::1111]/"),
]  # fmt: skip


def is_refused(answer: Answer, param: str, url: str) -> None:
    code = "parameter_invalid" if "\0" in url else "url_invalid"
    assert (answer.status, answer.code) == (400, code), answer.status
    assert answer.json["error"]["param"] == param


@pytest.mark.parametrize("param", ["success_url", "cancel_url"])
def test_no_session_leads_there(shared: Doors, attack: Attack, param: str) -> None:
    def attempt(url: str) -> None:
        with shared.nothing_happens():
            is_refused(shared.call("POST", "", created(param, url)), param, url)

    attack.each(NO_LINKS, attempt)


@pytest.mark.parametrize("param", ["success_url", "cancel_url"])
def test_with_return_hosts_no_session_leads_to_another(attack: Attack, param: str) -> None:
    doors = Doors()
    browser = doors.signed_in()
    fields = {"return_hosts": "shop.example", "form_token": browser.form_token}
    saved = doors.dashboard("POST", "/settings", fields, visitor=browser)
    assert saved.status == 303

    def attempt(url: str) -> None:
        with doors.nothing_happens():
            is_refused(doors.call("POST", "", created(param, url)), param, url)

    doors.create()
    attack.each(OTHER_HOSTS, attempt)


def created(param: str, url: str) -> dict[str, Any]:
    urls = {"success_url": "https://shop.example/a", "cancel_url": "https://shop.example/b"}
    line = {"price_data": {"currency": "usd", "product_data": {"name": "Tea"}, "unit_amount": 1000}}
    return {"mode": "payment", "line_items": [line], **urls, param: url}


# --- the wallet's page for the approval

INTERACTIONS: list[Any] = [
    *("javascript:alert(1)", "data:text/html,x", "http://evil.example/x", "file:///etc/passwd"),
    *("//evil.example/x", "/interact/1", "https:evil.example", "https://user@evil.example/"),
    *("https://evil.example\\@x/",),
    *("https://evil.example/\r\nSet-Cookie: a=b", "https://evil.example/\x00"),
    *("https://evil.example/ x",),
    *("https://", "https://[::1", "https://evil.example:99999/", "https://e vil.example/", ""),
    *("https://" + "a" * 3000,),
    *("https://169.254.169.254/x", "https://metadata.google.internal/x"),
    *("https://10.0.0.1/x", "https://192.168.1.1/x", "https://172.16.0.1:8443/x"),
    *("https://[fd00::1]/x", "https://[fe80::1]/x", "https://0.0.0.0/x"),
    *("https://2130706433/x", "https://0x7f.1/x", "https://[::ffff:10.0.0.1]/x"),
    *("https://\u202eelpmaxe/", "https://ev\u200bil/"),
    *(None, 1, True, [], {}, ["https://evil.example/"]),
]  # fmt: skip


def test_no_customer_is_led_to_such_an_approval(doors: Doors, attack: Attack) -> None:
    strangers = hostile(doors.world)

    def attempt(url: Any) -> None:
        def change(members: dict[str, Any]) -> None:
            if "interact" in members:
                members["interact"]["redirect"] = url

        session = doors.create()
        strangers.changes = [("https://localhost:4102", change)]
        answer = doors.submit(session)
        assert answer.status == 424, answer.status
        assert not [link for link in answer.page.links if EVIL in link or link == url]
        assert_open_and_unpaid(doors.world, session)

    attack.each(INTERACTIONS, attempt)


# --- the return from the wallet

EVIL_URL = quote(f"https://{EVIL}/", safe="")
MORE = [
    "next",
    "redirect",
    "redirect_uri",
    "return_to",
    "url",
    "success_url",
    "cancel_url",
    "RelayState",
]
HEADERS: list[dict[str, str]] = [
    {"Host": EVIL},
    {"X-Forwarded-Host": EVIL},
    {"X-Forwarded-Server": EVIL},
    {"X-Host": EVIL},
    {"Forwarded": f"host={EVIL};proto=http"},
    {"X-Forwarded-Prefix": f"//{EVIL}"},
    {"X-Original-URL": f"https://{EVIL}/"},
    {"X-Rewrite-URL": f"//{EVIL}/"},
    {"X-Forwarded-Proto": f"https://{EVIL}/"},
    {"Referer": f"https://{EVIL}/"},
    {"Origin": f"https://{EVIL}"},
]


def test_a_return_leads_to_our_own_page_whatever_else_it_says(doors: Doors, attack: Attack) -> None:
    """Once with each parameter more, which changes nothing, and once with each header."""
    browser = Visitor()
    session, back = doors.approved(browser)

    def attempt(case: tuple[str, dict[str, str]]) -> None:
        more, headers = case
        answer = doors.follow(back + more, browser, headers)
        assert answer.location == f"/pay/{session.id}/success"
        assert EVIL not in str(answer.headers)

    with_query: dict[str, tuple[str, dict[str, str]]] = {
        name: (f"&{name}={EVIL_URL}", {}) for name in MORE
    }
    with_header = {str(headers): ("", headers) for headers in HEADERS}
    attack.each(with_query | with_header, attempt)


@pytest.mark.parametrize("stage", ["open", "awaiting_approval", "completed"])
def test_no_page_takes_its_addresses_from_a_request(
    doors: Doors, attack: Attack, stage: str
) -> None:
    browser = Visitor()
    session, back = doors.approved(browser) if stage != "open" else (doors.create(), "")
    if stage == "completed":
        doors.follow(back, browser)

    def attempt(headers: dict[str, str]) -> None:
        for path in ("", "/success", "/status"):
            answer = doors.pay(
                "GET", f"/{session.id}{path}", query=f"next={EVIL_URL}", headers=headers
            )
            assert EVIL not in answer.body
            assert EVIL not in str(answer.headers)
        listed = doors.call("GET", f"/{session.id}", headers=headers)
        assert listed.json["url"] == f"{BASE}/pay/{session.id}"

    attack.each(HEADERS, attempt)


# --- the dashboard's sign-in

NEXT = [
    *(f"https://{EVIL}/", f"//{EVIL}", f"/\\{EVIL}", f"\\\\{EVIL}", f"/{EVIL}/..//{EVIL}"),
    *(f"@{EVIL}",),
    *(f".{EVIL}", f":80@{EVIL}", f"%2f%2f{EVIL}", f"/%2f{EVIL}", f"/.{EVIL}", f"/..//{EVIL}"),
    *("/../api/health",),
    *("javascript:alert(1)", "/keys\r\nLocation: x", "/keys\x00", "/keys#x", "/keys?a=b#c"),
    *("/keys?u=https://x",),
    *("/é", "/keys ", " /keys", "/keys//", "//keys", "/ｋeys", "/keys;x", "/keys?<script>"),
    *("?next=//x", "/\t/x"),
]  # fmt: skip


def test_a_sign_in_leads_nowhere_else(doors: Doors, attack: Attack) -> None:
    def attempt(way: str) -> None:
        browser = Visitor()
        doors.dashboard("GET", "/sign-in", query=f"next={quote(way, safe='')}", visitor=browser)
        fields = {"api_key": doors.key, "form_token": browser.form_token, "next": way}
        answer = doors.dashboard("POST", "/sign-in", fields, visitor=browser)
        assert answer.location in ("/dashboard/overview", "/dashboard?next=//x"), answer.location

    attack.each(NEXT, attempt)
