"""`python -m benchmarks.cpu`: CPU time per warm event, beside a bare function (benchmarks/bare.py).

Both handlers get the same events of API Gateway or SQS as Lambda passes them, with the real boto3
down to the wire. Ours is set up as in Lambda: settings from the environment, services and telemetry
of `wiring.py`, no overrides. Our calls to DynamoDB and to the wallets are recorded once, in a real
checkout.

Then each event is repeated, and every call gets its recorded answer, in order. The clock stands
still; each event comes from another client, because a client's rate is limited. The bare function
makes the same calls with boto3's defaults; the last column has its time with our client. The two
take turns, event by event, in one process, so that other work of the machine affects both. Log
lines are written into memory.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count
from statistics import median, quantiles
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import urlsplit

import boto3
from botocore.awsrequest import AWSResponse

import api.app
import pay.app
import webhook_sender.app
from benchmarks import bare
from benchmarks.bare import Event, Handler, Recorded
from checkout import wiring
from checkout.adapters import dynamo
from checkout.adapters.aws import BRIEF, USUAL
from checkout.adapters.runtime import SystemClock
from open_payments.transports import Request, Response
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.basics import HandClock
from tests.support.deployment import Context, sqs_event
from tests.support.flows import CEDAR, World
from tests.support.merchant_api import a_body, gateway_event

EVENTS: Final = 200  # of each kind and side
WARM_UP: Final = 20
LISTED: Final = 100
PREFIX: Final = "test"
ENVIRONMENT: Final = {
    "AWS_LAMBDA_FUNCTION_NAME": "bench",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "DATABASE_URL": f"dynamodb:///{PREFIX}",
    "BASE_URL": "http://localhost:4000",
    "ENCRYPTION_KEY": "11" * 32,
    "EVENTS_QUEUE_URL": "https://sqs.example/events",
    "TASKS_QUEUE_URL": "https://sqs.example/tasks",
}
BROWSER: Final = {
    "accept": "text/html,application/xhtml+xml,*/*;q=0.8",
    "accept-encoding": "gzip, deflate, br",
    "accept-language": "en-US,en;q=0.9",
}
NAMES: Final = {
    "create": "create",
    "key": "create with a key",
    "get": "get",
    "list": f"list of {LISTED}",
    "page": "page",
    "status": "status poll",
    "wallet": "wallet step",
    "callback": "callback",
    "webhook": "webhook attempt",
}
# The bounds of our CPU, in that of the bare function: the highest of three runs on 2026-11-29 and a
# twentieth more (benchmarks/ratios.py). A list makes each record with the constructor of its class,
# which takes a tenth of the time.
MOST: Final = {
    "create": 1.20,
    "key": 1.20,
    "get": 1.00,
    "list": 1.20,
    "page": 1.50,
    "status": 1.20,
    "wallet": 1.90,
    "callback": 2.00,
    "webhook": 1.60,
}


Call = bare.Call


class Invocation(Context):
    """The part of Lambda's context that Powertools reads."""

    function_name = "bench"
    function_version = "1"
    memory_limit_in_mb = 1024
    invoked_function_arn = "arn:aws:lambda:us-east-1:123456789012:function:bench"


CONTEXT: Final = Invocation()


class Wire:
    """Stands in for DynamoDB and SQS behind boto3, in the bytes of their protocol.

    It records requests and answers. While an event is repeated, it gives the recorded answers in
    order.
    """

    def __init__(self) -> None:
        self.tables = InMemoryDynamoDb(table_definitions(PREFIX))
        self.calls: list[Call] = []
        self.answers: list[bytes] = []
        self._repeated: Iterator[tuple[Call, bytes]] | None = None

    def client(self, service: str, **options: Any) -> Any:
        """Return the client that `boto3.client` makes, connected to this wire."""
        made = _boto3_client(service, **options)
        made.meta.events.register(f"before-send.{service}.*", self._answer)
        return made

    def repeat(self, calls: list[Call], answers: list[bytes]) -> None:
        """Answer the next calls with these answers."""
        self._repeated = iter(zip(calls, answers, strict=True))

    @property
    def left(self) -> int:
        """Return the number of answers that were not used."""
        return sum(1 for _ in self._repeated or ())

    def _answer(self, request: Any, **_: Any) -> AWSResponse:
        service, _, operation = request.headers["X-Amz-Target"].decode().partition(".")
        name = "".join(f"_{each.lower()}" if each.isupper() else each for each in operation)[1:]
        if self._repeated is not None:
            (expected, _asked), answer = next(self._repeated)
            assert name == expected, f"{name} in place of {expected}"
            return AWSResponse(request.url, 200, {}, _Raw(answer))
        asked = json.loads(request.body)
        found = {} if service == "AmazonSQS" else getattr(self.tables, name)(**asked)
        answer = json.dumps(found).encode()
        self.calls.append((name, _in_python(asked)))
        self.answers.append(answer)
        return AWSResponse(request.url, 200, {}, _Raw(answer))


class _Raw(io.BytesIO):
    """A body in the form of urllib3."""

    def stream(self) -> Iterator[bytes]:
        yield self.getvalue()


_boto3_client: Final = boto3.client


class Clients:
    """The clients that a bare function has, by the names of their operations."""

    def __init__(self, dynamodb: Any, sqs: Any) -> None:
        self._dynamodb = dynamodb
        self._sqs = sqs

    def __getattr__(self, operation: str) -> Any:
        return getattr(self._sqs if operation.startswith("send_") else self._dynamodb, operation)


@dataclass
class Outside:
    """Answers requests to wallets and receivers: by the sandbox's network, or as recorded."""

    network: Any = None
    exchanged: list[tuple[Request, Response]] = field(default_factory=list)
    repeated: Iterator[Response] | None = None

    def send(self, request: Request, *, timeout: float, body_max: int | None = None) -> Response:
        """Send as `PublicHttp` does."""
        if self.repeated is not None:
            return next(self.repeated)
        to_shop = request.url.startswith("https://shop.example/")
        response = Response(200, {}, b'{"ok":true}') if to_shop else self.network.handle(request)
        self.exchanged.append((request, response))
        return response


@dataclass
class Kind:
    """A kind of event that can be repeated: its handler, and the calls that it makes."""

    event: Event
    ours: Handler
    recorded: Recorded
    answers: list[bytes]
    responses: list[Response]
    at: datetime


class Bench:
    """A world in which a checkout was made, and in which each of its events can be repeated."""

    def __init__(self) -> None:
        os.environ.update(ENVIRONMENT)
        self.clock, self.wire, self.outside = HandClock(), Wire(), Outside()
        self.kinds: dict[str, Kind] = {}
        self._clients = count(1)
        loopback = replace(wiring.settings(), allow_loopback_wallets=True)
        patch.object(SystemClock, "now", lambda _: self.clock.now()).start()
        patch.object(SystemClock, "sleep", lambda _, seconds: self.clock.sleep(seconds)).start()
        with (
            patch.object(boto3, "client", self.wire.client),
            patch.object(wiring, "settings", lambda: loopback),
            patch.object(wiring, "_public_http", lambda: self.outside),
        ):
            wiring.observe("bench")  # as each function does while it is loaded
            wiring.pay_services(), wiring.webhook_sender()
            self.world = World(client=wiring._store(), clock=self.clock)
            self.outside.network = self.world.network
            self.world.listen()
            with contextlib.redirect_stdout(io.StringIO()):
                self._checkout()  # warm-up: grants, documents, the merchant
                for _ in range(LISTED):
                    api.app.handler(self._api("POST", "", a_body()), CONTEXT)
                self._checkout()
                self._list()
            lean = self.wire.client("dynamodb", config=USUAL)
            dynamo.read_as_sent(lean)
            with contextlib.redirect_stdout(io.StringIO()):  # which their loggers keep
                self.bare = self._bare(self.wire.client("dynamodb"), self.wire.client("sqs"))
                self.lean = self._bare(lean, self.wire.client("sqs", config=BRIEF))

    def repeat(self, name: str, handler: Handler) -> float:
        """Let `handler` answer this event again. Return the milliseconds of CPU that it took."""
        kind = self.kinds[name]
        self.clock = HandClock(kind.at)
        self.wire.repeat(kind.recorded.calls, kind.answers)
        self.outside.repeated = iter(kind.responses)
        event = self._from_another_client(kind.event)
        begun = time.process_time_ns()
        answer = handler(event, CONTEXT)
        taken = (time.process_time_ns() - begun) / 1e6
        expected = kind.recorded.answer
        assert self.wire.left == 0, name
        assert answer.get("statusCode") == expected.get("statusCode"), (name, answer)
        assert answer.get("batchItemFailures") == expected.get("batchItemFailures"), answer
        return taken

    def _from_another_client(self, event: Event) -> Event:
        if "requestContext" not in event:
            return event
        client = ".".join(map(str, (next(self._clients) | 10 << 24).to_bytes(4, "big")))
        http = event["requestContext"]["http"] | {"sourceIp": client}
        return event | {"requestContext": event["requestContext"] | {"http": http}}

    def _checkout(self) -> None:
        """Record the events of a checkout."""
        self._record("create", api.app.handler, self._api("POST", "", a_body()))
        keyed = self._api("POST", "", a_body(), **{"Idempotency-Key": f"o-{next(self._clients)}"})
        created = self._record("key", api.app.handler, keyed)
        session = f"/{json.loads(created['body'])['id']}"
        self._record("get", api.app.handler, self._api("GET", session))
        page = gateway_event("GET", f"/pay{session}", "", {}, None)
        self._record("page", pay.app.handler, page)
        self.kinds["page"].event = page | {"headers": BROWSER}
        wallet = json.dumps({"wallet_address": f"{CEDAR}/alice"}).encode()
        sent = {"content-type": "application/json", "accept": "application/json"}
        asked = gateway_event("POST", f"/pay{session}/wallet", "", BROWSER | sent, wallet)
        bound = self._record("wallet", pay.app.handler, asked)
        approved = self.world.network.approve(json.loads(bound["body"])["interact_url"])
        self.clock.pass_time(5)  # longer than the pause that the wallet asks for
        polled = gateway_event("GET", f"/pay{session}/status", "", BROWSER, None)
        self._record("status", pay.app.handler, polled)
        query = urlsplit(approved).query
        back = gateway_event("GET", f"/pay{session}/grant/callback", query, BROWSER, None)
        back["cookies"] = [each.partition(";")[0] for each in bound["cookies"]]
        answer = self._record("callback", pay.app.handler, back)
        assert "refresh" not in answer["headers"]
        asked_of_sqs = next(asked for name, asked in self.wire.calls if name.startswith("send_"))
        messages = [each["MessageBody"] for each in asked_of_sqs["Entries"]]
        self._record("webhook", webhook_sender.app.handler, sqs_event(*messages))

    def _list(self) -> None:
        asked = self._api("GET", "", None, f"limit={LISTED}")
        self._record("list", api.app.handler, asked)  # a process's first is not counted
        self._record("list", api.app.handler, asked)

    def _api(
        self, method: str, path: str, body: Any = None, query: str = "", **headers: str
    ) -> Event:
        sent = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.world.api_key}",
            **headers,
        }
        raw = None if body is None else json.dumps(body).encode()
        return gateway_event(method, bare.SESSIONS + path, query, sent, raw)

    def _record(self, name: str, handler: Handler, event: Event) -> Any:
        """Let our handler answer an event, and record its calls."""
        self.wire.calls, self.wire.answers, self.outside.exchanged = [], [], []
        at = self.clock.now()
        answer = handler(self._from_another_client(event), CONTEXT)
        assert answer.get("statusCode", 200) < 400, (name, answer)
        exchanged = self.outside.exchanged
        wallet_calls = [(sent.body or b"", response.body) for sent, response in exchanged]
        self.kinds[name] = Kind(
            event=event,
            ours=handler,
            recorded=Recorded(self.wire.calls, wallet_calls, answer),
            answers=self.wire.answers,
            responses=[response for _, response in exchanged],
            at=at,
        )
        return answer

    def _bare(self, dynamodb: Any, sqs: Any) -> dict[str, Handler]:
        """Return the bare functions by the kinds of events, with these clients."""
        clients = Clients(dynamodb, sqs)
        recorded = {name: kind.recorded for name, kind in self.kinds.items()}
        merchant_api, page = (
            bare.merchant_api(clients, recorded),
            bare.hosted_page(clients, recorded),
        )
        sender = bare.sender(clients, recorded)
        api = dict.fromkeys(("create", "key", "get", "list"), merchant_api)
        return (
            api
            | dict.fromkeys(("page", "status", "wallet", "callback"), page)
            | {"webhook": sender}
        )


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


def in_turns(bench: Bench, sides: Sequence[tuple[str, Handler]], events: int) -> list[list[float]]:
    """Return the milliseconds of each side's events; a side is a kind of event and its handler."""
    taken: list[list[float]] = [[] for _ in sides]
    with contextlib.redirect_stdout(io.StringIO()):
        for turn in range(WARM_UP + events):
            for number, (name, handler) in enumerate(sides):
                milliseconds = bench.repeat(name, handler)
                if turn >= WARM_UP:
                    taken[number].append(milliseconds)
    return taken


def measured(bench: Bench, name: str, events: int) -> str:
    """Return the line of the table for this kind of event."""
    handlers = (bench.kinds[name].ours, bench.bare[name], bench.lean[name])
    taken = in_turns(bench, [(name, each) for each in handlers], events)
    ours, theirs, lean = map(median, taken)
    spread = [quantiles(each, n=4) for each in taken]
    calls = len(bench.kinds[name].recorded.calls)
    return (
        f"| {NAMES[name]} | {calls} | {ours:.2f} | {spread[0][0]:.2f} to {spread[0][2]:.2f} "
        f"| {theirs:.2f} | {spread[1][0]:.2f} to {spread[1][2]:.2f} | {ours / theirs:.2f} "
        f"| {MOST[name]} | {ours / lean:.2f} |"
    )


def beside_creates(bench: Bench, events: int) -> str:
    """Return the time of a list in creates of the bare function; the two take turns."""
    sides = [("list", bench.kinds["list"].ours), ("create", bench.bare["create"])]
    listed, created = map(median, in_turns(bench, sides, events))
    return (
        f"A list of {LISTED} and a create of the bare function, in turn: {listed:.2f} and "
        f"{created:.2f} ms, {listed / created:.2f} times."
    )


def main() -> None:
    bench = Bench()
    wiring.build_in_lambda(wiring.pay_services)  # excludes these objects from garbage collection
    print(
        "| event | AWS calls | ms of CPU | the middle half | bare function | the middle half "
        "| ratio | at most | with our client |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    names = sys.argv[1:] or NAMES
    for name in names:
        print(measured(bench, name, EVENTS), flush=True)
    if "list" in names:
        print(f"\n{beside_creates(bench, EVENTS)}")


if __name__ == "__main__":
    main()
