"""Stripe's recipe for events that were not delivered, run by stripe-python over HTTP.

The sender delivers to two servers of this machine, and one of them answers 500 for an hour. The
hour is the test's: its clock goes on by the minute, and the schedule runs at each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import pytest

from api import http
from api.v1 import http as v1
from api.v1.app import app
from checkout.adapters.outbound.receivers import PublicReceivers
from checkout.flows.session import close
from open_payments.transports.public import PublicTransport
from tests.interop.packages import STRIPE, environment, installed
from tests.support.deployment import sqs_event
from tests.support.flows import World
from tests.support.processes import free_base
from tests.support.serving import serving
from webhook_sender.app import queued

HERE: Final = Path(__file__).parent
MINUTES: Final = 60
PAGE: Final = 10  # Stripe's page, and ours

pytestmark = [pytest.mark.interop, pytest.mark.enable_socket]


@dataclass
class Shop:
    """A webhook endpoint on this machine; `down`: it answers 500. `got` are the events it has."""

    down: bool = False
    got: list[str] = field(default_factory=list)
    refused: int = 0
    url: str = ""

    def took(self, event: str) -> int:
        """Return the status of the answer to the delivery of an event."""
        if self.down:
            self.refused += 1
            return 500
        self.got.append(event)
        return 200


@contextmanager
def listening() -> Iterator[Shop]:
    shop = Shop()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(shop.took(body["id"]))
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        shop.url = f"http://127.0.0.1:{server.server_port}/hooks"
        yield shop
        server.shutdown()


class Sender:
    """The function that delivers, and the schedule, over a world whose clock is the test's."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._handle = queued(lambda: world.deliver)
        self._waiting: list[tuple[datetime, str]] = []

    def works(self) -> None:
        """Handle the messages of the queue whose delay is over, and those that they leave."""
        while bodies := self._received():
            assert self._handle(sqs_event(*bodies), None) == {"batchItemFailures": []}

    def _received(self) -> list[str]:
        queue, now = self._world.queue, self._world.clock.now()
        for event, delay in zip(queue.messages, queue.delays, strict=True):
            self._waiting.append((now + timedelta(seconds=delay), event))
        queue.messages.clear()
        queue.delays.clear()
        due = [event for at, event in self._waiting if at <= now]
        self._waiting = [each for each in self._waiting if each[0] > now]
        return [json.dumps({"event": each}) for each in due]

    def minute(self) -> None:
        self._world.sweep()
        self.works()


@contextmanager
def serving_api(world: World) -> Iterator[str]:
    """Serve /v1 over the world's records; return its address."""
    port = free_base()

    async def core() -> Any:
        return world.services

    async def managing() -> Any:
        return replace(world.endpoints, allow_loopback=True)

    app.dependency_overrides = {http.services: core, v1.managing: managing}
    try:
        with serving(app, port):
            yield f"http://127.0.0.1:{port}"
    finally:
        app.dependency_overrides = {}


@pytest.mark.parametrize("fails", [0, 1], ids=["the first endpoint fails", "the second one fails"])
def test_the_recipe_finds_exactly_the_events_that_an_endpoint_missed(fails: int) -> None:
    world = World()
    http = PublicTransport(user_agent="1.2.3", allow_loopback=True)
    world.receivers = PublicReceivers(http)  # type: ignore[assignment]
    sender = Sender(world)
    with listening() as one, listening() as other, serving_api(world) as base:
        shops = [one, other]
        command = [sys.executable, str(HERE / "stripe_recovery.py"), one.url, other.url]
        env = environment(installed(STRIPE[0]), API_BASE=base, API_KEY=world.api_key)
        pipe = subprocess.PIPE
        with subprocess.Popen(command, env=env, stdin=pipe, stdout=pipe, text=True) as client:
            assert client.stdin is not None
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n"

            def found(after: str) -> list[dict[str, Any]]:
                assert client.stdin is not None
                assert client.stdout is not None
                client.stdin.write(f"{after}\n")
                client.stdin.flush()
                told: list[dict[str, Any]] = json.loads(client.stdout.readline())
                return told

            def sell() -> None:
                world.pay(world.create())
                sender.works()

            for _ in range(3):
                sell()
                sender.minute()
            before = list(shops[fails].got)
            assert len(before) == 3
            last = before[-1]
            assert found(last) == []
            shops[fails].down = True
            for number in range(MINUTES):
                if number % 2:
                    sell()
                elif number % 10 == 0:
                    close.expire(world.services, world.key(), world.create().id)
                sender.minute()
            missed = [each for each in shops[1 - fails].got if each not in before]
            assert len(missed) == 36 > 3 * PAGE
            shops[fails].down = False
            for _ in range(3):  # while those that were missed still wait for their next attempt
                sell()
            late = [each for each in shops[fails].got if each not in before]
            told = found(last)
            assert [each["id"] for each in told] == [each for each in missed if each not in late]
            assert {each["pending"] for each in told} == {1}
            assert shops[fails].refused > len(missed)  # retries too
            for _ in range(3 * MINUTES):
                sender.minute()
            assert sorted(shops[fails].got) == sorted(shops[1 - fails].got)
            assert found(last) == []
            client.stdin.close()
    http.close()
    print(f"{STRIPE[0]}: {len(told)} found of {len(set(shops[fails].got))} events")
