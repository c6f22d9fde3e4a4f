"""Test the ways in: providers to choose from, a name at one, and no wallet yet."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace

import pytest

from checkout.domain.ground.providers import Provider
from checkout.domain.payment.in_flight import Problem
from tests.support.flows import CEDAR
from tests.support.hosted_pages import WALLET, Answer, Customer

FORM = f"{CEDAR}/{{name}}"
HOST = "localhost:4101"
CEDAR_BANK = Provider("Cedar Bank", FORM, "https://cedar.example/join")
OTHER = Provider("Other & Co", "https://other.example/{name}/x", "https://other.example/")


@pytest.fixture
def offered(visitor: Customer) -> Customer:
    world = visitor.world
    world.services = replace(world.services, providers=(CEDAR_BANK, OTHER))
    return visitor


def submit(visitor: Customer, session_id: str, typed: str, form: str = FORM) -> int:
    data = {"wallet_address": typed, "provider": form}
    return visitor.ask("POST", f"/pay/{session_id}/wallet", data=data).status


@pytest.mark.parametrize(
    "typed", ["alice", " alice ", "@alice", f"{CEDAR}/alice", f"${HOST}/alice", f"{HOST}/alice"]
)
def test_a_name_at_a_provider_is_enough(offered: Customer, typed: str) -> None:
    session = offered.world.create()
    assert submit(offered, session.id, typed) == 303
    customer = offered.world.session(session.id).customer
    assert customer is not None
    assert customer.id == f"{CEDAR}/alice"
    page = offered.open(session).page
    assert "Approve at Cedar Bank" in page.main


def test_each_provider_is_a_way_and_any_address_is_another(offered: Customer) -> None:
    page = offered.open(offered.world.create()).page
    ways = page.all("details", **{"class": "way"})
    names = [" ".join("".join(way.text).split()).split(" Your ")[0] for way in ways]
    assert names[:3] == ["Cedar Bank", "Other & Co", "Another wallet"]
    assert names[3].startswith("I have no wallet yet")
    hidden = [one.attributes["value"] for one in page.all("input", type="hidden")]
    assert hidden == [FORM, OTHER.form]
    assert ["open" in way.attributes for way in ways] == [True, False, False, False]
    assert "other.example/…/x" in page.main


def opened(answer: Answer) -> list[bool]:
    ways = answer.page.all("details", **{"class": "way"})
    return ["open" in way.attributes for way in ways]


def test_after_a_failed_payment_the_used_providers_tile_is_open_with_what_was_typed(
    offered: Customer,
) -> None:
    wallet = replace(WALLET, id="https://other.example/alice/x")
    session = offered.put(problem=Problem.PAYMENT_FAILED, customer=wallet)
    page = offered.open(session).page
    assert opened(offered.open(session)) == [True, False, False, False]
    assert page.one("input", id="name-2").attributes["value"] == "alice"
    assert page.one("input", id="wallet_address").attributes["value"] == ""
    assert "https://other.example" not in page.main


def test_after_a_failed_payment_both_fields_of_a_tile_are_filled(visitor: Customer) -> None:
    visitor.give(
        providers=(CEDAR_BANK, replace(TWO, form=TWO.form.replace(CEDAR, "https://two.example")))
    )
    wallet = replace(WALLET, id="https://two.example/987/EUR")
    page = visitor.open(visitor.put(problem=Problem.PAYMENT_FAILED, customer=wallet)).page
    assert page.one("input", id="name-2").attributes["value"] == "987"
    assert page.one("input", id="second-2").attributes["value"] == "EUR"


def test_a_failed_wallet_of_no_provider_stays_in_the_address_field(offered: Customer) -> None:
    session = offered.put(problem=Problem.PAYMENT_FAILED, customer=WALLET)
    page = offered.open(session).page
    assert opened(offered.open(session)) == [False, False, False]
    assert page.one("input", id="wallet_address").attributes["value"] == WALLET.id


@pytest.mark.parametrize("wallet", ["unpeered", "too-small"])
def test_where_a_wallet_cannot_pay_the_others_are_open(offered: Customer, wallet: str) -> None:
    session = offered.world.create()
    for data in (
        {"wallet_address": wallet, "provider": FORM},
        {"wallet_address": f"{CEDAR}/{wallet}"},
    ):
        answer = offered.ask("POST", f"/pay/{session.id}/wallet", data=data)
        assert opened(answer) == [False, True, False, False], "not Cedar, which has refused"
        assert "Use another wallet" not in ["".join(one.text) for one in answer.page.all("summary")]
    offered.give(providers=(CEDAR_BANK,))
    answer = offered.form(session, f"{CEDAR}/{wallet}")
    assert opened(answer) == [False, True, False], "any address, where there is no other provider"


def test_providers_at_one_host_are_told_apart_by_the_form_of_their_addresses(
    visitor: Customer,
) -> None:
    cedar = Provider("Cedar", "https://wallet.example/cedar/{name}", "https://cedar.example/")
    harbor = Provider("Harbor", "https://wallet.example/harbor/{name}", "https://harbor.example/")
    visitor.give(providers=(cedar, harbor))
    wallet = replace(WALLET, id="https://wallet.example/harbor/bob")
    session = visitor.put_in("awaiting_approval", customer=wallet)
    assert "Approve at Harbor" in visitor.open(session).page.main


def test_a_customer_without_a_wallet_is_told_where_to_get_one(offered: Customer) -> None:
    page = offered.open(offered.world.create()).page
    assert "I have no wallet yet" in page.main
    assert re.search(r"Your order waits here until March 2, 2026[^.]+ UTC\.", page.main)
    assert {CEDAR_BANK.website, OTHER.website} <= set(page.links)
    (link,) = page.all("a", href=OTHER.website)
    assert link.attributes["rel"] == "noopener noreferrer"


def test_without_providers_there_is_only_the_address(visitor: Customer) -> None:
    page = visitor.open(visitor.world.create()).page
    assert page.all("details", **{"class": "way"}) == []
    assert "I have no wallet yet" not in page.main
    assert page.one("input", name="wallet_address")


def test_the_merchants_own_list_takes_the_place_of_the_operators(offered: Customer) -> None:
    offered.give(providers=(replace(OTHER, name="Mine"),))
    page = offered.open(offered.world.create()).page
    assert "Mine" in page.main
    assert "Cedar Bank" not in page.main


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("nobody", "We could not find “nobody” at Cedar Bank. Check it for typos"),
        ("alice müller", "We could not find “alice müller” at Cedar Bank."),
        ("+49 170 1234567", "We could not find “+49 170 1234567” at Cedar Bank."),
        ("4242 4242 4242 4242", "This looks like a card number."),
        ("alice@wallet.example", "This looks like an e-mail address."),
        ("", "Enter your wallet address."),
        ("a/../b", "We could not find “a/../b” at Cedar Bank."),
    ],
)
def test_a_mistake_is_told_at_the_provider_where_it_was_made(
    offered: Customer, typed: str, said: str
) -> None:
    session = offered.world.create()
    data = {"wallet_address": typed, "provider": FORM}
    answer = offered.ask("POST", f"/pay/{session.id}/wallet", data=data)
    page = answer.page
    assert (answer.status, said in page.main) == (424, True)
    (wrong,) = page.all("input", **{"aria-invalid": "true"})
    assert wrong.attributes["id"] == "name-1"
    assert wrong.attributes["value"] == ("" if "card" in said else typed)
    ways = page.all("details", **{"class": "way"})
    assert ["open" in way.attributes for way in ways] == [True, False, False, False]


def test_a_mistake_in_an_address_is_told_at_the_address(offered: Customer) -> None:
    page = offered.form(offered.world.create(), "alice").page
    ways = page.all("details", **{"class": "way"})
    assert ["open" in way.attributes for way in ways] == [False, False, False], "they are folded"
    assert page.one("input", **{"aria-invalid": "true"}).attributes["id"] == "wallet_address"


@pytest.mark.parametrize(
    "form", ["https://evil.example/", "javascript:{name}", "{name}", "<b>{name}", "x" * 3000]
)
def test_a_made_up_provider_gives_no_more_than_a_typed_address(
    offered: Customer, form: str
) -> None:
    session = offered.world.create()
    assert submit(offered, session.id, "alice", form) == 424
    assert offered.world.session(session.id).customer is None


def test_a_provider_has_its_logo_in_the_page_or_its_letter(offered: Customer) -> None:
    drawing = '<svg xmlns="http://www.w3.org/2000/svg"></svg>'
    logo = b64encode(drawing.encode()).decode()
    offered.give(providers=(replace(CEDAR_BANK, logo=logo), OTHER, replace(OTHER, logo="bm8=")))
    page = offered.open(offered.world.create()).page
    (picture,) = page.all("img", width="28")
    assert picture.attributes["src"] == f"data:image/svg+xml;base64,{logo}"
    marks = page.all("span", **{"class": "mark"})
    assert [each.attributes.get("data-initial") for each in marks[1:]] == [None, "O", "O"]


TWO = Provider(
    "Two", f"{CEDAR}/{{Wallet number: 123456789}}/{{Currency: USD}}", "https://two.example/"
)


@pytest.fixture
def two(visitor: Customer) -> Customer:
    visitor.give(providers=(TWO,))
    return visitor


def fill(visitor: Customer, first: str, second: str, form: str = TWO.form) -> Answer:
    data = {"wallet_address": first, "second": second, "provider": form}
    path = f"/pay/{visitor.world.create().id}/wallet"
    return visitor.ask("POST", path, data=data)


def test_a_tile_asks_for_what_its_provider_calls_it_with_an_example(two: Customer) -> None:
    page = two.open(two.world.create()).page
    assert "Wallet number For example 123456789 Currency For example USD" in page.main
    assert page.one("label", **{"for": "name-1"}).text == ["Wallet number"]
    assert page.one("label", **{"for": "second-1"}).text == ["Currency"]
    first, second = page.one("input", id="name-1"), page.one("input", id="second-1")
    assert (first.attributes["name"], second.attributes["name"]) == ("wallet_address", "second")


def test_what_was_typed_into_two_fields_is_one_address(two: Customer) -> None:
    page = fill(two, " 987654321 ", "EUR").page
    assert "We could not find “987654321/EUR” at Two." in page.main
    assert page.one("input", id="name-1").attributes["value"] == "987654321"
    assert page.one("input", id="second-1").attributes["value"] == "EUR"
    assert ("GET", f"{CEDAR}/987654321/EUR") in two.world.transport.sent


def test_a_whole_address_in_the_first_of_two_fields_is_taken_alone(two: Customer) -> None:
    assert fill(two, f"{CEDAR}/alice", "USD").status == 303


@pytest.mark.parametrize("place", [0, 1])
def test_a_card_number_in_either_of_two_fields_is_neither_sent_nor_shown(
    two: Customer, place: int
) -> None:
    typed = ["987654321", "EUR"]
    typed[place] = "4242 4242 4242 4242"
    answer = fill(two, *typed)
    assert "This looks like a card number." in answer.page.main
    assert "4242" not in answer.body
    assert not any(url.startswith(CEDAR) for _, url in two.world.transport.sent)


@pytest.mark.parametrize("form", ["", FORM, "{a}", "{a}/{b}/{c}", "https://x.example/{", "}{"])
def test_a_second_field_of_a_made_up_form_is_refused_like_a_typed_address(
    two: Customer, form: str
) -> None:
    assert fill(two, "nobody", "x", form).status == 424


def test_the_price_page_offers_the_same_ways_for_another_wallet(offered: Customer) -> None:
    page = offered.open(offered.submitted()).page
    ways = page.all("details", **{"class": "way"})
    said = ["".join(way.text) for way in ways]
    names = ("Cedar Bank", "Other & Co", "Another wallet", "I have no wallet yet")
    assert all(name in text for name, text in zip(names, said, strict=True))
    assert not any("open" in way.attributes for way in ways)
    assert page.one("div", id="kept")
