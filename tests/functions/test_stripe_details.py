"""Both APIs show what a customer has given, and no answer that is kept has it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.ground.addresses import Address
from checkout.domain.payment.in_flight import Problem
from checkout.domain.record_kinds import with_details
from checkout.domain.refund.record import RefundRef
from checkout.domain.session.collect import Collect, Question, QuestionKind
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Status
from checkout.domain.stripe.objects import (
    charge,
    checkout_session,
    envelope,
    payment_intent,
)
from tests.support.basics import NOW
from tests.support.merchant_api import SESSIONS as NATIVE
from tests.support.merchant_api import a_body
from tests.support.protected import FILLED
from tests.support.samples import GIVEN, PAID, an_event
from tests.support.stripe_api import CHARGES, PAYMENTS, REFUNDS, SESSIONS, StripeApi, a_purchase

HOME = Address("JP", "Ana", "1-2-3 Higashi", "Room 4", "Nishi", "Osaka", "27", "540-0001")
ANA = replace(GIVEN, shipping=HOME, answers=GIVEN.answers[:1])


# --- /v1


def test_a_session_shows_what_was_given(api: StripeApi) -> None:
    session = api.store_with(ANA)
    shown = api.ask(f"{SESSIONS}/{session.id}").json
    assert shown["customer_details"]["address"]["city"] == "Springfield"
    parcel = shown["collected_information"]["shipping_details"]
    assert (parcel["name"], parcel["address"]["line2"]) == ("Ana", "Room 4, Nishi")
    # Of a payment link the session knows the answers and not the questions.
    [field] = shown["custom_fields"]
    assert (field["key"], field["type"], field["dropdown"]["value"]) == ("size", "dropdown", "l")
    [listed] = api.ask(SESSIONS).json["data"]
    assert listed == shown


def test_an_answer_stands_in_the_field_that_asked(api: StripeApi) -> None:
    options = (("s", "Small"), ("l", "Large"))
    questions = (
        Question("size", "Size", QuestionKind.DROPDOWN, options=options),
        Question("engraving", "Engraving", QuestionKind.TEXT, required=False),
    )
    asked = Collect(questions=questions).to_json()
    session = api.store_with(CustomerDetails(answers=ANA.answers), collect_json=asked)
    size, engraving = api.ask(f"{SESSIONS}/{session.id}").json["custom_fields"]
    assert size["dropdown"]["value"] == "l"
    assert (engraving["text"]["value"], engraving["optional"]) == (None, True)


def test_payment_and_charge_show_where_the_goods_go_and_whom_they_bill(api: StripeApi) -> None:
    session = api.store_with(ANA, **PAID)
    payment = session.id.replace("cs_", "pi_")
    shown = api.ask(f"{PAYMENTS}/{payment}", {"expand": ["latest_charge"]}).json
    charge = shown["latest_charge"]
    assert shown["shipping"]["address"]["city"] == charge["shipping"]["address"]["city"] == "Osaka"
    assert charge["billing_details"]["address"]["city"] == "Springfield"
    method = api.ask(f"/v1/payment_methods/{charge['payment_method']}").json
    assert method["billing_details"] == charge["billing_details"]
    assert api.ask(f"{CHARGES}/{session.id.replace('cs_', 'ch_')}").json == charge
    assert api.ask(CHARGES).json["data"] == [charge]
    whole = {"expand": ["data.latest_charge"]}
    assert api.ask(PAYMENTS, whole).json["data"] == [shown]
    sessions = {"expand": ["data.payment_intent.latest_charge"]}
    [listed] = api.ask(SESSIONS, sessions).json["data"]
    assert listed["payment_intent"] == shown


def test_a_refund_shows_them_with_its_charge_and_keeps_none(api: StripeApi) -> None:
    session = api.store_with(ANA, **PAID)
    values = {"payment_intent": session.id.replace("cs_", "pi_"), "expand": ["charge"]}
    made = api.form(REFUNDS, values, key=api.refunder).json
    assert made["charge"]["shipping"] is None  # kept for repeats of the request
    path, whole = f"{REFUNDS}/{made['id']}", {"expand": ["charge.payment_intent"]}
    read = api.ask(path, whole).json
    assert read["charge"]["shipping"]["name"] == "Ana"
    assert read["charge"]["payment_intent"]["shipping"]["name"] == "Ana"
    [listed] = api.ask(REFUNDS, {"expand": ["data.charge"]}).json["data"]
    assert listed["charge"]["shipping"]["name"] == "Ana"


def test_the_address_that_the_shop_sent_is_shown_until_another_is_given(api: StripeApi) -> None:
    created = api.form(SESSIONS, a_purchase(customer_email="shop@b.example")).json
    assert created["customer_details"]["email"] == created["customer_email"] == "shop@b.example"
    session = api.store_with(ANA, echo_json='{"customer_email":"shop@b.example"}', **PAID)
    shown = api.ask(f"{SESSIONS}/{session.id}").json
    assert shown["customer_email"] == "shop@b.example"
    assert shown["customer_details"]["email"] == "ana@example.com"


def test_no_answer_that_is_kept_for_repeats_has_what_was_given(api: StripeApi) -> None:
    session = api.store_with(ANA)
    key = {"Idempotency-Key": "k1"}
    path = f"{SESSIONS}/{session.id}"
    updated = api.form(path, {"metadata": {"a": "1"}}, headers=key)
    assert (updated.status, updated.json["customer_details"]) == (200, None)
    assert api.form(path, {"metadata": {"a": "1"}}, headers=key).body == updated.body
    assert api.ask(path).json["customer_details"]["email"] == "ana@example.com"


# --- the native API


def test_the_native_api_shows_them_in_its_own_form(api: StripeApi) -> None:
    session = api.store_with(ANA)
    shown = api.get(f"{NATIVE}/{session.id}").json["customer_details"]
    assert shown == {
        "email": "ana@example.com",
        "name": "Eva Beispiel",
        "phone": "+49 30 1234567",
        "shipping_address": {
            "country": "JP", "name": "Ana", "line1": "1-2-3 Higashi", "line2": "Room 4",
            "district": "Nishi", "city": "Osaka", "state": "27", "postal_code": "540-0001",
        },
        "billing_address": {
            "country": "US", "name": "Ana Muster", "line1": "1 Main St", "line2": None,
            "district": None, "city": "Springfield", "state": "IL", "postal_code": "62701",
        },
        "answers": [{"key": "size", "label": "Size", "value": "l", "shown": "Large"}],
    }  # fmt: skip
    [listed] = api.get(NATIVE).json["data"]
    assert listed["customer_details"] == shown


def test_an_end_of_the_native_api_keeps_none(api: StripeApi) -> None:
    session = api.store_with(ANA, status=Status.OPEN)
    key = {"Idempotency-Key": "k1"}
    ended = api.post(f"{NATIVE}/{session.id}/cancel", headers=key)
    assert (ended.status, ended.json["customer_details"]) == (200, None)
    assert "ana@example.com" not in str(api.rows("idempotency_keys"))


def test_a_session_of_which_nothing_was_given_asks_kms_nothing(api: StripeApi) -> None:
    created = api.post(NATIVE, a_body()).json
    api.kms.calls.clear()
    assert api.get(f"{NATIVE}/{created['id']}").json["customer_details"] is None
    assert api.ask(f"{SESSIONS}/{created['id']}").status == 200
    assert api.kms.calls == []


def test_while_kms_does_not_answer_the_api_is_unavailable(api: StripeApi) -> None:
    session = api.store_with(ANA)
    api.kms.error = "ThrottlingException"
    for path in (f"{NATIVE}/{session.id}", f"{SESSIONS}/{session.id}"):
        assert api.get(path).status == 503


STAGES: dict[str, dict[str, Any]] = {
    "open": {},
    "failed": {"problem": Problem.PAYMENT_REFUSED},
    "canceled": {"status": Status.CANCELED},
    "paid": PAID,
    "refunded": {**PAID, "refunds": (RefundRef("re_1", 700), RefundRef("re_2", 1300))},
}


@pytest.mark.parametrize("now", STAGES)
@pytest.mark.parametrize("then", STAGES)
@pytest.mark.parametrize("kind", FILLED)
def test_an_event_is_filled_with_what_was_given_and_stays_as_it_happened(
    api: StripeApi, kind: str, then: str, now: str
) -> None:
    session = api.store_with(ANA, **STAGES[then])
    base: dict[str, Any] = {"base_url": "https://pay.example"}
    objects = {
        "charge": charge(session, **base),
        "payment_intent": payment_intent(session, now=NOW, **base),
        "checkout.session": checkout_session(session, now=NOW, **base),
    }
    named = {"event_id": "evt_1", "event_type": "checkout.session.completed"}
    stored = envelope(objects[kind], at=NOW, **named, **base)
    assert "Higashi" not in stored
    later = replace(session, version=9, updated_at=NOW + timedelta(days=3), **STAGES[now])
    sent = with_details(an_event(stripe_body=stored), later, ANA, **base)
    event, before = json.loads(str(sent.stripe_body)), json.loads(stored)
    shown, was = event["data"].pop("object"), before["data"].pop("object")
    place = shown["shipping_details"] if kind == "checkout.session" else shown["shipping"]
    assert place["address"]["line1"] == "1-2-3 Higashi"
    for name in FILLED[kind]:
        del shown[name], was[name]
    assert (event, shown) == (before, was)
