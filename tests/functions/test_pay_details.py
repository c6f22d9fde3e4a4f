"""The page of a session that asks for details before the wallet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from api.requests import CreateSession
from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.session.collect import (
    Collect,
    Detail,
    Place,
    Question,
    QuestionKind,
    from_json,
)
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.flows.session import details
from tests.support.hosted_pages import Answer, Customer
from tests.support.merchant_api import a_body

ASKED = Collect(
    asked=frozenset({Detail.EMAIL, Place.SHIPPING}),
    required=frozenset({Detail.EMAIL, Place.SHIPPING}),
    ships_to=("DE", "US"),
    questions=(
        Question(
            "size", "Size", QuestionKind.DROPDOWN, required=True, options=(("s", "S"), ("l", "L"))
        ),
    ),
)
ANA = {
    "email": "ana@example.com",
    "shipping_form": "DE",
    "shipping_country": "DE",
    "shipping_name": "Ana Muster",
    "shipping_line1": "Am Weg 1",
    "shipping_postal_code": "10115",
    "shipping_city": "Berlin",
    "answer_size": "l",
}
OURS = {"sec-fetch-site": "same-origin"}


@pytest.fixture
def asking(buyer: Customer) -> Session:
    return buyer.world.create(collect_json=ASKED.to_json())


def send(buyer: Customer, session: Session, fields: dict[str, str], **options: Any) -> Answer:
    path = f"/pay/{session.id}/details"
    return buyer.ask("POST", path, data=fields, **{"headers": OURS, **options})


def given(buyer: Customer, session: Session) -> CustomerDetails:
    world = buyer.world
    return details.opened(world.services.vault, world.stored(), world.session(session.id))


def test_the_api_stores_what_is_to_be_asked() -> None:
    collect = {
        "email": "required",
        "shipping": "required",
        "ships_to": ["de", "US"],
        "questions": [
            {"label": "Size", "kind": "dropdown", "options": ["S", "L"]},
            {"label": "Engraving", "kind": "text", "required": False},
        ],
    }
    asked = CreateSession.model_validate(a_body(collect=collect)).new_session().collect_json
    questions = (
        Question("question1", "Size", QuestionKind.DROPDOWN, True, (("S", "S"), ("L", "L"))),
        Question("question2", "Engraving", QuestionKind.TEXT, False),
    )
    assert from_json(asked) == replace(ASKED, questions=questions)


def test_the_page_asks_before_it_asks_for_a_wallet(buyer: Customer, asking: Session) -> None:
    first = buyer.open(asking)
    assert first.status == 200
    page = first.page
    assert page.one("h1").text == ["Your details"]
    assert not page.all("input", name="wallet_address")
    assert page.one("input", name="email").attributes["autocomplete"] == "email"
    assert page.one("input", name="shipping_postal_code").attributes["required"] == ""
    done = send(buyer, asking, ANA)
    assert (done.status, done.headers["location"]) == (303, f"/pay/{asking.id}")
    second = buyer.open(asking).page
    assert second.all("input", name="wallet_address")
    assert "Details given" in second.main
    assert f"/pay/{asking.id}/details" in second.links
    for said in ("ana@example.com", "Ana Muster", "Am Weg 1"):
        assert said not in buyer.open(asking).body
    stored = given(buyer, asking)
    assert (stored.email, stored.name) == ("ana@example.com", "Ana Muster")
    assert stored.shipping is not None
    assert (stored.shipping.city, stored.answers[0].shown) == ("Berlin", "L")


def test_the_purchase_goes_on_and_ends_as_any(buyer: Customer, asking: Session) -> None:
    send(buyer, asking, ANA)
    paid = buyer.paid(asking)
    assert paid.status is Status.COMPLETED
    receipt = buyer.open(asking, "/success").page.main
    assert "Am Weg 1" in receipt


def test_no_wallet_is_taken_before_and_the_form_comes_again(
    buyer: Customer, asking: Session
) -> None:
    answer = buyer.form(asking)
    assert (answer.status, answer.headers["location"]) == (303, f"/pay/{asking.id}")
    told = buyer.submit_json(asking, {"wallet_address": "https://wallet.example/alice"})
    assert told.status == 400
    assert buyer.world.session(asking.id) == asking


@pytest.mark.parametrize(
    ("change", "wrong"),
    [
        ({"email": "ana"}, "email"),
        ({"email": ""}, "email"),
        ({"shipping_city": ""}, "shipping_city"),
        ({"answer_size": "xl"}, "answer_size"),
    ],
)
def test_what_is_wrong_is_said_at_its_field_and_nothing_is_stored(
    buyer: Customer, asking: Session, change: dict[str, str], wrong: str
) -> None:
    answer = send(buyer, asking, {**ANA, **change})
    assert answer.status == 400
    name = "select" if wrong == "answer_size" else "input"
    assert answer.page.one(name, name=wrong).attributes["aria-invalid"] == "true"
    assert answer.page.one("input", name="shipping_name").attributes["value"] == "Ana Muster"
    assert buyer.world.session(asking.id) == asking


def test_another_country_shows_its_own_form(buyer: Customer, asking: Session) -> None:
    answer = send(buyer, asking, {**ANA, "shipping_country": "US"})
    assert answer.status == 200
    assert answer.page.all("select", name="shipping_state")
    assert buyer.world.session(asking.id) == asking


def test_they_can_be_corrected_and_the_form_begins_empty(buyer: Customer, asking: Session) -> None:
    send(buyer, asking, ANA)
    form = buyer.open(asking, "/details")
    assert form.status == 200
    assert "ana@example.com" not in form.body
    send(buyer, asking, {**ANA, "email": "eva@example.com"})
    assert given(buyer, asking).email == "eva@example.com"


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_another_site_gives_no_details_for_the_customer(
    buyer: Customer, asking: Session, site: str
) -> None:
    answer = send(buyer, asking, ANA, headers={"sec-fetch-site": site})
    assert answer.status == 403
    assert "Press the button again." in answer.page.main
    assert "ana@example.com" not in answer.body
    assert buyer.world.session(asking.id) == asking


@pytest.mark.parametrize("stage", ["preparing", "paying", "processing", "completed", "canceled"])
def test_a_session_that_has_gone_on_shows_its_own_page(buyer: Customer, stage: str) -> None:
    session = buyer.put_in(stage, collect_json=ASKED.to_json())
    read = buyer.open(session, "/details")
    assert read.status == 303
    sent = send(buyer, session, ANA)
    assert sent.status in (303, 400, 409)
    assert buyer.world.session(session.id) == session


def test_a_session_that_asks_for_nothing_has_no_such_page(buyer: Customer) -> None:
    session = buyer.world.create()
    for answer in (buyer.open(session, "/details"), send(buyer, session, ANA)):
        assert (answer.status, answer.headers["location"]) == (303, f"/pay/{session.id}")
    assert buyer.world.session(session.id) == session


@pytest.mark.parametrize("tag", LANGUAGES)
def test_the_form_speaks_each_language(buyer: Customer, asking: Session, tag: str) -> None:
    answer = buyer.open(asking, headers={"accept-language": tag})
    assert answer.page.one("html").attributes["lang"] == tag
    assert ("Your details" in answer.page.main) == (tag == "en")
