"""The bare function with which ours is compared, written as FastAPI's and boto3's guides show.

It has FastAPI, Mangum, pydantic, Powertools and boto3 with their defaults. It makes the same calls
to AWS with the same items, calls the wallet the same number of times, without signing, and answers
with the same document. Requests and answers are models; one dependency reads the key; it writes a
log line and a metric when ours does. It has no rules, no errors, no idempotency, and no state.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from aws_lambda_powertools import Logger, Metrics
from aws_lambda_powertools.metrics import MetricUnit
from aws_lambda_powertools.utilities.batch import (
    BatchProcessor,
    EventType,
    process_partial_response,
)
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from fastapi import Depends, FastAPI, Header, HTTPException, Response
from fastapi.responses import HTMLResponse
from jinja2 import Environment
from mangum import Mangum
from pydantic import BaseModel, Field
from starlette.middleware.gzip import GZipMiddleware

SESSIONS: Final = "/api/checkout/sessions"
TOTAL: Final = "$20.00"
# Our functions log and count these events.
METERED: Final = ("create", "key", "wallet", "callback", "webhook")

Event = dict[str, Any]
Handler = Callable[[Event, Any], Any]
Call = tuple[str, dict[str, Any]]


class Product(BaseModel):
    name: str = Field(min_length=1, max_length=200)
    description: str = Field("", max_length=1000)


class Price(BaseModel):
    currency: str = Field(pattern="^[A-Za-z]{3}$")
    product_data: Product
    unit_amount: int = Field(ge=0)


class Line(BaseModel):
    price_data: Price
    quantity: int = Field(1, ge=1)


class Create(BaseModel):
    mode: str
    line_items: list[Line] = Field(min_length=1, max_length=100)
    success_url: str = Field(max_length=2048)
    cancel_url: str = Field(max_length=2048)
    metadata: dict[str, str | int | float | bool | None] = {}
    expires_in_seconds: int = Field(86_400, ge=300, le=86_400)
    locale: str | None = None
    client_reference_id: str | None = Field(None, max_length=200)


class Shown(BaseModel):
    """A session in the API's form."""

    id: str
    object: str
    status: str
    url: str
    amount_total: int
    currency: str
    mode: str
    line_items: list[Line]
    metadata: dict[str, str | int | float | bool | None]
    success_url: str
    cancel_url: str
    customer_wallet: str | None
    incoming_payment: str | None
    outgoing_payment: str | None
    expires_at: str
    created_at: str
    completed_at: str | None
    amount_received: int | None
    client_reference_id: str | None
    customer_debit: dict[str, Any] | None


class Page(BaseModel):
    """A page of sessions."""

    object: str
    url: str
    data: list[Shown]
    has_more: bool
    next_cursor: str | None


class Wallet(BaseModel):
    wallet_address: str = Field(max_length=2048)


@dataclass
class Recorded:
    """An event as our function handled it: its calls to AWS and to wallets, and its answer."""

    calls: list[Call]
    wallet_calls: list[tuple[bytes, bytes]]
    answer: Any

    @property
    def document(self) -> Any:
        return json.loads(self.answer["body"])


class Asking:
    """The calls of an event, and the lines that a function writes with Powertools."""

    def __init__(self, client: Any, recorded: dict[str, Recorded]) -> None:
        self._client = client
        self._recorded = recorded
        self._logger = Logger(service="bare")
        self._metrics = Metrics(namespace="Bare", service="bare")

    def key(self) -> dict[str, Any]:
        """Make the call that reads the key, the first call of each API event."""
        name, asked = self._recorded["get"].calls[0]
        answer: dict[str, Any] = getattr(self._client, name)(**asked)
        return answer

    def rest(self, kind: str, *, begin: int = 0) -> None:
        """Make the calls of our function, from `begin` on, and exchange JSON with the wallets."""
        found = self._recorded[kind]
        for name, asked in found.calls[begin:]:
            getattr(self._client, name)(**asked)
        for sent, answered in found.wallet_calls:
            json.dumps(json.loads(sent or b"{}")), json.loads(answered or b"{}")
        if kind in METERED:
            self._logger.info("session", extra={"event": kind, "status": "done", "version": 1})
            self._metrics.add_metric(name="Sessions", unit=MetricUnit.Count, value=1)
            self._metrics.flush_metrics()

    def handler(self, answered: Handler) -> Handler:
        """Return the Lambda handler, as in Powertools' guide."""

        @self._logger.inject_lambda_context
        def handler(event: Event, context: Any) -> Any:
            return answered(event, context)

        return handler


def merchant_api(client: Any, recorded: dict[str, Recorded]) -> Handler:
    """Return the function that serves the events of the API."""
    app = FastAPI()
    asking = Asking(client, recorded)

    async def api_key(authorization: Annotated[str, Header()]) -> str:
        """Return the merchant of the key. Our function reads it first, too."""
        hashlib.sha256(authorization.encode()).hexdigest()
        answer = asking.key()
        if "Item" not in answer:
            raise HTTPException(401)
        merchant: str = answer["Item"]["merchant"]["S"]
        return merchant

    key = Depends(api_key)

    @app.post(SESSIONS, status_code=201)
    async def create(
        body: Create,
        merchant: str = key,
        idempotency_key: Annotated[str | None, Header()] = None,
    ) -> Shown:
        kind = "key" if idempotency_key else "create"
        asking.rest(kind, begin=1)
        own = {"id": f"cs_{secrets.token_urlsafe(16)}", **body.model_dump()}
        shown: dict[str, Any] = recorded[kind].document
        return Shown(**(shown | {name: own[name] for name in own if name in shown}))

    @app.get(SESSIONS)
    async def listed(merchant: str = key, limit: int = 10) -> Page:
        asking.rest("list", begin=1)
        return Page(**recorded["list"].document)

    @app.get(SESSIONS + "/{session_id}")
    async def get(session_id: str, merchant: str = key) -> Shown:
        asking.rest("get", begin=1)
        return Shown(**recorded["get"].document)

    mangum: Any = Mangum(app, lifespan="off")
    return asking.handler(mangum)


def hosted_page(client: Any, recorded: dict[str, Recorded]) -> Handler:
    """Return the function that serves the events of the hosted page."""
    app = FastAPI()
    asking = Asking(client, recorded)
    template = Environment(autoescape=True).from_string(_template(recorded["page"].answer["body"]))

    @app.get("/pay/{session_id}")
    async def page(session_id: str) -> HTMLResponse:
        asking.rest("page")
        return HTMLResponse(template.render(session_id=session_id, total=TOTAL))

    @app.get("/pay/{session_id}/status")
    async def status(session_id: str) -> dict[str, Any]:
        asking.rest("status")
        found: dict[str, Any] = recorded["status"].document
        return found

    @app.post("/pay/{session_id}/wallet")
    async def wallet(session_id: str, body: Wallet) -> dict[str, Any]:
        asking.rest("wallet")
        found: dict[str, Any] = recorded["wallet"].document
        return found

    @app.get("/pay/{session_id}/grant/callback")
    async def callback(session_id: str, interact_ref: str, hash: str) -> Response:
        asking.rest("callback")
        answer = recorded["callback"].answer
        location = answer["headers"].get("location")
        return Response(
            answer["body"], answer["statusCode"], {"location": location} if location else {}
        )

    app.add_middleware(GZipMiddleware)
    mangum: Any = Mangum(app, lifespan="off")
    return asking.handler(mangum)


def sender(client: Any, recorded: dict[str, Recorded]) -> Handler:
    """Return the function behind the queue of webhook events."""
    asking = Asking(client, recorded)
    processor = BatchProcessor(EventType.SQS)

    def deliver(record: SQSRecord) -> None:
        json.loads(record.body)
        asking.rest("webhook")
        for sent, _ in recorded["webhook"].wallet_calls:
            hmac.digest(b"secret", sent, "sha256")

    def answered(event: Event, context: Any) -> Any:
        return process_partial_response(event, deliver, processor, context)

    return asking.handler(answered)


def _template(document: str) -> str:
    """Return the page's document as a template with a value to fill in."""
    assert TOTAL in document
    return document.replace(TOTAL, "{{ total }}")
