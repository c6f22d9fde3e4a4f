"""/dashboard/notices: a member's own choice, and the link that confirms an address."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.merchant.people import Role
from tests.support.dashboard_pages import BASE, Browser, Dashboard
from tests.support.mailbox import Mailbox, text_of

CHOICE = {
    "email": "ada@shop.example",
    "topic-payments": "on",
    "topic-ends": "on",
    "pace": "daily",
    "language": "de",
}


@pytest.fixture
def box(shop: Dashboard) -> Mailbox:
    found = Mailbox()
    shop.services = replace(shop.services, mail=found.mail())
    return found


@pytest.fixture
def ada(shop: Dashboard, box: Mailbox) -> Browser:
    """The browser of a member of a shop that can send e-mail."""
    return shop.member()


def link(box: Mailbox) -> str:
    """The path of the link in the last e-mail."""
    found = re.search(rf"{BASE}/dashboard(/notices/confirm/\w+)", text_of(box.read[-1]))
    assert found is not None
    return found[1]


def stored(shop: Dashboard) -> list[dict[str, object]]:
    rows = shop.rows("checkout_sessions")
    return [each for each in rows if each["id"]["S"].startswith("ntc_")]


def test_a_member_chooses_and_confirms(shop: Dashboard, box: Mailbox, ada: Browser) -> None:
    page = ada.get("/notices").page
    assert len([one for one in page.all("input", type="checkbox") if "checked" in one.attributes])
    assert ada.post("/notices", CHOICE).location == "/dashboard/notices?saved=1"
    waiting = ada.get("/notices?saved=1").page
    assert "We have sent a link to ada@shop.example" in " ".join(waiting.main.split())
    (mail,) = box.read
    assert mail["To"] == "ada@shop.example"
    assert "Bestätigen Sie" in mail["Subject"]
    way = link(box)
    assert "Confirm the address" in ada.get(way).page.main
    assert "We have sent a link" in ada.get("/notices").page.main  # opening it confirms nothing
    ada.get(way)
    assert ada.post(way).location == "/dashboard/notices?saved=1"
    page = ada.get("/notices").page
    assert "Confirmed." in page.main
    chosen = {one.attributes["name"] for one in page.all("input", type="checkbox", checked="")}
    assert chosen == {"topic-payments", "topic-ends"}
    ada.get(way)
    assert ada.post(way).status == 400
    ada.get("/notices")
    assert ada.post("/notices/stop").location == "/dashboard/notices?saved=1"
    assert "ada@shop.example" not in str(stored(shop))
    assert "ada@shop.example" not in ada.get("/notices").body
    assert "notices" in ada.get("/audit").page.main


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"email": "ada"}, "This is not an e-mail address"),
        ({"topic-payments": None, "topic-ends": None}, "Choose what you want to be told."),
        ({"language": "xx"}, "Choose a language."),
    ],
)
def test_a_wrong_choice_is_shown_again_as_typed(
    shop: Dashboard, box: Mailbox, ada: Browser, wrong: dict[str, str | None], said: str
) -> None:
    typed = {name: value for name, value in {**CHOICE, **wrong}.items() if value is not None}
    answer = ada.post("/notices", typed)
    assert answer.status == 400
    assert said in answer.page.main
    assert answer.page.one("input", id="email").attributes["value"] == typed["email"]
    assert (box.raw, stored(shop)) == ([], [])


def test_a_mail_service_that_refuses_is_said(box: Mailbox, ada: Browser) -> None:
    box.refuses = "MessageRejected"
    answer = ada.post("/notices", CHOICE)
    assert answer.status == 424
    assert "The mail service did not take the e-mail." in answer.page.main


def test_every_role_has_its_own_and_sees_no_others(
    shop: Dashboard, box: Mailbox, ada: Browser
) -> None:
    ben = shop.member(Role.SUPPORT, "Ben")
    ada.post("/notices", CHOICE)
    assert "ada@shop.example" not in ben.get("/notices").body
    way = link(box)
    ben.get(way)
    assert ben.post(way).status == 400
    assert ben.post("/notices", {**CHOICE, "email": "ben@shop.example"}).status == 303
    assert len(stored(shop)) == 2


def test_an_api_key_has_no_notices(shop: Dashboard, browser: Browser, box: Mailbox) -> None:
    assert "Notices go to people" in browser.get("/notices").page.main
    for path, status in {"/notices": 403, "/notices/stop": 403, "/notices/confirm/x": 404}.items():
        assert browser.post(path, CHOICE).status == status
    assert browser.get("/notices/confirm/x").status == 404
    assert (box.raw, stored(shop)) == ([], [])


def test_without_a_sender_the_page_says_so(shop: Dashboard) -> None:
    ada = shop.member()
    assert "This service sends no e-mail." in ada.get("/notices").page.main
    assert ada.post("/notices", CHOICE).status == 400


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_confirmation_has_no_word_of_the_shop_in_any_language(
    shop: Dashboard, box: Mailbox, ada: Browser, language: str
) -> None:
    shop.services.merchants.replace(shop.merchant().changed(name="Locked Account"))
    ada.post("/notices", {**CHOICE, "language": language})
    (mail,) = box.read
    assert f'lang="{language}"' in text_of(mail, "html")
    assert "Locked" not in mail["Subject"] + text_of(mail) + text_of(mail, "html")
    assert link(box)
