"""The page on which a customer names another wallet for a refund."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import Session
from checkout.flows.refund import alternative_wallet, request
from open_payments.errors import OutcomeUnknown
from tests.support.flows import CEDAR, HARBOR, World, on, raising
from tests.support.hosted_pages import Customer, customer
from tests.support.refund_books import again, ask, balance, fund, payments, send, wait

ALICE, CAROL, BOB = f"{CEDAR}/alice", f"{CEDAR}/carol", f"{HARBOR}/bob"


@pytest.fixture
def buyer() -> Iterator[Customer]:
    world = World()
    fund(world)
    with customer(world) as found:
        yield found


@pytest.fixture
def sold(buyer: Customer) -> Session:
    return buyer.world.pay(buyer.world.create(2000), ALICE)


@pytest.fixture
def refund(buyer: Customer, sold: Session) -> Refund:
    return ask(buyer.world, sold)


@pytest.fixture
def path(buyer: Customer, refund: Refund) -> str:
    made = alternative_wallet.offer(buyer.world.services, buyer.world.key(), refund.id)
    return urlsplit(made.link).path


def posted(buyer: Customer, path: str, wallet: str, **fields: str) -> Any:
    return buyer.ask("POST", path, data={"wallet_address": wallet, **fields})


def words(answer: Any) -> str:
    return " ".join(answer.page.main.split())


def test_the_customer_names_a_wallet_and_the_page_says_what_follows(
    buyer: Customer, refund: Refund, path: str
) -> None:
    shown = words(buyer.get(path))
    assert "Your refund €18.54" in shown
    assert "Shop wants to send you this money back, but to another wallet" in shown
    before, made = balance(buyer.world, CAROL), payments(buyer.world)
    answer = posted(buyer, path, CAROL)
    assert (answer.status, answer.headers["location"]) == (303, path)
    done = buyer.get(path)
    assert "Shop now has your wallet address" in words(done)
    assert CAROL in words(done)
    assert done.page.all("form") == []
    assert (balance(buyer.world, CAROL), payments(buyer.world)) == (before, made)
    assert again(buyer.world, refund).wallet == CAROL


def test_a_refund_at_cost_shows_what_it_costs(buyer: Customer, sold: Session) -> None:
    from checkout.domain.refund.record import AmountMode

    refund = ask(buyer.world, sold, 500, mode=AmountMode.AT_COST)
    made = alternative_wallet.offer(buyer.world.services, buyer.world.key(), refund.id)
    assert "Your refund $5.00" in words(buyer.get(urlsplit(made.link).path))


def test_a_used_link_sends_no_second_wallet(buyer: Customer, refund: Refund, path: str) -> None:
    posted(buyer, path, CAROL)
    assert posted(buyer, path, ALICE).status == 303
    assert again(buyer.world, refund).wallet == CAROL


def test_a_link_that_is_over_says_so(buyer: Customer, refund: Refund, path: str) -> None:
    request.cancel(buyer.world.services, buyer.world.key(), refund.id)
    page = buyer.get(path)
    assert "This link is not used any more." in words(page)
    assert page.page.all("form") == []


def test_a_refund_that_has_arrived_is_shown(buyer: Customer, refund: Refund, path: str) -> None:
    posted(buyer, path, CAROL)
    wait(buyer.world, send(buyer.world, again(buyer.world, refund)))
    assert "Refunded €18.54 ($20.00)" in words(buyer.get(path))


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("", "Enter your wallet address"),
        ("4111 1111 1111 1111", "card"),
        (f"{CEDAR}/nobody", "We could not find a wallet at this address."),
        (BOB, "This wallet holds another currency than the refund."),
    ],
)
def test_a_wallet_that_cannot_be_used_is_told_beside_the_field(
    buyer: Customer, refund: Refund, path: str, typed: str, said: str
) -> None:
    answer = posted(buyer, path, typed)
    assert answer.status == 424, "as the wallet's form of a payment"
    assert said in words(answer)
    [field] = answer.page.all("input", id="wallet_address")
    assert field.attributes["aria-invalid"] == "true"
    assert "field-error" in field.attributes["aria-describedby"]
    # A card's number is never written back into a page.
    assert field.attributes.get("value", "") == ("" if typed.startswith("4") else typed)
    assert again(buyer.world, refund).wallet == ALICE


def test_a_wallet_that_does_not_answer_is_told(buyer: Customer, path: str) -> None:
    buyer.world.transport.before = on("GET", "/carol", raising(OutcomeUnknown("down")))
    answer = posted(buyer, path, CAROL)
    assert answer.status == 424
    assert "We could not get a usable answer from your wallet provider." in words(answer)


def test_a_refund_that_changes_meanwhile_is_told(
    buyer: Customer, refund: Refund, path: str
) -> None:
    world = buyer.world
    key = world.key()
    cancel = on("GET", "/carol", lambda: request.cancel(world.services, key, refund.id))
    world.transport.before = cancel
    answer = posted(buyer, path, CAROL)
    assert answer.status == 409
    assert "This link is not used any more." in words(answer)


@pytest.mark.parametrize("fields", [{"amount": "9999"}, {"refund": "re_x"}])
def test_no_other_field_is_taken(
    buyer: Customer, refund: Refund, path: str, fields: dict[str, str]
) -> None:
    assert posted(buyer, path, CAROL, **fields).status == 400
    assert again(buyer.world, refund).wallet == ALICE


def test_a_guessed_link_is_not_told_from_one_that_never_was(
    buyer: Customer, sold: Session, path: str
) -> None:
    home = path.rpartition("/")[0]
    for wrong in ("x" * 43, "x", path.rpartition("/")[2][::-1]):
        for answer in (buyer.get(f"{home}/{wrong}"), posted(buyer, f"{home}/{wrong}", CAROL)):
            assert answer.status == 404
            assert sold.id not in words(answer)


def test_looking_ahead_and_head_write_nothing(buyer: Customer, refund: Refund, path: str) -> None:
    version = again(buyer.world, refund).version
    assert buyer.ask("HEAD", path).status == 200
    assert buyer.get(path, headers={"sec-purpose": "prefetch"}).status == 204
    buyer.get(path)
    assert again(buyer.world, refund).version == version


def test_the_page_is_in_every_language(buyer: Customer, path: str) -> None:
    seen = set()
    for language in LANGUAGES:
        answer = buyer.get(path, headers={"accept-language": language})
        [html] = answer.page.all("html")
        assert html.attributes["lang"].startswith(language)
        seen.add(words(answer).split("€")[0])
    assert len(seen) == len(LANGUAGES)


def test_the_link_is_in_no_log_and_leaves_with_no_link(
    buyer: Customer, path: str, capsys: pytest.CaptureFixture[str], caplog: Any
) -> None:
    token = path.rpartition("/")[2]
    answers = [
        buyer.get(path),
        posted(buyer, path, f"{CEDAR}/nobody"),
        posted(buyer, path, CAROL),
        buyer.get(path.replace(token, token[::-1])),
    ]
    said = "".join(capsys.readouterr()) + caplog.text
    assert token not in said
    assert token[::-1] not in said
    for answer in answers:
        assert answer.headers["referrer-policy"] == "same-origin"
        assert "no-store" in answer.headers["cache-control"]
        outside = re.findall(r'href="(https?://[^"]+)"', answer.body)
        assert not any(token in each for each in outside)
