from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from checkout.domain.session import Phase, Status
from checkout.ports.wallets import CompletionPolicy
from tests.hosted_pages import AWAITING, QUOTE, Customer, customer
from tests.product import BASE_URL, CEDAR, World
from tests.support import NOW


@pytest.fixture
def browser() -> Iterator[Customer]:
    with customer() as found:
        yield found


def test_the_confirmation_says_what_was_paid_and_received_and_leads_to_the_shop(
    browser: Customer,
) -> None:
    session = browser.world.pay(browser.world.create())
    page = browser.open(session, "/success").page
    assert session.quote is not None
    assert f"You paid {session.quote.debit}" in page.main
    assert "Harbor" not in page.main  # the merchant is set up as "Shop"
    assert "Shop received 20.00 USD" in page.main
    assert f"{CEDAR}/alice" in page.main
    assert session.id in page.main
    assert page.one("a", id="continue").attributes["href"] == session.success_url
    assert f"s={session.id}" in session.success_url


def test_the_countdown_can_be_stopped_and_without_script_there_is_none(browser: Customer) -> None:
    page = browser.open(browser.world.pay(browser.world.create()), "/success").page
    (countdown,) = [one for one in page.all("p") if "data-countdown" in one.attributes]
    assert countdown.attributes["data-countdown"] == "5"
    assert "".join(countdown.text) == ""  # the script fills it in
    assert "hidden" in page.one("button", id="stay").attributes  # the script shows it
    assert page.all("meta", **{"http-equiv": "refresh"}) == []


def test_the_sessions_own_page_of_a_paid_session_does_not_send_away(browser: Customer) -> None:
    session = browser.world.pay(browser.world.create())
    page = browser.open(session).page
    assert [one for one in page.elements if "data-countdown" in one.attributes] == []
    assert session.success_url in page.links


def test_an_instructed_payment_shows_what_was_promised() -> None:
    with customer(World(policy=CompletionPolicy.INSTRUCTED)) as browser:
        session = browser.world.pay(browser.world.create())
        assert session.received is None
        assert "Shop received 20.00 USD" in browser.open(session, "/success").page.main


@pytest.mark.parametrize(
    ("status", "fields"),
    [
        (Status.OPEN, {}),
        (Status.PREPARING, {"lease_until": NOW.replace(hour=20)}),
        (Status.AWAITING_APPROVAL, AWAITING),
        (Status.EXPIRED, {}),
        (Status.CANCELED, {}),
    ],
)
def test_before_and_without_a_payment_there_is_no_confirmation(
    browser: Customer, status: Status, fields: dict[str, Any]
) -> None:
    session = browser.put(status, **fields)
    assert browser.open(session, "/success").location == f"/pay/{session.id}"


def test_a_payment_under_way_is_confirmed_by_who_asks_for_its_status(browser: Customer) -> None:
    world = browser.world
    session = world.pay(world.create(), f"{CEDAR}/late")
    assert session.status is Status.PROCESSING
    success = f"{BASE_URL}/pay/{session.id}/success"
    answer = browser.open(session, "/status")
    assert answer.json == {"status": "processing", "next": success}
    world.clock.pass_time(30)
    answer = browser.open(session, "/status")
    assert answer.json == {"status": "completed", "next": success}
    assert world.received() == 2000


@pytest.mark.parametrize("rest", ["", "/success"])
def test_a_payment_under_way_is_confirmed_without_script_too(browser: Customer, rest: str) -> None:
    world = browser.world
    session = world.pay(world.create(), f"{CEDAR}/late")
    world.clock.pass_time(30)
    assert "Paid. Thank you!" in browser.open(session, rest).page.main


def test_a_payment_that_failed_for_certain_leads_back_to_the_open_page(browser: Customer) -> None:
    world = browser.world
    session = world.settle(world.pay(world.create(), f"{CEDAR}/no-funds"))
    assert session.status is Status.OPEN
    assert browser.open(session, "/status").json == {"status": "open", "next": None}
    answer = browser.open(session, "/success")
    page = browser.get(answer.location).page
    assert "The shop has not received any money" in page.main
    assert "You have not been charged." not in page.main


@pytest.mark.parametrize(
    ("status", "fields", "leads_on"),
    [
        (Status.OPEN, {}, False),
        (Status.PREPARING, {"lease_until": NOW.replace(hour=20)}, False),
        (Status.AWAITING_APPROVAL, AWAITING, False),
        (
            Status.AWAITING_APPROVAL,
            {"phase": Phase.CONTINUING, "lease_until": NOW.replace(hour=20)},
            True,
        ),
        (Status.AWAITING_APPROVAL, {"phase": Phase.PAYING}, True),
        (Status.PROCESSING, {}, True),
        (Status.COMPLETED, {"quote": QUOTE}, True),
        (Status.EXPIRED, {}, False),
        (Status.CANCELED, {}, False),
    ],
)
def test_the_status_says_where_the_page_should_be(
    browser: Customer, status: Status, fields: dict[str, Any], leads_on: bool
) -> None:
    session = browser.put(status, **fields)
    answer = browser.open(session, "/status")
    success = f"{BASE_URL}/pay/{session.id}/success"
    assert answer.json == {"status": status.value, "next": success if leads_on else None}


def test_an_open_page_learns_of_its_expiry(browser: Customer) -> None:
    session = browser.world.create()
    browser.world.clock.pass_time(86_400)
    assert browser.open(session, "/status").json == {"status": "expired", "next": None}
    assert "expired" in browser.open(session).page.main


def test_the_status_of_an_unknown_session_is_a_json_404_even_to_a_browser(
    browser: Customer,
) -> None:
    answer = browser.get("/pay/cs_0000000000000000000000/status")
    assert (answer.status, answer.code) == (404, "resource_missing")
