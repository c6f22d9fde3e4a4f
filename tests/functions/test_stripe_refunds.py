"""/v1/refunds, as Stripe's client libraries use it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkout.adapters.dynamo.refunds import refund_item
from checkout.domain.refund.record import RefundStatus
from checkout.domain.session.record import Session
from checkout.domain.session.retention import RETENTION
from tests.support.basics import NOW
from tests.support.merchant_api import PREFIX
from tests.support.samples import PAID
from tests.support.stripe_api import REFUNDS, StripeApi, ask, ids, payment


def charge(session: Session) -> str:
    return session.id.replace("cs_", "ch_")


def test_a_refund_has_stripes_shape(api: StripeApi) -> None:
    session = api.store(**PAID)
    made = ask(api, session, amount=500, reason="duplicate", metadata={"case": "7"})
    assert made.status == 200
    refund = made.json
    facts = refund.pop("open_payments")
    assert refund == {
        "id": refund["id"],
        "object": "refund",
        "amount": 500,
        "balance_transaction": None,
        "charge": session.id.replace("cs_", "ch_"),
        "created": 1772366400,
        "currency": "usd",
        "customer": None,
        "customer_account": None,
        "metadata": {"case": "7"},
        "payment_intent": payment(session),
        "payment_method": session.id.replace("cs_", "pm_"),
        "pending_reason": "processing",
        "reason": "duplicate",
        "receipt_number": None,
        "source_transfer_reversal": None,
        "status": "pending",
        "transfer_reversal": None,
    }
    assert facts["approval_url"] == f"https://pay.example/dashboard/refunds/{refund['id']}"
    assert facts["customer_receives"] == {"value": "463", "asset_code": "EUR", "asset_scale": 2}
    read = api.ask(f"{REFUNDS}/{refund['id']}").json
    assert read == {**refund, "open_payments": facts}


def test_all_that_is_left_is_refunded_by_its_charge(api: StripeApi) -> None:
    session = api.store(**PAID)
    charge = session.id.replace("cs_", "ch_")
    made = api.form(REFUNDS, {"charge": charge}, key=api.refunder)
    assert (made.status, made.json["amount"]) == (200, 2000)
    again = api.form(REFUNDS, {"charge": charge}, key=api.refunder)
    assert again.json["error"]["code"] == "refund_unexpected_state"


def test_amounts_are_in_stripes_units(api: StripeApi) -> None:
    session = api.store(**{**PAID, "currency": "isk", "quote": None})
    made = ask(api, session, amount=50_000)
    assert made.status == 200, made.body
    assert (made.json["amount"], api.stored(session.id).refunded) == (50_000, 500)
    assert ask(api, session, amount=50_001).json["error"]["code"] == "amount_not_representable"


@pytest.mark.parametrize(
    ("values", "code", "param"),
    [
        ({}, "parameter_missing", "payment_intent"),
        ({"payment_intent": "pi_x"}, "resource_missing", "payment_intent"),
        ({"charge": "pi_0123456789abcdefABCDEF"}, "resource_missing", "charge"),
        ({"payment_intent": "pi_" + "0" * 22}, "resource_missing", None),
    ],
)
def test_a_payment_that_is_not_there_is_missing(
    api: StripeApi, values: dict[str, str], code: str, param: str | None
) -> None:
    refused = api.form(REFUNDS, values, key=api.refunder).json["error"]
    assert (refused["code"], refused.get("param")) == (code, param)


@pytest.mark.parametrize(
    ("values", "code", "param"),
    [
        ({"amount": 0}, "parameter_invalid_integer", "amount"),
        ({"amount": "x"}, "parameter_invalid_integer", "amount"),
        ({"amount": 2001}, "amount_too_large", "amount"),
        ({"charge": "ch_" + "0" * 22}, "parameter_invalid", "charge"),
        ({"reason": "bored"}, "parameter_invalid", "reason"),
        ({"currency": "usd"}, "parameter_invalid", "currency"),
        ({"reverse_transfer": "true"}, "parameter_invalid", "reverse_transfer"),
        ({"expand": ["charges"]}, "parameter_invalid", "expand[0]"),
        ({"metadata": {"x" * 41: "1"}}, "parameter_invalid", f"metadata[{'x' * 41}]"),
    ],
)
def test_a_wrong_parameter_is_named(
    api: StripeApi, values: dict[str, Any], code: str, param: str
) -> None:
    session = api.store(**PAID)
    refused = ask(api, session, **values).json["error"]
    assert (refused["code"], refused["param"]) == (code, param)
    assert api.stored(session.id).refunded == 0


def test_ignored_parameters_are_said(api: StripeApi) -> None:
    made = ask(api, api.store(**PAID), instructions_email="a@b.example", reverse_transfer="false")
    assert made.headers["ignored-parameters"] == "instructions_email, reverse_transfer"


def test_the_metadata_of_a_refund_is_merged(api: StripeApi) -> None:
    session = api.store(**PAID)
    refund = ask(api, session, amount=500, metadata={"a": "1", "b": "2"}).json
    path = f"{REFUNDS}/{refund['id']}"
    changed = api.form(path, {"metadata": {"a": "", "c": "3"}}, key=api.refunder)
    assert (changed.status, changed.json["metadata"]) == (200, {"b": "2", "c": "3"})
    assert api.ask(path).json == refund | {"metadata": {"b": "2", "c": "3"}}
    assert api.form(path, {"metadata": ""}, key=api.refunder).json["metadata"] == {}
    refused = api.form(path, {"metadata": {"a": "1"}})
    assert (refused.status, refused.json["error"]["code"]) == (403, "permission_missing")
    assert api.form(path, {"amount": 1}, key=api.refunder).json["error"]["param"] == "amount"
    assert api.form(path, {"metadata": "x"}, key=api.refunder).json["error"]["param"] == "metadata"
    gone = api.form(f"{path}/cancel", key=api.refunder)
    assert gone.json["status"] == "canceled"
    late = api.form(path, {"metadata": {"why": "ü"}}, key=api.refunder).json
    assert (late["status"], late["metadata"]) == ("canceled", {"why": "ü"})


def test_a_refund_that_is_being_sent_keeps_its_metadata(api: StripeApi) -> None:
    session = api.store(**PAID)
    refund = ask(api, session, metadata={"a": "1"}).json["id"]
    table = f"{PREFIX}-checkout_sessions"
    stored = api.services.refunds.get(refund)
    assert stored is not None
    sending = refund_item(replace(stored, status=RefundStatus.SENDING, check_at=NOW), RETENTION)
    api.dynamo.put_item(TableName=table, Item=sending)
    answer = api.form(f"{REFUNDS}/{refund}", {"metadata": {"a": "2"}}, key=api.refunder)
    assert (answer.status, answer.json["error"]["code"]) == (400, "refund_unexpected_state")
    assert api.ask(f"{REFUNDS}/{refund}").json["metadata"] == {"a": "1"}


def test_charge_and_payment_of_a_refund_are_expanded(api: StripeApi) -> None:
    session = api.store(**PAID)
    names = ["charge.payment_intent.latest_charge", "payment_intent.latest_charge"]
    made = ask(api, session, amount=500, expand=names).json
    assert made["charge"]["amount_refunded"] == 500
    assert made["charge"]["payment_intent"]["id"] == payment(session)
    assert made["payment_intent"]["latest_charge"]["id"] == made["charge"]["id"]
    listed = api.ask(REFUNDS, {"expand": ["data.payment_intent"]}).json["data"]
    assert listed[0]["payment_intent"]["status"] == "succeeded"
    assert listed[0]["charge"] == made["charge"]["id"]


def test_a_refund_whose_session_is_gone_has_its_ids_only(api: StripeApi) -> None:
    session = api.store(**PAID)
    refund = ask(api, session, amount=500).json["id"]
    gone = {"TableName": f"{PREFIX}-checkout_sessions", "Key": {"id": {"S": session.id}}}
    api.dynamo.transact_write_items(TransactItems=[{"Delete": gone}])
    found = api.ask(f"{REFUNDS}/{refund}", {"expand": ["charge"]}).json
    assert found["charge"] == session.id.replace("cs_", "ch_")


def test_one_idempotency_key_makes_one_refund_and_one_cancellation(api: StripeApi) -> None:
    session = api.store(**PAID)
    once = {"Idempotency-Key": "r"}
    values = {"payment_intent": payment(session), "amount": 500}
    first = api.form(REFUNDS, values, key=api.refunder, headers=once)
    assert api.form(REFUNDS, values, key=api.refunder, headers=once).body == first.body
    path = f"{REFUNDS}/{first.json['id']}/cancel"
    gone = api.form(path, key=api.refunder, headers={"Idempotency-Key": "c"})
    assert (gone.status, gone.json["status"]) == (200, "canceled")
    again = api.form(path, key=api.refunder, headers={"Idempotency-Key": "c"})
    assert (again.body, again.headers["idempotent-replayed"]) == (gone.body, "true")
    other = api.form(path, key=api.refunder)
    assert other.json["error"]["code"] == "refund_unexpected_state"
    assert api.stored(session.id).refundable == 2000


def test_refunds_are_listed_by_payment_and_page_by_page(api: StripeApi) -> None:
    session, other = api.store(**PAID), api.store(**PAID)
    mine = [ask(api, session, amount=100 + number).json["id"] for number in range(3)]
    theirs = ask(api, other, amount=100).json["id"]
    listed = api.ask(REFUNDS, {"payment_intent": payment(session)}).json
    assert [each["id"] for each in listed["data"]] == mine[::-1]
    assert (listed["object"], listed["url"], listed["has_more"]) == ("list", REFUNDS, False)
    assert api.ask(REFUNDS, {"charge": session.id.replace("cs_", "ch_")}).json == listed
    found: list[str] = []
    while True:
        after = {"starting_after": found[-1]} if found else {}
        page = api.ask(REFUNDS, {"limit": 3, **after}).json
        found += [each["id"] for each in page["data"]]
        if not page["has_more"]:
            break
    assert sorted(found) == sorted([*mine, theirs])


def test_refunds_are_listed_by_time(api: StripeApi) -> None:
    session, other, start = api.store(**PAID), api.store(**PAID), int(NOW.timestamp())
    made = []
    for number in range(4):
        made.append(ask(api, (session, other)[number % 2], amount=100).json["id"])
        api.clock.pass_time(1)
    after = {"created": {"gte": start + 1, "lt": start + 3}}
    assert ids(api.ask(REFUNDS, after)) == [made[2], made[1]]
    assert ids(api.ask(REFUNDS, {"created": start + 1})) == [made[1]]
    first = api.ask(REFUNDS, after | {"limit": 1})
    assert (ids(first), first.json["has_more"]) == ([made[2]], True)
    rest = api.ask(REFUNDS, after | {"limit": 1, "starting_after": made[2]})
    assert (ids(rest), rest.json["has_more"]) == ([made[1]], False)
    for name, named in (("payment_intent", payment(session)), ("charge", charge(session))):
        assert ids(api.ask(REFUNDS, after | {name: named})) == [made[2]]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": 0}, "parameter_invalid_integer"),
        ({"limit": 101}, "parameter_invalid_integer"),
        ({"starting_after": "re_none"}, "resource_missing"),
        ({"ending_before": "re_none"}, "parameter_invalid"),
        ({"created": "soon"}, "parameter_invalid_integer"),
        ({"payment_intent": "pi_" + "0" * 22}, "resource_missing"),
    ],
)
def test_a_list_that_cannot_be_given_says_why(
    api: StripeApi, query: dict[str, Any], code: str
) -> None:
    assert api.ask(REFUNDS, query).json["error"]["code"] == code
