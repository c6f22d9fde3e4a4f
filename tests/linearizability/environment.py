"""A Lambda environment of the function `api`, in a process of its own: one event at a time.

Between its handler and the AWS emulator lies a line with pauses on which answers of writes are
lost, and, where a test asks for one, a sabotage: a store that breaks one promise of DynamoDB's or
of the adapter's. The checker must notice each.
"""

from __future__ import annotations

import copy
import json
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlencode

from botocore.exceptions import ReadTimeoutError

import api.app
import api.dependencies
from checkout.adapters.clock import system_random
from checkout.adapters.outbound.http import PublicHttp
from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.queue import NoQueue
from checkout.flows.schedule import sweep
from checkout.ports.services import Services
from checkout.version import VERSION
from sandbox import cloud
from tests import services
from tests.deployment import Context
from tests.kill.place import SWEEP_EVERY, WRITES, SharedClock, vault
from tests.merchant_api import SESSIONS, Answer, gateway_event

BASE_URL: Final = "https://pay.example"
LOST: Final = 0.05  # of the answers of writes
PAUSES: Final = 0.3  # of the calls
PAUSE_MAX: Final = 0.004  # seconds
BLIND_MAX: Final = 0.05  # seconds between the decision and the write of a blind save


class HeldClock(SharedClock):
    """The tests' clock as the product sees it: only the tests move it; pauses are real."""

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request to the API, of the merchant with `key`, whose tables begin with `prefix`."""

    prefix: str
    key: str
    method: str
    path: str = ""
    query: Mapping[str, Any] | None = None
    body: Any = None
    idempotency_key: str | None = None
    sabotage: str | None = None


@dataclass(frozen=True, slots=True)
class Sweep:
    """One round of the scheduled job."""

    prefix: str
    sabotage: str | None = None


def core(client: Any, prefix: str, clock: SharedClock) -> Services:
    """Build what `wiring.api_services` builds, but on this clock and without queues."""
    return services.core(
        client,
        prefix,
        clock=clock,
        random_bytes=system_random,
        queue=NoQueue(),
        tasks=NoQueue(),
        base_url=BASE_URL,
    )


def serve(connection: Connection, endpoint: str, clock_file: Path, seed: int) -> None:
    """Do what the other side of `connection` asks until it closes.

    In a new thread, because each thread has its own event loop, and this one's is shared with all
    processes that were forked like this one.
    """
    thread = threading.Thread(target=_serve, args=(connection, endpoint, clock_file, seed))
    thread.start()
    thread.join()


def _serve(connection: Connection, endpoint: str, clock_file: Path, seed: int) -> None:
    line = Line(cloud.client("dynamodb", endpoint), random.Random(seed))
    clock, sealed = HeldClock(clock_file), vault()
    wallets = SignedWallets(PublicHttp(version=VERSION), sealed, clock)
    while True:
        try:
            order: Asked | Sweep = connection.recv()
        except EOFError:
            return
        base = core(line, order.prefix, clock)
        line.sabotage(order.sabotage)
        if isinstance(order, Asked):
            connection.send(_answer(base, order))
        else:
            ready = services.pay(base, line, order.prefix, vault=sealed, wallets=wallets)
            connection.send(sweep.run(ready, until=clock.now() + SWEEP_EVERY))


def _answer(ready: Services, order: Asked) -> Answer:
    async def given() -> Services:
        return ready

    api.app.app.dependency_overrides[api.dependencies.services] = given
    headers = {
        "Host": "pay.example",
        "Content-Type": "application/json",
        "Authorization": f"Bearer {order.key}",
    }
    if order.idempotency_key is not None:
        headers["Idempotency-Key"] = order.idempotency_key
    raw = None if order.body is None else json.dumps(order.body).encode()
    query, path = urlencode(order.query or {}), SESSIONS + order.path
    answer = api.app.handler(gateway_event(order.method, path, query, headers, raw), Context())
    return Answer(answer["statusCode"], answer["headers"], answer["body"])


Operation = Callable[..., Any]
Sabotage = Callable[[str, Operation, dict[str, Any]], Any]


class Line:
    """The emulator's client as an environment reaches it."""

    def __init__(self, client: Any, chance: random.Random) -> None:
        self._client = client
        self._chance = chance
        self._sabotage: Sabotage | None = None
        self._name: str | None = None

    def sabotage(self, name: str | None) -> None:
        """Begin the sabotage of that name, unless it is going on; None: end it."""
        if name != self._name:
            self._name = name
            self._sabotage = SABOTAGES[name](self._chance) if name is not None else None

    def __getattr__(self, name: str) -> Operation:
        operation = getattr(self._client, name)

        def call(**request: Any) -> Any:
            if self._chance.random() < PAUSES:
                time.sleep(self._chance.uniform(0, PAUSE_MAX))
            if self._sabotage is not None:
                return self._sabotage(name, operation, request)
            answer = operation(**request)
            if name in WRITES and self._chance.random() < LOST:
                raise ReadTimeoutError(endpoint_url="http://127.0.0.1")
            return answer

        return call


# --- sabotages ---


def _of_sessions(request: Mapping[str, Any]) -> bool:
    return str(request.get("TableName", "")).endswith("-checkout_sessions")


def _puts(name: str, request: Mapping[str, Any], table: str) -> bool:
    """Tell whether a session, or the answer under an idempotency key, is stored."""
    if name != "put_item" or not request["TableName"].endswith(f"-{table}"):
        return False
    return table == "idempotency_keys" or "version" in request["Item"]  # no cart, no search row


class StaleReads:
    """A read by id returns the item as this environment read it the time before."""

    def __init__(self, chance: random.Random) -> None:
        self._before: dict[str, Any] = {}

    def __call__(self, name: str, operation: Operation, request: dict[str, Any]) -> Any:
        answer = operation(**request)
        if name != "get_item" or not _of_sessions(request):
            return answer
        key = request["Key"]["id"]["S"]
        before = self._before.get(key, answer)
        self._before[key] = answer
        return before


class StaleIndex(StaleReads):
    """A list is of the sessions that this environment listed the time before."""

    def __call__(self, name: str, operation: Operation, request: dict[str, Any]) -> Any:
        answer = operation(**request)
        if name != "query" or request.get("IndexName") != "by_merchant":
            return answer
        key = json.dumps(request, sort_keys=True)
        before = self._before.get(key, answer)
        self._before[key] = answer
        return before


class LostCreations:
    """One creation in five is acknowledged and not written."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def __call__(self, name: str, operation: Operation, request: dict[str, Any]) -> Any:
        if _puts(name, request, "checkout_sessions") and self._chance.random() < 0.2:
            return {}
        return operation(**request)


class BlindSaves:
    """A session is saved whatever has become of it since it was read."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def __call__(self, name: str, operation: Operation, request: dict[str, Any]) -> Any:
        if name == "update_item" and _of_sessions(request):
            time.sleep(self._chance.uniform(0, BLIND_MAX))
            always = f"({request['ConditionExpression']}) OR attribute_exists(#version)"
            request = request | {"ConditionExpression": always}
        return operation(**request)


class BlindKeys:
    """An idempotency key is written even where it is held."""

    def __init__(self, chance: random.Random) -> None:
        pass

    def __call__(self, name: str, operation: Operation, request: dict[str, Any]) -> Any:
        if _puts(name, request, "idempotency_keys"):
            request = copy.deepcopy(request)
            request["ConditionExpression"] += " OR attribute_exists(#key)"
        return operation(**request)


SABOTAGES: Final[dict[str, Callable[[random.Random], Sabotage]]] = {
    "stale reads": StaleReads,
    "stale index": StaleIndex,
    "lost creations": LostCreations,
    "blind saves": BlindSaves,
    "blind keys": BlindKeys,
}
