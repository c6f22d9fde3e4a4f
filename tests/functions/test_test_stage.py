"""On a test stage every page, mail and event says so; on any other stage none does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, Final

import pytest

from api.reference import app as reference
from checkout import wiring
from checkout.domain.ground.grammar import TestUrl as AddressOfTests
from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.stripe.objects import livemode
from checkout.ports import Notice
from pay import emails
from tests.functions.receipts import ask, paid
from tests.support import asgi
from tests.support.doors import BASE, Doors, Visitor
from tests.support.flows import World
from tests.support.hosted_pages import STAGES, Customer
from tests.support.outbox import Outbox

OWN: Final = "https://pay.example/test-wallets"
# Written a second time.
WORDS: Final = {
    "en": "Test: no real money",
    "de": "Test: kein echtes Geld",
    "es": "Prueba: sin dinero real",
    "fr": "Test\u202f: pas d’argent réel",
    "pt": "Teste: sem dinheiro real",
    "ar": "اختبار: لا أموال حقيقية",
    "hi": "परीक्षण: असली पैसा नहीं",
    "sw": "Jaribio: si pesa halisi",
}


@pytest.fixture
def test_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wiring, "test_wallets", lambda: OWN)


def test_a_process_has_the_wallets_of_its_setting_and_none_without_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("DATABASE_URL", "BASE_URL", "TEST_WALLETS"):
        monkeypatch.delenv(name, raising=False)
    wiring.settings.cache_clear()
    assert wiring.test_wallets() == ""
    set_to = {"DATABASE_URL": "dynamodb:///x", "BASE_URL": BASE, "TEST_WALLETS": OWN}
    for name, value in (set_to | {"ENCRYPTION_KEY": "11" * 32}).items():
        monkeypatch.setenv(name, value)
    assert wiring.test_wallets() == OWN
    wiring.settings.cache_clear()


def test_there_is_a_word_for_each_language() -> None:
    assert set(WORDS) == set(LANGUAGES)


@pytest.mark.usefixtures("test_stage")
@pytest.mark.parametrize("language", WORDS)
def test_every_page_of_a_customer_says_it_in_their_language(buyer: Customer, language: str) -> None:
    for stage in STAGES:
        session = buyer.put_in(stage)
        answer = buyer.ask("GET", f"/pay/{session.id}", headers={"Accept-Language": language})
        assert f'<aside class="test"><a href="{OWN}"' in answer.body, stage
        assert f">{WORDS[language]}</a>" in answer.body, stage
    missing = buyer.ask("GET", "/pay/cs_x", headers={"Accept-Language": language})
    assert WORDS[language] in missing.body


@pytest.mark.usefixtures("test_stage")
def test_every_page_of_a_merchant_says_it_before_and_after_the_sign_in() -> None:
    doors = Doors()
    inside = doors.signed_in()
    for visitor, path in (
        (Visitor(), "/sign-in"),
        (Visitor(), "/sign-up"),
        (Visitor(), "/x"),
        *((inside, path) for path in ("", "/overview", "/links", "/keys", "/settings", "/budget")),
    ):
        answer = doors.dashboard("GET", path, visitor=visitor)
        assert f'href="{OWN}" rel="noreferrer">Test: no real money</a></aside>' in answer.body, path


@pytest.mark.parametrize("path", ["/docs", "/docs/v1"])
def test_the_reference_says_it(monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    client = asgi.Client(reference, base_url="https://pay.example")
    assert "Test: no real money" not in client.get(path).text
    monkeypatch.setattr(wiring, "test_wallets", lambda: OWN)
    assert client.get(path).text.count('<aside class="test">Test: no real money</aside>') == 1
    assert "Test: no real money" not in client.get("/docs/openapi.json").text


@pytest.mark.usefixtures("test_stage")
def test_the_receipt_says_it_in_subject_text_and_html(buyer: Customer, outbox: Outbox) -> None:
    assert ask(buyer, paid(buyer), headers={"Accept-Language": "de"}).status < 400
    [letter] = outbox.letters
    assert letter.subject.startswith("Test: kein echtes Geld – ")
    assert letter.text.startswith("Test: kein echtes Geld\n")
    assert "<strong>Test: kein echtes Geld</strong>" in letter.html


def _notices() -> list[Any]:
    told = Notice(
        to="ada@shop.example",
        language="es",
        shop="Tea",
        counts=(),
        needs=f"{BASE}/dashboard/needs",
        settings=f"{BASE}/dashboard/notices",
    )
    page = f"{BASE}/dashboard/x"
    return [
        emails.notice_email(told),
        emails.confirmation(told.to, language="es", page=page),
    ]


@pytest.mark.usefixtures("test_stage")
def test_mail_to_a_member_says_it() -> None:
    for letter in _notices():
        assert letter.subject.startswith("Prueba: sin dinero real – ")
        assert letter.text.startswith("Prueba: sin dinero real\n")
        assert "<strong>Prueba: sin dinero real</strong>" in letter.html


def test_no_page_and_no_mail_of_another_stage_says_it(buyer: Customer, outbox: Outbox) -> None:
    session = paid(buyer)
    assert ask(buyer, session).status < 400
    said = [buyer.ask("GET", f"/pay/{session.id}").body, outbox.letters[0].html]
    said += [outbox.letters[0].text, outbox.letters[0].subject]
    said += [letter.html for letter in _notices()]
    doors = Doors()
    said.append(doors.dashboard("GET", "", visitor=doors.signed_in()).body)
    assert not [each for each in said if 'class="test"' in each or WORDS["en"] in each]


# --- events


def test_livemode_is_told_by_the_stage_and_not_by_https() -> None:
    assert livemode("https://pay.example")
    assert not livemode("http://localhost:4000")
    assert not livemode(AddressOfTests("https://pay.example"))


@pytest.mark.parametrize(("wallets", "live"), [(OWN, False), ("", True)])
def test_objects_and_events_tell_whether_money_is_real(wallets: str, live: bool) -> None:
    world = World()
    https: Any = {"base_url": BASE, "test_wallets": wallets}
    world.core = replace(world.core, **https)
    world.services = replace(world.services, **https)
    world.endpoints = replace(world.endpoints, **https)
    assert world.services.base_url == BASE
    world.listen()
    session = world.pay(world.create())
    assert session.id.startswith("cs_test_") is not live
    body = json.loads(world.event().stripe_body)
    assert body["type"] == "checkout.session.completed"
    assert (body["livemode"], body["data"]["object"]["livemode"]) == (live, live)
