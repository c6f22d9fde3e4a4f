"""The document of /v1 against the code, and against real answers."""

from __future__ import annotations

import json
import re

import pytest
from fastapi.openapi.models import OpenAPI
from fastapi.routing import APIRoute
from pydantic import ValidationError

from api.v1 import parity
from api.v1.account import router as account
from api.v1.endpoints import router as endpoints
from api.v1.parity import Does
from api.v1.payments import router as payments
from api.v1.refunds import router as refunds
from api.v1.routes import router
from docs.openapi.stripe import document
from tests.support.documented import STRIPE, every_reference
from tests.support.merchant_api import Answer
from tests.support.samples import PAID
from tests.support.stripe_api import (
    CHARGES,
    ENDPOINTS,
    EVENTS,
    PAYMENTS,
    REFUNDS,
    SESSIONS,
    StripeApi,
    a_purchase,
    paid,
)

DOCUMENT, SCHEMAS = STRIPE.document, STRIPE.schemas


def test_the_published_document_is_fresh() -> None:
    assert document() == DOCUMENT, "run make docs"


def test_it_is_openapi_3_1_and_every_schema_is_used() -> None:
    assert OpenAPI.model_validate(DOCUMENT).openapi.startswith("3.1")
    used = {each.removeprefix("#/components/schemas/") for each in every_reference(DOCUMENT)}
    assert used == set(SCHEMAS)


def test_every_route_is_documented_and_has_a_route() -> None:
    def shape(path: str) -> str:
        return re.sub(r"\{[a-z_]+\}", "{}", path)

    routes = {
        (method.lower(), shape(route.path))
        for each in (router, account, endpoints, payments, refunds)
        for route in each.routes
        if isinstance(route, APIRoute) and "rest:path" not in route.path
        for method in route.methods or ()
    }
    documented = {
        (method, shape(path)) for path, each in DOCUMENT["paths"].items() for method in each
    }
    assert routes == documented


def test_what_is_refused_is_not_in_the_document() -> None:
    text = json.dumps(DOCUMENT["paths"][SESSIONS]["post"]["requestBody"])
    body = DOCUMENT["paths"][SESSIONS]["post"]["requestBody"]["content"]["application/json"]
    for row in parity.CREATE_SESSION:
        name = row.path.replace("[]", "").split("[")[0]
        if row.does is not Does.REFUSED:
            assert name in body["schema"]["properties"]
        elif "[" not in row.path and name not in ("automatic_tax", "managed_payments"):
            others = [each for each in parity.CREATE_SESSION if each.path.startswith(f"{name}[")]
            assert others or f'"{name}"' not in text, name


def test_each_operation_answers_as_the_document_says() -> None:
    """The builder holds each answer against it, in every test."""
    api = StripeApi()
    post = DOCUMENT["paths"][SESSIONS]["post"]["requestBody"]["content"]["application/json"]
    created = api.post(SESSIONS, post["example"])
    session = created.json["id"]
    full = api.form(SESSIONS, a_purchase(expand=["line_items"], customer_email="a@b.example"))
    paid(api, full.json["id"])
    expired = api.form(f"{SESSIONS}/{session}/expire")
    event = api.ask(EVENTS).json["data"][0]["id"]
    endpoint = {"url": "https://shop.example/hooks", "enabled_events": ["*"]}
    made = api.manage("POST", ENDPOINTS, endpoint)
    path = f"{ENDPOINTS}/{made.json['id']}"
    one = f"{SESSIONS}/{{session}}"
    payment = api.store(**PAID).id.replace("cs_", "pi_")
    asked = api.form(REFUNDS, {"payment_intent": payment}, key=api.refunder)
    refund = asked.json.get("id")
    answers: list[tuple[str, str, Answer]] = [
        (SESSIONS, "post", created),
        (SESSIONS, "post", full),
        (SESSIONS, "post", api.form(SESSIONS, {"customer": "x"})),
        (SESSIONS, "post", api.form(SESSIONS, a_purchase(), key="x")),
        (SESSIONS, "get", api.ask(SESSIONS, {"expand": ["data.payment_intent"]})),
        (SESSIONS, "get", api.ask(SESSIONS, {"starting_after": "x"})),
        (one, "get", api.ask(f"{SESSIONS}/{full.json['id']}")),
        (one, "get", api.ask(f"{SESSIONS}/x")),
        (one, "post", api.form(f"{SESSIONS}/{full.json['id']}", {"metadata": {"a": ""}})),
        (f"{one}/expire", "post", expired),
        (f"{one}/expire", "post", api.form(f"{SESSIONS}/{session}/expire")),
        (f"{one}/line_items", "get", api.ask(f"{SESSIONS}/{session}/line_items")),
        (EVENTS, "get", api.ask(EVENTS)),
        (f"{EVENTS}/{{event}}", "get", api.ask(f"{EVENTS}/{event}")),
        (REFUNDS, "post", asked),
        (REFUNDS, "post", api.form(REFUNDS, {"amount": 1}, key=api.refunder)),
        (REFUNDS, "get", api.ask(REFUNDS)),
        (f"{REFUNDS}/{{refund}}", "get", api.ask(f"{REFUNDS}/{refund}", {"expand": ["charge"]})),
        (f"{REFUNDS}/{{refund}}", "post", api.form(f"{REFUNDS}/{refund}", key=api.refunder)),
        (
            f"{REFUNDS}/{{refund}}/cancel",
            "post",
            api.form(f"{REFUNDS}/{refund}/cancel", key=api.refunder),
        ),
        (PAYMENTS, "get", api.ask(PAYMENTS, {"expand": ["data.latest_charge"]})),
        (f"{PAYMENTS}/{{payment}}", "get", api.ask(f"{PAYMENTS}/{payment}")),
        (f"{PAYMENTS}/{{payment}}", "get", api.ask(f"{PAYMENTS}/x")),
        (CHARGES, "get", api.ask(CHARGES, {"expand": ["data.payment_intent"]})),
        (f"{CHARGES}/{{charge}}", "get", api.ask(f"{CHARGES}/{payment.replace('pi_', 'ch_')}")),
        ("/v1/account", "get", api.ask("/v1/account")),
        ("/v1/accounts", "get", api.ask("/v1/accounts")),
        ("/v1/accounts/{account}", "get", api.ask("/v1/accounts/acct_1")),
        ("/v1/balance", "get", api.ask("/v1/balance")),
        (ENDPOINTS, "post", made),
        (ENDPOINTS, "post", api.manage("POST", ENDPOINTS, endpoint)),
        (ENDPOINTS, "get", api.manage("GET", ENDPOINTS)),
        (f"{ENDPOINTS}/{{endpoint}}", "get", api.manage("GET", path)),
        (f"{ENDPOINTS}/{{endpoint}}", "post", api.manage("POST", path, {"disabled": True})),
        (f"{ENDPOINTS}/{{endpoint}}", "delete", api.manage("DELETE", path)),
    ]
    seen = {(place, method) for place, method, answer in answers if answer.status == 200}
    assert seen == {(path, method) for path, each in DOCUMENT["paths"].items() for method in each}


def test_a_field_that_is_not_documented_is_noticed() -> None:
    api = StripeApi()
    session = api.form(SESSIONS, a_purchase()).json
    schema = {"$ref": "#/components/schemas/Session"}
    STRIPE.check_body(schema, json.dumps(session))
    with pytest.raises(ValidationError):
        STRIPE.check_body(schema, json.dumps(session | {"extra": None}))
