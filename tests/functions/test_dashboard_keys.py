"""/dashboard/keys: keys are made, replaced and revoked; each is readable once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from checkout.domain.merchant.people import RefundCap
from checkout.domain.merchant.record import ApiKey
from checkout.flows.merchant.api_keys import ACTIVE_MAX
from tests.support.dashboard_pages import Browser, Dashboard
from tests.support.merchant_api import SESSIONS

DAY = 24 * 3600


def created(browser: Browser, name: str = "Web shop") -> str:
    return browser.post("/keys", {"name": name}).secret


def way(shop: Dashboard, name: str, act: str) -> str:
    return f"/keys/{shop.key_named(name).id}/{act}"


def keys(shop: Dashboard) -> tuple[ApiKey, ...]:
    return shop.services.api_keys.of("mer_1")


def accepted(shop: Dashboard, key: str) -> bool:
    status = shop.get("/api/checkout/sessions", key=key).status
    assert status in (200, 401)
    return status == 200


def test_a_key_is_made_with_a_name_shown_once_and_works_at_once(shop: Dashboard) -> None:
    browser = shop.signed_in()
    plain = created(browser)
    assert accepted(shop, plain)
    assert shop.signed_in(plain).get("/keys").status == 200
    listed = browser.get("/keys")
    assert "Web shop" in listed.page.main
    assert f"…{plain[-4:]}" in listed.page.main
    assert "Created an API key" in browser.get("/audit").page.main


REFUND = {"scopes": "refund"}


@pytest.mark.parametrize(
    ("typed", "says"),
    [
        *(({"name": name}, "name") for name in ("", "   ", "x" * 61, "a\nb", "\u202eabc")),
        ({"scopes": "all"}, ""),
        ({"ends": "tomorrow"}, ""),
        ({"ends": "2026-13-01"}, ""),
        ({"ends": "2020-01-01"}, ""),
        (REFUND | {"once": "a lot"}, "This is not an amount of USD"),
        (REFUND | {"day": "-1"}, "This is not an amount of USD"),
        (REFUND | {"day": "999999999999999"}, "A limit must be at most"),
        (
            {"once": "5", "scopes": "read"},
            "Only a key with the scope `refund` can have these limits.",
        ),
    ],
)
def test_a_wrong_field_makes_no_key_and_is_said(
    shop: Dashboard, typed: dict[str, str], says: str
) -> None:
    owner, before = shop.member(), keys(shop)
    answer = owner.post("/keys", {"name": "Web shop", **typed})
    assert answer.status == 400
    assert says in answer.page.one("div", role="alert").text[0]
    assert keys(shop) == before


def test_there_are_at_most_so_many_active_keys(shop: Dashboard, browser: Browser) -> None:
    for number in range(ACTIVE_MAX - 1):
        created(browser, f"key {number}")
    assert browser.post("/keys", {"name": "one more"}).status == 400
    browser.post(way(shop, "key 0", "revoke"))
    created(browser, "one more")


def test_a_revoked_key_is_refused_at_the_next_request_here_and_in_the_api(shop: Dashboard) -> None:
    browser = shop.signed_in()
    plain = created(browser)
    other = shop.signed_in(plain)
    revoked = browser.post(way(shop, "Web shop", "revoke"))
    assert revoked.location == "/dashboard/keys"
    assert not accepted(shop, plain)
    assert other.get("/keys").status == 303
    page = browser.get("/keys").page
    assert "Revoked" in page.main
    assert browser.post(way(shop, "Web shop", "revoke")).status == 400


def test_the_last_key_that_lasts_cannot_be_revoked(shop: Dashboard, browser: Browser) -> None:
    browser.post("/keys", {"name": "Reads", "scopes": "read"})
    browser.post("/keys", {"name": "Ends", "ends": "2027-03-31"})
    answer = browser.post(f"/keys/{shop.key.id}/revoke")
    assert answer.status == 400
    assert "last full-access key" in answer.page.one("div", role="alert").text[0]
    plain = created(browser)
    browser.post(f"/keys/{shop.key.id}/revoke")
    assert not accepted(shop, shop.secret)
    assert browser.get("/keys").status == 303, "it was the key that this browser had"
    assert shop.signed_in(plain).post(way(shop, "Web shop", "revoke")).status == 400


def test_a_rolled_key_serves_on_until_its_overlap_is_over(shop: Dashboard) -> None:
    browser = shop.signed_in()
    plain = browser.post(f"/keys/{shop.key.id}/roll", {"overlap": str(DAY)}).secret
    assert accepted(shop, shop.secret)
    assert accepted(shop, plain)
    assert "works until" in browser.get("/keys").page.main
    assert browser.post(f"/keys/{shop.key.id}/roll", {"overlap": "0"}).status == 400
    shop.clock.pass_time(DAY - 1)
    assert accepted(shop, shop.secret)
    shop.clock.pass_time(1)
    assert not accepted(shop, shop.secret)
    assert accepted(shop, plain)
    assert "Ended" in shop.signed_in(plain).get("/keys").page.main


def test_a_key_in_its_overlap_is_none_that_could_stay_as_the_last(shop: Dashboard) -> None:
    browser = shop.signed_in()
    plain = browser.post(f"/keys/{shop.key.id}/roll", {"overlap": "3600"}).secret
    (new,) = [key for key in keys(shop) if key.last_four == plain[-4:]]
    assert browser.post(f"/keys/{new.id}/revoke").status == 400
    assert browser.post(f"/keys/{shop.key.id}/revoke").status == 303
    assert not accepted(shop, shop.secret)
    assert accepted(shop, plain)


def test_without_overlap_the_old_key_ends_at_once(shop: Dashboard, browser: Browser) -> None:
    answer = browser.post(f"/keys/{shop.key.id}/roll", {"overlap": "0"})
    assert not accepted(shop, shop.secret)
    assert accepted(shop, answer.secret)
    assert browser.get("/keys").status == 303


@pytest.mark.parametrize("overlap", ["", "x", "-1", "604801", "1e3", "٣"])
def test_an_overlap_that_is_not_offered_is_refused(shop: Dashboard, overlap: str) -> None:
    answer = shop.signed_in().post(f"/keys/{shop.key.id}/roll", {"overlap": overlap})
    assert answer.status == 400
    assert len(keys(shop)) == 1


@pytest.mark.parametrize("scope", ["read", "write"])
def test_the_api_refuses_a_key_without_the_scope(shop: Dashboard, scope: str) -> None:
    plain = shop.signed_in().post("/keys", {"name": "Web shop", "scopes": scope}).secret
    answers = {"read": shop.get(SESSIONS, key=plain), "write": shop.post(SESSIONS, key=plain)}
    refused = answers.pop("write" if scope == "read" else "read")
    assert refused.status == 403
    error = refused.json["error"]
    assert (error["type"], error["code"]) == ("permission_error", "permission_missing")
    assert [answer.status for answer in answers.values()] != [403]


def test_a_key_ends_after_its_last_day(shop: Dashboard, browser: Browser) -> None:
    last = shop.clock.now() + timedelta(days=2)
    fields = {"name": "Contractor", "ends": last.date().isoformat()}
    plain = browser.post("/keys", fields).secret
    assert f'works until <time datetime="{(last + timedelta(days=1)).date()}T00:00:00' in (
        browser.get("/keys").body
    )
    shop.clock.pass_time(2 * DAY + DAY / 2 - 1)  # it is noon
    assert accepted(shop, plain)
    shop.clock.pass_time(1)
    assert not accepted(shop, plain)
    browser = shop.signed_in()
    assert "Ended" in browser.get("/keys").page.main
    again = browser.post(way(shop, "Contractor", "roll"), {"overlap": "0"})
    assert again.status == 400


def test_a_rolled_key_keeps_its_scope_and_its_end(shop: Dashboard, browser: Browser) -> None:
    fields = {"name": "Reads", "scopes": "read", "ends": "2027-03-31"}
    browser.post("/keys", fields)
    browser.post(way(shop, "Reads", "roll"), {"overlap": "0"})
    old, new = sorted(
        (key for key in keys(shop) if key.name == "Reads"),
        key=lambda key: key.current,
    )
    assert not old.current
    assert (new.scopes, new.ends_at) == (old.scopes, old.ends_at)


def test_a_key_with_an_end_makes_none_that_outlives_it(shop: Dashboard, browser: Browser) -> None:
    day = (shop.clock.now() + timedelta(days=2)).date()
    fields = {"name": "Ends", "ends": str(day), "scopes": "refund"}
    ending = shop.signed_in(browser.post("/keys", fields).secret)
    for ends in ("", str(day + timedelta(days=1))):
        answer = ending.post("/keys", {"name": "Longer", "ends": ends})
        assert answer.status == 400
        assert "cannot expire later" in answer.page.one("div", role="alert").text[0]
    assert ending.post(f"/keys/{shop.key.id}/roll", {"overlap": "3600"}).status == 400
    assert ending.post("/keys", {"name": "As long", "ends": str(day)}).status == 200
    names = sorted(each.name for each in keys(shop))
    assert names == ["As long", "Ends", "first"]


def test_a_key_that_may_refund_is_limited_and_keeps_the_limits_when_it_is_rolled(
    shop: Dashboard,
) -> None:
    browser = shop.member()
    typed = {"name": "Refunder", "scopes": "refund", "once": "20.00", "day": "50"}
    assert browser.post("/keys", typed).status == 200
    key = shop.key_named("Refunder")
    assert key.refund_cap == RefundCap(once=2000, day=5000)
    page = browser.get("/keys").page.main
    assert "refunds at most 20.00 USD each and 50.00 USD a day; does not sign in here" in page
    browser.post(f"/keys/{key.id}/roll", {"overlap": "0"})
    caps = [each.refund_cap for each in keys(shop) if each.name == "Refunder"]
    assert [(each.once, each.day) for each in caps if each] == [(2000, 5000)] * 2


def test_one_limit_is_enough(shop: Dashboard) -> None:
    owner = shop.member()
    owner.post("/keys", {"name": "Refunder", "scopes": "refund", "day": "50"})
    assert shop.key_named("Refunder").refund_cap == RefundCap(once=None, day=5000)
    assert "refunds at most 50.00 USD a day" in owner.get("/keys").page.main
