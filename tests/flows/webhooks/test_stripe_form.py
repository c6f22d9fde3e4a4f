"""Deliveries to an endpoint whose format is Stripe's: its library reads and verifies them."""

from __future__ import annotations

import json
import re
from datetime import timedelta
from typing import Any

import pytest
import stripe

from checkout.adapters.dynamo.erasure import DynamoRecords
from checkout.domain.erasure import Customer
from checkout.domain.ground.addresses import Address
from checkout.domain.ground.ids import new_session_id
from checkout.domain.payment.attempt import Outcome, PaymentAttempt
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Problem
from checkout.domain.session.collect import Collect, Detail, Place
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.public import MESSAGES
from checkout.domain.session.record import Session, Status
from checkout.domain.stripe.objects import payment_intent
from checkout.domain.webhooks.event_types import (
    BESIDE,
    COMPLETED,
    OPTIONAL,
    PAYMENT_FAILED,
    PAYMENT_SUCCEEDED,
)
from checkout.domain.webhooks.record import Format
from checkout.flows import erase
from checkout.flows.payment.writes import move
from checkout.flows.session import close, details, metadata
from checkout.flows.webhooks import endpoints
from checkout.ports import Receipt
from tests.support.basics import NOW, a_session
from tests.support.flows import CEDAR, PREFIX, World


def listens(world: World, form: Format = Format.STRIPE) -> str:
    """Ask for all events but those that say the same of another object; return the secret."""
    secret = world.listen(*(each for each in OPTIONAL if each not in BESIDE))
    change(world, format=form)
    return secret


def all_got(world: World, secret: str) -> list[Any]:
    """Return the deliveries as Stripe's library gives them to a handler."""
    world.deliver_hinted()
    found = [
        # Its tolerance is against the machine's clock, which is not the test's.
        stripe.Webhook.construct_event(body, headers["Stripe-Signature"], secret, tolerance=10**12)
        for _, headers, body in world.receivers.got
    ]
    world.receivers.got.clear()
    return found


def got(world: World, secret: str) -> Any:
    """Return the one delivery as Stripe's library gives it to a handler."""
    [event] = all_got(world, secret)
    return event


def test_a_payment_is_an_event_with_the_session_in_it(world: World) -> None:
    secret = listens(world)
    session = world.pay(world.create(metadata_json='{"order":"ü-1","n":1}'))
    event = got(world, secret)
    assert (event.id, event.type, event.object) == (
        session.event,
        "checkout.session.completed",
        "event",
    )
    assert event.created == int(session.updated_at.timestamp())
    shown = event.data.object
    assert isinstance(shown, stripe.checkout.Session)
    assert (shown.id, shown.status, shown.payment_status) == (session.id, "complete", "paid")
    assert (shown.amount_total, shown.currency) == (2000, "usd")
    assert shown["metadata"].to_dict() == {"order": "ü-1", "n": "1"}
    assert shown.payment_intent == session.id.replace("cs_", "pi_")
    assert shown.url is None
    own = shown["open_payments"]
    assert (own["status"], own["customer_wallet"]) == ("completed", f"{CEDAR}/alice")


def test_a_cancel_is_an_expiry_there(world: World) -> None:
    secret = listens(world)
    session = world.create()
    close.cancel(world.services, world.key(), session.id)
    event = got(world, secret)
    assert event.type == "checkout.session.expired"
    assert event.data.object["status"] == "expired"
    assert event.data.object["open_payments"]["status"] == "canceled"


def change(world: World, **changes: Any) -> None:
    endpoints.update(world.endpoints, world.merchant.id, changes)


def late_payment(world: World) -> None:
    """Let 5.00 come for a session that has expired."""
    late = store(world, Status.EXPIRED, check_at=NOW)
    changes: dict[str, Any] = {"received": 500, "attention": Attention.LATE_PAYMENT}
    move(world.services, late, Event.LATE_PAYMENT, **changes)


def store(world: World, status: Status, **changes: Any) -> Session:
    identity = new_session_id(world.services.random_bytes)
    session = a_session(status, id=identity, merchant=world.merchant.id, **changes)
    assert world.services.sessions.create(session, None) is None
    return session


def disproved(world: World) -> Session:
    """A payment was made, nothing arrived, and nothing can any more."""
    closed = NOW - timedelta(seconds=36)
    stored = store(world, Status.PROCESSING, closing_at=closed, closed_at=closed)
    return move(world.core, stored, Event.PAYMENT_DISPROVED)


def test_a_payment_that_failed_is_told_to_those_who_ask(world: World) -> None:
    assert disproved(world).event is None
    assert world.events() == []
    secret = listens(world)
    session = disproved(world)
    assert (session.status, session.event) == (Status.OPEN, None)
    [stored] = world.events()
    assert stored["type"] == PAYMENT_FAILED
    assert json.loads(stored["body"])["status"] == "open"
    event = got(world, secret)
    assert event.type == "payment_intent.payment_failed", "Stripe's name of an attempt"
    shown = event.data.object
    assert isinstance(shown, stripe.PaymentIntent)
    assert (shown.id, shown.status) == (
        session.id.replace("cs_", "pi_"),
        "requires_payment_method",
    )
    assert (shown.amount, shown.amount_received) == (2000, 0)
    assert shown["open_payments"]["session"] == session.id


FAILED = "payment_intent_payment_attempt_failed"
# Written a second time: Stripe's word for each of ours.
WORDS = {
    "wallet_unreachable": "payment_method_provider_timeout",
    "wallet_invalid": FAILED,
    "wallet_unavailable": "payment_method_not_available",
    "amount_too_small_for_wallet": "amount_too_small",
    "merchant_wallet_error": FAILED,
    "preparation_interrupted": FAILED,
    "approval_unusable": "payment_intent_authentication_failure",
    "price_changed": FAILED,
    "payment_refused": "payment_method_provider_decline",
    "payment_failed": FAILED,
    "declined": "payment_method_customer_decline",
    "timed_out": "payment_intent_payment_attempt_expired",
}


@pytest.mark.parametrize("ours", MESSAGES)
def test_a_failed_attempt_is_told_in_a_word_of_stripes(ours: str) -> None:
    reported = ours in ("declined", "timed_out")
    attempt = PaymentAttempt(
        1,
        NOW,
        outcome=Outcome(ours) if reported else Outcome.FAILED,
        ended_at=NOW,
        problem=None if reported else ours,
    )
    session = a_session(
        Status.OPEN, problem=None if reported else Problem(ours), payment_attempts=(attempt,)
    )
    shown = payment_intent(session, base_url="https://pay.example", now=NOW)
    error = shown["last_payment_error"]
    assert (error["type"], error["code"]) == ("invalid_request_error", WORDS[ours])
    assert error["code"] in stripes_own_codes()
    assert error["message"]
    assert shown["open_payments"]["problem"] == ours


def stripes_own_codes() -> set[str]:
    """Return the codes that Stripe's own library has for `last_payment_error`."""
    hint = stripe.PaymentIntent.LastPaymentError.__annotations__["code"]
    return set(re.findall(r"[a-z0-9_]{4,}", str(hint)))


def test_a_body_counts_all_endpoints_that_get_it(world: World) -> None:
    """The bytes are fixed with the event, so the number is that of its first attempt."""
    listens(world)
    endpoints.configure(
        world.endpoints,
        world.merchant.id,
        url="https://shop.example/second",
        events=(),
        add=True,
        more={"format": Format.STRIPE},
    )
    world.pay(world.create())
    world.deliver_hinted()
    world.deliver_hinted()  # the first has stored the copy for the second endpoint
    told = [json.loads(body)["pending_webhooks"] for _, _, body in world.receivers.got]
    assert told == [2, 2]


def test_an_endpoint_gets_the_types_that_it_asked_for_and_no_other(world: World) -> None:
    secret = listens(world)

    change(world, asked=("checkout.session.completed", "charge.refunded"))
    late_payment(world)
    world.deliver_hinted()
    assert world.receivers.got == []
    world.pay(world.create())
    assert got(world, secret).type == "checkout.session.completed"
    change(world, asked=("charge.refunded",))
    world.pay(world.create())
    world.deliver_hinted()
    assert world.receivers.got == []
    for each in ("*", "checkout.session.late_payment"):
        change(world, asked=(each,))
        late_payment(world)
        world.deliver_hinted()
        [(_, _, body)] = world.receivers.got
        world.receivers.got.clear()
        assert json.loads(body)["type"] == "checkout.session.late_payment"


def test_a_payment_is_told_of_the_session_and_of_the_payment_to_those_who_ask(
    world: World,
) -> None:
    secret = listens(world)
    change(world, asked=("checkout.session.completed", "payment_intent.succeeded"))
    session = world.pay(world.create(metadata_json='{"order":"1"}'))
    events = all_got(world, secret)
    assert {each.type for each in events} == {
        "checkout.session.completed",
        "payment_intent.succeeded",
    }
    assert len({each.id for each in events}) == 2
    [paid] = [each for each in events if each.type == "payment_intent.succeeded"]
    shown = paid.data.object
    assert isinstance(shown, stripe.PaymentIntent)
    assert (shown.status, shown.amount_received) == ("succeeded", 2000)
    assert shown["open_payments"]["session"] == session.id
    assert session.event != paid.id, "the session names the event that tells of it"


def test_the_native_form_says_once_what_stripes_says_twice(world: World) -> None:
    listens(world, Format.NATIVE)
    world.pay(world.create())
    world.deliver_hinted()
    [(_, headers, _)] = world.receivers.got
    assert headers["Checkout-Event-Type"] == "checkout.session.completed"
    assert [each["type"] for each in world.events()] == ["checkout.session.completed"]


def test_both_events_of_a_payment_are_in_the_transaction_that_completes_it(world: World) -> None:
    listens(world)
    change(world, asked=("*",))
    transact, seen = world.dynamo.transact_write_items, []

    def written(**request: Any) -> Any:
        puts = [each["Put"]["Item"] for each in request["TransactItems"] if "Put" in each]
        seen.append({put["type"]["S"] for put in puts if put["id"]["S"].startswith("evt_")})
        return transact(**request)

    world.dynamo.transact_write_items = written  # type: ignore[method-assign]
    world.pay(world.create())
    assert {"checkout.session.completed", "payment_intent.succeeded"} in seen
    assert {each["id"] for each in world.events()} <= set(world.queue.messages)


def test_an_event_says_the_version_that_its_endpoint_expects(world: World) -> None:
    secret = listens(world)
    change(world, api_version="2024-06-20")
    world.pay(world.create(metadata_json='{"order":"ü-1"}'))
    event = got(world, secret)
    assert (event.api_version, event.data.object["metadata"]["order"]) == ("2024-06-20", "ü-1")


def test_late_money_and_tests_have_our_own_types(world: World) -> None:
    secret = listens(world)
    endpoints.ping(world.endpoints, world.merchant.id)
    event = got(world, secret)
    assert (event.type, event.data.object["object"]) == ("ping", "ping")
    late_payment(world)
    event = got(world, secret)
    assert event.type == "checkout.session.late_payment"
    assert event.data.object["open_payments"]["amount_received"] == 500


def test_each_form_is_frozen_when_the_session_changes(world: World) -> None:
    world.listen()
    world.pay(world.create())
    event = world.event()
    assert event.stripe_body is not None
    assert list(json.loads(event.body))[:2] == ["id", "status"]
    world.deliver_hinted()
    [(_, headers, body)] = world.receivers.got
    assert body.decode() == event.body
    assert "Stripe-Signature" not in headers
    change(world, format=Format.STRIPE)
    endpoints.resend(world.endpoints, world.merchant.id, event.id)
    world.deliver_hinted()
    assert world.receivers.got[1][2].decode() == event.stripe_body


def test_while_a_secret_is_rolled_the_newest_signs_last(world: World) -> None:
    before = listens(world)
    rolled = endpoints.roll_secret(
        world.endpoints, world.merchant.id, overlap=timedelta(hours=1)
    ).secret
    assert rolled is not None
    endpoints.ping(world.endpoints, world.merchant.id)
    world.deliver_hinted()
    [(_, headers, body)] = world.receivers.got
    header = headers["Stripe-Signature"]
    for secret in (before, rolled):
        stripe.Webhook.construct_event(body, header, secret, tolerance=10**12)
    kept = dict(part.split("=", 1) for part in header.split(","))  # as a careless handler keeps it
    only = f"t={kept['t']},v1={kept['v1']}"
    stripe.Webhook.construct_event(body, only, rolled, tolerance=10**12)
    assert headers["Checkout-Signature"].split(",")[1] == f"v1={kept['v1']}"


# --- what the customer has given

ANA = CustomerDetails(
    email="ana@example.com",
    name="Ana Muster",
    shipping=Address("DE", name="Ana Muster", line1="Am langen Weg 1", city="Berlin"),
)
ASKED = Collect(asked=frozenset({Detail.EMAIL, Place.SHIPPING}))


def bought(world: World) -> Session:
    """Pay a session whose customer has given details."""
    session = world.create(collect_json=ASKED.to_json())
    return world.pay(details.give(world.services, session, ANA))


def test_an_event_is_sent_with_what_was_given_and_stored_without(world: World) -> None:
    secret = listens(world)
    bought(world)
    shown = got(world, secret).data.object
    assert shown.customer_details.email == "ana@example.com"
    assert shown.collected_information.shipping_details.address.line1 == "Am langen Weg 1"
    [stored] = [each for each in world.events() if each["type"] == COMPLETED]
    assert "Am langen Weg" not in stored["stripe_body"] + stored["body"]


def test_a_payment_says_where_the_goods_go(world: World) -> None:
    secret = world.listen(PAYMENT_SUCCEEDED)
    change(world, format=Format.STRIPE)
    bought(world)
    sent = {each.type: each.data.object for each in all_got(world, secret)}
    assert sent["payment_intent.succeeded"].shipping.address.line1 == "Am langen Weg 1"


def test_the_native_form_has_none(world: World) -> None:
    listens(world, Format.NATIVE)
    bought(world)
    world.deliver_hinted()
    [(_, _, body)] = world.receivers.got
    assert b"ana@example.com" not in body
    assert "customer_details" not in json.loads(body)


def test_an_attempt_after_an_erasure_sends_nothing_of_the_customer(world: World) -> None:
    secret = listens(world)
    world.receivers.answers = [Receipt(status=500)]
    session = bought(world)
    [before] = all_got(world, secret)
    assert before.data.object.customer_details.email == "ana@example.com"
    records = DynamoRecords(world.dynamo, PREFIX)
    wallet = Customer((f"{CEDAR}/alice",))
    erase.erase(world.endpoints, records, wallet, on_progress=lambda report: None)
    world.clock.pass_time(3600)
    world.deliver(session.event or "")
    [again] = all_got(world, secret)
    assert again.id == before.id
    assert again.data.object.customer_details.email is None
    assert again.data.object.collected_information is None


def test_an_attempt_after_its_session_has_changed_says_what_was(world: World) -> None:
    secret = listens(world)
    world.receivers.answers = [Receipt(status=500)]
    session = bought(world)
    [before] = all_got(world, secret)
    metadata.update(world.services, world.key(), session.id, lambda known: {"later": "1"})
    world.clock.pass_time(3600)
    world.deliver(session.event or "")
    [again] = all_got(world, secret)
    assert again.data.object.customer_details.email == "ana@example.com"
    assert again.to_dict() == before.to_dict()


def test_an_event_whose_details_do_not_open_is_sent_without(world: World) -> None:
    secret = listens(world)
    bought(world)
    world.core.merchants.replace(world.stored().changed(details_key="v1.00000000.eA"))
    shown = got(world, secret).data.object
    assert (shown.status, shown.customer_details.email) == ("complete", None)
