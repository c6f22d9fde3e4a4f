"""AWS calls per page of the dashboard: counted, and the same for 100 sessions and for 100 000."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.adapters.dynamo.codec import instant, text
from checkout.adapters.dynamo.events import event_item
from checkout.adapters.dynamo.records import cart_of, search_items, session_item
from checkout.domain.ground.grammar import position
from checkout.domain.session.record import Session
from checkout.domain.webhooks.event_types import COMPLETED
from checkout.domain.webhooks.record import EventStatus, WebhookEvent
from checkout.flows import reports
from tests.support.basics import NOW, a_link, a_refund
from tests.support.cases import PICTURES
from tests.support.dashboard_pages import Browser, Dashboard, upload
from tests.support.dashboard_routes import paths
from tests.support.hosted_pages import AWAITING, Page
from tests.support.merchant_api import PREFIX
from tests.support.samples import an_event
from tests.support.services import store_refund
from tests.support.shop_records import paid

pytestmark = pytest.mark.untraced

# Of each page, at most: two to know who asks, the rest for the page itself.
CALLS = {
    # The newest, then those to which a wallet was given: of any number, five rounds at most.
    "": ["get_item", "get_item"] + ["query", "batch_get_item"] * 2,
    "?status=all": ["get_item", "get_item", "query", "batch_get_item"],
    # The walks' positions twice, the days, the newest sessions, which may not be counted yet, and a
    # page of refunds, of any number three at most.
    "/overview": ["get_item"] * 2 + ["query"] * 2 + ["batch_get_item"] * 5,
    "/overview?period=quarter": ["get_item"] * 2 + ["query"] * 2 + ["batch_get_item"] * 6,
    # A page of refunds, and the sessions, a hundred a page: at most 150 pages, and here five.
    "/statement": ["get_item", "get_item"] + ["query", "batch_get_item"] * 6,
    # One more read: is it the id of a payment?
    "?q=https://wallet.example/alice": ["get_item"] * 3 + ["query", "batch_get_item"],
    # Could it be a customer's name or postal code? The merchant, whose key makes the hash, and one
    # more query.
    "?q=A-1": ["get_item"] * 3 + ["query"] * 3 + ["batch_get_item"],
    # Filters without an index: five rounds of a query and a read, for any number of sessions.
    "?status=canceled": ["get_item"] * 2 + ["query"] * 5 + ["batch_get_item"] * 5,
    "?min=9000&max=9001": ["get_item"] * 2 + ["query"] * 5 + ["batch_get_item"] * 5,
    "/transactions/{paid}": ["get_item"] * 6,
    "/transactions/{paid}/packing": ["get_item"] * 3,
    "/refunds/{refund}": ["get_item"] * 3,
    "/budget": ["get_item"] * 3,
    "/needs": ["get_item"] * 2,
    "/notices": ["get_item"] * 3,  # the merchant, whose standing counts; and one for a member
    "/audit": ["get_item", "get_item", "query"],
    "/export": ["get_item"] * 2 + ["query"] * 10 + ["batch_get_item"] * 10,
    # The merchant, too, whose key opens what customers typed.
    "/export/{file}.csv": ["get_item"] * 3
    + ["query"] * 10
    + ["batch_get_item"] * 10
    + ["put_item"],
    "/sign-in": [],
    "/links": ["get_item", "get_item", "query", "batch_get_item"],
    "/links/{link}": ["get_item"] * 4,
    "/links/{link}/qr": ["get_item"] * 3,
    "/links/{link}/poster": ["get_item"] * 4,
    "/keys": ["get_item", "get_item", "query"],
    "/keys/{key}/refused": ["get_item"] * 3 + ["query"],
    "/people": ["get_item"] * 3 + ["query"] * 3,
    "/invitation/{token}": ["get_item"] * 2,
    "/webhooks": ["get_item"] * 3 + ["query", "batch_get_item"],
    "/webhooks?status=exhausted": ["get_item"] * 3 + ["query", "batch_get_item"] * 3,
    "/webhooks/{event}": ["get_item"] * 3,
    "/settings": ["get_item"] * 3 + ["query"],
    "/settings/preview": ["get_item"] * 3,
    "/settings/logo": ["get_item"] * 3,
}


# The cases that need somebody are looked up for each page but these: the merchant, its refund
# budget, the keys, the flagged sessions and the newest ones.
NEEDS = ["get_item"] * 2 + ["query"] * 3 + ["batch_get_item"]
WITHOUT = {
    "/export/{file}.csv",
    "/sign-in",
    "/links/{link}/qr",
    "/settings/preview",
    "/settings/logo",
}
WITHOUT |= {"/invitation/{token}"}


def fill(shop: Dashboard, sample: Session | WebhookEvent, count: int) -> None:
    """`count` like it a second apart, laid into the table as they would lie there."""
    if isinstance(sample, Session):
        name, template = "checkout_sessions", session_item(sample)
    else:
        name, template = "webhook_events", event_item(sample)
    table = shop.dynamo._tables[f"{PREFIX}-{name}"]
    prefix = sample.id.partition("_")[0]
    for number in range(count):
        at = NOW - timedelta(seconds=count - number)
        new_id = f"{prefix}_{number:022d}"
        item: dict[str, Any] = {
            **template,
            "id": text(new_id),
            "created_key": text(position(at, new_id)),
        }
        if isinstance(sample, Session):
            item["cart"] = cart_of(replace(sample, created_at=at))
        else:
            item["created_at"] = instant(at)
        table.store(table.key(item), item)


def calls(shop: Dashboard, browser: Browser, path: str) -> list[str]:
    shop.calls()
    assert browser.get(path).status == 200
    return sorted(shop.calls())


def test_every_page_has_its_budget() -> None:
    def shape(path: str) -> str:
        return re.sub(r"\{[a-z_]+\}", "{}", path.partition("?")[0])

    others = {"/refunds/{}/callback", "/budget/callback"}  # it calls wallets: tests/flows/refund
    others |= {"/notices/confirm/{}"}  # it reads nothing, and no key may
    others |= {"/sign-up", "/sign-up/{}", "/wallet/callback"}  # test_dashboard_sign_up.py
    others |= {"/statement.csv"}  # it reads what /statement reads
    assert {shape(path) for path in paths("GET")} - others == {shape(path) for path in CALLS}


@pytest.mark.parametrize("count", [100, 1_100, pytest.param(100_000, marks=pytest.mark.endurance)])
def test_a_page_costs_the_same_calls_however_many_sessions_and_events_there_are(
    shop: Dashboard, browser: Browser, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "STATEMENT_ROUNDS", 5)
    sample = paid(shop, customer=AWAITING["customer"], metadata_json='{"order":"A-1"}')
    fill(shop, sample, count)
    ended = {"status": EventStatus.DELIVERED, "ended_at": NOW}
    event = an_event(id="evt_0123456789abcdefABCDEF", subject=None, type=COMPLETED, **ended)
    shop.services.events.add(event)
    fill(shop, event, count)
    table = shop.dynamo._tables[f"{PREFIX}-checkout_sessions"]
    for row in search_items(sample):
        table.store(table.key(row), row)
    upload(browser, PICTURES["image/png"])
    link = a_link()
    shop.services.links.add(link)
    refund = a_refund()
    store_refund(shop.dynamo, PREFIX, refund)
    for number in range(14):
        browser.post("/keys", {"name": f"key {number}"})
    token = shop.invited().rpartition("/")[2]
    for path, own in CALLS.items():
        expected = own if path in WITHOUT else own + NEEDS
        made = calls(
            shop,
            browser,
            path.format(
                paid=sample.id,
                refund=refund.id,
                event=event.id,
                link=link.id,
                file="transactions",
                token=token,
                key=shop.services.api_keys.of("mer_1")[0].id,
            ),
        )
        if count >= 1_000:
            assert made == sorted(expected), path
        else:
            assert len(made) <= len(expected), path


@pytest.mark.endurance
def test_the_wallet_of_one_payment_among_very_many_is_found_at_once(shop: Dashboard) -> None:
    fill(shop, shop.store(), 100_000)
    sought = paid(shop, created_at=NOW - timedelta(seconds=70_000))
    page: Page = shop.signed_in().get("?q=wallet.example/alice").page
    assert [link for link in page.links if "/transactions/" in link] == [
        f"/dashboard/transactions/{sought.id}"
    ]
