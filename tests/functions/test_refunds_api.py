"""The routes of refunds: rights, answers and refusals."""

from __future__ import annotations

from typing import Any

import pytest

from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Session, Status
from open_payments.models import Amount
from tests.support.basics import NOW
from tests.support.merchant_api import MerchantApi
from tests.support.samples import PAID

REFUNDS = "/api/checkout/refunds"


def ask(api: MerchantApi, of: Session, key: str | None = None, **body: Any) -> Any:
    return api.post(REFUNDS, {"session": of.id, **body}, key=key or api.refunder)


def test_a_refund_is_requested_and_read_back_as_it_was_answered(api: MerchantApi) -> None:
    session = api.store(**PAID)
    made = ask(api, session, amount=1000, reason="duplicate", metadata={"case": 7})
    assert made.status == 201
    refund = made.json
    assert refund == {
        "id": refund["id"],
        "object": "refund",
        "session": session.id,
        "status": "pending",
        "pending_reason": "needs_approval",
        "approval_url": f"https://pay.example/dashboard/refunds/{refund['id']}",
        "amount": 1000,
        "currency": "usd",
        "amount_mode": "as_paid",
        "paid_elsewhere": None,
        "amount_sent": 0,
        "arrival_confirmed": None,
        "cost": None,
        "customer_receives": {"value": "927", "asset_code": "EUR", "asset_scale": 2},
        "customer_wallet": "https://w.example/alice",
        "outgoing_payment": None,
        "reason": "duplicate",
        "failure_reason": None,
        "metadata": {"case": 7},
        "created_at": "2026-03-01T12:00:00.000Z",
        "ended_at": None,
    }
    assert api.get(f"{REFUNDS}/{refund['id']}").json == refund
    assert api.get(REFUNDS).json["data"] == [refund]
    assert api.get(REFUNDS, {"session": session.id}).json["data"] == [refund]
    shown = api.get(f"/api/checkout/sessions/{session.id}").json
    assert (shown["amount_received"], shown["amount_refunded"]) == (2000, 1000)


def test_a_key_without_the_scope_asks_for_nothing(api: MerchantApi) -> None:
    session = api.store(**PAID)
    refused = ask(api, session, api.secret, amount=1)
    assert (refused.status, refused.json["error"]["code"]) == (403, "permission_missing")
    refund = ask(api, session, amount=1000).json["id"]
    assert api.post(f"{REFUNDS}/{refund}/cancel").status == 403
    assert api.stored(session.id).refunded == 1000
    assert api.get(f"{REFUNDS}/{refund}").status == 200, "it may read"


def test_what_was_paid_elsewhere_is_noted_and_taken_back(api: MerchantApi) -> None:
    session = api.store(**PAID)
    noted = ask(api, session, amount=1500, paid_elsewhere=" In cash ").json
    assert (noted["status"], noted["paid_elsewhere"]) == ("succeeded", "In cash")
    assert (noted["amount_sent"], noted["arrival_confirmed"]) == (0, None)
    over = ask(api, session, amount=501)
    assert (over.status, over.json["error"]["code"]) == (400, "amount_too_large")
    back = api.post(f"{REFUNDS}/{noted['id']}/cancel", key=api.refunder).json
    assert (back["status"], back["paid_elsewhere"]) == ("canceled", "In cash")
    assert api.stored(session.id).refundable == 2000


def test_a_refund_is_canceled_and_a_replay_says_so_again(api: MerchantApi) -> None:
    session = api.store(**PAID)
    refund = ask(api, session).json["id"]
    path, once = f"{REFUNDS}/{refund}/cancel", {"Idempotency-Key": "c"}
    gone = api.post(path, key=api.refunder, headers=once)
    assert (gone.status, gone.json["status"]) == (200, "canceled")
    again = api.post(path, key=api.refunder, headers=once)
    assert (again.body, again.headers["idempotent-replayed"]) == (gone.body, "true")
    other = api.post(path, key=api.refunder)
    assert (other.status, other.json["error"]["code"]) == (400, "refund_unexpected_state")
    assert api.stored(session.id).refundable == 2000


def test_one_key_makes_one_refund(api: MerchantApi) -> None:
    session = api.store(**PAID)
    body, once = {"session": session.id, "amount": 700}, {"Idempotency-Key": "r"}
    first = api.post(REFUNDS, body, key=api.refunder, headers=once)
    assert api.post(REFUNDS, body, key=api.refunder, headers=once).body == first.body
    reused = api.post(REFUNDS, {**body, "amount": 1}, key=api.refunder, headers=once)
    assert reused.json["error"]["code"] == "idempotency_key_reused"
    assert api.stored(session.id).refunded == 700


@pytest.mark.parametrize(
    ("body", "code", "param"),
    [
        ({"amount": 2001}, "amount_too_large", "amount"),
        ({"amount": 0}, "amount_too_small", "amount"),
        ({"amount": -5}, "amount_too_small", "amount"),
        ({"amount": "5"}, "parameter_invalid_integer", "amount"),
        ({"amount": 5.0}, "parameter_invalid_integer", "amount"),
        ({"amount": None}, "parameter_invalid_integer", "amount"),
        ({"amount_mode": "free"}, "parameter_invalid", "amount_mode"),
        ({"reason": "bored"}, "parameter_invalid", "reason"),
        ({"customer_wallet": "nowhere"}, "parameter_invalid", "customer_wallet"),
        ({"customer_wallet": ""}, "parameter_invalid", "customer_wallet"),
        ({"metadata": {"a": {}}}, "parameter_invalid", "metadata.a"),
        ({"currency": "usd"}, "parameter_unknown", "currency"),
        ({"session": "cs_none"}, "resource_missing", None),
    ],
)
def test_a_wrong_request_names_its_field(
    api: MerchantApi, body: dict[str, Any], code: str, param: str | None
) -> None:
    session = api.store(**PAID)
    refused = ask(api, session, **body)
    assert (refused.json["error"]["code"], refused.json["error"].get("param")) == (code, param)
    assert api.stored(session.id).refunded == 0


ENDED: dict[str, Any] = {"status": Status.COMPLETED, "received": 700}
PART = {"received": 700, "attention": Attention.PARTIAL_PAYMENT}


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"status": Status.OPEN}, 400, "session_unexpected_state"),
        (ENDED | {"received": 0}, 400, "session_unexpected_state"),
        (PART | {"status": Status.PROCESSING}, 409, "payment_in_progress"),
        (ENDED | {"check_at": NOW}, 409, "payment_in_progress"),
        (ENDED, 400, "parameter_missing"),
    ],
)
def test_a_session_without_certain_money_is_refused(
    api: MerchantApi, fields: dict[str, Any], status: int, code: str
) -> None:
    refused = ask(api, api.store(**fields))
    assert (refused.status, refused.json["error"]["code"]) == (status, code)


def test_an_amount_that_the_wallet_cannot_hold_is_refused(api: MerchantApi) -> None:
    """The wallet counts whole dollars."""
    session = api.store(**{**PAID, "receive": Amount(20, "USD", 0), "received": 20, "quote": None})
    refused = ask(api, session, amount=150).json["error"]
    assert (refused["code"], refused["param"]) == ("amount_not_representable", "amount")
    assert ask(api, session, amount=200).status == 201


def test_nobody_elses_refund_is_there(api: MerchantApi) -> None:
    session = api.store(**PAID)
    refund = ask(api, session).json["id"]
    other = api.other_secret
    assert api.get(f"{REFUNDS}/{refund}", key=other).status == 404
    assert api.get(REFUNDS, {"session": session.id}, key=other).status == 404
    assert api.get(REFUNDS, key=other).json["data"] == []
    assert api.get(f"{REFUNDS}/re_none").status == 404


def test_pages_follow_each_other_by_cursor(api: MerchantApi) -> None:
    session = api.store(**PAID)
    made = [ask(api, session, amount=100 + number).json["id"] for number in range(5)]
    found, cursor = [], None
    while True:
        page = api.get(REFUNDS, {"limit": 2, **({"cursor": cursor} if cursor else {})}).json
        found += [each["id"] for each in page["data"]]
        cursor = page["next_cursor"]
        assert page["has_more"] is (cursor is not None)
        if cursor is None:
            break
    assert sorted(found) == sorted(made)
    for query in ({"limit": 0}, {"limit": 101}, {"cursor": "junk"}, {"status": "pending"}):
        assert api.get(REFUNDS, query).status == 400


def test_a_session_has_at_most_a_hundred_refunds(api: MerchantApi) -> None:
    session = api.store(**{**PAID, "received": 2000, "quote": None})
    for _ in range(100):
        assert ask(api, session, amount=1).status == 201
    refused = ask(api, session, amount=1)
    assert refused.json["error"]["code"] == "refund_unexpected_state"
