"""`python -m benchmarks.cpu`: CPU time per event of the merchant's API, beside a bare function.

Both run API Gateway's events through Mangum and FastAPI, with the real boto3 down to the wire,
where recorded responses stand in for DynamoDB. The bare function validates with pydantic, makes the
same calls to AWS with the same items, and nothing else. The two take turns, event by event, in one
process, so that what else the machine does falls on both.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import hashlib
import io
import json
import os
import time
from collections.abc import Callable, Iterator
from statistics import median, quantiles
from typing import Any, Final
from unittest.mock import patch

import boto3
from botocore.awsrequest import AWSResponse
from fastapi import FastAPI, Request
from mangum import Mangum
from pydantic import BaseModel

from checkout.adapters import dynamo
from checkout.adapters.clock import SystemClock, system_random
from checkout.domain.ids import api_key_hash, new_api_key
from sandbox.cloud import table_definitions
from tests.adapters.samples import a_key, a_merchant
from tests.deployment import Context
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.merchant_api import a_body, gateway_event

EVENTS: Final = 200  # of each kind and side
WARM_UP: Final = 20
LISTED: Final = 100
PREFIX: Final = "bench"
PATH: Final = "/api/checkout/sessions"
ENVIRONMENT: Final = {
    "DATABASE_URL": f"dynamodb:///{PREFIX}",
    "BASE_URL": "https://pay.example",
    "ENCRYPTION_KEY": "00" * 32,
    "EVENTS_QUEUE_URL": "https://sqs.example/events",
    "TASKS_QUEUE_URL": "https://sqs.example/tasks",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
}
CONTEXT: Final = Context()

Event = dict[str, Any]
Handler = Callable[[Event], Any]


class Wire:
    """Stands in for DynamoDB behind boto3, in the bytes of its protocol.

    `asked` are the last requests. While it `replays`, a write does nothing, and a read is answered
    as before.
    """

    def __init__(self) -> None:
        self.tables = InMemoryDynamoDb(table_definitions(PREFIX))
        self.asked: list[tuple[str, dict[str, Any]]] = []
        self.replays = False
        self._answers: dict[bytes, bytes] = {}

    def client(self, service: str, **options: Any) -> Any:
        """Make the client that `boto3.client` makes, on this wire."""
        made = _boto3_client(service, **options)
        made.meta.events.register(f"before-send.{service}.*", self._answer)
        return made

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        operation = request.headers["X-Amz-Target"].decode().rpartition(".")[2]
        name = "".join(f"_{each.lower()}" if each.isupper() else each for each in operation)[1:]
        reads = "get" in name or name == "query"
        if not self.replays or (reads and request.body not in self._answers):
            asked = json.loads(request.body)
            self.asked.append((name, asked))
            answer = getattr(self.tables, name)(**asked)
            self._answers[request.body] = json.dumps(answer).encode()
        body = self._answers[request.body] if reads else b"{}"
        return AWSResponse(request.url, 200, {}, _Raw(body))


class _Raw(io.BytesIO):
    """A body as urllib3 hands it over."""

    def stream(self) -> Iterator[bytes]:
        yield self.getvalue()


_boto3_client: Final = boto3.client


class Product(BaseModel):
    name: str
    description: str = ""


class Price(BaseModel):
    currency: str
    product_data: Product
    unit_amount: int


class Line(BaseModel):
    price_data: Price
    quantity: int


class Create(BaseModel):
    mode: str
    line_items: list[Line]
    success_url: str
    cancel_url: str
    metadata: dict[str, str] = {}


def bare(client: Any, calls: dict[str, list[tuple[str, dict[str, Any]]]]) -> Handler:
    """Return a function that makes these calls to AWS, by the kind of event, and answers JSON."""
    app = FastAPI(openapi_url=None)

    def ask(kind: str, request: Request) -> list[Any]:
        hashlib.sha256(request.headers["authorization"].encode()).hexdigest()
        return [getattr(client, name)(**asked) for name, asked in calls[kind]]

    @app.post(PATH, status_code=201)
    async def create(request: Request, body: Create) -> dict[str, Any]:
        ask("key" if "idempotency-key" in request.headers else "create", request)
        return body.model_dump()

    @app.get(PATH)
    async def page(request: Request, limit: int) -> dict[str, Any]:
        answers = ask("list", request)
        (found,) = answers[2]["Responses"].values()
        return {"data": [each["id"] for each in found]}

    @app.get(PATH + "/{session_id}")
    async def get(request: Request, session_id: str) -> dict[str, Any]:
        return {"id": session_id, "status": ask("get", request)[-1]["Item"]["status"]["S"]}

    handler: Any = Mangum(app, lifespan="off")
    return lambda event: handler(event, CONTEXT)


def events(api_key: str, session_id: str) -> dict[str, Event]:
    """Return an event of each kind."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {api_key}"}
    body = json.dumps(a_body()).encode()
    with_key = headers | {"Idempotency-Key": "order-1"}
    return {
        "create": gateway_event("POST", PATH, "", headers, body),
        "key": gateway_event("POST", PATH, "", with_key, body),
        "get": gateway_event("GET", f"{PATH}/{session_id}", "", headers, None),
        "list": gateway_event("GET", PATH, f"limit={LISTED}", headers, None),
    }


def sides(wire: Wire) -> tuple[dict[str, Event], Handler, Handler]:
    """Return the events, and the two functions that get them, on a table of LISTED sessions."""
    os.environ.update(ENVIRONMENT)
    with patch.object(boto3, "client", wire.client):
        import api.app
        from checkout import wiring

        wiring.api_services()
        other = wire.client("dynamodb")
    merchants = dynamo.DynamoMerchants(wire.tables, PREFIX)
    api_key = new_api_key(system_random)
    now = SystemClock().now()
    held = a_key(hash=api_key_hash(api_key), merchant="mer_1", last_used_at=now, created_at=now)
    assert merchants.add(a_merchant(id="mer_1", private_key="sealed"), held) is None

    def ours(event: Event) -> Any:
        return api.app.handler(event, CONTEXT)

    create = events(api_key, "")["create"]
    made = [json.loads(ours(create)["body"])["id"] for _ in range(LISTED)]
    found = events(api_key, made[0])
    calls = {}
    for kind, event in found.items():
        wire.asked.clear()
        assert ours(event)["statusCode"] in (200, 201)
        calls[kind] = [(name, _in_python(asked)) for name, asked in wire.asked]
    wire.replays = True
    theirs = bare(other, calls)
    for event in found.values():
        assert theirs(event)["statusCode"] in (200, 201)
    return found, ours, theirs


def _in_python(value: Any) -> Any:
    """Return a request as boto3 takes it: bytes where the wire has base64."""
    if isinstance(value, dict):
        return {
            name: base64.b64decode(each)
            if name == "B" and isinstance(each, str)
            else _in_python(each)
            for name, each in value.items()
        }
    return [_in_python(each) for each in value] if isinstance(value, list) else value


def milliseconds(function: Handler, event: Event) -> float:
    """Return the CPU time of one event."""
    begun = time.process_time_ns()
    function(event)
    return (time.process_time_ns() - begun) / 1e6


def main() -> None:
    found, ours, theirs = sides(Wire())
    gc.freeze()  # as wiring.py does in Lambda
    names = {"create": "create", "key": "create with a key", "get": "get", "list": "list of 100"}
    lines = []
    with contextlib.redirect_stdout(io.StringIO()):
        for kind, event in found.items():
            for _ in range(WARM_UP):
                ours(event), theirs(event)
            pairs = [
                (milliseconds(ours, event), milliseconds(theirs, event)) for _ in range(EVENTS)
            ]
            mine, other = (list(side) for side in zip(*pairs, strict=True))
            low, _, high = quantiles(mine, n=4)
            lines.append(
                f"| {names[kind]} | {median(mine):.2f} | {low:.2f} to {high:.2f} "
                f"| {median(other):.2f} | {median(mine) / median(other):.2f} |"
            )
    print("| event | ms of CPU | the middle half | bare function | ratio |")
    print("|---|---|---|---|---|")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
