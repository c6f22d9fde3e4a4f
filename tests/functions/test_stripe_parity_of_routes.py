"""Every parameter of Stripe's other requests under /v1: obeyed, refused, or said to be ignored.

Each is sent alone beside what the request needs, with each value that Stripe's own types name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import pytest

from api.v1 import parity
from api.v1.forms import bracketed
from api.v1.parity import Does, Parameter
from tests.functions.test_stripe_parity import fits, with_parameter
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
)
from tests.support.stripe_parameters import Path, parameters


@dataclass(frozen=True)
class Route:
    """A route: where Stripe's types name its parameters, and our rows of them."""

    module: str
    kind: str
    rows: Sequence[Parameter]


ROUTES: Final = {
    "create refund": Route("_refund_create_params", "RefundCreateParams", parity.CREATE_REFUND),
    "update refund": Route("_refund_update_params", "RefundUpdateParams", parity.UPDATE_REFUND),
    "list refunds": Route("_refund_list_params", "RefundListParams", parity.LIST_REFUNDS),
    "update session": Route(
        "checkout._session_update_params", "SessionUpdateParams", parity.UPDATE_SESSION
    ),
    "list sessions": Route(
        "checkout._session_list_params", "SessionListParams", parity.LIST_SESSIONS
    ),
    "list events": Route("_event_list_params", "EventListParams", parity.LIST_EVENTS),
    "list payments": Route(
        "_payment_intent_list_params", "PaymentIntentListParams", parity.LIST_PAYMENTS
    ),
    "list charges": Route("_charge_list_params", "ChargeListParams", parity.LIST_CHARGES),
    "read payment": Route(
        "_payment_intent_retrieve_params", "PaymentIntentRetrieveParams", parity.ONE
    ),
    "create endpoint": Route(
        "_webhook_endpoint_create_params", "WebhookEndpointCreateParams", parity.CREATE_ENDPOINT
    ),
    "update endpoint": Route(
        "_webhook_endpoint_update_params", "WebhookEndpointUpdateParams", parity.UPDATE_ENDPOINT
    ),
}
LISTS: Final = {
    "list refunds": REFUNDS,
    "list sessions": SESSIONS,
    "list events": EVENTS,
    "list payments": PAYMENTS,
    "list charges": CHARGES,
}
ENDPOINT: Final = {"url": "https://shop.example/hooks", "enabled_events": ["*"]}


def a_payment(api: StripeApi) -> str:
    return api.store(**PAID).id.replace("cs_", "pi_")


def a_refund(api: StripeApi) -> str:
    asked = {"payment_intent": a_payment(api), "amount": 10}
    return str(api.form(REFUNDS, asked, key=api.refunder).json["id"])


def sent(api: StripeApi, route: str, path: Path, value: str) -> Answer:
    """Send the request with the parameter beside what it needs."""
    asked: dict[str, Any] = {}
    if route == "create refund":
        asked = {"amount": 10} | ({} if path == ("charge",) else {"payment_intent": a_payment(api)})
    if route == "create endpoint":
        asked = {"url": ENDPOINT["url"], "enabled_events": {"9": "*"}}
    with_parameter(asked, path, value)
    if route in LISTS:
        return api.ask(LISTS[route], asked)
    if route == "read payment":
        return api.ask(f"{PAYMENTS}/{a_payment(api)}", asked)
    if route == "update session":
        return api.form(f"{SESSIONS}/{api.form(SESSIONS, a_purchase()).json['id']}", asked)
    if route.endswith("refund"):
        where = REFUNDS if route == "create refund" else f"{REFUNDS}/{a_refund(api)}"
        return api.form(where, asked, key=api.refunder)
    return to_endpoints(api, asked, new=route == "create endpoint")


def to_endpoints(api: StripeApi, asked: dict[str, Any], *, new: bool) -> Answer:
    """Create or change an endpoint; it is deleted again: a merchant has at most eight."""
    where = (
        ENDPOINTS if new else f"{ENDPOINTS}/{api.manage('POST', ENDPOINTS, ENDPOINT).json['id']}"
    )
    answer = api.manage("POST", where, asked)
    for each in api.manage("GET", ENDPOINTS).json["data"]:
        api.manage("DELETE", f"{ENDPOINTS}/{each['id']}")
    return answer


@pytest.mark.parametrize("route", ROUTES)
def test_no_parameter_of_another_route_is_dropped_silently(route: str) -> None:
    api, of = StripeApi(), ROUTES[route]
    tried = 0
    for path, values in parameters(of.module, of.kind).items():
        name = bracketed(path)
        fate = max(
            (row for row in of.rows if fits(row.path, path)),
            key=lambda row: row.path.count("["),
            default=None,
        )
        for value in values if "enabled_events" not in path else values[:3]:
            tried += 1
            answer = sent(api, route, path, value)
            if answer.status != 200:
                assert answer.status in (400, 404), (name, answer)
                param = str(answer.json["error"].get("param"))
                assert name.startswith(param.split("[")[0]), (name, answer)
                continue
            assert fate is not None, name
            assert fate.does is not Does.REFUSED, name
            ignored = answer.headers.get("ignored-parameters", "")
            assert fate.does is Does.TAKEN or name in ignored.split(", "), name
    assert tried >= 1


def test_a_parameter_of_money_is_never_ignored_but_with_the_value_that_means_none() -> None:
    """`refund_application_fee` and `reverse_transfer` name money that others would have got."""
    for route in ROUTES.values():
        for row in route.rows:
            if row.does is Does.IGNORED:
                harmless = row.path in {"instructions_email"}
                assert harmless or row.only == ("false",), row.path
