"""/dashboard/keys: keys are made, replaced and revoked; each is readable once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from checkout.flows.merchant.api_keys import ACTIVE_MAX
from tests.dashboard_pages import Browser, Dashboard, dashboard

DAY = 24 * 3600


@pytest.fixture
def shop() -> Iterator[Dashboard]:
    with dashboard() as found:
        yield found


def created(browser: Browser, name: str = "Web shop") -> str:
    answer = browser.post("/keys", {"name": name})
    assert answer.status == 200
    return answer.page.one("code", id="secret").text[0]


def key_id(shop: Dashboard, name: str) -> str:
    (found,) = [key.id for key in shop.services.api_keys.of("mer_1") if key.name == name]
    return found


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
    assert plain not in listed.body
    assert "Created an API key" in browser.get("/audit").page.main
    assert plain not in str([shop.rows(table) for table in ("api_keys", "merchants")])


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\nb", "\u202eabc"])
def test_a_key_without_a_usable_name_is_refused_on_the_page(shop: Dashboard, name: str) -> None:
    answer = shop.signed_in().post("/keys", {"name": name})
    assert answer.status == 400
    assert "name" in answer.page.one("div", role="alert").text[0]
    assert len(shop.services.api_keys.of("mer_1")) == 1


def test_there_are_at_most_so_many_active_keys(shop: Dashboard) -> None:
    browser = shop.signed_in()
    for number in range(ACTIVE_MAX - 1):
        created(browser, f"key {number}")
    assert browser.post("/keys", {"name": "one more"}).status == 400
    browser.post(f"/keys/{key_id(shop, 'key 0')}/revoke")
    created(browser, "one more")


def test_a_revoked_key_is_refused_at_the_next_request_here_and_in_the_api(shop: Dashboard) -> None:
    browser = shop.signed_in()
    plain = created(browser)
    other = shop.signed_in(plain)
    revoked = browser.post(f"/keys/{key_id(shop, 'Web shop')}/revoke")
    assert revoked.location == "/dashboard/keys"
    assert not accepted(shop, plain)
    assert other.get("/keys").status == 303
    page = browser.get("/keys").page
    assert "Revoked" in page.main
    assert browser.post(f"/keys/{key_id(shop, 'Web shop')}/revoke").status == 400


def test_the_last_key_that_lasts_cannot_be_revoked(shop: Dashboard) -> None:
    browser = shop.signed_in()
    answer = browser.post(f"/keys/{shop.key.id}/revoke")
    assert answer.status == 400
    assert "last key" in answer.page.one("div", role="alert").text[0]
    plain = created(browser)
    browser.post(f"/keys/{shop.key.id}/revoke")
    assert not accepted(shop, shop.secret)
    assert browser.get("/keys").status == 303, "it was the key that this browser had"
    assert shop.signed_in(plain).post(f"/keys/{key_id(shop, 'Web shop')}/revoke").status == 400


def test_of_two_browsers_that_revoke_the_last_two_keys_one_loses(shop: Dashboard) -> None:
    created(shop.signed_in())
    first, second = shop.services.api_keys.of("mer_1")
    now = shop.clock.now()
    keys = shop.services.api_keys
    assert keys.revoke(replace(first, revoked_at=now), second)
    assert not keys.revoke(replace(second, revoked_at=now), first)


def test_a_rolled_key_serves_on_until_its_overlap_is_over(shop: Dashboard) -> None:
    browser = shop.signed_in()
    answer = browser.post(f"/keys/{shop.key.id}/roll", {"overlap": str(DAY)})
    plain = answer.page.one("code", id="secret").text[0]
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
    answer = browser.post(f"/keys/{shop.key.id}/roll", {"overlap": "3600"})
    plain = answer.page.one("code", id="secret").text[0]
    (new,) = [key for key in shop.services.api_keys.of("mer_1") if key.last_four == plain[-4:]]
    assert browser.post(f"/keys/{new.id}/revoke").status == 400
    assert browser.post(f"/keys/{shop.key.id}/revoke").status == 303
    assert not accepted(shop, shop.secret)
    assert accepted(shop, plain)


def test_without_overlap_the_old_key_ends_at_once(shop: Dashboard) -> None:
    browser = shop.signed_in()
    answer = browser.post(f"/keys/{shop.key.id}/roll", {"overlap": "0"})
    assert not accepted(shop, shop.secret)
    assert accepted(shop, answer.page.one("code", id="secret").text[0])
    assert browser.get("/keys").status == 303


@pytest.mark.parametrize("overlap", ["", "x", "-1", "604801", "1e3", "٣"])
def test_an_overlap_that_is_not_offered_is_refused(shop: Dashboard, overlap: str) -> None:
    answer = shop.signed_in().post(f"/keys/{shop.key.id}/roll", {"overlap": overlap})
    assert answer.status == 400
    assert len(shop.services.api_keys.of("mer_1")) == 1


def test_another_merchants_key_cannot_be_seen_rolled_or_revoked(shop: Dashboard) -> None:
    browser = shop.signed_in()
    assert shop.other_key.last_four not in browser.get("/keys").page.main
    for theirs in (shop.other_key.id, shop.other_key.hash, "key_x", "%2e%2e"):
        for form in ("roll", "revoke"):
            answer = browser.post(f"/keys/{theirs}/{form}", {"overlap": "0"})
            assert answer.status == 404
    assert shop.services.api_keys.find(shop.other_key.hash) == shop.other_key


def test_nobody_sees_or_makes_keys_without_a_sign_in(shop: Dashboard) -> None:
    stranger = shop.browser()
    stranger.get("/sign-in")
    for answer in (
        stranger.get("/keys"),
        stranger.post("/keys", {"name": "mine"}),
        stranger.post(f"/keys/{shop.key.id}/roll", {"overlap": "0"}),
        stranger.post(f"/keys/{shop.key.id}/revoke"),
    ):
        assert answer.location.startswith("/dashboard/sign-in")
    assert shop.services.api_keys.of("mer_1") == (shop.key,)


@pytest.mark.parametrize("keys", [1, 15])
def test_the_page_asks_aws_three_times_however_many_keys_there_are(
    shop: Dashboard, keys: int
) -> None:
    browser = shop.signed_in()
    for number in range(keys - 1):
        created(browser, f"key {number}")
    shop.calls()
    browser.get("/keys")
    assert sorted(shop.calls()) == ["get_item", "get_item", "query"]
