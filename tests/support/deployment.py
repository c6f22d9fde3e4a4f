"""The product as it is deployed: events into the real handlers, over AWS clients that can be made
to fail, and the sandbox's wallets.

`wiring.py` builds everything in between: instrumented stores, the SQS queue, the key from Secrets
Manager.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from botocore.exceptions import ClientError

import api.app
import api.http
import api.routes
import pay.app
import pay.dependencies
from checkout.adapters import dynamo
from checkout.adapters.instrumented import (
    InstrumentedReceivers,
    InstrumentedSessions,
    InstrumentedTransport,
    report_refusal,
)
from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.queue import SqsEventQueue, SqsTaskQueue
from checkout.adapters.vault import AesVault, key_from_secrets_manager
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import WebhookSecret, secret_place
from checkout.flows.session import close
from checkout.flows.webhooks.deliver import deliver
from checkout.ports import Receipt
from checkout.services import PayServices
from expirer.app import scheduled
from expirer.cleanup import queued
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.basics import HandClock, seeded
from tests.support.flows import CEDAR, PREFIX, HandReceivers, World, derived
from tests.support.merchant_api import Answer, a_body, gateway_event
from tests.support.samples import an_endpoint
from webhook_sender.app import NothingAttempted
from webhook_sender.app import queued as sends

Fault = Callable[[str, dict[str, Any]], None]


def refusal(code: str, operation: str, status: int = 400, message: str = "") -> ClientError:
    """Return AWS's refusal as boto3 raises it."""
    answer: Any = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    return ClientError(answer, operation)


@dataclass
class Faulty:
    """An AWS client in front of another. `fault` sees each call first, and may raise."""

    client: Any
    fault: Fault | None = None
    asked: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        if name in ("calls", "rows"):
            return getattr(self.client, name)

        def call(**request: Any) -> Any:
            self.asked.append(name)
            if self.fault is not None:
                self.fault(name, request)
            return getattr(self.client, name)(**request)  # the client may be another one by now

        return call


class Sqs:
    """Keeps what is sent."""

    def __init__(self) -> None:
        self.messages: list[dict[str, Any]] = []

    def send_message(self, **request: Any) -> dict[str, Any]:
        self.messages.append(request)
        return {}

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        self.messages += request["Entries"]
        return {}

    @property
    def bodies(self) -> list[str]:
        return [message["MessageBody"] for message in self.messages]


def sqs_event(*bodies: str) -> dict[str, Any]:
    """Return the event that Lambda makes of a batch; a message's id is its number in it."""
    records = [
        {"messageId": str(number), "body": body, "eventSource": "aws:sqs"}
        for number, body in enumerate(bodies)
    ]
    return {"Records": records}


@dataclass
class Secrets:
    """Secrets Manager with one secret."""

    text: str

    def get_secret_value(self, **request: Any) -> dict[str, Any]:
        return {"SecretString": self.text}


class Context:
    """The part of Lambda's context that is used."""

    aws_request_id = "8a5f1c6e-0000-4000-8000-000000000001"

    def get_remaining_time_in_millis(self) -> int:
        return 75_000


class Deployment:
    """One merchant, one customer. `restart` is what a new Lambda environment knows: nothing."""

    def __init__(self, client: Any = None, *, key_file: bool = True) -> None:
        clock = HandClock()
        self.dynamo = Faulty(client or InMemoryDynamoDb(table_definitions(PREFIX), now=clock.now))
        self.world = World(client=self.dynamo, clock=clock, key_file=key_file)
        self.sqs, self.secrets = Sqs(), Secrets(self.world.encryption_key)
        self.queue, self.keys = Faulty(self.sqs), Faulty(self.secrets)
        self.cookies: dict[str, str] = {}  # of the customer's browser
        self.delivered: list[tuple[str, dict[str, str], bytes]] = []  # URL, headers and body
        self.receipts: list[Receipt] = []  # of the next attempts; the others are answered 200
        self.services: PayServices
        self.restart()

    def restart(self) -> None:
        world = self.world
        vault = AesVault(
            key_from_secrets_manager(self.keys, "secret"),
            world.services.random_bytes,
            clock=world.clock,
            derive=derived,
        )
        transport = InstrumentedTransport(world.transport, world.clock.now)
        self.services = replace(
            world.services,
            sessions=InstrumentedSessions(
                self.dynamo,
                PREFIX,
                sleep=world.clock.sleep,
                random_bytes=world.services.random_bytes,
            ),
            queue=SqsEventQueue(lambda: self.queue, "events"),
            tasks=SqsTaskQueue(lambda: self.queue, "tasks"),
            vault=vault,
            wallets=SignedWallets(
                transport, vault, world.clock, allow_loopback=True, on_refusal=report_refusal
            ),
        )

    def stored(self, session: Session) -> Session:
        """Return the stored record, without a call that could fail or is counted."""
        inner = dynamo.DynamoSessions(
            self.dynamo.client, PREFIX, sleep=self.world.clock.sleep, random_bytes=seeded()
        )
        found = inner.get(session.id)
        assert found is not None
        return found

    # --- the merchant ---

    def call(
        self, method: str, path: str, body: Any = None, *, query: str = "", **headers: str
    ) -> Answer:
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {self.world.api_key}",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        raw = None if body is None else json.dumps(body).encode()
        event = gateway_event(method, f"/api/checkout{path}", query, headers, raw)
        return _answer(self.answer("api", event))

    def document(self, url: str) -> Answer:
        """Request the client document, as a wallet does."""
        headers = {"Accept": "application/json"}
        event = gateway_event("GET", urlsplit(url).path, "", headers, None)
        return _answer(self.answer("api", event))

    def create(self, **headers: str) -> Answer:
        return self.call("POST", "/sessions", a_body(), **headers)

    def created(self) -> Session:
        return self.world.session(self.create().json["id"])

    # --- the customer ---

    def visit(
        self, method: str, session: Session, path: str = "", query: str = "", body: Any = None
    ) -> Answer:
        raw = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        return self._visit(method, session, path, query, headers, raw)

    def browse(
        self,
        session: Session,
        path: str = "",
        query: str = "",
        fields: Mapping[str, str] | None = None,
    ) -> Answer:
        """Ask for a page, or submit a form's `fields`, as a browser and the page's script do."""
        headers = {"Accept": "text/html", "Accept-Encoding": "gzip, deflate, br, zstd"}
        if fields is None:
            return self._visit("GET", session, path, query, headers, None)
        headers["Content-Type"] = "application/x-www-form-urlencoded"
        headers["Prefer"] = "return=representation"
        return self._visit("POST", session, path, query, headers, urlencode(fields).encode())

    def _visit(
        self,
        method: str,
        session: Session,
        path: str,
        query: str,
        headers: Mapping[str, str],
        raw: bytes | None,
    ) -> Answer:
        event = gateway_event(method, f"/pay/{session.id}{path}", query, headers, raw)
        event["cookies"] = [f"{name}={value}" for name, value in self.cookies.items()]
        answer = self.answer("pay", event)
        for cookie in answer.get("cookies", []):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return _answer(answer)

    def submit(self, session: Session, wallet: str = f"{CEDAR}/alice") -> Answer:
        return self.visit("POST", session, "/wallet", body={"wallet_address": wallet})

    def come_back(self, session: Session, callback: tuple[str, str]) -> Answer:
        """Follow the wallet's link as a browser that obeys Refresh."""
        query = urlencode({"interact_ref": callback[0], "hash": callback[1]})
        answer = self.visit("GET", session, "/grant/callback", query)
        if refresh := answer.headers.get("refresh"):
            self.world.clock.pass_time(int(refresh))
            answer = self.visit("GET", session, "/grant/callback", query)
        return answer

    def approve(self, interact_url: str) -> tuple[str, str]:
        query = parse_qs(urlsplit(self.world.network.approve(interact_url)).query)
        return query["interact_ref"][0], query["hash"][0]

    # --- the other functions ---

    def sweep(self) -> dict[str, Any]:
        return scheduled(lambda: self.services)({}, Context())

    def tasks(self) -> Any:
        """The task queue's messages, delivered once."""
        tasks = [body for body in self.sqs.bodies if "cleanup" in body]
        return queued(lambda: self.services)(sqs_event(*tasks), Context())

    def wants_webhooks(self) -> None:
        """The merchant sets an endpoint."""
        merchants = self.world.services.merchants
        merchant = merchants.find_by_wallet(self.world.shop)
        assert merchant is not None
        sealed = self.services.vault.seal("whsec_AAAA", place=secret_place(merchant.id))
        secret = WebhookSecret(sealed=sealed, created_at=self.world.clock.now())
        endpoint = an_endpoint(url="https://shop.example/hook", secrets=(secret,))
        merchants.replace(merchant.changed(endpoint=endpoint))

    def send_webhooks(self) -> list[str]:
        """The event queue's messages are delivered once, and those that failed stay; the ids of the
        events that the merchant was told of by it.
        """
        shop = HandReceivers()
        shop.answers = self.receipts
        services = replace(self.world.core, queue=self.services.queue)
        receivers = InstrumentedReceivers(shop, self.world.clock.now)
        send = partial(deliver, services, self.services.vault, receivers)
        taken = [message for message in self.sqs.messages if "event" in message["MessageBody"]]
        self.sqs.messages = []
        if not taken:  # Lambda is not called
            return []
        bodies = [each["MessageBody"] for each in taken]
        try:
            answer = sends(lambda: send)(sqs_event(*bodies), Context())
        except NothingAttempted:  # Lambda returns all messages
            self.sqs.messages += taken
            return []
        failed = [int(item["itemIdentifier"]) for item in answer["batchItemFailures"]]
        self.sqs.messages += [taken[number] for number in failed]
        self.delivered += shop.got
        return [headers["webhook-id"] for _, headers, _ in shop.got]

    def answer(self, function: str, event: dict[str, Any]) -> dict[str, Any]:
        """Return what the handler of `api` or `pay` answers to API Gateway's event."""
        module = {"api": api.app, "pay": pay.app}[function]
        with self._given(module.app):
            answer: dict[str, Any] = module.handler(event, Context())
            return answer

    @contextmanager
    def _given(self, app: Any) -> Iterator[None]:
        async def services() -> PayServices:
            return self.services

        async def of_documents() -> PayServices:
            return replace(self.services, merchants=self.world.documents)

        outer = dict(app.dependency_overrides)
        app.dependency_overrides |= {
            api.http.services: services,
            api.routes.client_services: of_documents,
            pay.dependencies.services: services,
        }
        try:
            yield
        finally:
            app.dependency_overrides = outer


def _answer(answer: dict[str, Any]) -> Answer:
    body = answer["body"]
    if answer.get("isBase64Encoded"):
        raw = base64.b64decode(body)
        zipped = answer["headers"].get("content-encoding") == "gzip"
        body = (gzip.decompress(raw) if zipped else raw).decode()
    return Answer(answer["statusCode"], answer["headers"], body)


def canceled(world: World, count: int) -> list[str]:
    """The messages of `count` sessions that were canceled while they awaited approval."""
    sqs = Sqs()
    world.services = replace(world.services, tasks=SqsTaskQueue(lambda: sqs, "q"))
    for _ in range(count):
        session = world.submit(world.create())
        close.cancel(world.services, world.key(), session.id)
    world.forget()
    return sqs.bodies
