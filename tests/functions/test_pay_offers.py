"""Test the ways in: providers to choose from, a name at one, and no wallet yet."""

from __future__ import annotations

from base64 import b64encode
from dataclasses import replace

import pytest

from checkout.domain.providers import Provider
from tests.hosted_pages import Customer
from tests.product import CEDAR

FORM = f"{CEDAR}/{{name}}"
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
    "typed", ["alice", " alice ", "@alice", f"{CEDAR}/alice", "$localhost:4101/alice"]
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
    assert names == ["Cedar Bank", "Other & Co", "Another wallet address"]
    assert [one.attributes["value"] for one in page.all("input", type="hidden")] == [
        FORM,
        OTHER.form,
    ]
    assert ["open" in way.attributes for way in ways] == [True, False, False]
    assert "other.example/…/x" in page.main


def test_a_customer_without_a_wallet_is_told_where_to_get_one(offered: Customer) -> None:
    page = offered.open(offered.world.create()).page
    assert "I have no wallet yet" in page.main
    assert "Your order waits here until March 2, 2026" in page.main
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
        ("nobody", "We could not find a wallet at this address."),
        ("4242 4242 4242 4242", "This looks like a card number."),
        ("alice@wallet.example", "This looks like an email address."),
        ("", "Enter your wallet address."),
        ("a/../b", "has no ..."),
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
    assert ["open" in way.attributes for way in ways] == [True, False, False]


def test_a_mistake_in_an_address_is_told_at_the_address(offered: Customer) -> None:
    page = offered.form(offered.world.create(), "alice").page
    ways = page.all("details", **{"class": "way"})
    assert ["open" in way.attributes for way in ways] == [False, False, True]
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
