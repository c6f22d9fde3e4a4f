"""The published documents against the code, and against real answers."""

from __future__ import annotations

import json
import re
from dataclasses import fields as fields_of
from typing import Any

import pytest
from fastapi import APIRouter
from fastapi.openapi.models import OpenAPI
from fastapi.routing import APIRoute
from jsonschema_rs import ValidationError

from api import refunds, routes
from api.requests import CreateSession
from api.v1 import app as v1
from api.v1 import parity
from api.v1.account import router as account
from api.v1.endpoints import router as endpoints
from api.v1.parity import Does
from api.v1.payments import router as payments
from api.v1.refunds import router as stripe_refunds
from checkout.domain.payment.in_flight import Attention
from checkout.domain.refund.public import public_refund
from checkout.domain.refund.transitions import REFUND_TRANSITIONS
from checkout.domain.session.public import event_body
from checkout.domain.session.record import Status
from checkout.domain.session.transitions import TRANSITIONS
from checkout.domain.webhooks.event_types import PARTIALLY_PAID, PING, REFUND_CREATED
from checkout.domain.webhooks.record import ping_body
from checkout.web import STATUS
from docs.openapi import native, stripe
from tests.support import stripe_api as v1_api
from tests.support.basics import NOW, a_refund, a_session
from tests.support.documented import NATIVE, STRIPE, Documented, every_reference
from tests.support.merchant_api import SESSIONS, Answer, MerchantApi, a_body
from tests.support.samples import PAID
from tests.support.stripe_api import StripeApi, a_purchase, ask, paid

DOCUMENT = NATIVE.document
# Responses of the customers' pages and the dashboard only.
OF_PAGES_ONLY = {
    "amount_too_small_for_wallet",
    "callback_invalid",
    "conflict",
    "email_invalid",
    "key_unexpected_state",
    "mail_refused",
    "member_unexpected_state",
    "merchant_wallet_error",
    "passkey_invalid",
    "receipts_used_up",
    "wallet_invalid",
    "wallet_unavailable",
    "wallet_unreachable",
    "webhook_unexpected_state",
}
SCHEMAS = NATIVE.schemas


def operations(documented: Documented) -> list[tuple[str, str]]:
    return [
        (path, method) for path, each in documented.document["paths"].items() for method in each
    ]


BOTH = pytest.mark.parametrize("documented", [NATIVE, STRIPE], ids=["native", "v1"])
# The document as the code makes it, the routers, and the number of operations.
MADE: dict[Documented, tuple[Any, tuple[APIRouter, ...], int]] = {
    NATIVE: (native.document, (routes.router, refunds.router), 13),
    STRIPE: (
        stripe.document,
        (v1.router, account, endpoints, payments, stripe_refunds),
        32,
    ),
}


@BOTH
def test_the_published_document_is_fresh(documented: Documented) -> None:
    assert MADE[documented][0]() == documented.document, "run make docs"


@BOTH
def test_it_is_openapi_3_1_and_each_schema_is_referred_to(documented: Documented) -> None:
    assert OpenAPI.model_validate(documented.document).openapi.startswith("3.1")
    used = {
        each.removeprefix("#/components/schemas/") for each in every_reference(documented.document)
    }
    assert used == set(documented.schemas)
    paths = documented.document["paths"]
    names = {paths[path][method].get("operationId") for path, method in operations(documented)}
    assert len(names) == len(operations(documented)) == MADE[documented][2]


@BOTH
def test_each_route_is_documented_and_each_operation_has_one(documented: Documented) -> None:
    def shape(path: str) -> str:
        return re.sub(r"\{[a-z_]+\}", "{}", path)

    found = {
        (shape(route.path), method.lower())
        for router in MADE[documented][1]
        for route in router.routes
        if isinstance(route, APIRoute) and "rest:path" not in route.path
        for method in route.methods or ()
    }
    assert found == {(shape(path), method) for path, method in operations(documented)}


def test_only_health_needs_no_key() -> None:
    assert DOCUMENT["security"] == [{"api_key": []}]
    paths = DOCUMENT["paths"]
    free = [path for path, each in operations(NATIVE) if paths[path][each].get("security") == []]
    assert free == ["/api/health"]


def test_creation_documents_its_header_and_every_field_with_its_bounds() -> None:
    create = DOCUMENT["paths"][SESSIONS]["post"]
    [header] = create["parameters"]
    assert (header["name"], header["in"], header["schema"]["maxLength"]) == (
        "Idempotency-Key",
        "header",
        255,
    )
    fields = SCHEMAS["CreateSession"]["properties"]
    added = {"metadata", "expires_in_seconds", "locale", "client_reference_id", "collect"}
    added |= {"customer_email"}
    assert set(fields) == {*a_body(), *added}
    assert SCHEMAS["CreateSession"]["required"] == list(a_body())
    expires = fields["expires_in_seconds"]
    assert (expires["minimum"], expires["maximum"]) == (300, 86_400)
    assert '"default"' not in json.dumps(SCHEMAS["CreateSession"])  # generators would require it
    assert (fields["line_items"]["minItems"], fields["line_items"]["maxItems"]) == (1, 100)
    amount = SCHEMAS["PriceData"]["properties"]["unit_amount"]
    assert (amount["minimum"], amount["maximum"]) == (0, 999_999_999_999)


def test_each_field_of_the_request_is_passed_on() -> None:
    chosen: dict[str, Any] = {"metadata": {"order": "1"}, "expires_in_seconds": 300, "locale": "de"}
    chosen["collect"] = {"email": "required"}
    chosen["customer_email"] = "ana@example.com"
    body = {**a_body(), **chosen, "client_reference_id": "order-1"}
    assert set(body) == set(CreateSession.model_fields)
    new = CreateSession.model_validate(body).new_session()
    left_out = [each.name for each in fields_of(new) if getattr(new, each.name) == each.default]
    assert left_out == ["echo_json", "expires_at"]  # of /v1


def test_the_list_documents_its_filters() -> None:
    parameters = {one["name"]: one for one in DOCUMENT["paths"][SESSIONS]["get"]["parameters"]}
    assert list(parameters) == ["limit", "cursor", "status", "created[gte]", "created[lt]"]
    assert parameters["limit"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 100,
        "default": 10,
    }
    assert parameters["status"]["schema"]["enum"] == [status.value for status in Status]


def test_each_operation_lists_the_codes_that_it_answers_with() -> None:
    listed = {
        operation["operationId"]: {
            code
            for answer in operation["responses"].values()
            for code in re.findall(r"`([a-z_]+)`", answer["description"])
        }
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
    }
    assert {"idempotency_key_reused", "url_invalid", "api_key_missing"} <= listed["createSession"]
    assert {"session_unexpected_state", "payment_in_progress"} <= listed["cancelSession"]
    ends = ("expireSession", "acceptSession", "giveUpSession")
    assert all(listed[end] == listed["cancelSession"] for end in ends)
    assert "cursor_invalid" in listed["listSessions"]
    assert "resource_missing" in listed["getSession"]
    known = {error.code for error in STATUS} | {"internal_error"}
    assert set().union(*listed.values()) == set(
        SCHEMAS["ErrorDetails"]["properties"]["code"]["enum"]
    )
    assert set().union(*listed.values()) <= known


def test_every_error_is_documented_or_of_pages_only() -> None:
    documented = SCHEMAS["ErrorDetails"]["properties"]["code"]["enum"]
    assert {error.code for error in STATUS} - set(documented) == OF_PAGES_ONLY


def test_each_webhook_is_documented() -> None:
    tables = [*TRANSITIONS.values(), *REFUND_TRANSITIONS.values()]
    types = {PING, REFUND_CREATED, *(row.webhook for row in tables if row.webhook)}
    assert set(DOCUMENT["webhooks"]) == types
    refund = public_refund(a_refund(), base_url="https://checkout.example")
    for name, each in DOCUMENT["webhooks"].items():
        if name.startswith("refund"):
            schema = each["post"]["requestBody"]["content"]["application/json"]["schema"]
            NATIVE.check_body(schema, json.dumps(refund))
            continue
        status = Status.PROCESSING if name == PARTIALLY_PAID else Status.COMPLETED
        session = a_session(status, received=1)
        schema = each["post"]["requestBody"]["content"]["application/json"]["schema"]
        pinged = ping_body("evt_1", currency="usd")
        NATIVE.check_body(schema, pinged if name == PING else event_body(session, name))


def test_each_operation_of_the_native_api_answers_as_its_document_says() -> None:
    """The builder holds each answer against it, in every test."""
    api = MerchantApi()
    part = {"status": Status.PROCESSING, "received": 700, "attention": Attention.PARTIAL_PAYMENT}
    creation = DOCUMENT["paths"][SESSIONS]["post"]["requestBody"]["content"]["application/json"]
    of_refunds = "/api/checkout/refunds"
    bodies = {
        SESSIONS: creation["example"],
        of_refunds: {"session": api.store(**PAID).id, "amount": 5},
    }
    ids = {
        f"{SESSIONS}/{{id}}/accept_as_paid": api.store(**part).id,
        f"{SESSIONS}/{{id}}/give_up": api.store(**part, closed_at=NOW).id,
    }
    found = set()
    for path, method in operations(NATIVE):
        refund = api.get(of_refunds).json["data"] if of_refunds in path else []
        identity = ids.get(path) or (refund[0]["id"] if refund else api.store().id)
        raw = json.dumps(bodies[path]).encode() if method == "post" and path in bodies else None
        key = api.refunder if path.startswith(of_refunds) else ""
        answer = api.send(method.upper(), path.format(id=identity), raw=raw, key=key)
        assert answer.status in (200, 201), (method, path, answer)
        found.add(answer.status)
    assert found == {200, 201}


def test_each_operation_of_v1_answers_as_its_document_says() -> None:
    api = StripeApi()
    sold = api.store(**PAID).id
    payment = sold.replace("cs_", "pi_")
    endpoint = {"url": "https://shop.example/hooks", "enabled_events": ["*"]}
    other = {**endpoint, "url": "https://shop.example/more"}
    paid(api, api.form(v1_api.SESSIONS, a_purchase()).json["id"])
    ids = {
        "session": sold,
        "event": api.ask(v1_api.EVENTS).json["data"][0]["id"],
        "payment": payment,
        "charge": sold.replace("cs_", "ch_"),
        "payment_method": sold.replace("cs_", "pm_"),
        "transaction": sold.replace("cs_", "txn_"),
        "price": sold.replace("cs_", "price_") + "00",
        "product": sold.replace("cs_", "prod_") + "00",
        "account": "acct_1",
        "endpoint": api.manage("POST", v1_api.ENDPOINTS, endpoint).json["id"],
        "refund": ask(api, api.stored(sold), amount=5).json["id"],
    }
    values: dict[tuple[str, str], Any] = {
        (v1_api.SESSIONS, "post"): a_purchase(expand=["line_items"], customer_email="a@b.example"),
        (v1_api.REFUNDS, "post"): {"payment_intent": payment, "amount": 5},
        (v1_api.ENDPOINTS, "post"): other,
        (v1_api.REFUNDS + "/{refund}", "get"): {"expand": ["charge", "payment_method"]},
        ("/v1/balance_transactions/{transaction}", "get"): {"expand": ["source"]},
        ("/v1/prices/{price}", "get"): {"expand": ["product"]},
        (v1_api.PAYMENTS, "get"): {"expand": ["data.latest_charge.balance_transaction"]},
        (v1_api.CHARGES, "get"): {"expand": ["data.payment_intent"]},
        (v1_api.SESSIONS, "get"): {"expand": ["data.payment_intent"]},
    }
    for path, method in operations(STRIPE):
        ids["session"] = api.store().id if path.endswith("/expire") else sold
        place, given = path.format(**ids), values.get((path, method))
        if path.startswith(v1_api.ENDPOINTS):
            answer = api.manage(method.upper(), place, given)
        elif method == "post":
            answer = api.form(place, given, key=api.refunder)
        else:
            answer = api.ask(place, given)
        assert answer.status == 200, (method, path, answer)


def test_what_v1_refuses_is_not_in_its_document() -> None:
    body = STRIPE.document["paths"][v1_api.SESSIONS]["post"]["requestBody"]
    text, schema = json.dumps(body), body["content"]["application/json"]["schema"]
    for row in parity.CREATE_SESSION:
        name = row.path.replace("[]", "").split("[")[0]
        if row.does is not Does.REFUSED:
            assert name in schema["properties"]
        elif "[" not in row.path and name not in ("automatic_tax", "managed_payments"):
            others = [each for each in parity.CREATE_SESSION if each.path.startswith(f"{name}[")]
            assert others or f'"{name}"' not in text, name


def test_an_undocumented_status_or_code_is_noticed_and_an_unknown_path_is_not_documented() -> None:
    NATIVE.check("GET", "/api/nothing", Answer(404, {}, "{}"))
    with pytest.raises(KeyError, match="418"):
        NATIVE.check("GET", SESSIONS, Answer(418, {}, "{}"))
    error = {"type": "invalid_request_error", "code": "url_invalid", "message": "m"}
    error["doc_url"] = "/docs#url_invalid"
    body = json.dumps({"error": error | {"request_id": "req_5dTMd0wvG8PZx5nNq2LrYb"}})
    NATIVE.check("POST", SESSIONS, Answer(400, {}, body))
    with pytest.raises(AssertionError):
        NATIVE.check("GET", SESSIONS, Answer(400, {}, body))


@pytest.mark.parametrize(
    "change",
    [{"extra": 1}, {"status": "paid"}, {"amount_total": "2000"}, {"url": "x"}, {"created_at": ""}],
)
def test_a_wrong_answer_is_noticed(change: dict[str, Any]) -> None:
    api = MerchantApi()
    session = api.get(f"{SESSIONS}/{api.store().id}").json
    schema = {"$ref": "#/components/schemas/Session"}
    NATIVE.check_body(schema, json.dumps(session))
    with pytest.raises(ValidationError):
        NATIVE.check_body(schema, json.dumps(session | change))


def test_a_field_of_v1_that_is_not_documented_is_noticed() -> None:
    session = StripeApi().form(v1_api.SESSIONS, a_purchase()).json
    schema = {"$ref": "#/components/schemas/Session"}
    STRIPE.check_body(schema, json.dumps(session))
    with pytest.raises(ValidationError):
        STRIPE.check_body(schema, json.dumps(session | {"extra": None}))
