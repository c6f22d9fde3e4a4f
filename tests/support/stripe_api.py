"""The API under /v1 as Lambda runs it, with parameters in brackets as Stripe's libraries do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

from api import http
from api.v1 import http as v1
from api.v1.app import app
from checkout.domain.payment.events import Event
from checkout.domain.session.record import Session
from checkout.flows.payment.writes import move
from checkout.services import DashboardServices, Services
from dashboard.app import handler as dashboard_handler
from tests.support import services
from tests.support.basics import NOW
from tests.support.documented import check
from tests.support.merchant_api import PREFIX, Answer, MerchantApi, gateway_event

SESSIONS = "/v1/checkout/sessions"
ENDPOINTS = "/v1/webhook_endpoints"
EVENTS = "/v1/events"
PAYMENTS = "/v1/payment_intents"
CHARGES = "/v1/charges"
REFUNDS = "/v1/refunds"


class AnyHost:
    """`ports.Hosts`: every name leads to a public address, but one."""

    def permitted(self, host: str) -> bool:
        return host != "inside.example"


class StripeApi(MerchantApi):
    """`MerchantApi` whose bodies are forms."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.managing = services.dashboard(
            self.services, self.dynamo, PREFIX, vault=self.vault, hosts=AnyHost()
        )

    def form(self, path: str, values: Any = None, **options: Any) -> Answer:
        """POST a form; values may be nested."""
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        headers |= options.pop("headers", {})
        raw = urlencode(list(pairs(values or {}))).encode()
        return self.send("POST", path, raw=raw, headers=headers, **options)

    def ask(self, path: str, values: Any = None, **options: Any) -> Answer:
        """GET with nested values in the query."""
        return self.send("GET", path, query=urlencode(list(pairs(values or {}))), **options)

    def manage(
        self, method: str, path: str, values: Any = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        """Ask the dashboard's function, which serves the webhook endpoints."""
        sent = {"Host": "pay.example", "Authorization": f"Bearer {self.secret}"}
        encoded = urlencode(list(pairs(values or {})))
        raw = None
        if method == "POST":
            sent |= {"Content-Type": "application/x-www-form-urlencoded"}
            raw, encoded = encoded.encode(), ""
        event = gateway_event(method, path, encoded, sent | dict(headers or {}), raw)
        with self.installed():
            answer = dashboard_handler(event, None)
        told = Answer(answer["statusCode"], answer["headers"], answer["body"])
        check(method, path, told)
        return told

    @contextmanager
    def installed(self) -> Iterator[None]:
        async def given() -> Services:
            return self.services

        async def managing() -> DashboardServices:
            return self.managing

        app.dependency_overrides[http.services] = given
        app.dependency_overrides[v1.managing] = managing
        try:
            with super().installed():
                yield
        finally:
            app.dependency_overrides.clear()


def pairs(value: Any, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield names in brackets and values, as Stripe's libraries encode them."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from pairs(item, f"{name}[{key}]" if name else key)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from pairs(item, f"{name}[{number}]")
    elif isinstance(value, bool):
        yield name, "true" if value else "false"
    else:
        yield name, str(value)


def a_purchase(**changes: Any) -> dict[str, Any]:
    """A creation that succeeds: 20.00 USD. A change to None removes the parameter."""
    values = {
        "mode": "payment",
        "line_items": [an_item()],
        "success_url": "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}",
        "cancel_url": "https://shop.example/basket",
    } | changes
    return {name: value for name, value in values.items() if value is not None}


def an_item(**changes: Any) -> dict[str, Any]:
    """A line item; product and price fields are put where they belong."""
    product = {"name": "Tea"} | changes.pop("product_data", {})
    price = {"currency": "usd", "unit_amount": 1000, "product_data": product}
    price |= changes.pop("price_data", {})
    return {"price_data": price, "quantity": 2} | changes


def ids(answer: Answer) -> list[str]:
    assert answer.status == 200, answer
    return [each["id"] for each in answer.json["data"]]


def refused(answer: Answer, status: int = 400) -> tuple[str, str | None]:
    assert answer.status == status, answer
    error = answer.json["error"]
    assert error["request_id"] == answer.headers["request-id"]
    assert error["message"]
    return error["code"], error.get("param")


def paid(api: StripeApi, session_id: str) -> None:
    """Let the money of an open session arrive."""
    session = move(api.services, api.stored(session_id), Event.MONEY_FOUND)
    move(api.services, session, Event.RECONCILED, received=session.receive.value, completed_at=NOW)


def several(api: StripeApi, count: int, **fields: Any) -> list[str]:
    made = []
    for _ in range(count):
        made.append(api.store(created_at=api.clock.now(), **fields).id)
        api.clock.pass_time(1)
    return made[::-1]


def payment(session: Session) -> str:
    return session.id.replace("cs_", "pi_")


def ask(api: StripeApi, of: Session, **values: Any) -> Any:
    return api.form(REFUNDS, {"payment_intent": payment(of), **values}, key=api.refunder)
