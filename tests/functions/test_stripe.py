"""The API under /v1: what it does, request by request."""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from api.app import handler
from checkout.domain.ground.errors import RateLimited
from checkout.domain.ground.ids import new_event_id
from checkout.domain.merchant.people import Scope
from checkout.domain.merchant.record import Suspension
from checkout.domain.payment.in_flight import IncomingPaymentRef, Phase
from checkout.domain.session.record import LineItem, Status
from checkout.domain.stripe.objects import envelope
from checkout.web import STATUS
from open_payments.models import Amount, Quote, WalletAddress
from tests.support.basics import NOW, between
from tests.support.flows import raising
from tests.support.merchant_api import PREFIX, a_body, gateway_event
from tests.support.merchant_api import SESSIONS as NATIVE
from tests.support.samples import an_event
from tests.support.services import put_key
from tests.support.stripe_api import (
    EVENTS,
    PAYMENTS,
    SESSIONS,
    StripeApi,
    a_purchase,
    an_item,
    ids,
    paid,
    refused,
    several,
)

ITEM = "line_items[0]"
PRICE = f"{ITEM}[price_data]"
PRODUCT = f"{PRICE}[product_data]"
UNIX = int(NOW.timestamp())
FORM = {"Content-Type": "application/x-www-form-urlencoded"}
INVALID, INTEGER = "parameter_invalid", "parameter_invalid_integer"
MISSING, UNKNOWN = "parameter_missing", "parameter_unknown"


def one(**changes: Any) -> dict[str, Any]:
    """Return the parameters of one line item with these changes."""
    return {"line_items": [an_item(**changes)]}


def decimally_priced(text: str) -> dict[str, Any]:
    priced = one(price_data={"unit_amount_decimal": text})
    del priced["line_items"][0]["price_data"]["unit_amount"]
    return priced


@pytest.mark.parametrize("path", [SESSIONS, EVENTS, "/v1/webhook_endpoints", "/v1/nothing"])
def test_a_key_without_the_scope_is_refused(api: StripeApi, path: str) -> None:
    put_key(api.dynamo, PREFIX, replace(api.key, scopes=(Scope.READ,)))
    assert refused(api.form(path, {}), 403) == ("permission_missing", None)
    put_key(api.dynamo, PREFIX, replace(api.key, scopes=(Scope.WRITE, Scope.MANAGE)))
    answer = api.ask(path)
    assert refused(answer, 403) == ("permission_missing", None)
    assert answer.json["error"]["type"] == "invalid_request_error", "as Stripe's libraries know it"
    assert api.form(path, {}).status in (400, 404)


def test_a_suspended_merchant_creates_no_session_and_reads_those_that_it_has(
    api: StripeApi,
) -> None:
    put_key(api.dynamo, PREFIX, replace(api.key, suspended=Suspension.ALONE))
    answer = api.form(SESSIONS, a_purchase())
    assert refused(answer, 403) == ("merchant_suspended", None)
    assert ids(api.ask(SESSIONS)) == []


# --- create and read


def test_a_session_is_created_from_a_form_and_read_back(api: StripeApi) -> None:
    created = api.form(
        SESSIONS,
        a_purchase(
            client_reference_id="order-1",
            customer_email="ada@shop.example",
            metadata={"order": "1234", "7": "seven"},
            expires_at=UNIX + 1800,
            submit_type="pay",
            locale="auto",
        ),
    )
    session = created.json
    assert created.status == 200
    assert session["object"] == "checkout.session"
    assert (session["status"], session["payment_status"]) == ("open", "unpaid")
    assert session["url"] == f"https://pay.example/pay/{session['id']}"
    assert (session["amount_total"], session["amount_subtotal"]) == (2000, 2000)
    assert (session["currency"], session["mode"], session["livemode"]) == ("usd", "payment", True)
    assert (session["created"], session["expires_at"]) == (UNIX, UNIX + 1800)
    assert session["metadata"] == {"order": "1234", "7": "seven"}
    assert session["client_reference_id"] == "order-1"
    assert session["customer_email"] == session["customer_details"]["email"] == "ada@shop.example"
    assert (session["submit_type"], session["locale"]) == ("pay", "auto")
    assert session["success_url"] == f"https://shop.example/thanks?s={session['id']}"
    assert session["payment_intent"] is None
    assert "line_items" not in session
    assert api.ask(f"{SESSIONS}/{session['id']}").body == created.body
    native = api.get(f"{NATIVE}/{session['id']}").json
    assert (native["amount_total"], native["client_reference_id"]) == (2000, "order-1")


def test_json_is_read_as_a_form_is(api: StripeApi) -> None:
    values = a_purchase(metadata={"order": "1"}, expires_at=UNIX + 600, client_reference_id="x")
    header = {"Idempotency-Key": "order-1"}
    first = api.form(SESSIONS, values, headers=header)
    again = api.post(SESSIONS, values, headers=header)
    assert (again.status, again.body) == (200, first.body)
    assert again.headers["idempotent-replayed"] == "true"


def test_without_a_cancel_url_the_customer_goes_to_the_shops_front_page(api: StripeApi) -> None:
    created = api.form(SESSIONS, a_purchase(cancel_url=None)).json
    assert created["cancel_url"] is None
    assert api.stored(created["id"]).cancel_url == "https://shop.example/"


@pytest.mark.parametrize("user", ["Basic", "bearer", "Bearer"])
def test_the_key_is_a_token_or_the_user_name(api: StripeApi, user: str) -> None:
    token = api.secret if user != "Basic" else base64.b64encode(f"{api.secret}:".encode()).decode()
    headers = {"Authorization": f"{user} {token}"}
    assert api.ask(SESSIONS, key=None, headers=headers).status == 200


@pytest.mark.parametrize("given", [None, "Basic !", "Basic /w==", "Basic eDp5", "Digest x"])
def test_a_request_without_a_key_is_refused(api: StripeApi, given: str | None) -> None:
    headers = {"Authorization": given} if given else {}
    for path in (SESSIONS, "/v1/customers"):
        answer = api.ask(path, key=None, headers=headers)
        assert refused(answer, 401)[0] in ("api_key_missing", "api_key_invalid")
        assert answer.json["error"]["type"] == "invalid_request_error"


def test_any_version_is_accepted_and_told_back(api: StripeApi) -> None:
    for version in ("2020-08-27", "2026-10-28.endive"):
        answer = api.ask(SESSIONS, headers={"Stripe-Version": version})
        assert answer.headers["stripe-version"] == version
    assert "stripe-version" not in api.ask(SESSIONS).headers


@pytest.mark.parametrize("name", ["Stripe-Account", "stripe-context"])
@pytest.mark.parametrize("value", ["acct_1032D82eZvKYlo2C", ""])
def test_a_request_in_another_accounts_name_is_refused_on_every_route(
    api: StripeApi, name: str, value: str
) -> None:
    """Its money would go to the platform's own wallet."""
    headers = {name: value}
    made = api.form(SESSIONS, a_purchase(), headers=headers)
    assert refused(made, 403)[0] == "permission_missing"
    assert name.lower() in made.json["error"]["message"].lower()
    assert api.ask(SESSIONS).json["data"] == []
    for path in (
        SESSIONS,
        "/v1/events",
        "/v1/balance",
        "/v1/webhook_endpoints",
        "/v1/refunds",
        "/v1/charges",
        "/v1/prices",
        PAYMENTS,
    ):
        answer = api.manage("GET", path, headers=headers) if "endpoints" in path else None
        answer = answer or api.ask(path, headers=headers)
        assert refused(answer, 403)[0] == "permission_missing", path


def test_an_unknown_id_in_the_path_is_named_as_stripe_names_it(api: StripeApi) -> None:
    for path in (
        f"{SESSIONS}/cs_nobody",
        f"{SESSIONS}/cs_nobody/line_items",
        f"{EVENTS}/evt_nobody",
        f"{PAYMENTS}/pi_nobody",
        "/v1/charges/ch_nobody",
        "/v1/refunds/re_nobody",
        "/v1/payment_methods/pm_nobody",
        "/v1/balance_transactions/txn_nobody",
        "/v1/prices/price_nobody",
        "/v1/products/prod_nobody",
    ):
        assert refused(api.ask(path), 404) == ("resource_missing", "id"), path
    for path in (f"{SESSIONS}/cs_nobody", f"{SESSIONS}/cs_nobody/expire"):
        assert refused(api.form(path), 404) == ("resource_missing", "id"), path
    endpoint = api.manage("DELETE", "/v1/webhook_endpoints/we_nobody")
    assert refused(endpoint, 404) == ("resource_missing", "id")
    assert "param" not in api.ask("/v1/customers").json["error"]


def test_an_expiry_is_refused_in_words_of_stripes_statuses(api: StripeApi) -> None:
    path = f"{SESSIONS}/{api.form(SESSIONS, a_purchase()).json['id']}/expire"
    assert api.form(path).status == 200
    again = api.form(path)
    assert refused(again)[0] == "session_unexpected_state"
    assert "awaiting_approval" not in again.json["error"]["message"]


@pytest.mark.parametrize("name", ["Stripe-Account", "stripe-context"])
def test_a_request_in_the_keys_own_name_is_as_one_without(api: StripeApi, name: str) -> None:
    """dj-stripe names the account that it has read, in every request of its sync."""
    headers = {name: api.ask("/v1/account").json["id"]}
    assert api.form(SESSIONS, a_purchase(), headers=headers).status == 200
    assert len(api.ask(SESSIONS, headers=headers).json["data"]) == 1


def test_a_get_with_a_forms_content_type_is_a_get(api: StripeApi) -> None:
    assert api.ask(SESSIONS, headers=FORM).status == 200


def test_what_is_ignored_is_said(api: StripeApi) -> None:
    answer = api.form(SESSIONS, a_purchase(payment_method_types=["card"], origin_context="web"))
    assert answer.headers["ignored-parameters"] == "payment_method_types[0], origin_context"
    assert "ignored-parameters" not in api.form(SESSIONS, a_purchase()).headers


def test_what_is_only_given_back_is_given_back(api: StripeApi) -> None:
    item = an_item(
        metadata={"row": "1"},
        product_data={"images": ["https://shop.example/tea.png"], "metadata": {"sku": "T-1"}},
    )
    given = {"metadata": {"internal": "9"}, "description": "Order 9"}
    created = api.form(
        SESSIONS, a_purchase(line_items=[an_item(), item], payment_intent_data=given)
    ).json
    paid(api, created["id"])
    names = {"expand": ["line_items.data.price.product", "payment_intent"]}
    session = api.ask(f"{SESSIONS}/{created['id']}", names).json
    payment = session["payment_intent"]
    assert (payment["metadata"], payment["description"]) == ({"internal": "9"}, "Order 9")
    assert (payment["amount"], payment["status"]) == (4000, "succeeded")
    first, second = session["line_items"]["data"]
    assert first["price"]["product"]["metadata"] == {}
    assert second["price"]["product"]["metadata"] == {"sku": "T-1"}
    assert second["price"]["product"]["images"] == ["https://shop.example/tea.png"]
    assert (second["metadata"], second["amount_total"], second["quantity"]) == (
        {"row": "1"},
        2000,
        2,
    )


def test_the_page_shows_the_first_image_that_it_may(api: StripeApi) -> None:
    plain, second = "http://shop.example/tea.png", "https://shop.example/tea.png"
    for images, shown in (([plain, second], second), ([plain], None), (["x" * 600], None)):
        items = [an_item(product_data={"images": images})]
        session_id = api.form(SESSIONS, a_purchase(line_items=items)).json["id"]
        session = api.services.sessions.get(session_id)
        assert session is not None
        assert session.line_items[0].image == shown
        expand = {"expand": ["line_items.data.price.product"]}
        line = api.ask(f"{SESSIONS}/{session_id}", expand).json["line_items"]["data"][0]
        assert line["price"]["product"]["images"] == images


def test_a_paid_session_is_complete_and_names_its_payment(api: StripeApi) -> None:
    created = api.form(SESSIONS, a_purchase()).json
    paid(api, created["id"])
    session = api.ask(f"{SESSIONS}/{created['id']}").json
    assert (session["status"], session["payment_status"]) == ("complete", "paid")
    assert session["url"] is None
    assert session["payment_intent"] == created["id"].replace("cs_", "pi_")
    assert session["open_payments"]["amount_received"] == 2000
    assert ids(api.ask(SESSIONS, {"payment_intent": session["payment_intent"]})) == [session["id"]]
    for other in ("pi_x", "x", "pi_" + "0" * 22):
        assert ids(api.ask(SESSIONS, {"payment_intent": other})) == []


@pytest.mark.parametrize(
    ("status", "shown"),
    [
        (Status.OPEN, "open"),
        (Status.PREPARING, "open"),
        (Status.AWAITING_APPROVAL, "open"),
        (Status.PROCESSING, "open"),
        (Status.COMPLETED, "complete"),
        (Status.EXPIRED, "expired"),
        (Status.CANCELED, "expired"),
    ],
)
def test_each_status_has_one_of_three(api: StripeApi, status: Status, shown: str) -> None:
    session = api.store(status=status, lease_until=NOW + timedelta(minutes=1))
    answer = api.ask(f"{SESSIONS}/{session.id}").json
    assert (answer["status"], answer["open_payments"]["status"]) == (shown, status.value)
    assert (answer["url"] is None) == (shown != "open")
    for asked in ("open", "complete", "expired"):
        assert ids(api.ask(SESSIONS, {"status": asked})) == ([session.id] if asked == shown else [])


def test_what_the_wallets_know_has_a_field_of_its_own(api: StripeApi) -> None:
    session = api.store(
        status=Status.PROCESSING,
        customer=WalletAddress("https://w.example/alice", "EUR", 2, "a", "r"),
        incoming_payment=IncomingPaymentRef("https://w.example/in/1", NOW),
        outgoing_payment="https://w.example/out/1",
        quote=Quote("https://w.example/q", Amount(1854, "EUR", 2), Amount(2000, "USD", 2), NOW),
        received=1999,
    )
    assert api.ask(f"{SESSIONS}/{session.id}").json["open_payments"] == {
        "status": "processing",
        "customer_wallet": "https://w.example/alice",
        "incoming_payment": "https://w.example/in/1",
        "outgoing_payment": "https://w.example/out/1",
        "amount_received": 1999,
        "customer_debit": {"value": "1854", "asset_code": "EUR", "asset_scale": 2},
    }


def test_native_metadata_is_text_here(api: StripeApi) -> None:
    metadata = {"a": "x", "b": 1, "c": True, "d": 1.5, "e": None}
    created = api.post(NATIVE, a_body(metadata=metadata)).json
    shown = api.ask(f"{SESSIONS}/{created['id']}").json["metadata"]
    assert shown == {"a": "x", "b": "1", "c": "true", "d": "1.5", "e": "null"}


def test_an_empty_value_of_metadata_unsets_it(api: StripeApi) -> None:
    created = api.form(SESSIONS, a_purchase(metadata={"a": "", "b": "1"})).json
    assert created["metadata"] == {"b": "1"}


# --- idempotency


def test_a_repetition_gets_the_first_answer(api: StripeApi) -> None:
    header = {"Idempotency-Key": "order-1"}
    values = a_purchase(expires_at=UNIX + 300)
    first = api.form(SESSIONS, values, headers=header)
    api.clock.pass_time(60)  # now the time of expiry would be refused
    assert refused(api.form(SESSIONS, values)) == ("parameter_invalid_integer", "expires_at")
    again = api.form(SESSIONS, values, headers=header)
    assert (again.status, again.body) == (200, first.body)
    assert (again.headers["idempotent-replayed"], again.headers["idempotency-key"]) == (
        "true",
        "order-1",
    )


def test_the_metadata_of_a_session_is_merged(api: StripeApi) -> None:
    made = api.form(SESSIONS, a_purchase(metadata={"a": "1", "b": "2"})).json
    path = f"{SESSIONS}/{made['id']}"
    once = {"Idempotency-Key": "m"}
    values = {"metadata": {"a": "", "b": "3", "c": "4"}}
    changed = api.form(path, values, headers=once)
    assert (changed.status, changed.json["metadata"]) == (200, {"b": "3", "c": "4"})
    assert api.ask(path).json == made | {"metadata": {"b": "3", "c": "4"}}
    assert api.form(path, values, headers=once).headers["idempotent-replayed"] == "true"
    assert api.form(path, {"metadata": ""}).json["metadata"] == {}
    assert refused(api.form(path, {"metadata": {"x" * 41: "1"}})) == (
        "parameter_invalid",
        f"metadata[{'x' * 41}]",
    )
    assert refused(api.form(path, {"line_items": [an_item()]}))[0] == "parameter_invalid"
    assert refused(api.form(path, {"mode": "payment"})) == ("parameter_unknown", "mode")
    assert api.form(f"{SESSIONS}/cs_{'0' * 22}", values).status == 404
    assert api.form(path, values, key=api.other_secret).status == 404


def test_metadata_grows_to_fifty_keys_and_no_further(api: StripeApi) -> None:
    many = {f"k{number}": "v" for number in range(50)}
    path = f"{SESSIONS}/{api.form(SESSIONS, a_purchase(metadata=many)).json['id']}"
    assert refused(api.form(path, {"metadata": {"one": "more"}})) == (
        "parameter_invalid",
        "metadata",
    )
    assert api.form(path, {"metadata": {"one": "more", "k0": ""}}).status == 200
    assert len(api.ask(path).json["metadata"]) == 50


def test_an_item_has_stripes_lengths_and_a_page_shows_its_beginning(api: StripeApi) -> None:
    texts = {"name": "N" * 640, "description": "D" * 40_000}
    made = api.form(
        SESSIONS,
        a_purchase(
            line_items=[an_item(product_data=texts)], expand=["line_items.data.price.product"]
        ),
    )
    assert made.status == 200
    found = made.json["line_items"]["data"][0]
    assert (found["description"], found["price"]["product"]["name"]) == ("N" * 640, "N" * 640)
    assert found["price"]["product"]["description"] == "D" * 40_000
    [item] = api.stored(made.json["id"]).line_items
    assert (len(item.title), len(item.subtitle or "")) == (200, 1000)
    assert item.title.endswith("N…")
    paid(api, made.json["id"])
    expand = {"expand": ["line_items.data.price.product"]}
    sold = api.ask(f"{SESSIONS}/{made.json['id']}", expand).json
    assert (sold["status"], sold["line_items"]["data"]) == ("complete", [found])
    for name, longest in (("name", 5000), ("description", 40_000)):
        long = a_purchase(line_items=[an_item(product_data={name: "x" * (longest + 1)})])
        param = f"line_items[0][price_data][product_data][{name}]"
        assert refused(api.form(SESSIONS, long)) == ("parameter_invalid", param)


ON, OFF = {"enabled": True}, {"enabled": False}
INVOICE = {"invoice_data": {"description": "x"}}
RECOVERY = "after_expiration[recovery]"
FUTURE = "payment_method_options[card][setup_future_usage]"
BY_US = {"liability": {"type": "self"}}
CODES, MOST = {"allow_promotion_codes": True}, {"maximum": 5}
ADJUSTED = [an_item(adjustable_quantity=OFF), an_item(adjustable_quantity=MOST)]


def by_card(**options: str) -> dict[str, Any]:
    return {"payment_method_options": {"card": options}}


@pytest.mark.parametrize(
    ("sent", "around", "named"),
    [
        ({"invoice_creation": OFF | INVOICE}, "invoice_creation", "[invoice_data][description]"),
        ({"automatic_tax": OFF | BY_US}, "automatic_tax", "[liability][type]"),
        (one(adjustable_quantity=OFF | MOST), f"{ITEM}[adjustable_quantity]", "[maximum]"),
        ({"after_expiration": {"recovery": OFF | CODES}}, RECOVERY, "[allow_promotion_codes]"),
    ],
)
def test_the_details_of_what_is_off_have_no_effect(
    api: StripeApi, sent: dict[str, Any], around: str, named: str
) -> None:
    made = api.form(SESSIONS, a_purchase(**sent))
    assert made.status == 200, made
    ignored = made.headers["ignored-parameters"].split(", ")
    assert {f"{around}[enabled]", f"{around}{named}"} <= set(ignored)


@pytest.mark.parametrize(
    "sent",
    [
        {"payment_method_options": {"wechat_pay": {"client": "web"}}},
        by_card(setup_future_usage="none"),
        {"consent_collection": {"promotions": "none", "terms_of_service": "none"}},
        {"discounts": "", "shipping_options": ""},
    ],
)
def test_what_asks_for_nothing_is_ignored(api: StripeApi, sent: dict[str, Any]) -> None:
    made = api.form(SESSIONS, a_purchase(**sent))
    assert made.status == 200, made
    for name in sent:
        assert name in made.headers["ignored-parameters"]


@pytest.mark.parametrize(
    ("sent", "param"),
    [
        ({"invoice_creation": ON | INVOICE}, "invoice_creation[enabled]"),
        ({"automatic_tax": BY_US}, "automatic_tax[liability][type]"),
        ({"line_items": ADJUSTED}, "line_items[1][adjustable_quantity][maximum]"),
        (by_card(capture_method="manual"), "payment_method_options[card][capture_method]"),
        (by_card(setup_future_usage="off_session"), FUTURE),
        ({"discounts": [{"coupon": "x"}]}, "discounts[0][coupon]"),
    ],
)
def test_the_details_of_what_is_on_are_refused(
    api: StripeApi, sent: dict[str, Any], param: str
) -> None:
    assert refused(api.form(SESSIONS, a_purchase(**sent))) == (INVALID, param)


def test_what_stripe_expands_may_be_expanded(api: StripeApi) -> None:
    names = [
        "line_items.data.discounts",
        "line_items.data.taxes",
        "shipping_cost.shipping_rate",
        "discounts.coupon",
        "customer.tax_ids",
        "payment_intent.latest_charge.balance_transaction",
        "subscription.default_payment_method",
    ]
    made = api.form(SESSIONS, a_purchase(expand=names))
    assert made.status == 200
    assert [made.json[each] for each in ("customer", "subscription", "shipping_cost")] == [None] * 3
    assert made.json["line_items"]["data"][0]["price"]["product"].startswith("prod_")
    path = f"{SESSIONS}/{made.json['id']}"
    for wrong in ("line_items.data.prise", "line_items.date", "payment_intents"):
        assert refused(api.ask(path, {"expand": [wrong]})) == ("parameter_invalid", "expand[0]")


def test_the_account_says_who_sells_and_in_which_currency(api: StripeApi) -> None:
    found = api.ask("/v1/account").json
    assert (found["object"], found["business_profile"]["name"]) == ("account", "Shop")
    assert (found["default_currency"], found["charges_enabled"]) == ("usd", True)
    assert api.ask(f"/v1/accounts/{found['id']}").json == found
    assert api.ask("/v1/accounts").json["data"] == []
    assert refused(api.ask("/v1/accounts/acct_2"), 404) == ("resource_missing", "account")
    assert refused(api.ask("/v1/account", {"expand": ["settings"]}))[1] == "expand[0]"


@pytest.mark.parametrize("change", [{"metadata": {"a": "1"}}, {"expand": ["line_items"]}])
def test_another_request_with_the_key_is_an_idempotency_error(
    api: StripeApi, change: dict[str, Any]
) -> None:
    header = {"Idempotency-Key": "order-1"}
    api.form(SESSIONS, a_purchase(), headers=header)
    other = api.form(SESSIONS, a_purchase(**change), headers=header)
    assert refused(other) == ("idempotency_key_reused", "Idempotency-Key")
    assert other.json["error"]["type"] == "idempotency_error"


def test_the_native_api_and_this_one_do_not_answer_for_each_other(api: StripeApi) -> None:
    header = {"Idempotency-Key": "order-1"}
    api.form(SESSIONS, a_purchase(), headers=header)
    assert api.post(NATIVE, a_body(), headers=header).code == "idempotency_key_reused"


def test_expiring_again_with_the_key_gives_the_first_answer(api: StripeApi) -> None:
    session, header = api.store(), {"Idempotency-Key": "end-1"}
    first = api.form(f"{SESSIONS}/{session.id}/expire", headers=header)
    assert (first.status, first.json["status"]) == (200, "expired")
    again = api.send("POST", f"{SESSIONS}/{session.id}/expire", headers=header)  # no body at all
    assert (again.status, again.body) == (200, first.body)
    assert refused(api.form(f"{SESSIONS}/{session.id}/expire"))[0] == "session_unexpected_state"


def test_a_payment_under_way_is_no_conflict_that_a_client_repeats(api: StripeApi) -> None:
    paying = api.store(status=Status.AWAITING_APPROVAL, phase=Phase.PAYING)
    answer = api.form(f"{SESSIONS}/{paying.id}/expire")
    assert refused(answer)[0] == "payment_in_progress"
    assert answer.headers["stripe-should-retry"] == "false"


# Written a second time: libraries repeat a request only if time may mend what was wrong.
REPEATED = {409, 429, 500, 503}
NOT_REPEATED = {400, 401, 403, 404, 405, 413, 415, 424}


ERRORS = [
    *(error("Something is wrong.") for error in STATUS if error is not RateLimited),
    *(RateLimited("Too many.", retry_after=1), RuntimeError("Something is wrong.")),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_a_library_repeats_what_time_may_mend_and_nothing_else(
    api: StripeApi, error: Exception
) -> None:
    sessions = between(api.services.sessions, "get", raising(error))
    api.services = replace(api.services, sessions=sessions)
    sent = {"Host": "pay.example", "Authorization": f"Bearer {api.secret}"}
    asked = gateway_event("GET", f"{SESSIONS}/cs_{'0' * 22}", "", sent, None)
    with api.installed():
        answer = handler(asked, None)
    assert answer["statusCode"] in REPEATED | NOT_REPEATED
    assert (answer["statusCode"] == 500) is isinstance(error, RuntimeError)
    repeat = "true" if answer["statusCode"] in REPEATED else "false"
    assert answer["headers"]["stripe-should-retry"] == repeat


# --- lists


def test_pages_follow_each_other_in_both_directions(api: StripeApi) -> None:
    made = several(api, 7)
    first = api.ask(SESSIONS, {"limit": 3})
    assert (ids(first), first.json["has_more"]) == (made[:3], True)
    assert (first.json["object"], first.json["url"]) == ("list", SESSIONS)
    second = api.ask(SESSIONS, {"limit": 3, "starting_after": made[2]})
    assert (ids(second), second.json["has_more"]) == (made[3:6], True)
    last = api.ask(SESSIONS, {"limit": 3, "starting_after": made[5]})
    assert (ids(last), last.json["has_more"]) == (made[6:], False)
    back = api.ask(SESSIONS, {"limit": 3, "ending_before": made[6]})
    assert (ids(back), back.json["has_more"]) == (made[3:6], True)
    newest = api.ask(SESSIONS, {"limit": 3, "ending_before": made[3]})
    assert (ids(newest), newest.json["has_more"]) == (made[:3], False)
    assert ids(api.ask(SESSIONS, {"ending_before": made[0]})) == []


def test_sessions_of_one_millisecond_are_paged_too(api: StripeApi) -> None:
    made = sorted((api.store().id for _ in range(9)), reverse=True)
    found: list[str] = []
    while len(found) < 9:
        anchor = {"starting_after": found[-1]} if found else {}
        found += ids(api.ask(SESSIONS, {"limit": 2} | anchor))
    assert found == made
    assert ids(api.ask(SESSIONS, {"limit": 2, "ending_before": made[5]})) == made[3:5]


def test_times_are_exact_or_bounds(api: StripeApi) -> None:
    made = several(api, 4)  # of the seconds 3, 2, 1, 0
    assert ids(api.ask(SESSIONS, {"created": UNIX + 1})) == [made[2]]
    assert ids(api.ask(SESSIONS, {"created": {"gt": UNIX + 1}})) == made[:2]
    assert ids(api.ask(SESSIONS, {"created": {"gte": UNIX + 1, "lt": UNIX + 3}})) == made[1:3]
    assert ids(api.ask(SESSIONS, {"created": {"lte": UNIX + 1}})) == made[2:]
    assert ids(
        api.ask(SESSIONS, {"created": {"gte": UNIX + 1}, "ending_before": made[3], "limit": 1})
    ) == [made[2]]


@pytest.mark.parametrize("query", ["created=1&created[gte]=1", "created[gte]=1&created=1"])
def test_a_time_is_exact_or_bounded_and_not_both(api: StripeApi, query: str) -> None:
    code, param = refused(api.send("GET", SESSIONS, query=query))
    assert code == "parameter_invalid"
    assert param in ("created", "created[gte]")


def test_a_filtered_list_goes_on_until_it_has_found_something(api: StripeApi) -> None:
    expired = several(api, 2, status=Status.EXPIRED)
    several(api, 250)
    found = api.ask(SESSIONS, {"status": "expired", "limit": 1})
    assert (ids(found), found.json["has_more"]) == ([expired[0]], True)
    found = api.ask(SESSIONS, {"status": "expired", "limit": 1, "starting_after": expired[0]})
    assert (ids(found), found.json["has_more"]) == ([expired[1]], False)


def test_a_filter_that_finds_nothing_in_reach_says_where_it_goes_on(
    api: StripeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.v1.sessions.ROUNDS_IF_EMPTY", 1)
    monkeypatch.setattr("api.v1.sessions.ROUNDS", 1)
    [expired] = several(api, 1, status=Status.EXPIRED)
    made = several(api, 101)
    page = api.ask(SESSIONS, {"status": "expired"})
    assert (ids(page), page.json["has_more"]) == ([], True)
    assert page.json["open_payments"] == {"starting_after": made[99]}
    rest = api.ask(SESSIONS, {"status": "expired"} | page.json["open_payments"])
    assert (ids(rest), rest.json["has_more"]) == ([expired], False)
    assert "open_payments" not in rest.json
    back = api.ask(SESSIONS, {"status": "expired", "ending_before": expired})
    assert back.json["open_payments"] == {"ending_before": made[1]}


def test_paid_sessions_are_listed_beside_any_number_of_open_ones(
    api: StripeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.v1.sessions.ROUNDS", 1)
    made = several(api, 3)
    for session_id in made:
        paid(api, session_id)
    several(api, 150)
    api.ask(SESSIONS)  # this month's first use of the key is noted
    reads = Counter(api.dynamo.calls)
    found = api.ask(SESSIONS, {"status": "complete", "limit": 2})
    assert Counter(api.dynamo.calls) - reads == {"query": 1, "batch_get_item": 1, "get_item": 1}
    assert (ids(found), found.json["has_more"]) == (made[:2], True)
    rest = api.ask(SESSIONS, {"status": "complete", "starting_after": made[1]})
    assert (ids(rest), rest.json["has_more"]) == (made[2:], False)
    assert ids(api.ask(SESSIONS, {"status": "complete", "created": {"lt": UNIX}})) == []


def test_an_anchor_of_nobody_or_somebody_else_is_not_found(api: StripeApi) -> None:
    foreign = api.store(merchant="mer_2").id
    for anchor in (foreign, "cs_x", "x"):
        for name in ("starting_after", "ending_before"):
            answer = api.ask(SESSIONS, {name: anchor})
            assert refused(answer, 404) == ("resource_missing", name)
    both = {"starting_after": foreign, "ending_before": foreign}
    assert refused(api.ask(SESSIONS, both)) == ("parameter_invalid", "ending_before")


def test_expanding_in_a_list_needs_its_prefix(api: StripeApi) -> None:
    api.store()
    [shown] = api.ask(SESSIONS, {"expand": ["data.line_items"]}).json["data"]
    assert shown["line_items"]["data"][0]["amount_total"] == 2000
    assert refused(api.ask(SESSIONS, {"expand": ["line_items"]}))[1] == "expand[0]"


def test_a_page_of_large_sessions_ends_early_in_both_directions(api: StripeApi) -> None:
    items = (LineItem("usd", "😀" * 200, "D" * 1000, 1000, 2),) * 100
    made = several(api, 30, line_items=items)
    names: dict[str, Any] = {"limit": 100, "expand": ["data.line_items"]}
    down = api.ask(SESSIONS, names)
    assert down.json["has_more"]
    assert ids(down) == made[: len(ids(down))]
    assert 0 < len(ids(down)) < 30
    up = api.ask(SESSIONS, names | {"ending_before": made[-1]})
    assert up.json["has_more"]
    assert ids(up) == made[29 - len(ids(up)) : 29]


def test_line_items_are_listed_page_by_page(api: StripeApi) -> None:
    items = [an_item(quantity=number) for number in range(1, 13)]
    session = api.form(SESSIONS, a_purchase(line_items=items)).json["id"]
    path = f"{SESSIONS}/{session}/line_items"
    first = api.ask(path)
    assert (len(ids(first)), first.json["has_more"], first.json["url"]) == (10, True, path)
    rest = api.ask(path, {"starting_after": ids(first)[-1]})
    assert [each["quantity"] for each in rest.json["data"]] == [11, 12]
    assert not rest.json["has_more"]
    before = api.ask(path, {"ending_before": ids(rest)[0], "limit": 4})
    assert (ids(before), before.json["has_more"]) == (ids(first)[6:], True)
    assert rest.json["data"][0]["price"]["product"].startswith("prod_")
    [whole, *_] = api.ask(path, {"expand": ["data.price.product"]}).json["data"]
    assert whole["price"]["product"]["name"] == "Tea"
    assert refused(api.ask(path, {"starting_after": "li_x"}), 404)[1] == "starting_after"
    assert refused(api.ask(path, {"expand": ["data.x"]}))[1] == "expand[0]"


# --- events and the balance


def test_events_are_listed_and_read_as_they_were_frozen(api: StripeApi) -> None:
    made = [api.form(SESSIONS, a_purchase()).json["id"] for _ in range(3)]
    for session_id in made:
        paid(api, session_id)
        api.clock.pass_time(1)
    listed = api.ask(EVENTS)
    assert [each["data"]["object"]["id"] for each in listed.json["data"]] == made[::-1]
    event = listed.json["data"][0]
    assert (event["object"], event["type"]) == ("event", "checkout.session.completed")
    assert (event["pending_webhooks"], event["created"]) == (1, UNIX + 2)
    assert api.ask(f"{EVENTS}/{event['id']}").json == event
    assert refused(api.ask(f"{EVENTS}/{event['id']}", key=api.other_secret), 404)
    assert ids(api.ask(EVENTS, {"limit": 1, "starting_after": event["id"]})) == ids(listed)[1:2]
    assert ids(api.ask(EVENTS, {"limit": 1, "ending_before": ids(listed)[2]})) == ids(listed)[1:2]
    assert ids(api.ask(EVENTS, {"created": {"gte": UNIX + 1}})) == ids(listed)[:2]
    assert ids(api.ask(EVENTS, {"created": {"lt": UNIX + 1}})) == ids(listed)[2:]
    for wanted in (
        {"type": "checkout.session.completed"},
        {"type": "checkout.*"},
        {"types": ["x", "*"]},
        {"delivery_success": False},
    ):
        assert ids(api.ask(EVENTS, wanted)) == ids(listed)
    for wanted in ({"type": "checkout.session.expired"}, {"delivery_success": True}):
        assert ids(api.ask(EVENTS, wanted)) == []
    assert refused(api.ask(EVENTS, {"types": ["x"] * 21})) == ("parameter_invalid", "types")
    assert refused(api.ask(EVENTS, {"starting_after": "evt_x"}), 404)[1] == "starting_after"
    assert refused(api.ask(EVENTS, {"expand": ["data.x"]}))[1] == "expand[0]"


def happens(api: StripeApi, **fields: Any) -> str:
    """Store an event; return its id."""
    event_id, now = new_event_id(api.services.random_bytes), api.clock.now()
    event = an_event(id=event_id, created_at=now, **fields)
    subject = {"id": event_id, "object": event.type}
    told = envelope(
        subject, event_id=event_id, event_type=event.type, base_url="https://pay.example", at=now
    )
    api.services.events.add(replace(event, stripe_body=told))
    api.clock.pass_time(1)
    return event_id


def test_an_event_behind_a_page_of_others_is_found(api: StripeApi) -> None:
    wanted = happens(api, type="checkout.session.completed")
    for _ in range(101):
        happens(api)
    assert ids(api.ask(EVENTS, {"type": "checkout.session.completed"})) == [wanted]


def test_a_search_for_events_ends_somewhere(
    api: StripeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("api.v1.app.ROUNDS_IF_EMPTY", 1)
    monkeypatch.setattr("api.v1.app.ROUNDS", 1)
    for _ in range(101):
        happens(api)
    asked = {"type": "checkout.session.completed"}
    page = api.ask(EVENTS, asked)
    assert (ids(page), page.json["has_more"]) == ([], True)
    end = api.ask(EVENTS, asked | page.json["open_payments"])
    assert (ids(end), end.json["has_more"]) == ([], False)
    found = api.ask(EVENTS, {"type": "checkout.session.expired", "limit": 100})
    assert page.json["open_payments"] == {"starting_after": ids(found)[-1]}
    assert (len(ids(found)), found.json["has_more"]) == (100, True)
    rest = {"type": "checkout.session.expired", "starting_after": ids(found)[-1]}
    assert len(ids(api.ask(EVENTS, rest))) == 1
    future = {"created": {"lt": UNIX}, "starting_after": ids(found)[0]}
    assert ids(api.ask(EVENTS, future)) == []
    past = {"created": {"gte": UNIX + 90}, "starting_after": ids(found)[50]}
    assert ids(api.ask(EVENTS, past)) == []


def test_no_money_is_held(api: StripeApi) -> None:
    balance = api.ask("/v1/balance").json
    nothing = [{"amount": 0, "currency": "usd", "source_types": {}}]
    assert balance == {
        "object": "balance",
        "available": nothing,
        "pending": nothing,
        "livemode": True,
    }


# --- what is refused


def test_what_does_not_exist_is_named(api: StripeApi) -> None:
    for method, path in (("GET", "/v1/customers"), ("POST", "/v1/coupons"), ("DELETE", SESSIONS)):
        answer = api.send(method, path)
        assert refused(answer, 404)[0] == "resource_missing"
        assert path in answer.json["error"]["message"]
    assert refused(api.ask(f"{SESSIONS}/cs_x"), 404)[0] == "resource_missing"


UNNAMED = {"price_data": {"currency": "usd"}, "quantity": 1}
UNCOUNTED = {"price_data": an_item()["price_data"]}
DECIMAL = f"{PRICE}[unit_amount_decimal]"
SECOND = "line_items[1][price_data]"
CAPTURE = "payment_intent_data[capture_method]"
MANY = {f"{number}": "v" for number in range(51)}


@pytest.mark.parametrize(
    ("change", "code", "param"),
    [
        ({"mode": "subscription"}, INVALID, "mode"),
        ({"mode": None}, MISSING, "mode"),
        ({"line_items": None}, MISSING, "line_items"),
        ({"success_url": None}, MISSING, "success_url"),
        ({"success_url": "x"}, "url_invalid", "success_url"),
        ({"sucess_url": "x"}, UNKNOWN, "sucess_url"),
        ({"cancel_url": ""}, INVALID, "cancel_url"),
        ({"currency": "eur"}, "currency_mismatch", "currency"),
        ({"customer": "cus_1"}, INVALID, "customer"),
        ({"expires_at": UNIX + 299}, INTEGER, "expires_at"),
        ({"expires_at": UNIX + 86_401}, INTEGER, "expires_at"),
        ({"expires_at": 10**14}, INTEGER, "expires_at"),
        ({"expires_at": "soon"}, INTEGER, "expires_at"),
        ({"metadata": {"k" * 41: "v"}}, INVALID, f"metadata[{'k' * 41}]"),
        ({"metadata": {"a.b": "v" * 501}}, INVALID, "metadata[a.b]"),
        ({"customer_email": "bob"}, INVALID, "customer_email"),
        ({"client_reference_id": "x" * 201}, INVALID, "client_reference_id"),
        ({"customer_email": "x" * 513}, INVALID, "customer_email"),
        ({"expand": ["url"]}, INVALID, "expand[0]"),
        ({"expand": ["customer.a.b.c.d"]}, INVALID, "expand[0]"),
        ({"line_items": [{"price": "price_1"}]}, INVALID, "line_items[0][price]"),
        ({"line_items": [an_item(), UNNAMED]}, MISSING, f"{SECOND}[product_data][name]"),
        ({"line_items": [{"quantity": 1}]}, MISSING, None),
        ({"line_items": [UNCOUNTED]}, MISSING, f"{ITEM}[quantity]"),
        (one(quantity=0), INTEGER, f"{ITEM}[quantity]"),
        (one(price_data={"unit_amount": -1}), "amount_too_small", f"{PRICE}[unit_amount]"),
        (one(price_data={"unit_amount_decimal": "10"}), INVALID, DECIMAL),  # and unit_amount
        (decimally_priced("10.5"), INVALID, DECIMAL),
        (decimally_priced("10.9"), INVALID, DECIMAL),
        (decimally_priced("10.0001"), INVALID, DECIMAL),
        (decimally_priced("1e1"), INVALID, DECIMAL),
        (decimally_priced("-10"), INVALID, DECIMAL),
        (one(product_data={"images": ["x"] * 9}), INVALID, f"{PRODUCT}[images]"),
        (one(product_data={"metadata": {"a": "v" * 501}}), INVALID, f"{PRODUCT}[metadata][a]"),
        ({"payment_intent_data": {"metadata": MANY}}, INVALID, "payment_intent_data[metadata]"),
        ({"payment_intent_data": {"capture_method": "manual"}}, INVALID, CAPTURE),
    ],
)
def test_a_wrong_parameter_is_named_in_brackets(
    api: StripeApi, change: dict[str, Any], code: str, param: str | None
) -> None:
    found = refused(api.form(SESSIONS, a_purchase(**change)))
    assert found[0] == code
    assert param is None or found[1] == param
    assert api.rows("checkout_sessions") == []


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"mode=\xff", INVALID),
        (b"mode=%FF", INVALID),
        (b"[a]=1", INVALID),
        (b"a[b=1", INVALID),
        (b"=1", INVALID),
        (b"a" + b"[b]" * 11 + b"=1", UNKNOWN),
        (b"mode=payment&mode=payment", INVALID),
        (b"mode[a]=payment", INVALID),
        (b"{", "invalid_json"),
        (b'{"mode":1}', INVALID),
        (b'{"success_url":1}', INVALID),
        (b'{"expires_at":true}', INTEGER),
        (b'{"expires_at":1.5}', INTEGER),
        (b'{"line_items":"x"}', INVALID),
    ],
)
def test_a_malformed_body_is_refused(api: StripeApi, raw: bytes, code: str) -> None:
    headers = {"Content-Type": "application/json"} if raw.startswith(b"{") else FORM
    assert refused(api.send("POST", SESSIONS, raw=raw, headers=headers))[0] == code


def test_other_bodies_and_parameters_beside_the_body_are_refused(api: StripeApi) -> None:
    answer = api.send("POST", SESSIONS, raw=b"x", headers={"Content-Type": "text/plain"})
    assert refused(answer, 415)[0] == "content_type_invalid"
    assert refused(api.send("POST", SESSIONS, query="mode=payment"))[0] == "parameter_invalid"
    large = api.send("POST", SESSIONS, raw=b"a=" + b"x" * 300_000, headers=FORM)
    assert refused(large, 413)[0] == "body_too_large"


def test_empty_brackets_count_on(api: StripeApi) -> None:
    """As PHP and older libraries write lists: an index is begun when a name comes again."""
    item = "line_items[][price_data]"
    raw = "&".join(
        f"{item}[currency]=usd&{item}[unit_amount]={price}&{item}[product_data][name]=Tea"
        f"&line_items[][quantity]=1"
        for price in (100, 200)
    )
    raw += "&mode=payment&success_url=https://shop.example/&expand[]=line_items"
    answer = api.send("POST", SESSIONS, raw=raw.encode(), headers=FORM)
    amounts = [each["amount_total"] for each in answer.json["line_items"]["data"]]
    assert amounts == [100, 200]


def test_nulls_and_empty_lists_of_json_are_no_parameters(api: StripeApi) -> None:
    answer = api.post(SESSIONS, a_purchase() | {"customer": None, "discounts": []})
    assert answer.status == 200, json.dumps(answer.json)


@pytest.mark.parametrize("index", ["00", "-1", "1e0", "٠"])
def test_an_item_has_one_number_written_in_one_way(api: StripeApi, index: str) -> None:
    items = {"0": an_item(), index: an_item()}
    code, param = refused(api.form(SESSIONS, a_purchase(line_items=items)))
    assert code == "parameter_invalid"
    assert str(param).startswith(f"line_items[{index}]")
    assert api.rows("checkout_sessions") == []
