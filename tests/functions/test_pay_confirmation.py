from __future__ import annotations

import pytest

from checkout.domain.session import Status
from checkout.open_payments.errors import OutcomeUnknown
from checkout.ports.wallets import CompletionPolicy
from tests.hosted_pages import STAGES, Customer, customer
from tests.product import BASE_URL, CEDAR, World, on, raising

BEFORE_PAYMENT = ("open", "preparing", "awaiting_approval", "expired", "canceled")


def test_the_confirmation_says_what_was_paid_and_leads_to_the_shop(visitor: Customer) -> None:
    session = visitor.world.pay(visitor.world.create())
    page = visitor.open(session, "/success").page
    assert session.quote is not None
    assert session.quote.debit.value == 1854
    assert "You paid €18.54" in page.main
    assert "Harbor" not in page.main  # the merchant is set up as "Shop"
    assert "Shop received $20.00" in page.main
    assert f"{CEDAR}/alice" in page.main
    assert session.id in page.main
    assert page.one("a", id="continue").attributes["href"] == session.success_url
    assert f"s={session.id}" in session.success_url


def test_the_countdown_can_be_stopped_and_without_script_there_is_none(visitor: Customer) -> None:
    session = visitor.world.pay(visitor.world.create())
    page = visitor.open(session, "/success").page
    (countdown,) = [one for one in page.all("p") if "data-countdown" in one.attributes]
    assert countdown.attributes["data-countdown"] == "20"
    assert "".join(countdown.text) == ""  # the script fills it in
    assert "hidden" in page.one("button", id="stay").attributes  # the script shows it
    assert page.all("meta", **{"http-equiv": "refresh"}) == []
    own = visitor.open(session).page
    assert [one for one in own.elements if "data-countdown" in one.attributes] == []
    assert session.success_url in own.links


def test_an_instructed_payment_shows_what_was_promised() -> None:
    with customer(World(policy=CompletionPolicy.INSTRUCTED)) as visitor:
        fault = raising(OutcomeUnknown("down"))
        visitor.world.transport.before = on("GET", "/incoming-payments/", fault)
        session = visitor.world.pay(visitor.world.create())
        assert session.received is None
        assert "Shop received $20.00" in visitor.open(session, "/success").page.main


@pytest.mark.parametrize("stage", BEFORE_PAYMENT)
def test_without_a_payment_there_is_no_confirmation(visitor: Customer, stage: str) -> None:
    session = visitor.put_in(stage)
    assert visitor.open(session, "/success").location == f"/pay/{session.id}"


def test_a_payment_under_way_is_confirmed_by_who_asks_for_its_status(visitor: Customer) -> None:
    world = visitor.world
    session = world.pay(world.create(), f"{CEDAR}/late")
    assert session.status is Status.PROCESSING
    success = f"{BASE_URL}/pay/{session.id}/success"
    answer = visitor.open(session, "/status")
    assert answer.json == {"status": "processing", "next": success}
    world.clock.pass_time(30)
    answer = visitor.open(session, "/status")
    assert answer.json == {"status": "completed", "next": success}
    assert world.received() == 2000


@pytest.mark.parametrize("rest", ["", "/success"])
def test_a_payment_under_way_is_confirmed_without_script_too(visitor: Customer, rest: str) -> None:
    world = visitor.world
    session = world.pay(world.create(), f"{CEDAR}/late")
    world.clock.pass_time(30)
    assert "Paid. Thank you!" in visitor.open(session, rest).page.main


@pytest.mark.parametrize("stage", STAGES)
def test_the_status_says_where_the_page_should_be(visitor: Customer, stage: str) -> None:
    session = visitor.put_in(stage)
    success = None if stage in BEFORE_PAYMENT else f"{BASE_URL}/pay/{session.id}/success"
    answer = visitor.open(session, "/status")
    assert answer.json == {"status": session.status.value, "next": success}


def test_an_open_page_learns_of_its_expiry(visitor: Customer) -> None:
    session = visitor.world.create()
    visitor.world.clock.pass_time(86_400)
    assert visitor.open(session, "/status").json == {"status": "expired", "next": None}
    assert "expired" in visitor.open(session).page.main


def test_the_status_of_an_unknown_session_is_json_even_to_a_browser(visitor: Customer) -> None:
    answer = visitor.get("/pay/cs_0000000000000000000000/status")
    assert (answer.status, answer.code) == (404, "resource_missing")
