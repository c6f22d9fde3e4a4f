"""A shop that knows the customer's e-mail address gives it when it creates the session."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import pytest

from api.requests import CreateSession
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.flows.session import details
from tests.support.basics import seeded
from tests.support.hosted_pages import Answer as PageAnswer
from tests.support.hosted_pages import Customer
from tests.support.merchant_api import SESSIONS, Answer, MerchantApi, a_body
from tests.support.rows import row_text

ANA = "ana@example.com"
OURS = {"sec-fetch-site": "same-origin"}


def created(api: MerchantApi, **body: Any) -> Answer:
    answer = api.post(SESSIONS, a_body(customer_email=ANA, **body))
    assert answer.status == 201, answer
    return answer


def table_text(api: MerchantApi) -> str:
    tables = ("checkout_sessions", "idempotency_keys", "webhook_events")
    return "".join(row_text(row) for table in tables for row in api.rows(table))


def test_it_is_shown_when_the_session_is_read_and_not_in_the_answer_that_is_kept(
    api: MerchantApi,
) -> None:
    header = {"Idempotency-Key": "order-1"}
    first = api.post(SESSIONS, a_body(customer_email=ANA), headers=header)
    assert first.json["customer_details"] is None
    again = api.post(SESSIONS, a_body(customer_email=ANA), headers=header)
    assert (again.status, again.body) == (201, first.body)
    path = f"{SESSIONS}/{first.json['id']}"
    assert api.get(path).json["customer_details"]["email"] == ANA
    [listed] = api.get(SESSIONS).json["data"]
    assert listed["customer_details"]["email"] == ANA
    assert api.post(f"{path}/expire").json["customer_details"] is None


def test_it_is_stored_sealed_and_no_log_names_it(
    api: MerchantApi, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    created(api, collect={"email": "required"})
    api.post(SESSIONS, a_body(customer_email=ANA), headers={"Idempotency-Key": "order-1"})
    refused = api.post(SESSIONS, a_body(customer_email="ana at example.com"))
    assert "ana at" not in refused.body
    for text in (table_text(api), caplog.text):
        assert ANA not in text
        assert "ana at" not in text


def test_another_address_is_another_request(api: MerchantApi) -> None:
    header = {"Idempotency-Key": "order-1"}
    api.post(SESSIONS, a_body(customer_email=ANA), headers=header)
    other = api.post(SESSIONS, a_body(customer_email="eva@example.com"), headers=header)
    assert other.code == "idempotency_key_reused"


def test_blanks_around_it_are_removed_as_in_a_form(api: MerchantApi) -> None:
    answer = api.post(SESSIONS, a_body(customer_email=f"  {ANA} "))
    path = f"{SESSIONS}/{answer.json['id']}"
    assert api.get(path).json["customer_details"]["email"] == ANA


def test_a_session_without_it_asks_kms_for_nothing(api: MerchantApi) -> None:
    api.kms.calls.clear()
    api.post(SESSIONS, a_body())
    api.post(SESSIONS, a_body(collect={"email": "required"}))
    assert api.kms.calls == []


def test_many_sessions_ask_kms_once(api: MerchantApi) -> None:
    api.kms.calls.clear()
    for _ in range(3):
        created(api)
    assert api.kms.calls == ["decrypt"]


def test_while_kms_does_not_answer_nothing_is_created(api: MerchantApi) -> None:
    api.kms.error = "ThrottlingException"
    answer = api.post(SESSIONS, a_body(customer_email=ANA))
    assert answer.status == 503
    assert api.get(SESSIONS).json["data"] == []


def test_a_merchant_without_a_wrapped_key_is_told_how_to_begin(api: MerchantApi) -> None:
    changed(api, details_key_kms=None)
    answer = api.post(SESSIONS, a_body(customer_email=ANA))
    assert (answer.status, answer.code) == (400, "parameter_invalid")
    assert answer.json["error"]["param"] == "customer_email"
    assert "payment link" in answer.json["error"]["message"]


def test_a_key_that_does_not_open_is_no_fault_of_the_shop(api: MerchantApi) -> None:
    changed(api, details_key_kms="AAAA")
    assert api.post(SESSIONS, a_body(customer_email=ANA)).status == 503


def test_a_checkout_without_a_key_in_kms_says_so(api: MerchantApi) -> None:
    api.services = replace(api.services, details_keys=None)
    answer = api.post(SESSIONS, a_body(customer_email=ANA))
    assert (answer.status, answer.json["error"]["param"]) == (400, "customer_email")
    assert "DETAILS_KMS_KEY" in answer.json["error"]["message"]


def changed(api: MerchantApi, **fields: Any) -> None:
    merchant = api.services.merchants.get("mer_1")
    assert merchant is not None
    api.services.merchants.replace(merchant.changed(**fields))


# --- the page


def asking(buyer: Customer, *asked: str) -> Session:
    """A session that gives the address, and asks for these details."""
    body = a_body(customer_email=ANA)
    if asked:
        body["collect"] = dict.fromkeys(asked, "required")
    new = CreateSession.model_validate(body).new_session()
    assert ANA not in repr(new)
    return buyer.world.create(collect_json=new.collect_json, customer_email=new.customer_email)


def send(buyer: Customer, session: Session, **typed: str) -> PageAnswer:
    return buyer.ask("POST", f"/pay/{session.id}/details", data=typed, headers=OURS)


def known(buyer: Customer, session: Session) -> CustomerDetails:
    world = buyer.world
    return details.opened(world.services.vault, world.stored(), world.session(session.id))


def test_the_form_says_that_it_is_known_and_shows_it_to_nobody(buyer: Customer) -> None:
    session = asking(buyer, "email", "name")
    page = buyer.open(session)
    field = page.page.one("input", name="email").attributes
    assert field["value"] == ""
    assert "required" not in field
    assert field["aria-describedby"] == "email-hint"
    assert "The shop has your e-mail address already." in page.page.main
    assert ANA not in page.body


def test_a_customer_who_leaves_it_out_keeps_it(buyer: Customer) -> None:
    session = asking(buyer, "email", "name")
    assert send(buyer, session, email="", name="Ana Muster").status == 303
    assert known(buyer, session) == CustomerDetails(email=ANA, name="Ana Muster")


def test_a_customer_who_gives_another_one_keeps_that_one(buyer: Customer) -> None:
    session = asking(buyer, "email", "name")
    send(buyer, session, email="eva@example.com", name="Ana")
    send(buyer, session, email="", name="Ana Muster")
    assert known(buyer, session) == CustomerDetails(email="eva@example.com", name="Ana Muster")


def test_a_mistake_is_told_beside_the_hint(buyer: Customer) -> None:
    session = asking(buyer, "email")
    answer = send(buyer, session, email="eva")
    assert answer.status == 400
    field = answer.page.one("input", name="email").attributes
    assert field["aria-describedby"] == "email-hint email-error"
    assert known(buyer, session) == CustomerDetails(email=ANA)


def test_what_is_not_asked_is_not_in_the_form_and_stays(buyer: Customer) -> None:
    session = asking(buyer, "name")
    page = buyer.open(session)
    assert not page.page.all("input", name="email")
    assert ANA not in page.body
    send(buyer, session, name="Ana Muster")
    assert known(buyer, session) == CustomerDetails(email=ANA, name="Ana Muster")


def test_without_details_the_page_asks_for_the_wallet_at_once(buyer: Customer) -> None:
    session = asking(buyer)
    page = buyer.open(session)
    assert page.page.all("input", name="wallet_address")
    assert "Details given" not in page.page.main
    assert ANA not in page.body


def test_the_receipt_by_mail_begins_with_it_after_the_payment(buyer: Customer) -> None:
    session = asking(buyer)
    assert ANA not in buyer.open(session).body
    paid = buyer.paid(session)
    assert paid.status is Status.COMPLETED
    receipt = buyer.open(session, "/success").page
    assert receipt.one("input", name="email").attributes["value"] == ANA


def test_an_address_that_does_not_open_is_lost_and_the_purchase_is_not(buyer: Customer) -> None:
    session = asking(buyer, "email", "name")
    services, merchant = buyer.world.services, buyer.world.stored()
    fresh = details.new_keys(services.vault, None, seeded(3), merchant.id)
    services.merchants.replace(merchant.changed(details_key=fresh["details_key"]))
    assert send(buyer, session, email="", name="Ana Muster").status == 303
    assert known(buyer, session) == CustomerDetails(name="Ana Muster")
