"""Signing in to the dashboard: keys, the duration of a sign-in, and the accepted forms."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from checkout.domain.ground.limits import WRONG_KEY
from tests.support.dashboard_pages import BASE, Browser, Dashboard, dashboard
from tests.support.merchant_api import PREFIX
from tests.support.services import put_key

COOKIE = "__Host-dashboard"


@pytest.fixture
def stranger(shop: Dashboard) -> Browser:
    """A browser that has opened the sign-in."""
    browser = shop.browser()
    browser.get("/sign-in")
    return browser


def test_a_page_without_a_sign_in_leads_to_it_and_back(shop: Dashboard) -> None:
    browser = shop.browser()
    way = browser.get("/audit?cursor=abc").location
    assert way == "/dashboard/sign-in?next=/audit%3Fcursor%3Dabc"
    page = browser.get(way.removeprefix("/dashboard")).page
    ways = [each.attributes["value"] for each in page.all("input", name="next")]
    assert ways == ["/audit?cursor=abc"] * 2, "with a passkey, and with a key"
    fields = {"api_key": shop.secret, "next": "/audit?cursor=abc"}
    assert browser.post("/sign-in", fields).location == "/dashboard/audit?cursor=abc"


def test_an_unknown_key_is_refused_on_the_form_and_never_repeated(stranger: Browser) -> None:
    answer = stranger.post("/sign-in", {"api_key": "sk_live_" + "x" * 43, "next": "/audit"})
    assert answer.status == 401
    assert "unknown, was revoked, or has expired" in answer.page.main
    ways = answer.page.all("input", name="next")
    assert {each.attributes["value"] for each in ways} == {"/audit"}
    assert "sk_xxx" not in answer.body
    assert stranger.get().location.startswith("/dashboard/sign-in")


def test_the_cookie_is_bound_to_this_host_and_out_of_reach_of_scripts(shop: Dashboard) -> None:
    browser = shop.browser()
    before = browser.get("/sign-in").headers["set-cookie"]
    after = browser.post("/sign-in", {"api_key": shop.secret}).headers["set-cookie"]
    for cookie in (before, after):
        parts = cookie.lower().split("; ")
        assert parts[0].startswith(f"{COOKIE.lower()}=")
        assert {"path=/", "secure", "httponly", "samesite=lax"} <= set(parts)
        assert not [part for part in parts if part.startswith("domain")]
    assert before.split(";")[0] != after.split(";")[0], "a cookie from before would be fixed"


def test_without_tls_on_this_machine_the_cookie_has_a_plain_name() -> None:
    with dashboard("http://localhost:4000") as local:
        browser = local.signed_in()
        assert set(browser.client.cookies) == {"dashboard"}
        assert browser.get().status == 200


def test_neither_the_cookie_nor_the_key_is_stored(shop: Dashboard, browser: Browser) -> None:
    token = browser.client.cookies[COOKIE]
    stored = str([shop.rows(table) for table in ("idempotency_keys", "api_keys", "merchants")])
    assert token not in stored
    assert shop.secret not in stored
    assert hashlib.sha256(token.encode()).hexdigest() in stored


@pytest.mark.parametrize("cookie", ["", "junk", "0" * 64, "é" * 64, "0" * 10_000])
def test_a_cookie_that_nobody_signed_in_with_is_nobody(shop: Dashboard, cookie: str) -> None:
    browser = shop.browser()
    headers = {"cookie": f"{COOKIE}={cookie}".encode()}
    assert browser.get(headers=headers).location == "/dashboard/sign-in?next="
    assert len(shop.calls()) == (cookie == "0" * 64), "what cannot be a cookie of ours is not read"


def test_half_an_hour_without_use_ends_it_and_use_prolongs_it(shop: Dashboard) -> None:
    browser = shop.signed_in()
    for _ in range(3):
        shop.clock.pass_time(29 * 60)
        assert browser.get().status == 200
    shop.clock.pass_time(30 * 60)
    assert browser.get().status == 303


def test_after_twelve_hours_it_ends_whatever_its_use(shop: Dashboard, browser: Browser) -> None:
    for _ in range(12 * 3 - 1):
        shop.clock.pass_time(20 * 60)
        assert browser.get().status == 200
    shop.clock.pass_time(20 * 60)
    assert browser.get().status == 303


def test_its_use_is_written_down_at_most_once_a_minute(shop: Dashboard, browser: Browser) -> None:
    shop.calls()
    assert [browser.get("/sign-in").status, browser.get().status] == [200, 200]
    assert "update_item" not in shop.calls()
    shop.clock.pass_time(60)
    browser.get()
    browser.get()
    assert shop.calls().count("update_item") == 1


def test_revoking_a_key_ends_its_sign_ins_at_once_and_no_others(shop: Dashboard) -> None:
    browser, other = shop.signed_in(), shop.signed_in(shop.other_secret)
    put_key(shop.dynamo, PREFIX, replace(shop.key, revoked_at=shop.clock.now()))
    assert browser.get().status == 303
    assert browser.post("/sign-out").status == 303
    assert other.get().status == 200


def test_wrong_keys_are_counted_for_each_client_and_cost_one_read(
    shop: Dashboard, stranger: Browser
) -> None:
    shop.calls()
    for _ in range(WRONG_KEY.burst):
        assert stranger.post("/sign-in", {"api_key": "sk_live_" + "x" * 43}).status == 401
    answer = stranger.post("/sign-in", {"api_key": "sk_live_" + "y" * 43})
    assert answer.status == 429
    assert 0 < int(answer.headers["retry-after"]) <= 15 * 60
    assert "too many requests" in answer.page.main
    assert shop.calls() == ["get_item"] * (WRONG_KEY.burst + 1)
    assert stranger.post("/sign-in", {"api_key": shop.secret}).status == 303


def test_right_keys_and_empty_fields_are_not_counted(shop: Dashboard, stranger: Browser) -> None:
    for _ in range(WRONG_KEY.burst + 1):
        empty = stranger.post("/sign-in", {"api_key": " "})
        assert (empty.status, "Enter an API key." in empty.page.main) == (401, True)
        assert shop.signed_in().get().status == 200
    assert stranger.post("/sign-in", {"api_key": "sk_live_" + "x" * 43}).status == 401


def test_a_form_with_the_token_of_another_browser_is_refused(shop: Dashboard) -> None:
    browser, other = shop.signed_in(), shop.signed_in()
    for token in ("", "x", other.form_token):
        browser.form_token = token
        assert browser.post("/sign-out").status == 400
    browser.get()
    assert browser.post("/sign-out").status == 303


def test_a_browser_that_sends_no_cookie_is_told_to_allow_them(stranger: Browser) -> None:
    stranger.get("/sign-in")
    stranger.client.cookies.clear()
    refused = stranger.post("/sign-in", {"api_key": "sk_live_" + "x" * 43})
    assert refused.status == 400
    assert "Allow cookies for this site" in refused.page.main


def test_what_is_no_form_says_a_thing_twice_or_has_no_origin_is_refused(browser: Browser) -> None:
    headers = {"origin": BASE, "content-type": "application/json"}
    assert browser._ask("POST", "/sign-out", content="{}", headers=headers).status == 415
    headers["content-type"] = "application/x-www-form-urlencoded"
    ask, form = browser._ask, f"form_token={browser.form_token}"
    from_nowhere = {"content-type": headers["content-type"]}
    assert ask("POST", "/sign-out", content=form, headers=from_nowhere).status == 400
    assert ask("POST", "/sign-out", content=form + "&a=1&a=2", headers=headers).status == 400


def test_every_answer_has_the_policy_and_is_kept_nowhere(shop: Dashboard, browser: Browser) -> None:
    secret = browser.post("/keys", {"name": "Web shop"})
    for answer in (browser.get(), browser.get("/nothing"), shop.browser().get(), secret):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "same-origin"
        assert answer.headers["strict-transport-security"]
