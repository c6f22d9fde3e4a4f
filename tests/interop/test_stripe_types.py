"""Answers of /v1, of each route and in each state, against the newest stripe-node's own types.

And against a client generated from our own document, which refuses what is not described there.
TypeScript's compiler reads each answer as a literal of its type: a field that is missing, that the
type does not have, or whose value is another one, is an error. Each difference that is on purpose
is listed here with its reason, and one that is no longer found is an error, too.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from checkout.adapters.dynamo.refunds import refund_item
from checkout.domain.payment.in_flight import Problem
from checkout.domain.record_kinds import charge_event
from checkout.domain.refund.record import Refund, RefundProblem, RefundStatus
from checkout.domain.session.customer_details import NONE_GIVEN
from checkout.domain.session.record import Session, Status
from checkout.domain.session.retention import RETENTION
from checkout.domain.stripe.objects import (
    charge,
    checkout_session,
    event_json,
    filled,
    payment_intent,
    payment_method,
)
from checkout.domain.stripe.refunds import refund_event_json
from checkout.domain.webhooks.event_types import EVENTS, stripe_name
from checkout.flows.refund import request
from tests.interop.packages import MODEL_GENERATOR, REPOSITORY, environment, installed
from tests.support.basics import NOW
from tests.support.merchant_api import PREFIX
from tests.support.samples import EVERYTHING, GIVEN, PAID
from tests.support.stripe_api import ENDPOINTS, PAYMENTS, REFUNDS, SESSIONS, StripeApi, a_purchase
from tests.support.stripe_api import EVENTS as EVENT_LIST

HERE: Final = Path(__file__).parent
# The differences on purpose, with the reason. First the fields that the types do not have.
OURS: Final = {
    "open_payments": "what only this service knows",
    "shipping_details": "for clients of before 2025, which read it",
}
# A part of the compiler's message.
EXPECTED: Final = {
    "Type 'string' is not assignable to type 'Decimal'": "the library itself makes it of the text",
}

pytestmark = pytest.mark.interop

ASKING: Final[dict[str, Any]] = {
    "billing_address_collection": "required",
    "shipping_address_collection": {"allowed_countries": ["DE", "US"]},
    "phone_number_collection": {"enabled": True},
    "name_collection": {"individual": {"enabled": True, "optional": True}},
    "custom_fields": [
        {
            "key": kind,
            "label": {"type": "custom", "custom": "A question"},
            "type": kind,
            **({kind: {"options": [{"label": "A", "value": "a"}]}} if kind == "dropdown" else {}),
        }
        for kind in ("dropdown", "numeric", "text")
    ],
}
PAYMENT: Final = {"expand": ["latest_charge.balance_transaction.source", "payment_method.customer"]}
WHOLE: Final = {"expand": ["line_items.data.price.product", "payment_intent.latest_charge"]}


@pytest.fixture(scope="module")
def answers() -> list[tuple[str, Any]]:
    """Return every kind of answer in every state, each with the name of its type."""
    return list(told(StripeApi()))


def told(api: StripeApi) -> Iterator[tuple[str, Any]]:
    created = api.form(SESSIONS, a_purchase(customer_email="a@b.example", metadata={"a": "1"})).json
    yield "Stripe.Checkout.Session", created
    plain = api.form(SESSIONS, a_purchase(cancel_url=None, **WHOLE)).json
    yield "Stripe.Checkout.Session", plain
    yield "Stripe.Checkout.Session", api.form(SESSIONS, a_purchase(**ASKING)).json
    yield from of_details(api)
    sessions = [api.store(status=each) for each in Status if each is not Status.COMPLETED]
    sessions.append(api.store(status=Status.OPEN, problem=Problem.PAYMENT_REFUSED))
    sessions.append(api.store(status=Status.EXPIRED, received=500))
    sessions.append(api.store(**{**PAID, "received": 1999}))
    sold = api.store(**PAID)
    for session in [*sessions, sold]:
        yield from of_session(api, session)
    yield "Stripe.ApiList<Stripe.Checkout.Session>", api.ask(SESSIONS).json
    yield "Stripe.ApiList<Stripe.PaymentIntent>", api.ask(PAYMENTS).json
    yield from of_refunds(api, sold)
    yield from of_events(api, sold)
    endpoint = {"url": "https://shop.example/hooks", "enabled_events": ["*"]}
    made = api.manage("POST", ENDPOINTS, endpoint).json
    yield "Stripe.WebhookEndpoint", made
    api.form(f"{SESSIONS}/{created['id']}/expire")
    yield "Stripe.ApiList<Stripe.Event>", (listed := api.ask(EVENT_LIST).json)
    yield "Stripe.Event", api.ask(f"{EVENT_LIST}/{listed['data'][0]['id']}").json
    path = f"{ENDPOINTS}/{made['id']}"
    yield "Stripe.WebhookEndpoint", api.manage("POST", path, {"disabled": True}).json
    yield "Stripe.ApiList<Stripe.WebhookEndpoint>", api.manage("GET", ENDPOINTS).json
    yield "Stripe.DeletedWebhookEndpoint", api.manage("DELETE", path).json
    yield "Stripe.ApiList<Stripe.Price>", api.ask("/v1/prices").json
    yield "Stripe.ApiList<Stripe.Product>", api.ask("/v1/products").json
    yield "Stripe.Balance", api.ask("/v1/balance").json
    yield "Stripe.Account", api.ask("/v1/account").json
    yield "Stripe.ApiList<Stripe.Account>", api.ask("/v1/accounts").json


def of_session(api: StripeApi, session: Session) -> Iterator[tuple[str, Any]]:
    path = f"{SESSIONS}/{session.id}"
    yield "Stripe.Checkout.Session", api.ask(path).json
    yield "Stripe.Checkout.Session", api.ask(path, WHOLE).json
    yield "Stripe.ApiList<Stripe.LineItem>", (items := api.ask(f"{path}/line_items").json)
    price = items["data"][0]["price"]
    yield "Stripe.Price", api.ask(f"/v1/prices/{price['id']}").json
    yield "Stripe.Product", api.ask(f"/v1/products/{price['product']}").json
    payment = f"{PAYMENTS}/{session.id.replace('cs_', 'pi_')}"
    yield "Stripe.PaymentIntent", api.ask(payment).json
    yield "Stripe.PaymentIntent", api.ask(payment, PAYMENT).json
    if session.status is Status.COMPLETED:
        charge = f"/v1/charges/{session.id.replace('cs_', 'ch_')}"
        yield "Stripe.Charge", api.ask(charge).json
        yield "Stripe.Charge", api.ask(charge, {"expand": ["payment_intent"]}).json
        digits = session.id.removeprefix("cs_")
        yield "Stripe.PaymentMethod", api.ask(f"/v1/payment_methods/pm_{digits}").json
        transaction = f"/v1/balance_transactions/txn_{digits}"
        yield "Stripe.BalanceTransaction", api.ask(transaction).json
        yield "Stripe.BalanceTransaction", api.ask(transaction, {"expand": ["source"]}).json
        yield "Stripe.ApiList<Stripe.Charge>", api.ask("/v1/charges").json


def of_details(api: StripeApi) -> Iterator[tuple[str, Any]]:
    """Yield what shows the details of customers: asked or not, given whole, in part, or not."""
    common: dict[str, Any] = {"base_url": "https://pay.example"}
    in_part = [replace(GIVEN, billing=None, answers=()), replace(GIVEN, shipping=None, phone=None)]
    for collect_json in (EVERYTHING.to_json(), None):
        sold = api.store(collect_json=collect_json, **PAID)
        for details in (GIVEN, NONE_GIVEN, *in_part):
            dated = {**common, "now": NOW, "details": details}
            yield "Stripe.Checkout.Session", checkout_session(sold, **dated)
            yield "Stripe.PaymentIntent", payment_intent(sold, **dated)
            yield "Stripe.Charge", charge(sold, **common, details=details)
            yield "Stripe.PaymentMethod", payment_method(sold, **common, details=details)
            for name in ("checkout.session.completed", "payment_intent.succeeded"):
                named = {"event_id": f"evt_{7:022d}", "event_type": name}
                text = filled(
                    event_json(sold, **common, **named, at=NOW), sold, details, **common, at=NOW
                )
                yield "Stripe.Event", json.loads(text)


OF_REFUND: Final = ["charge", "payment_intent", "payment_method", "balance_transaction.source"]


def of_refunds(api: StripeApi, sold: Session) -> Iterator[tuple[str, Any]]:
    payment = sold.id.replace("cs_", "pi_")
    for status in RefundStatus:
        values = {"payment_intent": payment, "amount": 10, "reason": "duplicate"}
        made = api.form(REFUNDS, values, key=api.refunder).json
        stored = api.services.refunds.get(made["id"])
        assert stored is not None
        put(api, replace(stored, status=status, **reached(status)))
        path = f"{REFUNDS}/{made['id']}"
        yield "Stripe.Refund", api.ask(path).json
        yield "Stripe.Refund", api.ask(path, {"expand": OF_REFUND}).json
        if (named := api.ask(path).json["balance_transaction"]) is not None:
            whole = {"expand": ["source"]}
            found = api.ask(f"/v1/balance_transactions/{named}", whole).json
            yield "Stripe.BalanceTransaction", found
    yield "Stripe.ApiList<Stripe.Refund>", api.ask(REFUNDS).json


def reached(status: RefundStatus) -> dict[str, Any]:
    so_far: dict[str, Any] = {}
    if status is RefundStatus.FAILED:
        so_far = {"problem": RefundProblem.SENT_IN_PART, "sent": 5}
    if status is RefundStatus.SUCCEEDED:
        so_far = {"sent": 10}
    if status in (RefundStatus.NEEDS_APPROVAL, RefundStatus.SENDING):
        return {"check_at": NOW}
    return {"ended_at": NOW, **so_far}


def put(api: StripeApi, refund: Refund) -> None:
    item = refund_item(refund, RETENTION)
    api.dynamo.put_item(TableName=f"{PREFIX}-checkout_sessions", Item=item)


def of_events(api: StripeApi, sold: Session) -> Iterator[tuple[str, Any]]:
    """Yield an event of each type that Stripe has too."""
    [refund, *_] = request.of_session(api.services, api.key, sold.id)
    common: dict[str, Any] = {"base_url": "https://pay.example", "at": NOW}
    for number, name in enumerate(EVENTS):
        named = {"event_id": f"evt_{number:022d}", "event_type": name, **common}
        if stripe_name(name) not in OF_STRIPE:
            continue
        if name == "charge.refunded":
            event = charge_event(refund, sold, name, event_id=named["event_id"], **common)
            text = event.stripe_body or ""
        elif name.startswith("refund."):
            text = refund_event_json(refund, **named)
        else:
            text = event_json(sold, **named)
        yield "Stripe.Event", json.loads(text)


OF_STRIPE: Final = (
    "checkout.session.completed",
    "checkout.session.expired",
    "payment_intent.payment_failed",
    "payment_intent.succeeded",
    "charge.refunded",
    "refund.created",
    "refund.updated",
    "refund.failed",
)


def without_ours(value: Any) -> Any:
    """Return an answer without the fields that the types do not have."""
    if isinstance(value, list):
        return [without_ours(each) for each in value]
    if not isinstance(value, dict):
        return value
    within = "business_name" in value  # `collected_information`, which has the new place of one
    return {name: without_ours(each) for name, each in value.items() if within or name not in OURS}


def test_no_answer_contradicts_the_types(
    node: str, answers: list[tuple[str, Any]], tmp_path: Path
) -> None:
    assert len(answers) >= 130
    (tmp_path / "node_modules").symlink_to(HERE / "node_modules")
    lines = ['import Stripe from "stripe";']
    for number, (kind, value) in enumerate(answers):
        text = json.dumps(without_ours(value))
        lines.append(f"export const v{number}: {kind} = {text};")
    (tmp_path / "answers.ts").write_text("\n".join(lines), "utf-8")
    done = subprocess.run(
        [node, "node_modules/typescript/bin/tsc", "--noEmit", "--strict", "--skipLibCheck",
         "--target", "es2022", "--module", "nodenext", "--noErrorTruncation", "answers.ts"],
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    contradictions: dict[str, str] = {}
    for found in re.finditer(r"^answers\.ts\((\d+),\d+\): (.*(?:\n .*)*)", done.stdout, re.M):
        kind = answers[int(found[1]) - 2][0]
        contradictions.setdefault(f"{kind}: {found[2]}", kind)
    left = [each[:1500] for each in contradictions if not any(known in each for known in EXPECTED)]
    assert left == [], "\n".join(left)
    gone = [each for each in EXPECTED if not any(each in one for one in contradictions)]
    assert gone == []
    print(f"{len(answers)} answers, {len(contradictions)} differences on purpose")


# The model of each type, as the generator names it.
MODELS: Final = {
    "Stripe.Checkout.Session": "Session",
    "Stripe.ApiList<Stripe.Checkout.Session>": "SessionList",
    "Stripe.ApiList<Stripe.LineItem>": "LineItemList",
    "Stripe.PaymentIntent": "PaymentIntentModel",  # a field's own type has the shorter name
    "Stripe.ApiList<Stripe.PaymentIntent>": "PaymentList",
    "Stripe.Charge": "Charge",
    "Stripe.Refund": "Refund",
    "Stripe.ApiList<Stripe.Charge>": "ChargeList",
    "Stripe.ApiList<Stripe.Refund>": "RefundList",
    "Stripe.Event": "Event",
    "Stripe.ApiList<Stripe.Event>": "EventList",
    "Stripe.WebhookEndpoint": "Endpoint",
    "Stripe.ApiList<Stripe.WebhookEndpoint>": "EndpointList",
    "Stripe.DeletedWebhookEndpoint": "Deleted",
    "Stripe.Balance": "Balance",
    "Stripe.BalanceTransaction": "BalanceTransaction",
    "Stripe.PaymentMethod": "PaymentMethodModel",
    "Stripe.Price": "Price",
    "Stripe.ApiList<Stripe.Price>": "PriceList",
    "Stripe.Product": "Product",
    "Stripe.ApiList<Stripe.Product>": "ProductList",
    "Stripe.Account": "Account",
    "Stripe.ApiList<Stripe.Account>": "AccountList",
}
REFUSED: Final[tuple[tuple[str, dict[str, str], int], ...]] = (  # what is posted, and the status
    (SESSIONS, {"mode": "setup"}, 400),
    (f"{SESSIONS}/cs_nobody", {}, 404),
    ("/v1/customers", {}, 404),
    (REFUNDS, {"payment_intent": "pi_1"}, 403),
)
READ: Final = """
import json, sys
import client
from pydantic import ValidationError
wrong = []
for name, value in json.load(sys.stdin):
    try:
        getattr(client, name).model_validate_json(json.dumps(value))
    except ValidationError as error:
        wrong.append(f"{name}: {error.errors(include_input=False, include_url=False)}")
print(json.dumps(wrong))
"""


def generated(folder: Path) -> Callable[[list[tuple[str, Any]]], list[str]]:
    """Generate the client; return what tells which answers it cannot read, and why."""
    env = environment(installed(*MODEL_GENERATOR))
    document = str(REPOSITORY / "docs" / "openapi-v1.json")
    command = [sys.executable, "-m", "datamodel_code_generator", "--input", document,
               "--input-file-type", "openapi", "--output", str(folder / "client.py"),
               "--output-model-type", "pydantic_v2.BaseModel", "--extra-fields", "forbid",
               "--strict-types", "str", "bool", "int", "--use-annotated",
               "--formatters", "builtin", "--target-python-version", "3.11"]  # fmt: skip
    subprocess.run(command, env=env, check=True, timeout=300)

    def read(answers: list[tuple[str, Any]]) -> list[str]:
        named = [(MODELS.get(kind, kind), value) for kind, value in answers]
        done = subprocess.run(
            [sys.executable, "-c", READ], cwd=folder, env=env,
            input=json.dumps(named), capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        wrong: list[str] = json.loads(done.stdout)
        return wrong

    return read


def test_a_strict_client_of_our_own_document_reads_every_answer(
    answers: list[tuple[str, Any]], tmp_path: Path
) -> None:
    read = generated(tmp_path)
    assert {kind for kind, _ in answers} == set(MODELS)
    assert read(answers) == []
    api = StripeApi()
    refused = [api.form(path, values) for path, values, _ in REFUSED]
    assert [each.status for each in refused] == [status for *_, status in REFUSED]
    assert read([("Error", each.json) for each in refused]) == []
    # It would tell: of a field that is not described, one that is missing, and one of another type.
    kind, session = answers[0]
    fewer = {name: value for name, value in session.items() if name != "amount_total"}
    spoiled = [{**session, "surprise": 1}, fewer, {**session, "livemode": "no"}]
    assert len(read([(kind, each) for each in spoiled])) == 3
    print(f"{len(answers)} answers of {len(MODELS)} types")
