"""Test that what a customer types by mistake is named, is sent nowhere, and is kept nowhere."""

from __future__ import annotations

import logging
import socket
from dataclasses import replace
from typing import Any

import pytest

from checkout.adapters.outbound.wallets import SignedWallets
from checkout.domain.ground.typed_address import AddressMistake
from checkout.domain.session.record import Status
from open_payments.errors import NoSuchHost
from open_payments.transports.public import PublicTransport
from pay.language import texts
from tests.support.cases import MISTYPED
from tests.support.flows import on, raising
from tests.support.hosted_pages import Customer

# No form can send half of a surrogate pair.
TYPED = [
    (mistake, text)
    for mistake, several in MISTYPED.items()
    for text in several
    if text.encode("utf-8", "ignore").decode() == text
]
ENGLISH = texts("en")


def sentence(mistake: AddressMistake) -> str:
    if mistake is AddressMistake.CHARACTER:
        return "A wallet address has no"
    return ENGLISH[f"fault.typed.{mistake}"]


@pytest.mark.parametrize(("mistake", "text"), TYPED)
def test_a_mistake_has_its_own_sentence_and_nobody_is_called(
    visitor: Customer, caplog: pytest.LogCaptureFixture, mistake: AddressMistake, text: str
) -> None:
    world = visitor.world
    world.services = replace(world.services, allow_loopback=False)  # as in production
    caplog.set_level(logging.DEBUG)
    session = world.create()
    asked = len(world.transport.sent)
    answer = visitor.form(session, text)
    assert answer.status == 424
    said = answer.page.one("div", role="alert")
    assert sentence(mistake) in "".join(said.text)
    assert "You have not been charged." in answer.page.main
    assert len(world.transport.sent) == asked
    assert world.session(session.id) == session
    assert world.session(session.id).status is Status.OPEN
    if mistake.confidential:
        digits = "".join(text.split())
        assert text not in answer.body
        assert digits not in "".join(answer.body.split())
        assert all(text not in record.getMessage() for record in caplog.records)


def test_an_address_whose_name_does_not_exist_is_not_blamed_on_a_provider(
    visitor: Customer,
) -> None:
    visitor.world.transport.before = on("GET", "/alice", raising(NoSuchHost("no such name")))
    session = visitor.world.create()
    answer = visitor.submit_json(session, {"wallet_address": "wallet.exmaple/alice"})
    assert (answer.status, answer.code) == (424, "wallet_invalid")
    page = visitor.form(session, "wallet.exmaple/alice").page
    assert "We could not find a wallet at this address." in page.main
    assert page.one("button").text == ["See the price"]
    assert page.one("input", name="wallet_address").attributes["value"] == "wallet.exmaple/alice"


def test_programs_are_told_the_mistake_in_the_message(visitor: Customer) -> None:
    answer = visitor.submit_json(
        visitor.world.create(), {"wallet_address": "DE89370400440532013000"}
    )
    assert answer.code == "wallet_invalid"
    assert "IBAN" in answer.json["error"]["message"]


def test_an_address_with_http_is_read_as_https(visitor: Customer) -> None:
    session = visitor.world.create()
    assert visitor.form(session, "http://localhost:4101/alice").status == 303


def test_no_name_is_looked_up_for_what_is_no_address(visitor: Customer) -> None:
    """With the product's own HTTP client, whose look-ups are counted."""
    looked_up: list[str] = []

    def resolve(host: str, *_: Any, **__: Any) -> Any:
        looked_up.append(host)
        raise socket.gaierror(socket.EAI_NONAME, "no such name")

    world = visitor.world
    http = PublicTransport(user_agent="test", resolve=resolve)
    wallets = SignedWallets(http, world.vault, world.clock, allow_loopback=False)
    world.services = replace(world.services, wallets=wallets, allow_loopback=False)
    assert len({text for _, text in TYPED}) >= 40
    for _, text in TYPED:
        assert visitor.form(world.create(), text).status == 424
    assert looked_up == []
    assert visitor.form(world.create(), "wallet.exmaple/alice").status == 424
    assert looked_up == ["wallet.exmaple"], "of an address it is"
    http.close()
