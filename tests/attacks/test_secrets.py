"""Secrets: a whole life of the product, with everything that may go wrong, and no secret in any log
line, metric, page, response, webhook, message or row that it does not belong to.

Each secret is kept as it is made, whoever makes it; each text is searched for all of them.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest

from checkout import telemetry
from checkout.adapters.instrumented import (
    InstrumentedReceivers,
    InstrumentedSessions,
    InstrumentedTransport,
    report_refusal,
)
from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.queue import SqsEventQueue, SqsTaskQueue
from checkout.flows.webhooks.deliver import deliver
from checkout.ports import Receipt
from expirer.app import scheduled
from expirer.cleanup import queued as cleans
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from sandbox.cloud import table_definitions
from tests.attacks.ledger import PERMITTED, Ledger, Scanned
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.attack_counts import SCANNED, Attack
from tests.support.dashboard_routes import filled, paths
from tests.support.deployment import Context, Faulty, Sqs, refusal, sqs_event
from tests.support.doors import TABLES, Doors, Visitor
from tests.support.flows import CEDAR, PREFIX, World
from tests.support.rows import row_text
from webhook_sender.app import queued as sends

Told = Callable[[], list[dict[str, Any]]]
WALLETS = ["alice", "carol", "nobody", "unpeered", "no-funds", "never-credits", "dies-after-create"]


class Life:
    """The product as it is deployed, told of by every line, and its `ledger`."""

    def __init__(self, patch: pytest.MonkeyPatch, told: Told) -> None:
        patch.setattr(telemetry, "SAMPLE", 1)  # every request's debug lines
        telemetry.start("pay")
        self.ledger, self._told = Ledger(), told
        self.ledger.follow(patch)
        self.dynamo = Faulty(InMemoryDynamoDb(table_definitions(PREFIX)))
        self.sqs = Sqs()
        self.queue = Faulty(self.sqs)
        world = self.world = World(client=self.dynamo)
        self.ledger.made("ENCRYPTION_KEY", world.encryption_key)
        overheard = self.ledger.overhear()
        world.transport.before, world.transport.after = overheard.request, overheard.response
        sessions = InstrumentedSessions(
            world.dynamo,
            PREFIX,
            sleep=world.clock.sleep,
            random_bytes=world.core.random_bytes,
        )
        queues: Any = {
            "queue": SqsEventQueue(lambda: self.queue, "events"),
            "tasks": SqsTaskQueue(lambda: self.queue, "tasks"),
        }
        wallets = SignedWallets(
            InstrumentedTransport(world.transport, world.clock.now),
            world.vault,
            world.clock,
            allow_loopback=True,
            on_refusal=report_refusal,
        )
        world.core = replace(world.core, sessions=sessions, **queues)
        world.services = replace(world.services, sessions=sessions, wallets=wallets, **queues)
        world.endpoints = replace(world.endpoints, sessions=sessions, **queues)
        self.doors = Doors(world)
        self.doors.heard = self.ledger.answered

    def scan(self) -> Scanned:
        for line in self._told():
            self.ledger.heard("metric" if "_aws" in line else "log", json.dumps(line))
        for name in TABLES:
            for row in self.world.dynamo.rows(name):
                self.ledger.heard("row", row_text(row))
        for message in self.sqs.messages:
            self.ledger.heard("queue", json.dumps(message))
        for url, headers, body in self.world.receivers.got:
            self.ledger.heard("webhook", f"{url}\n{json.dumps(headers)}\n{body.decode()}")
        return self.ledger.scan()

    # --- what happens

    def purchase(self, wallet: str, browser: Visitor | None = None) -> None:
        """A session from its creation to its end, with all that a customer may do."""
        doors, browser = self.doors, browser or Visitor()
        session = doors.create(metadata={"order": "1"})
        doors.pay("GET", f"/{session.id}", visitor=browser)
        doors.submit(session, f"{CEDAR}/{wallet}", browser)
        doors.pay("GET", f"/{session.id}/qr", visitor=browser)
        found = self.world.session(session.id)
        if found.interact_url is not None:
            back = self.world.network.approve(found.interact_url)
            query = parse_qs(urlsplit(back).query)
            self.ledger.made("interact_ref", query["interact_ref"][0])
            self.ledger.made("callback's hash", query["hash"][0])
            doors.follow(back.replace("hash=", "hash=A"), browser)
            doors.follow(back)  # another browser: it is asked
            doors.follow(back, browser)
        for path in ("", "/success", "/status"):
            doors.pay("GET", f"/{session.id}{path}", visitor=browser)
        doors.call("GET", f"/{session.id}")
        self.world.clock.pass_time(120)
        self.background()

    def background(self) -> None:
        """The functions without a door, each once, with all messages that were ever sent."""
        services, world = self.world.services, self.world
        scheduled(lambda: services)({}, Context())
        receivers = InstrumentedReceivers(world.receivers, world.clock.now)
        send = partial(deliver, world.core, world.vault, receivers)
        if tasks := [body for body in self.sqs.bodies if "cleanup" in body]:
            cleans(lambda: services)(sqs_event(*tasks), Context())
        if events := [body for body in self.sqs.bodies if "event" in body]:
            sends(lambda: send)(sqs_event(*events), Context())

    def merchant(self) -> Visitor:
        """Everything that the dashboard has, from a wrong key to the audit log."""
        doors = self.doors
        wrong = "sk_" + "Wr0ng" * 8 + "Key"
        self.ledger.made("wrong API key", wrong)
        stranger = Visitor()
        doors.dashboard("GET", "/sign-in", visitor=stranger)
        for key in (wrong, "sk_", f"{self.world.api_key}x"):
            typed = {"api_key": key, "form_token": stranger.form_token}
            doors.dashboard("POST", "/sign-in", typed, visitor=stranger)
        doors.call("GET", key=wrong)
        browser = doors.signed_in()
        forms: list[tuple[str, dict[str, str]]] = [
            ("/webhooks", {"url": "https://shop.example/hooks", "completed": "on"}),
            ("/webhooks/roll", {"overlap": "86400"}),
            ("/webhooks/test", {}),
            ("/webhooks/roll", {"overlap": "0"}),
            ("/keys", {"name": "second"}),
            ("/settings", {"name": "Shop", "locale": "de"}),
            ("/settings", {"tolerance": "1", "withdrawal_days": "14"}),
            ("/webhooks/resend-failed", {"since": "2020-01-01"}),
            ("/webhooks/resend-failed", {"since": "2020-01-01", "sure": "yes"}),
        ]
        for path, fields in forms:
            token = {"form_token": browser.form_token}
            assert doors.dashboard("POST", path, fields | token, visitor=browser).status < 400
        [second] = {key.id for key in self.world.core.api_keys.of(self.world.merchant.id)} - {
            self.world.key().id
        }
        for end, fields in (("roll", {"overlap": "0"}), ("revoke", {})):
            token = {"form_token": browser.form_token}
            doors.dashboard("POST", f"/keys/{second}/{end}", fields | token, visitor=browser)
        return browser

    def look(self, browser: Visitor) -> None:
        """Open every page of the dashboard."""
        session = self.doors.call("GET", query="limit=1").json["data"][0]["id"]
        for path in paths("GET"):
            self.doors.dashboard("GET", filled(path, session), visitor=browser)
        event = self.world.events()[0]["id"]
        self.doors.dashboard("GET", f"/webhooks/{event}", visitor=browser)

    def failures(self, browser: Visitor) -> None:
        """Have all that stands behind us fail, and say in its error what it was asked."""

        def bug(name: str, request: Any) -> None:
            raise RuntimeError(f"asked {request}")

        def throttled(name: str, request: Any) -> None:
            raise refusal("ThrottlingException", name, message=f"{request}")

        def no_answer(request: Request, response: Response) -> None:
            self.ledger.overhear().response(request, response)
            raise OutcomeUnknown(f"{request.url} {request.headers} {request.body!r}")

        def losing(part: str) -> Callable[[Request, Response], None]:
            def after(request: Request, response: Response) -> None:
                hear = no_answer if part in request.url else self.ledger.overhear().response
                hear(request, response)

            return after

        session, back = self.doors.approved(browser)
        for fault in (bug, throttled):
            self.dynamo.fault = fault
            asked: list[Callable[[], object]] = [
                lambda: self.doors.call("GET", f"/{session.id}"),
                lambda: self.doors.pay("GET", f"/{session.id}", visitor=browser),
                lambda: self.doors.follow(back, browser),
                lambda: self.doors.dashboard("GET", visitor=browser),
            ]
            for ask in asked:
                with pytest.raises(AssertionError, match="50"):  # 500 or 503: the doors say so
                    ask()
            self.dynamo.fault = None
            self.queue.fault = fault if fault is throttled else None
            self.purchase("alice", browser)
            self.queue.fault = None
        for part in ("/alice", "/incoming-payments", "/quotes", "/continue", "/outgoing-payments"):
            self.world.transport.after = losing(part)
            self.purchase("alice", browser)
        self.world.transport.after = self.ledger.overhear().response


def test_no_secret_leaves_where_it_belongs(
    monkeypatch: pytest.MonkeyPatch, told: Told, request: pytest.FixtureRequest
) -> None:
    life = Life(monkeypatch, told)
    browser = life.merchant()
    for wallet in WALLETS:
        life.purchase(wallet)
    life.world.receivers.answers = [Receipt(status=500, answer="no"), Receipt(error="no answer: x")]
    canceled, _ = life.doors.approved()
    assert life.doors.call("POST", f"/{canceled.id}/cancel").status == 200
    life.background()
    life.look(browser)
    life.failures(browser)
    life.look(browser)
    found = life.scan()
    request.node.user_properties.append((SCANNED, str(found)))
    assert found.leaks == ()
    kinds = set(life.ledger.secrets.values())
    assert kinds == set(PERMITTED), "each kind was made"
    places = {place for place, _ in life.ledger.texts}
    assert {"log", "metric", "row", "queue", "webhook", "api", "pay", "dashboard"} <= places
    levels = {json.loads(text).get("level") for place, text in life.ledger.texts if place == "log"}
    assert {"DEBUG", "INFO", "WARNING", "ERROR"} <= levels


# --- the scan itself finds planted secrets

SECRET = "sk_" + "a1B2c3D4e5" * 4 + "xyz"
WRAPPINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda secret: secret,
    "in a word": lambda secret: f"xyz{secret}xyz",
    "in JSON": lambda secret: json.dumps({"a": [secret]}),
    "in a URL": lambda secret: f"https://x.example/?k={quote(secret)}",
    "in hex": lambda secret: secret.encode().hex(),
    "in base64": lambda secret: base64.b64encode(secret.encode()).decode(),
    "in base64 behind a byte": lambda secret: base64.b64encode(f"x{secret}".encode()).decode(),
    "in base64 behind two": lambda secret: base64.b64encode(f"xy{secret}!".encode()).decode(),
    "in base64 for URLs": lambda secret: base64.urlsafe_b64encode(f"~{secret}".encode()).decode(),
    "in basic credentials": lambda secret: base64.b64encode(f"user:{secret}".encode()).decode(),
    "in an attribute": lambda secret: f'<input value="{secret}">',
    "behind a line": lambda secret: f"x\ny\r\n{secret}\nz",
}


@pytest.mark.parametrize("place", ["log", "metric", "api", "pay", "webhook", "queue", "row", "x"])
def test_a_planted_secret_is_found(attack: Attack, place: str) -> None:
    def attempt(wrap: Callable[[str], str]) -> None:
        ledger = Ledger()
        ledger.made("API key", SECRET)
        ledger.made("token", "T0KENt0kenT0KEN")
        ledger.heard(place, "nothing\n" * 10)
        assert ledger.scan().leaks == ()
        ledger.heard(place, wrap(SECRET))
        assert ledger.scan().leaks == (("API key", place),)

    attack.each(WRAPPINGS, attempt)


def test_a_key_is_found_on_a_second_page(attack: Attack) -> None:
    def attempt(pages: int) -> None:
        ledger = Ledger()
        ledger.made("API key", SECRET)
        for _ in range(pages):
            ledger.heard("dashboard", f"<code>{SECRET}</code>")
        assert len(ledger.scan().leaks) == pages - 1

    attack.each([1, 2, 3], attempt)


def test_a_secret_may_be_where_it_belongs_and_nowhere_else(attack: Attack) -> None:
    secret = "0123456789abcdef0123"

    def attempt(kind: str) -> None:
        for place in ("api", "pay", "dashboard", "row", "queue", "log", "cookie of pay"):
            ledger = Ledger()
            ledger.made(kind, secret)
            ledger.heard(place, f"x {secret} y")
            once = kind in ("API key", "webhook secret") and place == "dashboard"
            leaks = [] if place in PERMITTED[kind] or once else [(kind, place)]
            assert list(ledger.scan().leaks) == leaks

    attack.each(list(PERMITTED), attempt)
