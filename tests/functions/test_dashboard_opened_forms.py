"""Addresses that only forms are sent to, opened as a page: after a reload, a sign-in, from the
history. Each is met, also one of a route that is added later.
"""

from __future__ import annotations

from urllib.parse import urljoin

import pytest

from tests.support.dashboard_pages import BASE, Browser, Dashboard
from tests.support.dashboard_routes import routes, with_something_of_everything
from tests.support.hosted_pages import Answer

POST_ONLY = sorted({path for _, path in routes()} - {p for m, p in routes() if m == "GET"})
# Of an address that begins so, the way back leads to the page of that name; the first one counts.
ROOMS = [
    *("/transactions/{session_id}", "/refunds/{refund_id}", "/links/{link_id}"),
    *("/webhooks/{event_id}", "/invitation/{token}", "/webhooks", "/keys", "/people", "/notices"),
    *("/budget", "/sign-in", "/sign-up"),
]


def room_of(path: str) -> str:
    return next((room for room in ROOMS if path.startswith(room)), "/overview")


def way_back(answer: Answer, where: str) -> str:
    """The path under the dashboard to which the page's only button leads."""
    [link] = answer.page.all("a", **{"class": "button"})
    found = urljoin(f"{BASE}/dashboard{where}", link.attributes["href"])
    assert found.startswith(f"{BASE}/dashboard")
    return found.removeprefix(f"{BASE}/dashboard")


def refused(browser: Browser, where: str) -> str:
    """Open the address, see that the page is readable, and return its way back."""
    answer = browser.get(where)
    assert answer.status == 405, where
    assert answer.headers["allow"] == "POST", where
    assert "There is no page at this address" in answer.page.main, where
    assert "sends nothing" in answer.page.main, where
    return way_back(answer, where)


def test_the_address_of_a_form_leads_back_to_its_page(shop: Dashboard) -> None:
    ids = with_something_of_everything(shop)
    browser = shop.member()
    assert len(POST_ONLY) > 30
    for path in POST_ONLY:
        where = path.format(**ids)
        room = refused(browser, where)
        assert room == room_of(path).format(**ids), path
        closed = path.startswith(("/invitation/", "/sign-up/"))  # as any visitor sees them here
        assert browser.get(room).status == (404 if closed else 200), path


def test_without_a_sign_in_the_way_back_leads_to_it(shop: Dashboard) -> None:
    ids = with_something_of_everything(shop)
    browser = shop.browser()
    way = refused(browser, f"/keys/{ids['key_id']}/roll")
    assert browser.get(way).location == "/dashboard/sign-in?next=/keys"


def test_after_a_sign_in_that_led_to_a_form_the_page_leads_back(shop: Dashboard) -> None:
    browser = shop.browser()
    browser.get("/sign-in?next=/webhooks/remove")
    way = browser.post("/sign-in", {"api_key": shop.secret, "next": "/webhooks/remove"}).location
    assert refused(browser, way.removeprefix("/dashboard")) == "/webhooks"


def test_a_page_to_which_a_form_is_sent_leads_to_itself(shop: Dashboard) -> None:
    answer = shop.signed_in().post("/audit")
    assert (answer.status, answer.headers["allow"]) == (405, "GET")
    assert way_back(answer, "/audit") == "/audit"


@pytest.mark.parametrize("where", ["/nothing", "/keys/x/y/z", "/", ""])
def test_any_other_wrong_address_leads_to_the_start(shop: Dashboard, where: str) -> None:
    browser = shop.signed_in()
    answer = browser.get(where) if where else browser.post(where)
    assert answer.status == (404 if where else 405)
    assert ("Page not found" in answer.page.main) == bool(where)
    assert way_back(answer, where) == ("" if where else "/overview")


def test_what_is_typed_into_an_address_stays_a_path_of_the_dashboard(shop: Dashboard) -> None:
    for typed in ("%22%3E%3Cb%3E", "a%20b", "%3Fx", "%23x", "javascript:1"):
        answer = shop.browser().get(f"/links/{typed}/stop")
        assert answer.status == 405
        [link] = answer.page.all("a", **{"class": "button"})
        assert link.attributes["href"] == f"../../../dashboard/links/{typed}".replace(":", "%3A")
