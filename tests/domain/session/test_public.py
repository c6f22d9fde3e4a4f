from __future__ import annotations

import json
from dataclasses import fields
from datetime import UTC, datetime, timedelta, timezone

import pytest

from checkout.domain.ground.json_values import timestamp
from checkout.domain.payment.in_flight import IncomingPaymentRef, Instruction, Phase
from checkout.domain.session.public import public_session
from checkout.domain.session.record import LineItem, Session, Status
from open_payments.models import Amount, Quote, WalletAddress
from tests.support.basics import NOW, SESSION_ID, a_session, words

BASE = "https://pay.example"
PRICE = {"currency": "usd", "product_data": {"name": "Tea"}, "unit_amount": 1000}
FIELDS = words("""
id object status url amount_total currency mode line_items metadata success_url cancel_url
customer_wallet incoming_payment outgoing_payment expires_at created_at completed_at
amount_received client_reference_id customer_debit amount_refunded customer_details
""")  # spec.md, in its order, and those added since

RENAMED = {
    "customer": "customer_wallet",
    "metadata_json": "metadata",
    "received": "amount_received",
}
HIDDEN = {
    "merchant",
    "version",
    "writer",
    "updated_at",
    "receive",
    "payment_attempts",
    "refunds",
    "phase",
    "lease_until",
    "approve_until",
    "look_at",
    "check_at",
    "checks",
    "hung_until",
    "identity",
    "quote",
    "interact_url",
    "grant",
    "token",
    "instruction",
    "closing_at",
    "closed_at",
    "problem",
    "attention",
    "event",
    "locale",
    "customer_further",
    "customer_mark",
    "customer_marks",
    "collect_json",
    "details_at",
    "echo_json",
    "later_json",
    "request_id",
    "link",
    "restocked_at",
    "submissions",
    "history",
    "part",
}


def test_each_field_of_the_session_is_either_shown_or_hidden() -> None:
    names = {RENAMED.get(each.name, each.name) for each in fields(Session)}
    assert names - set(FIELDS) == HIDDEN
    assert set(FIELDS) - names == {"object", "url", "mode", "customer_debit", "amount_refunded"}


def test_an_open_session_shows_exactly_the_specified_fields_in_order() -> None:
    shown = public_session(a_session(), base_url=BASE, now=NOW)
    assert list(shown) == FIELDS
    assert shown == {
        "id": SESSION_ID,
        "object": "checkout.session",
        "status": "open",
        "url": f"{BASE}/pay/{SESSION_ID}",
        "amount_total": 2000,
        "currency": "usd",
        "mode": "payment",
        "line_items": [{"price_data": PRICE, "quantity": 2}],
        "metadata": {},
        "success_url": "https://shop.example/thanks",
        "cancel_url": "https://shop.example/basket",
        "customer_wallet": None,
        "incoming_payment": None,
        "outgoing_payment": None,
        "expires_at": "2026-03-02T12:00:00.000Z",
        "created_at": "2026-03-01T12:00:00.000Z",
        "completed_at": None,
        "amount_received": None,
        "client_reference_id": None,
        "customer_debit": None,
        "amount_refunded": 0,
        "customer_details": None,
    }


def test_a_paid_session_shows_the_payments_addresses() -> None:
    session = a_session(
        Status.COMPLETED,
        customer=WalletAddress("https://w.example/alice", "EUR", 2, "a", "r"),
        incoming_payment=IncomingPaymentRef("https://w.example/in/1", NOW),
        outgoing_payment="https://w.example/out/1",
        completed_at=NOW + timedelta(milliseconds=1),
    )
    shown = public_session(session, base_url=BASE, now=NOW)
    assert shown["customer_wallet"] == "https://w.example/alice"
    assert shown["incoming_payment"] == "https://w.example/in/1"
    assert shown["outgoing_payment"] == "https://w.example/out/1"
    assert shown["completed_at"] == "2026-03-01T12:00:00.001Z"


@pytest.mark.parametrize(
    ("status", "phase", "told"),
    [
        (Status.AWAITING_APPROVAL, None, False),
        (Status.AWAITING_APPROVAL, Phase.CONTINUING, False),
        (Status.AWAITING_APPROVAL, Phase.PAYING, True),
        (Status.PROCESSING, None, True),
        (Status.COMPLETED, None, True),
        (Status.EXPIRED, None, False),
    ],
)
def test_the_customers_price_is_told_once_a_payment_is_made(
    status: Status, phase: Phase | None, told: bool
) -> None:
    quote = Quote("https://w.example/q", Amount(1854, "EUR", 2), Amount(2000, "USD", 2), NOW)
    session = a_session(status, phase=phase, quote=quote)
    price = {"value": "1854", "asset_code": "EUR", "asset_scale": 2}
    shown = public_session(session, base_url=BASE, now=NOW)["customer_debit"]
    assert shown == (price if told else None)


def test_nothing_of_the_approval_and_no_merchant_is_shown() -> None:
    session = a_session(
        Status.AWAITING_APPROVAL,
        merchant="mer_SECRET",
        writer="SECRET",
        phase=Phase.PAYING,
        customer=WalletAddress("https://w.example/alice", "EUR", 2, "SECRET", "SECRET"),
        quote=Quote("SECRET", Amount(1, "EUR", 2), Amount(1, "USD", 2), NOW),
        interact_url="https://SECRET.example",
        grant="SECRET",
        token="SECRET",
        instruction=Instruction("SECRET", NOW),
    )
    assert "SECRET" not in json.dumps(public_session(session, base_url=BASE, now=NOW))


def test_past_its_expiry_a_session_reads_expired_before_that_is_written() -> None:
    session = a_session()
    last = session.expires_at - timedelta(milliseconds=1)
    assert public_session(session, base_url=BASE, now=last)["status"] == "open"
    assert public_session(session, base_url=BASE, now=session.expires_at)["status"] == "expired"


def test_a_description_is_shown_only_where_one_was_given() -> None:
    session = a_session(line_items=(LineItem("usd", "Tea", "", 1, 1),))
    item = public_session(session, base_url=BASE, now=NOW)["line_items"][0]
    assert item["price_data"]["product_data"] == {"name": "Tea", "description": ""}


def test_metadata_keeps_types_apart_and_keys_in_order() -> None:
    text = '{"z":1,"a":true,"f":1.0,"n":null,"s":"1"}'
    shown = public_session(a_session(metadata_json=text), base_url=BASE, now=NOW)["metadata"]
    assert json.dumps(shown, separators=(",", ":")) == text


def test_a_timestamp_is_utc_with_milliseconds() -> None:
    assert timestamp(datetime(2026, 3, 1, 12, 0, 0, 5000, tzinfo=UTC)) == "2026-03-01T12:00:00.005Z"
    east = timezone(timedelta(hours=2))
    assert timestamp(datetime(2026, 3, 1, 1, 0, tzinfo=east)) == "2026-02-28T23:00:00.000Z"
