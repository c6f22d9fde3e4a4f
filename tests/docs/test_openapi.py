"""The published document against the code, and against real answers."""

from __future__ import annotations

import json
import re
from dataclasses import fields as fields_of
from typing import Any

import pytest
from fastapi.openapi.models import OpenAPI
from fastapi.routing import APIRoute
from pydantic import ValidationError
from starlette.routing import Match

from api import budget, refunds
from api.app import app
from api.requests import CreateSession
from api.routes import router
from checkout.domain.event_types import PARTIALLY_PAID, PING, REFUND_CREATED
from checkout.domain.mandate_transitions import MANDATE_TRANSITIONS
from checkout.domain.payment import Attention
from checkout.domain.public_budget import public_budget
from checkout.domain.public_refund import public_refund
from checkout.domain.refund_transitions import REFUND_TRANSITIONS
from checkout.domain.session import Status
from checkout.domain.transitions import TRANSITIONS
from checkout.domain.webhooks import event_body, ping_body
from checkout.open_payments.models import WalletAddress
from checkout.web import STATUS
from docs.openapi.native import document
from tests.support.basics import NOW, a_mandate, a_refund, a_session
from tests.support.documented import NATIVE, every_reference
from tests.support.merchant_api import PREFIX, SESSIONS, Answer, MerchantApi, a_body
from tests.support.services import store_mandate

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


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [
        (path, method, operation)
        for path, methods in DOCUMENT["paths"].items()
        for method, operation in methods.items()
    ]


def test_the_published_document_is_fresh() -> None:
    assert document() == DOCUMENT, "run make docs"


def test_it_is_openapi_3_1() -> None:
    parsed = OpenAPI.model_validate(DOCUMENT)
    assert parsed.openapi.startswith("3.1")
    identifiers = [operation["operationId"] for _, _, operation in operations()]
    assert len(set(identifiers)) == len(identifiers) == 16


def test_every_reference_leads_to_a_schema_and_every_schema_is_used() -> None:
    used = {
        reference.removeprefix("#/components/schemas/") for reference in every_reference(DOCUMENT)
    }
    assert used == set(SCHEMAS)


@pytest.mark.parametrize(
    ("method", "path"), [(method.upper(), path) for path, method, _ in operations()]
)
def test_every_documented_operation_has_a_route(method: str, path: str) -> None:
    scope = {"type": "http", "method": method, "path": path, "headers": []}
    assert any(route.matches(scope)[0] is Match.FULL for route in app.routes)


def test_every_route_is_documented() -> None:
    def shape(path: str) -> str:
        return re.sub(r"\{[a-z_]+\}", "{}", path)

    routes = {
        (method.lower(), shape(route.path))
        for route in (*router.routes, *refunds.router.routes, *budget.router.routes)
        if isinstance(route, APIRoute)
        for method in route.methods or ()
    }
    assert routes == {(method, shape(path)) for path, method, _ in operations()}


def test_only_health_needs_no_key() -> None:
    assert DOCUMENT["security"] == [{"api_key": []}]
    free = [path for path, _, operation in operations() if operation.get("security") == []]
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
        for _, _, operation in operations()
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
    tables = [
        *TRANSITIONS.values(),
        *REFUND_TRANSITIONS.values(),
        *MANDATE_TRANSITIONS.values(),
    ]
    types = {PING, REFUND_CREATED, *(row.webhook for row in tables if row.webhook)}
    assert set(DOCUMENT["webhooks"]) == types
    body_of = {
        "refund": public_refund(a_refund(), base_url="https://checkout.example"),
        "refund_budget": public_budget(a_mandate(), base_url="https://checkout.example", now=NOW),
    }
    for name, each in DOCUMENT["webhooks"].items():
        if name.startswith("refund"):
            schema = each["post"]["requestBody"]["content"]["application/json"]["schema"]
            NATIVE.check_body(schema, json.dumps(body_of[name.partition(".")[0]]))
            continue
        status = Status.PROCESSING if name == PARTIALLY_PAID else Status.COMPLETED
        session = a_session(status, received=1)
        schema = each["post"]["requestBody"]["content"]["application/json"]["schema"]
        pinged = ping_body("evt_1", currency="usd")
        NATIVE.check_body(schema, pinged if name == PING else event_body(session, name))


def test_each_operation_answers_as_the_document_says() -> None:
    """The builder holds each answer against it, in every test."""
    api = MerchantApi()
    example = DOCUMENT["paths"][SESSIONS]["post"]["requestBody"]["content"]["application/json"]
    created = api.post(SESSIONS, example["example"])
    session = created.json["id"]
    part = api.store(status=Status.PROCESSING, received=700, attention=Attention.PARTIAL_PAYMENT)
    kept = api.store(
        status=Status.PROCESSING,
        received=700,
        attention=Attention.PARTIAL_PAYMENT,
        closed_at=NOW,
    )
    answered = {
        (SESSIONS, "post"): created,
        (SESSIONS, "get"): api.get(SESSIONS),
        (f"{SESSIONS}/{{id}}", "get"): api.get(f"{SESSIONS}/{session}"),
        (f"{SESSIONS}/{{id}}/attempts", "get"): api.get(f"{SESSIONS}/{session}/attempts"),
        (f"{SESSIONS}/{{id}}/cancel", "post"): api.post(f"{SESSIONS}/{session}/cancel"),
        (f"{SESSIONS}/{{id}}/expire", "post"): api.post(f"{SESSIONS}/{api.store().id}/expire"),
        (f"{SESSIONS}/{{id}}/accept_as_paid", "post"): api.post(
            f"{SESSIONS}/{part.id}/accept_as_paid"
        ),
        (f"{SESSIONS}/{{id}}/give_up", "post"): api.post(f"{SESSIONS}/{kept.id}/give_up"),
        ("/api/health", "get"): api.get("/api/health"),
    }
    paid = api.store(
        status=Status.COMPLETED,
        received=2000,
        outgoing_payment="https://w.example/o",
        customer=WalletAddress(
            "https://w.example/a", "EUR", 2, "https://a.example", "https://r.example"
        ),
    )
    of_all = "/api/checkout/refunds"
    asked = api.post(of_all, {"session": paid.id, "amount": 5}, key=api.refunder)
    refund = f"{of_all}/{asked.json['id']}"
    answered |= {
        (of_all, "post"): asked,
        (of_all, "get"): api.get(of_all),
        (f"{of_all}/{{id}}", "get"): api.get(refund),
        (f"{of_all}/{{id}}/cancel", "post"): api.post(f"{refund}/cancel", key=api.refunder),
    }
    of_budget = "/api/checkout/refund_budget"
    store_mandate(api.dynamo, PREFIX, a_mandate())
    answered |= {
        (of_budget, "post"): api.post(of_budget, {"amount": 5}, key=api.refunder),
        (of_budget, "get"): api.get(of_budget),
        (f"{of_budget}/end", "post"): api.post(f"{of_budget}/end", key=api.refunder),
    }
    assert {each.status for each in answered.values()} == {200, 201}
    assert set(answered) == {(path, method) for path, method, _ in operations()}


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
