"""Money that is not what was asked, or not from where: what customer, merchant and server see."""

from __future__ import annotations

from datetime import timedelta

import pytest

from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Session, Status
from checkout.flows.session import close
from dashboard import texts
from open_payments.errors import OutcomeUnknown
from tests.support.dashboard_pages import dashboard_of
from tests.support.flows import CEDAR, World, on, raising
from tests.support.hosted_pages import Customer, Page

pytestmark = pytest.mark.untraced


def approved(visitor: Customer, wallet: str) -> Session:
    """Let the customer pay by that wallet's form and come back from its approval."""
    session = visitor.world.create()
    visitor.form(session, f"{CEDAR}/{wallet}")
    awaiting = visitor.world.session(session.id)
    visitor.back_from(visitor.world.network.approve(str(awaiting.interact_url)))
    return visitor.world.session(session.id)


def of_merchant(world: World, session: Session) -> Page:
    with dashboard_of(world) as browser:
        return browser.get(f"/transactions/{session.id}").page


def test_one_unit_short_is_paid_and_says_so(visitor: Customer) -> None:
    session = approved(visitor, "one-short")
    assert (session.status, session.amount_received) == (Status.COMPLETED, 1999)
    page = visitor.open(session, "/success").page
    assert "Paid. Thank you!" in page.main
    assert "Shop received $19.99" in page.main
    told = of_merchant(visitor.world, session).main
    assert texts.WAITING["short"] in told
    assert "Received 19.99 USD 0.01 USD less than the price" in told
    assert "Needs attention" not in told


def test_without_a_tolerance_one_unit_short_waits_for_the_merchant(visitor: Customer) -> None:
    world = visitor.world
    with dashboard_of(world) as browser:
        browser.get("/settings")
        browser.post("/settings", {"tolerance": "0"})
        world.clock.pass_time(120)  # until the old settings are forgotten
        session = approved(visitor, "one-short")
        world.clock.pass_time(10)
        page = visitor.open(session, "/success").page
        assert "Arrived $19.99 Missing $0.01 Do not pay again" in page.main
        path = f"/transactions/{session.id}"
        told = browser.get(path).page.main
        assert "Only part of the money has arrived: 19.99 USD of 20.00 USD." in told
        browser.post(f"{path}/accept_as_paid")
        assert texts.WAITING["accepted"] in browser.get(path).page.main
    page = visitor.open(session, "/success").page
    assert "Paid. Thank you!" in page.main
    assert "Shop received $19.99" in page.main


def test_what_somebody_else_paid_completes_by_the_customers_open_page(visitor: Customer) -> None:
    world, session = visitor.world, visitor.world.create()
    visitor.form(session, f"{CEDAR}/paid-from-outside")
    assert "You pay" in visitor.open(session).page.main
    world.clock.pass_time(60)
    answer = visitor.open(session, "/status").json
    assert (answer["status"], answer["next"].endswith("/success")) == ("completed", True)
    page = visitor.open(session, "/success").page
    assert "Paid. Thank you!" in page.main
    assert "Shop received $20.00" in page.main
    assert "paid-from-outside" not in page.main, "this wallet has not paid"
    assert "You paid" not in page.main
    told = of_merchant(world, session).main
    assert texts.WAITING["completed"] in told
    assert "Received 20.00 USD" in told
    assert f"Customer paid {texts.OUTSIDE}" in told


def test_what_somebody_else_paid_completes_by_a_callback(visitor: Customer) -> None:
    session = approved(visitor, "paid-from-outside")
    assert session.status is Status.COMPLETED
    assert visitor.world.received() == 2000
    customer = visitor.world.network.account(f"{CEDAR}/paid-from-outside")
    assert customer is not None
    assert customer.balance == 10_000_00
    page = visitor.open(session, "/success").page
    assert "Paid. Thank you!" in page.main
    assert "You paid" not in page.main
    assert f"Customer paid {texts.OUTSIDE}" in of_merchant(visitor.world, session).main


def test_a_declined_callback_of_a_session_that_was_paid_meanwhile_shows_it_paid(
    visitor: Customer,
) -> None:
    session = visitor.world.create()
    visitor.form(session, f"{CEDAR}/paid-from-outside")
    visitor.world.clock.pass_time(60)
    back = visitor.open(session, "/grant/callback?result=grant_rejected")
    assert back.location == f"/pay/{session.id}/success"
    assert "Paid. Thank you!" in visitor.get(back.location).page.main


def test_a_wallet_submitted_after_that_gets_no_price_but_the_confirmation(
    visitor: Customer,
) -> None:
    wallet = f"{CEDAR}/paid-from-outside"
    by_form, by_json = visitor.world.create(), visitor.world.create()
    visitor.form(by_form, wallet)
    assert visitor.form(by_form, wallet).location == f"/pay/{by_form.id}/success"
    visitor.submit_json(by_json, {"wallet_address": wallet})
    answer = visitor.submit_json(by_json, {"wallet_address": wallet})
    assert answer.status == 200
    assert answer.json == {"status": "completed", "interact_url": None, "quote": None}


def test_a_part_from_outside_leads_a_submitted_wallet_to_the_page_that_says_so(
    visitor: Customer,
) -> None:
    world = visitor.world
    session = world.submit(world.create())
    world.pay_from_outside(session, 700)
    data = {"wallet_address": f"{CEDAR}/alice", "was": "1853"}
    answer = visitor.ask("POST", f"/pay/{session.id}/wallet", data=data)
    assert answer.location == f"/pay/{session.id}/success"
    assert "Arrived $7.00 Missing $13.00" in visitor.get(answer.location).page.main
    told = of_merchant(world, session).main
    assert texts.WAITING["partly_paid"] in told
    assert "Close the incoming payment" in told


def test_a_payment_that_never_arrives_is_confirming_until_its_incoming_payment_ends(
    visitor: Customer,
) -> None:
    world, session = visitor.world, approved(visitor, "never-closes")
    assert "Waiting for the money" in visitor.open(session, "/success").page.main
    world.settle(session, seconds=600)
    page = visitor.open(session, "/success").page
    assert "The payment has not arrived" in page.main
    assert "You have not been charged" not in page.main
    told = of_merchant(world, session).main
    assert texts.WAITING["closing"] in told
    assert "Received nothing yet" in told
    world.settle(session, seconds=2 * 86_400, every=600)
    page = visitor.open(session).page
    assert "This checkout has expired" in page.main
    assert "The shop has not received a payment." in page.main
    assert "You have not been charged" not in page.main
    told = of_merchant(world, session).main
    assert texts.WAITING["expired"] in told
    assert "Received nothing" in told


def test_money_that_arrives_after_the_end_is_told_to_everybody(visitor: Customer) -> None:
    world = visitor.world
    world.listen()
    session = world.submit(world.create())
    close.cancel(world.services, world.key(), session.id)
    world.pay_from_outside(session, 2000)
    world.clock.pass_time(1)
    page = visitor.open(session).page
    assert "Money arrived after this checkout had closed" in page.main
    assert "Money arrived after this checkout had closed" in page.main
    assert "Shop has received $20.00. Do not pay again" in page.main
    assert "You have not been charged" not in page.main
    stored = world.session(session.id)
    assert (stored.status, stored.attention) == (Status.CANCELED, Attention.LATE_PAYMENT)
    [event] = world.events()
    assert event["type"] == "checkout.session.late_payment"
    assert '"amount_received":2000' in event["body"]
    told = of_merchant(world, session).main
    assert "The event for the money that arrived late is in the delivery log." in told
    assert "Needs attention: Money arrived after the session had ended: 20.00 USD." in told
    assert texts.STEP["late_payment"] in told
    assert "It is still being checked how much the incoming payment has received." in told
    world.sweep(rounds=3)
    assert "still being checked" not in of_merchant(world, session).main


def test_an_ended_session_whose_wallet_does_not_answer_for_a_week_says_so(
    visitor: Customer,
) -> None:
    world = visitor.world
    session = world.submit(world.create(expires_in_seconds=1800))
    close.cancel(world.services, world.key(), session.id)
    world.clock.pass_time(1)
    world.transport.before = on("GET", "/incoming-payments/", raising(OutcomeUnknown("down")))
    for _ in range(10):
        visitor.open(session)
        world.clock.pass_time(86_400)
    told = of_merchant(world, session).main
    assert world.clock.now() - session.created_at > timedelta(days=8)
    assert texts.UNACCOUNTED[0] in told
    assert texts.UNACCOUNTED[1] in told
