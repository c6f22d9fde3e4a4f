from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest

from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Status
from checkout.ports import CompletionPolicy
from open_payments.errors import OutcomeUnknown
from tests.support.basics import NOW
from tests.support.flows import BASE_URL, CEDAR, World, on, raising
from tests.support.hosted_pages import STAGES, Customer, customer

BEFORE_PAYMENT = ("open", "preparing", "awaiting_approval", "expired", "canceled")


def following(status: str, next: str | None = None, **known: Any) -> dict[str, Any]:
    """Return what an open page follows; what does not apply is null."""
    nothing = {"progress": None, "part": None, "seconds_left": None}
    return {"status": status, "next": next, **nothing, **known}


def test_the_confirmation_says_what_was_paid_and_leads_to_the_shop(visitor: Customer) -> None:
    session = visitor.world.pay(visitor.world.create())
    page = visitor.open(session, "/success").page
    assert session.quote is not None
    assert session.quote.debit.value == 1854
    assert "You paid €18.54" in page.main
    assert "Payment to: Harbor Coffee" in page.main  # the wallet's own name beside the shop's
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
    assert answer.json == following("processing", success, progress="waiting")
    world.clock.pass_time(30)
    answer = visitor.open(session, "/status")
    assert answer.json == following("completed", success)
    assert world.received() == 2000


def test_a_page_that_waits_says_until_when_and_it_is_so(buyer: Customer) -> None:
    world = buyer.world
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    page = buyer.open(session, "/success").page
    assert "You will know for certain by" in page.main
    *_, moment = page.all("time")
    told = datetime.fromisoformat(moment.attributes["datetime"])
    while world.session(session.id).payment_in_flight:
        assert world.clock.now() < told
        world.clock.pass_time(5)
        buyer.open(session, "/status")
    assert world.session(session.id).status is Status.OPEN
    assert told - world.clock.now() < timedelta(minutes=2), "nor is it much later"


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
    progress = {"continuing": "sending", "paying": "sending", "processing": "waiting"}.get(stage)
    assert answer.json == following(session.status.value, success, progress=progress)


def test_an_open_page_learns_of_its_expiry(visitor: Customer) -> None:
    session = visitor.world.create()
    visitor.world.clock.pass_time(86_400)
    assert visitor.open(session, "/status").json == following("expired")
    assert "expired" in visitor.open(session).page.main


def test_the_status_of_an_unknown_session_is_json_even_to_a_browser(visitor: Customer) -> None:
    answer = visitor.get("/pay/cs_0000000000000000000000/status")
    assert (answer.status, answer.code) == (404, "resource_missing")


PART: dict[str, Any] = {"received": 999, "attention": Attention.PARTIAL_PAYMENT}
UNDECIDED: dict[str, Any] = {"attention": Attention.UNDECIDED}
CLOSING: dict[str, Any] = {"closing_at": NOW}
A_PART = {"progress": "part", "part": 999}
BOTH_AMOUNTS = "Arrived $9.99 Missing $10.01 Do not pay again."
UNKNOWN = "We do not know yet whether the money has arrived"


@pytest.mark.parametrize(
    ("changes", "known", "said"),
    [
        ({}, {"progress": "waiting"}, "has accepted the payment"),
        (PART, A_PART, BOTH_AMOUNTS),
        (PART | CLOSING, A_PART, BOTH_AMOUNTS),
        (CLOSING, {"progress": "closing"}, "The payment has not arrived"),
        (
            CLOSING | {"closed_at": NOW},
            {"progress": "closing", "seconds_left": 35},
            "Wait before you pay again.",
        ),
        (UNDECIDED, {"progress": "undecided"}, UNKNOWN),
        (UNDECIDED | CLOSING, {"progress": "undecided"}, UNKNOWN),
    ],
)
def test_page_and_status_tell_what_is_known_of_a_payment_in_flight(
    visitor: Customer, changes: dict[str, Any], known: dict[str, Any], said: str
) -> None:
    session = visitor.put_in("processing", **changes)
    success = f"{BASE_URL}/pay/{session.id}/success"
    assert visitor.open(session, "/status").json == following("processing", success, **known)
    page = visitor.open(session, "/success").page
    assert said in page.main
    assert "You have not been charged" not in page.main
    state = f"processing,{known['progress']},{known.get('part', '')}"
    assert page.one("main").attributes["data-state"] == state


def test_only_a_wallet_that_has_accepted_is_said_to_have_accepted(visitor: Customer) -> None:
    session = visitor.put_in("paying")
    said = visitor.open(session, "/success").page.main
    assert "accepted" not in said
    assert "We are waiting for your wallet provider to send the money." in said


def test_the_fence_is_counted_down_from_when_the_incoming_payment_was_closed(
    visitor: Customer,
) -> None:
    session = visitor.put_in("processing", closing_at=NOW, closed_at=NOW)
    for passed, left in ((8, 27), (30, 0)):
        visitor.world.clock.pass_time(passed)
        assert visitor.open(session, "/status").json["seconds_left"] == left
    body = visitor.open(session, "/success").body
    assert "--left: 0;" in body
    assert "animation-duration: 0s" in body


def test_a_part_leads_to_the_contact_with_the_number_to_quote(visitor: Customer) -> None:
    visitor.give(contact="help@shop.example")
    session = visitor.put_in("processing", **PART, client_reference_id="A 1&2")
    page = visitor.open(session, "/success").page
    button = page.one("a", **{"class": "button"})
    assert button.attributes["href"] == "mailto:help@shop.example?subject=A%201%262"
    assert page.one("progress").attributes["value"] == "999"
    assert page.one("progress").attributes["max"] == "2000"
