"""Everything of another merchant's is tried at every path of the dashboard: each id in each path
and field, each cursor, each search, each form.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.event_types import COMPLETED
from checkout.domain.ids import new_event_id
from checkout.domain.session import LineItem
from checkout.domain.webhooks import Delivery, EventStatus, GivenUp, WebhookEvent
from checkout.flows import audit
from checkout.flows.merchant import links
from tests.support.basics import NOW, a_link, count_ends
from tests.support.dashboard_pages import Browser, Dashboard, upload
from tests.support.dashboard_routes import FORMS, RIVAL, TABLES, paths
from tests.support.hosted_pages import Answer
from tests.support.protected import OPEN
from tests.support.samples import an_event
from tests.support.shop_records import paid

pytestmark = pytest.mark.untraced

CURSORS = ("", "/webhooks", "/audit", "/export", "/links")
UNVERIFIED = ("/budget/callback", "/wallet/callback")  # refused without the wallet's hash


@dataclass
class Rival:
    """The other merchant's: `ids` and `cursors` to try, `marks` that nobody else may see."""

    ids: list[str]
    cursors: list[str]
    searches: list[str]
    marks: list[str]
    rows: list[str]


@pytest.fixture
def rival(shop: Dashboard) -> Rival:
    """With more than a page of everything."""
    whose, browser = shop.other_key.merchant, shop.signed_in(shop.other_secret)
    session, event = sessions_and_events(shop, whose)
    looks = {"name": "Rival Ltd", "accent_color": "#123456", "locale": "sw"}
    browser.post("/settings", looks | {"return_hosts": "rival.example"})
    upload(browser, b"\xff\xd8\xffrival-picture\xff\xd9")
    browser.post("/webhooks", {"url": "https://rival.example/hooks"})
    browser.post("/keys", {"name": "Rival's second"})
    for _ in range(audit.PAGE):
        browser.post("/webhooks/enable")
    for number in range(links.PAGE + 1):
        link = a_link(
            id=f"plink_{number:022d}", merchant=whose, name="Rival tea", left=3, created_at=NOW
        )
        shop.services.links.add(link)
    keys = shop.services.api_keys.of(whose)
    older = [re.search(r"cursor=([^&\"]+)", browser.get(path).body) for path in CURSORS]
    cursors = [found[1] for found in older if found]
    assert len(cursors) == len(CURSORS)
    return Rival(
        ids=[
            session.id,
            event.id,
            link.id,
            whose,
            *(key.id for key in keys),
            keys[0].hash,
            "x" * 3000,
        ],
        cursors=[*cursors, "junk"],
        searches=[session.id, "rival-order", "https://wallet.example/alice"],
        marks=[
            session.id,
            event.id,
            link.id,
            whose,
            "Rival",
            "rival.example",
            "rival-",
            "#123456",
            *(key.id for key in keys),
            *(f"…{key.last_four}" for key in keys),
        ],
        rows=of_rival(shop, whose),
    )


def sessions_and_events(shop: Dashboard, whose: str) -> tuple[Any, WebhookEvent]:
    asset = shop.other_key.asset_code.lower()
    mine: dict[str, Any] = {
        "merchant": whose,
        "currency": asset,
        "metadata_json": '{"order":"rival-order"}',
        "line_items": (LineItem(asset, "Rival tea", None, 1000, 2),),
    }
    for _ in range(1_001):  # more than a part of an export
        shop.store(**mine)
    template = an_event(
        merchant=whose,
        subject=None,
        type=COMPLETED,
        body='{"id":"rival-session"}',
        status=EventStatus.EXHAUSTED,
        attempts=1,
        deliveries=(Delivery(at=NOW, duration_ms=1, status=500, answer="rival-answer"),),
        ended_at=NOW,
        given_up=GivenUp.ATTEMPTS,
    )
    for number in range(30):
        event = replace(
            template,
            id=new_event_id(shop.services.random_bytes),
            created_at=NOW + timedelta(milliseconds=number),
        )
        shop.services.events.add(event)
    session = paid(shop, **mine, event=event.id)
    count_ends(shop.services.tallies, shop.clock)
    return session, event


def of_rival(shop: Dashboard, whose: str) -> list[str]:
    rows = [(table, str(row)) for table in TABLES for row in shop.rows(table)]
    return [f"{table} {row}" for table, row in rows if whose in row or shop.other_key.hash in row]


def unseen(answer: Answer, rival: Rival, *tried: str) -> None:
    """Nothing of theirs is in the answer but what was typed."""
    said = answer.body
    for each in tried:
        said = said.replace(each, "")
    assert [mark for mark in rival.marks if mark in said] == [], (tried, answer.status)


def filled(path: str, value: str) -> str:
    return re.sub(r"\{[a-z_]+\}", value, path)


def test_no_page_shows_them_by_any_id(rival: Rival, browser: Browser) -> None:
    for path in paths("GET"):
        for each in rival.ids if "{" in path else [""]:
            answer = browser.get(filled(path, each))
            unseen(answer, rival, each)
            shown = (400,) if path in UNVERIFIED else (200, 404)
            assert answer.status in ((404, 400, 422, 429) if each else shown), (path, each)


def test_no_page_shows_them_by_any_cursor(rival: Rival, browser: Browser) -> None:
    for path in [each for each in paths("GET") if "{" not in each] + ["/export/items.csv"]:
        for cursor in rival.cursors:
            answer = browser.get(f"{path}?cursor={cursor}")
            unseen(answer, rival, cursor)
            refused = path in (*CURSORS, *UNVERIFIED, "/export/items.csv")
            assert (answer.status == 400) == refused, (path, cursor)


def test_no_search_or_filter_finds_them(rival: Rival, browser: Browser) -> None:
    files = [f"/export/{file}.csv" for file in ("transactions", "items")]
    for path in ["", "/export", *files]:
        for typed in rival.searches:
            answer = browser.get(f"{path}?q={typed}")
            unseen(answer, rival, typed)
            if path in files:
                assert len(answer.body.splitlines()) == 1, "the titles alone"
        for query in ("status=completed", "min=0", "from=2020-01-01", "merchant=mer_2"):
            unseen(browser.get(f"{path}?{query}"), rival, "mer_2")
    assert "Payments 0 yesterday 0" in browser.get("/overview").page.main


def test_no_form_changes_or_shows_them(shop: Dashboard, rival: Rival) -> None:
    assert set(FORMS) == set(paths("POST")), "every form is tried"
    browser = shop.signed_in()
    for path, fields in FORMS.items():
        for each in [*rival.ids, *rival.cursors]:
            typed = {name: value.replace(RIVAL, each) for name, value in fields.items()}
            answer = browser.post(filled(path, each), typed)
            unseen(answer, rival, each)
            if "{" in path:  # wrong links of invitations are counted
                refused = (404, 429) if path.startswith("/invitation") else (404,)
                assert answer.status in refused, (path, each)
    assert of_rival(shop, "mer_2") == rival.rows


def test_their_form_token_proves_nothing_here(shop: Dashboard) -> None:
    theirs, browser = shop.signed_in(shop.other_secret), shop.signed_in()
    before = [shop.rows(table) for table in TABLES if table != "idempotency_keys"]
    for path, fields in FORMS.items():
        answer = browser.post(path, {**fields, "form_token": theirs.form_token})
        assert answer.status in (400, 415), path
    assert upload(browser, b"x", fields={"form_token": theirs.form_token}).status == 400
    assert [shop.rows(table) for table in TABLES if table != "idempotency_keys"] == before


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "", "http://pay.example"])
def test_no_form_is_taken_from_another_origin(shop: Dashboard, origin: str) -> None:
    browser = shop.signed_in()
    before = [shop.rows(table) for table in TABLES]
    for path, fields in FORMS.items():
        assert browser.post(path, fields, headers={"origin": origin}).status == 400, path
    assert upload(browser, b"\xff\xd8\xffpicture\xff\xd9", origin=origin).status == 400
    assert [shop.rows(table) for table in TABLES] == before


def test_without_a_sign_in_every_path_leads_to_it_and_does_nothing(shop: Dashboard) -> None:
    stranger = shop.browser()
    stranger.get("/sign-in")
    before = [shop.rows(table) for table in TABLES]
    gets = [path for path in paths("GET") if ("GET", path) not in OPEN]
    answers = [stranger.get(filled(path, "x")) for path in gets]
    answers += [
        stranger.post(filled(path, "x"), fields)
        for path, fields in FORMS.items()
        if ("POST", path) not in OPEN
    ]
    answers.append(upload(stranger, b"\xff\xd8\xffpicture\xff\xd9"))
    assert {answer.location.partition("?")[0] for answer in answers} == {"/dashboard/sign-in"}
    assert [shop.rows(table) for table in TABLES] == before
