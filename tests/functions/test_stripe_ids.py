"""Every id in an answer of /v1 can be read at Stripe's path for it, and what succeeded is whole.

Clients of Stripe follow ids, and expect what there is after a success.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest
import stripe

from checkout.adapters.dynamo.refunds import refund_item
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention
from checkout.domain.refund.record import RefundProblem, RefundStatus
from checkout.domain.session.record import LineItem, Session, Status
from checkout.domain.session.retention import RETENTION
from checkout.domain.stripe.objects import envelope
from checkout.domain.webhooks.record import WebhookEvent
from checkout.flows.payment.writes import move
from checkout.flows.webhooks import endpoints
from open_payments.models import Amount
from tests.support.basics import NOW
from tests.support.merchant_api import PREFIX, a_body
from tests.support.merchant_api import SESSIONS as NATIVE
from tests.support.samples import PAID, an_event
from tests.support.stripe_api import (
    CHARGES,
    ENDPOINTS,
    EVENTS,
    PAYMENTS,
    REFUNDS,
    SESSIONS,
    StripeApi,
    a_purchase,
    an_item,
    ask,
    ids,
    paid,
    payment,
    refused,
)

# Where Stripe reads the object whose id begins so.
PATHS: Final = {
    "acct": "/v1/accounts",
    "ch": CHARGES,
    "cs": SESSIONS,
    "evt": EVENTS,
    "pi": PAYMENTS,
    "pm": "/v1/payment_methods",
    "price": "/v1/prices",
    "prod": "/v1/products",
    "re": REFUNDS,
    "txn": "/v1/balance_transactions",
    "we": ENDPOINTS,
}
# Those without a path, and why.
NOWHERE: Final = {
    "li": "a line item is listed with its session, at Stripe too",
    "man": "Stripe has no refund budgets: the native API shows it",
}
LISTS: Final = (SESSIONS, PAYMENTS, CHARGES, REFUNDS, EVENTS, "/v1/prices", "/v1/products")
_ID: Final = re.compile(r"[a-z]+_(?:test_)?[0-9A-Za-z]{16,}")


def ids_in(value: Any) -> Iterator[str]:
    """Yield what an answer has as an `id`, and each other text that has the form of one."""
    if isinstance(value, list):
        for each in value:
            yield from ids_in(each)
    elif isinstance(value, dict):
        if isinstance(value.get("id"), str):
            yield value["id"]
        yield from ids_in(list(value.values()))
    elif isinstance(value, str) and _ID.fullmatch(value):
        yield value


def read(api: StripeApi, path: str, **query: Any) -> Any:
    """Return an answer; webhook endpoints are read at the function that serves them."""
    answer = api.manage("GET", path) if path.startswith(ENDPOINTS) else api.ask(path, query)
    assert answer.status == 200, (path, answer)
    return answer.json


def late_money(api: StripeApi, **changes: Any) -> Session:
    """An expired session to which money came."""
    return api.store(**{**PAID, "status": Status.EXPIRED, "received": 500, **changes})


def every_object(api: StripeApi) -> None:
    """Make one of each object in each end state, and the events of their changes."""
    wanted = {"url": "https://shop.example/hooks", "enabled_events": ["*"]}
    assert api.manage("POST", ENDPOINTS, wanted).status == 200
    for status in Status:
        api.store(status=status, lease_until=NOW + timedelta(minutes=1))
    many = [an_item(), an_item(product_data={"description": "Green", "metadata": {"a": "1"}})]
    bought = api.form(SESSIONS, a_purchase(line_items=many, metadata={"order": "7"})).json["id"]
    paid(api, bought)
    api.post(NATIVE, a_body())
    gone = api.form(SESSIONS, a_purchase()).json["id"]
    assert api.form(f"{SESSIONS}/{gone}/expire").status == 200
    closed = NOW - timedelta(seconds=36)
    failing = api.store(status=Status.PROCESSING, closing_at=closed, closed_at=closed)
    move(api.services, failing, Event.PAYMENT_DISPROVED)
    late = late_money(api, check_at=NOW, received=None)
    changes: dict[str, Any] = {"received": 500, "attention": Attention.LATE_PAYMENT}
    move(api.services, late, Event.LATE_PAYMENT, **changes)
    for each in RefundStatus:
        refunded(api, api.store(**PAID), each)
    refunded(api, late_money(api), RefundStatus.SUCCEEDED)
    endpoints.ping(api.managing, "mer_1")
    api.services.events.add(of_a_budget())


def of_a_budget() -> WebhookEvent:
    """Return an event of a type that only release 0.1.0 had."""
    event_id, name = f"evt_{1:022d}", "refund_budget.updated"
    shown = {"id": "man_1", "object": "refund_budget", "status": "ended", "amount": 10000}
    body = envelope(
        shown, event_id=event_id, event_type=name, base_url="https://pay.example", at=NOW
    )
    return an_event(id=event_id, type=name, subject="man_1", stripe_body=body)


def refunded(api: StripeApi, session: Session, status: RefundStatus) -> str:
    """Make a refund of 5.00 that has come so far; return its id."""
    made: str = ask(api, session, amount=500).json["id"]
    stored = api.services.refunds.get(made)
    assert stored is not None
    so_far: dict[RefundStatus, dict[str, Any]] = {
        RefundStatus.NEEDS_APPROVAL: {"check_at": NOW},
        RefundStatus.SENDING: {"check_at": NOW},
        RefundStatus.SUCCEEDED: {"sent": 500, "spent": Amount(511, "USD", 2)},
        RefundStatus.FAILED: {
            "sent": 200,
            "spent": Amount(205, "USD", 2),
            "problem": RefundProblem.SENT_IN_PART,
        },
        RefundStatus.PAID_ELSEWHERE: {"elsewhere": "Cash"},
    }
    fields = {"status": status, **so_far.get(status, {})}
    if "check_at" not in fields:
        fields["ended_at"] = NOW + timedelta(minutes=1)
    item = refund_item(replace(stored, **fields), RETENTION)
    api.dynamo.put_item(TableName=f"{PREFIX}-checkout_sessions", Item=item)
    return made


def test_no_id_leads_nowhere(api: StripeApi) -> None:
    """A prefix that has no path here fails, so that a new kind of id brings its route."""
    every_object(api)
    answers = [read(api, path, limit=100) for path in LISTS]
    answers += [read(api, path) for path in ("/v1/account", "/v1/accounts", ENDPOINTS)]
    seen: dict[str, Any] = {}
    while answers:
        for named in ids_in(answers.pop()):
            prefix = named.partition("_")[0]
            if named in seen or prefix in NOWHERE:
                continue
            seen[named] = read(api, f"{PATHS[prefix]}/{named}")
            assert seen[named]["id"] == named
            answers.append(seen[named])
            if prefix == "cs":
                answers.append(read(api, f"{SESSIONS}/{named}/line_items"))
    counted = {each: sum(named.startswith(f"{each}_") for named in seen) for each in PATHS}
    assert min(counted.values()) >= 1, counted
    print(counted)


# --- what is null after a success, and why

NO_CUSTOMER = "there are no customer records"
NO_CONNECT = "there are no connected accounts and no transfers"
NO_CARDS = "it is about cards and their networks, and there is one way to pay"
NOT_SENT = "the shop did not send it, or did not ask for it"
NO_STRIPE_JS = "there is the hosted page only"
ONE_TIME = "there are one-time payments only"
NOTHING_FAILED = "nothing has failed"
NO_CATALOG = "there is no catalog"
EMPTY: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "charge": {
        NO_CUSTOMER: ("customer",),
        NO_CONNECT: (
            *("application", "application_fee", "application_fee_amount", "on_behalf_of"),
            *("source_transfer", "transfer_data", "transfer_group"),
        ),
        NO_CARDS: (
            *("calculated_statement_descriptor", "fraud_details", "outcome", "review", "source"),
            *("statement_descriptor", "statement_descriptor_suffix"),
        ),
        NOT_SENT: ("description", "shipping"),
        NOTHING_FAILED: ("failure_balance_transaction", "failure_code", "failure_message"),
        "customers ask for the receipt themselves": ("receipt_email", "receipt_number"),
    },
    "payment_intent": {
        NO_CUSTOMER: ("customer", "customer_account", "setup_future_usage"),
        NO_CONNECT: (
            *("application", "application_fee_amount", "on_behalf_of", "transfer_data"),
            "transfer_group",
        ),
        NO_CARDS: (
            *("review", "source", "statement_descriptor", "statement_descriptor_suffix"),
            *("allowed_payment_method_types", "automatic_payment_methods"),
            *("excluded_payment_method_types", "payment_method_configuration_details"),
            *("payment_method_options", "payment_record"),
        ),
        NOT_SENT: ("description", "shipping"),
        NOTHING_FAILED: ("canceled_at", "cancellation_reason", "last_payment_error"),
        NO_STRIPE_JS: ("client_secret", "managed_payments", "next_action", "processing"),
        "customers ask for the receipt themselves": ("receipt_email",),
    },
    "payment_method": {NO_CUSTOMER: ("customer", "customer_account")},
    "balance_transaction": {
        "one currency all the way to the wallet": ("exchange_rate",),
        "the charge or the refund has it": ("description",),
    },
    "refund": {
        NO_CUSTOMER: ("customer", "customer_account"),
        NO_CONNECT: ("source_transfer_reversal", "transfer_reversal"),
        NOT_SENT: ("reason",),
        "no mail is sent": ("receipt_number",),
    },
    "price": {
        NO_CATALOG: ("custom_unit_amount", "lookup_key", "nickname", "tiers_mode"),
        ONE_TIME: ("recurring", "transform_quantity"),
    },
    "product": {
        NO_CATALOG: ("default_price", "package_dimensions", "shippable", "tax_details", "url"),
        NOT_SENT: ("description",),
    },
    "checkout.session": {
        NO_CUSTOMER: (
            *("customer", "customer_account", "customer_creation"),
            *("saved_payment_method_options", "payment_method_configuration_details"),
        ),
        NO_CARDS: ("allowed_payment_method_types", "payment_method_options", "wallet_options"),
        NOT_SENT: (
            *("allow_promotion_codes", "billing_address_collection", "client_reference_id"),
            *("collected_information", "consent", "consent_collection", "customer_email"),
            *("integration_identifier", "locale", "origin_context", "shipping_address_collection"),
            *("shipping_details", "submit_type"),
        ),
        NO_STRIPE_JS: ("client_secret", "managed_payments", "permissions"),
        ONE_TIME: ("invoice", "invoice_creation", "setup_intent", "subscription"),
        NO_CATALOG: ("optional_items", "payment_link", "shipping_cost"),
        "customers pay in their own currency always": ("adaptive_pricing", "currency_conversion"),
        "it is paid": ("after_expiration", "recovered_from", "url"),
    },
}


def test_what_is_null_after_a_success_is_null_for_a_reason(api: StripeApi) -> None:
    sold = api.store(**PAID)
    session, refund = sold.id, refunded(api, sold, RefundStatus.SUCCEEDED)
    digits = session.removeprefix("cs_")
    (item,) = read(api, f"{SESSIONS}/{session}/line_items")["data"]
    shown = [
        read(api, f"{SESSIONS}/{session}"),
        read(api, f"{PAYMENTS}/pi_{digits}"),
        read(api, f"{CHARGES}/ch_{digits}"),
        read(api, f"{PATHS['pm']}/pm_{digits}"),
        read(api, f"{PATHS['txn']}/txn_{digits}"),
        read(api, f"{REFUNDS}/{refund}"),
        read(api, f"{PATHS['price']}/{item['price']['id']}"),
        read(api, f"{PATHS['prod']}/{item['price']['product']}"),
    ]
    found = {one["object"]: {name for name in one if one[name] is None} for one in shown}
    written = {
        kind: {name for each in why.values() for name in each} for kind, why in EMPTY.items()
    }
    assert found == written


# --- the new objects


def test_the_wallet_that_paid_is_a_payment_method(api: StripeApi) -> None:
    session = api.store(echo_json='{"customer_email":"ada@shop.example"}', **PAID)
    digits = session.id.removeprefix("cs_")
    intent = read(api, f"{PAYMENTS}/pi_{digits}", expand=["payment_method", "latest_charge"])
    method = read(api, f"/v1/payment_methods/pm_{digits}", expand=["customer"])
    assert intent["payment_method"] == method
    assert (method["id"], method["object"], method["type"]) == (
        f"pm_{digits}",
        "payment_method",
        "custom",
    )
    assert method["custom"]["display_name"] == "Open Payments"
    assert method["billing_details"] == intent["latest_charge"]["billing_details"]
    assert method["billing_details"]["email"] == "ada@shop.example"
    charge = intent["latest_charge"]
    assert (charge["payment_method"], charge["payment_method_details"]) == (
        f"pm_{digits}",
        {"type": "custom"},
    )
    assert charge["receipt_url"] == f"https://pay.example/pay/{session.id}/success"
    answer = api.ask(f"{CHARGES}/ch_{digits}", {"expand": ["payment_method"]})
    assert refused(answer) == ("parameter_invalid", "expand[0]"), "Stripe does not expand it either"


@pytest.mark.parametrize(
    ("received", "amount"), [(2000, 2000), (1999, 1999), (2500, 2500), (None, 2000)]
)
def test_a_charges_transaction_says_what_the_wallet_received_without_a_fee(
    api: StripeApi, received: int | None, amount: int
) -> None:
    session = api.store(**{**PAID, "received": received, "completed_at": NOW + timedelta(hours=1)})
    digits = session.id.removeprefix("cs_")
    expand = ["latest_charge.balance_transaction"]
    charge = read(api, f"{PAYMENTS}/pi_{digits}", expand=expand)["latest_charge"]
    found = read(api, f"/v1/balance_transactions/txn_{digits}")
    assert charge["balance_transaction"] == found
    assert (found["amount"], found["fee"], found["net"]) == (amount, 0, amount)
    assert (found["type"], found["source"], found["currency"]) == ("charge", f"ch_{digits}", "usd")
    assert found["created"] == int(NOW.timestamp()) + 3600
    whole = read(api, f"/v1/balance_transactions/txn_{digits}", expand=["source"])["source"]
    assert whole == charge | {"balance_transaction": f"txn_{digits}"}


def test_a_refunds_transaction_says_what_it_has_cost(api: StripeApi) -> None:
    """The customer got back 5.00, for which the wallet paid 5.11."""
    session = api.store(**PAID)
    refund = refunded(api, session, RefundStatus.SUCCEEDED)
    names = ["balance_transaction", "payment_method"]
    shown = read(api, f"{REFUNDS}/{refund}", expand=names)
    found = shown["balance_transaction"]
    assert (found["amount"], found["fee"], found["net"]) == (-511, 0, -511)
    assert (found["type"], found["source"]) == ("refund", refund)
    assert shown["payment_method"]["id"] == session.id.replace("cs_", "pm_")
    path = f"/v1/balance_transactions/{found['id']}"
    assert read(api, path) == found
    assert read(api, path, expand=["source"])["source"]["id"] == refund


def test_a_refund_that_took_nothing_from_the_wallet_has_no_transaction(api: StripeApi) -> None:
    taken = {
        status: read(api, f"{REFUNDS}/{refunded(api, api.store(**PAID), status)}")
        for status in RefundStatus
    }
    found = {status for status, each in taken.items() if each["balance_transaction"] is not None}
    assert found == {RefundStatus.SUCCEEDED, RefundStatus.FAILED}
    pending = taken[RefundStatus.SENDING]["id"].removeprefix("re_")
    answer = api.ask(f"/v1/balance_transactions/txn_re{pending}")
    assert refused(answer, 404) == ("resource_missing", "id")


def test_money_that_came_late_has_a_charge_once_a_refund_names_it(api: StripeApi) -> None:
    session = late_money(api)
    refund = read(api, f"{REFUNDS}/{refunded(api, session, RefundStatus.SUCCEEDED)}")
    charge = read(api, f"{CHARGES}/{refund['charge']}")
    assert (charge["amount"], charge["amount_refunded"], charge["refunded"]) == (500, 500, True)
    assert charge["receipt_url"] is None, "its page shows no receipt"
    assert read(api, f"{PAYMENTS}/{refund['payment_intent']}")["status"] == "canceled"
    assert ids(api.ask(CHARGES)) == ids(api.ask(PAYMENTS)) == []


def test_price_and_product_of_each_line_item_are_read_by_their_ids(api: StripeApi) -> None:
    items = (LineItem("usd", "Tea", None, 1000, 1), LineItem("usd", "Cup", "Blue", 500, 2))
    session = api.store(line_items=items)
    shown = read(api, f"{SESSIONS}/{session.id}/line_items", expand=["data.price.product"])["data"]
    for item in shown:
        price, product = item["price"], item["price"]["product"]
        assert read(api, f"/v1/prices/{price['id']}", expand=["product"]) == price
        plain = read(api, f"/v1/prices/{price['id']}")
        assert plain == price | {"product": product["id"]}
        assert read(api, f"/v1/products/{product['id']}", expand=["default_price"]) == product
    assert [each["price"]["product"]["name"] for each in shown] == ["Tea", "Cup"]
    for path in ("/v1/prices", "/v1/products"):
        empty = read(api, path, limit=100, active=True, created={"gte": 1})
        assert (empty["data"], empty["has_more"], empty["url"]) == ([], False, path)


@pytest.mark.parametrize("prefix", ["pm", "txn", "price", "prod"])
def test_an_id_that_names_nothing_is_missing(api: StripeApi, prefix: str) -> None:
    mine, theirs, unpaid = api.store(**PAID), api.store(**PAID, merchant="mer_2"), api.store()
    place = "00" if prefix in ("price", "prod") else ""
    right = f"{mine.id.replace('cs_', f'{prefix}_')}{place}"
    assert api.ask(f"{PATHS[prefix]}/{right}").status == 200
    wrong = [
        f"{prefix}_x",
        f"{prefix}_{'0' * 22}{place}",
        right.replace(prefix, "cs", 1),
        f"{right}0",
        right[:-1],
        f"{theirs.id.replace('cs_', f'{prefix}_')}{place}",
        f"{prefix}_re{mine.id.removeprefix('cs_')}",
    ]
    if place:
        wrong += [f"{right[:-2]}01", f"{right[:-2]}-1", f"{right[:-2]}%D9%A0%D9%A0"]
    else:
        wrong += [unpaid.id.replace("cs_", f"{prefix}_")]
    for each in wrong:
        answer = api.ask(f"{PATHS[prefix]}/{each}")
        assert refused(answer, 404) == ("resource_missing", "id"), each


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (stripe.PaymentMethod, "/v1/payment_methods/pm_{}"),
        (stripe.BalanceTransaction, "/v1/balance_transactions/txn_{}"),
        (stripe.Price, "/v1/prices/price_{}00"),
        (stripe.Product, "/v1/products/prod_{}00"),
    ],
)
def test_each_field_that_stripes_library_always_reads_is_there(
    api: StripeApi, kind: Any, path: str
) -> None:
    session = api.store(**PAID)
    found = read(api, path.format(session.id.removeprefix("cs_")))
    hints = {name: str(hint) for name, hint in kind.__annotations__.items()}
    always = {name for name, hint in hints.items() if "Optional" not in hint}
    assert always - set(found) - {"OBJECT_NAME", "tax_code"} == set()  # it is in `tax_details`


# --- the calls of two clients, as their sources send them

# indico/indico-plugins, payment_stripe: `validate_stripe_key` of util.py, commit 3f6d3c1, and
# `RHInitStripePayment` and `RHStripeSuccess` of controllers.py, commit 8d63184.
INDICO: Final[dict[str, Any]] = {
    "mode": "payment",
    "customer_email": "ada@example.com",
    "metadata": {
        "indico_event_id": "1",
        "indico_registration_id": "2",
        "indico_registration_form_id": "3",
        "indico_registration_last_txn": "-1",
    },
    "payment_intent_data": {
        "description": "Indico: 1#2 (Ada Lovelace)",
        "metadata": {"indico_event_id": "1", "indico_registration_id": "2"},
    },
    "line_items": [
        {
            "quantity": 1,
            "price_data": {
                "currency": "USD",
                "unit_amount": 2500,
                "product_data": {"name": "Conference", "description": "Participants"},
            },
        }
    ],
    "success_url": "https://indico.example/event/1/success?stripe_session_id={CHECKOUT_SESSION_ID}",
    "cancel_url": "https://indico.example/event/1/cancel",
}


def test_indico_marks_a_registration_as_paid(api: StripeApi) -> None:
    assert api.ask(SESSIONS, {"limit": 1}).status == 200, "the check of the key"
    made = api.form(SESSIONS, INDICO)
    assert (made.status, "ignored-parameters" in made.headers) == (200, False)
    paid(api, made.json["id"])
    session = read(api, f"{SESSIONS}/{made.json['id']}")
    assert session["metadata"]["indico_registration_last_txn"] == "-1"
    intent = read(api, f"{PAYMENTS}/{session['payment_intent']}")
    method = read(api, f"/v1/payment_methods/{intent['payment_method']}")
    assert (intent["amount"], intent["currency"].upper()) == (2500, "USD")
    assert (method["livemode"], method["type"].title()) == (True, "Custom")


def test_a_sync_engine_reads_a_session_and_what_it_names(api: StripeApi) -> None:
    """As @supabase/stripe-sync-engine does at `checkout.session.completed`.

    `fillCheckoutSessionsLineItems` and `backfillPrices` of stripeSync.ts, 0.48.
    """
    session = api.form(SESSIONS, a_purchase()).json["id"]
    paid(api, session)
    (item,) = read(api, f"{SESSIONS}/{session}/line_items", limit=100)["data"]
    price = read(api, f"/v1/prices/{item['price']['id']}")
    product = read(api, f"/v1/products/{price['product']}")
    assert (price["unit_amount"], product["name"]) == (1000, "Tea")
    since = {"created": {"gte": int(NOW.timestamp()) - 86_400}, "limit": 100}
    (charge,) = read(api, CHARGES, **since)["data"]
    assert read(api, REFUNDS, charge=charge["id"], limit=100)["data"] == []
    assert charge["payment_intent"] == payment(api.stored(session))
    for catalog in ("/v1/prices", "/v1/products"):
        assert read(api, catalog, **since)["data"] == []
