"""Histories: actors that call the API's routes at random from a seed, in one simulated world.

They take turns at every call of the store (simulation/scheduler.py), so each request and answer has
its place in one order, and a seed repeats its history exactly. Each request is served on a line to
the store on which calls take a while and answers of writes are lost; an actor sometimes stops
waiting, and the request goes on all the same. If a test asks for it, a line has a sabotage, which
breaks one promise of DynamoDB or of the adapter. The checker must notice each.
"""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any, Final
from urllib.parse import urlencode

from botocore.exceptions import ReadTimeoutError
from fastapi.routing import APIRoute
from starlette.requests import Request as HttpRequest

from api import routes
from checkout.adapters import dynamo
from checkout.adapters.queue import NoQueue
from checkout.domain.ground.errors import CheckoutError, ResourceMissing, Unavailable
from checkout.domain.ground.ids import api_key_hash, new_api_key
from checkout.domain.webhooks.event_types import EXPIRED
from checkout.flows.schedule import expiries
from checkout.services import Services
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.linearizability.purchases import Outcome, Recorded, Request, Tick, document, violations
from tests.simulation.boundaries import WRITES
from tests.simulation.scheduler import Scheduler
from tests.support import services
from tests.support.basics import HandClock
from tests.support.merchant_api import a_body, an_item
from tests.support.samples import a_key, a_merchant, an_endpoint

ACTORS: Final = 6
PROCESSES: Final = 4
REQUESTS: Final = 20  # of each actor
CALL_MAX: Final = 20  # milliseconds to the store, and back
LOST: Final = 0.05  # of the answers of writes
IMPATIENCE: Final = 0.05  # of the requests are not waited for
PATIENCE: Final = 30  # milliseconds
AGES: Final = 10**8
LIFE: Final = 300  # seconds until a session expires: the API's minimum
STEPS: Final = (20, 60, 120)  # seconds by which the clock is moved
PAGE: Final = 6
PREFIX: Final = "linear"
BASE_URL: Final = "https://pay.example"
ROUTES: Final = [each for each in routes.router.routes if isinstance(each, APIRoute)]

# How often an actor does what. A round is one of the scheduled job, whose writes no answer tells
# of: the reads see them.
ACTIONS: Final = {
    "create": 22,
    "get": 26,
    "cancel": 11,
    "expire": 8,
    "list": 12,
    "list by pages": 5,
    "move the clock": 6,
    "round": 4,
}


class Line:
    """The tables as one process reaches them."""

    def __init__(self, run: Run, sabotage: Sabotage | None) -> None:
        self._run = run
        self._sabotage = sabotage

    def __getattr__(self, name: str) -> Operation:
        operation = getattr(self._run.tables, name)

        def call(**request: Any) -> Any:
            self._run.pause()
            if self._sabotage is not None:
                answer = self._sabotage(name, operation, request)
            else:
                answer = operation(**request)
                if name in WRITES and self._run.chance.random() < LOST:
                    raise ReadTimeoutError(endpoint_url="dynamodb")
            self._run.pause()
            return answer

        return call


class Paced(HandClock):
    """The clock as the product sees it: only the histories move it; pauses are the world's."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run

    def sleep(self, seconds: float) -> None:
        self._run.scheduler.sleep(round(seconds * 1000))


@dataclass(frozen=True)
class History:
    """The requests of one run with their answers, and the movements of the clock."""

    seed: int
    records: list[Recorded] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)

    def violations(self) -> list[str]:
        return violations(self.records, self.ticks)


class Run:
    def __init__(self, seed: int, sabotage: str | None) -> None:
        self.history = History(seed)
        self.chance = random.Random(seed)
        self.scheduler = Scheduler()
        self.tables: Any = InMemoryDynamoDb(table_definitions(PREFIX))
        self._clock = Paced(self)
        self._secret = new_api_key(self.chance.randbytes)
        key = a_key(hash=api_key_hash(self._secret), last_used_at=self._clock.now())
        told = an_endpoint(url="https://shop.example/hooks", events=(EXPIRED,))
        merchant = a_merchant(endpoint=told)
        assert dynamo.DynamoMerchants(self.tables, PREFIX).add(merchant, key) is None
        begin = SABOTAGES[sabotage] if sabotage is not None else lambda run: None
        self._processes = [self._process(Line(self, begin(self))) for _ in range(PROCESSES)]
        self._times = count(0, 1_000_000)  # of requests and answers: told as milliseconds
        self._numbers = count(1)
        self._newest = "purchase-0"
        self._known: dict[str, None] = {}  # the sessions' ids, the newest last

    def _process(self, line: Any) -> tuple[Services, Any]:
        nobody: Any = None
        base = services.core(
            line,
            PREFIX,
            clock=self._clock,
            random_bytes=self.chance.randbytes,
            queue=NoQueue(),
            tasks=NoQueue(),
            base_url=BASE_URL,
        )
        return base, services.pay(base, line, PREFIX, vault=nobody, wallets=nobody)

    def pause(self) -> None:
        self.scheduler.sleep(self.chance.randrange(CALL_MAX))

    def play(self) -> History:
        """Let all actors act; when all is quiet, every session is read once more."""
        for number in range(ACTORS):
            self.scheduler.spawn(f"actor {number}", self._act)
        self.scheduler.run(until=AGES)
        self.scheduler.spawn("audit", self._audit)
        self.scheduler.run(until=2 * AGES)
        return self.history

    def _act(self) -> None:
        self._create()  # all the same purchase
        for _ in range(REQUESTS - 1):
            [action] = self.chance.choices(list(ACTIONS), list(ACTIONS.values()))
            if action == "move the clock":
                self._move_clock()
            elif action == "round":
                _, ready = self.chance.choice(self._processes)
                until = self._clock.now() + 2 * expiries.GATHERED
                self._served(partial(expiries.run, ready, until=until), AGES)
            elif action.startswith("list"):
                self._list(PAGE if action == "list by pages" else 100)
            elif action == "create" or not self._known:
                self._create()
            else:
                known = list(self._known)
                recent = known[-3:] if self.chance.random() < 0.8 else known
                self._about(Request(action), self.chance.choice(recent))

    def _audit(self) -> None:
        self._list(100)
        for session in list(self._known):
            self._about(Request.GET, session)

    def _move_clock(self) -> None:
        begun = next(self._times)
        self._clock.pass_time(self.chance.choice(STEPS))
        now = self._clock.now()
        self.history.ticks.append(Tick(invoked=begun, responded=next(self._times), now=now))

    # --- requests ---

    def _create(self) -> None:
        with_key = self.chance.random() < 0.85
        if not with_key or self.chance.random() < 0.4:
            name = f"purchase-{next(self._numbers)}"
            if with_key:
                self._newest = name
        else:
            name = self._newest
        amount = 2000 if self.chance.random() < 0.1 else 1000
        body = a_body(
            metadata={"purchase": name},
            expires_in_seconds=LIFE,
            line_items=[an_item(unit_amount=amount)],
        )
        self._record(
            lambda base: self._asked(routes.create, base, body, name if with_key else None),
            request=Request.CREATE,
            purchase=name,
            parameters=f"amount={amount}",
        )

    def _about(self, request: Request, session: str) -> None:
        route = {
            Request.GET: routes.get,
            Request.CANCEL: routes.cancel,
            Request.EXPIRE: routes.expire,
        }[request]
        act = lambda base: self._asked(route, base, session_id=session)  # noqa: E731
        self._record(act, request=request, session=session)

    def _list(self, limit: int) -> None:
        """Record all pages as one request, which is always waited for."""

        def pages(base: Services) -> list[Any]:
            found: list[Any] = []
            query: dict[str, Any] = {"limit": limit}
            while True:
                page = json.loads(self._asked(routes.list_sessions, base, query=query).body)
                found += page["data"]
                if page["next_cursor"] is None:
                    return found
                query["cursor"] = page["next_cursor"]

        self._record(pages, AGES, request=Request.LIST)

    def _record(self, act: Callable[[Services], Any], patience: int = 0, **asked: Any) -> None:
        base, _ = self.chance.choice(self._processes)
        if not patience:
            hurried = self.chance.random() < IMPATIENCE
            patience = self.chance.randrange(1, PATIENCE) if hurried else AGES
        clock, begun = self._clock.now(), next(self._times)
        answers = self._served(partial(self._answered, act, base), patience)
        outcome, shown = answers[0] if answers else (Outcome.UNKNOWN, ())
        unknown = outcome is Outcome.UNKNOWN
        if unknown and asked["request"] in (Request.GET, Request.LIST):
            return  # it says nothing and does nothing
        for each in reversed(shown):
            self._known.setdefault(each["id"])
        self.history.records.append(
            Recorded(
                invoked=begun,
                responded=None if unknown else next(self._times),
                who=self.scheduler.actor,
                clock=clock,
                outcome=outcome,
                sessions=shown,
                **asked,
            )
        )

    def _served(self, act: Callable[[], Any], patience: int) -> list[Any]:
        """Have a request served, beside those of all others; return its answer, if it is there."""
        answers: list[Any] = []
        serving = self.scheduler.spawn("request", lambda: answers.append(act()))
        return answers if self.scheduler.wait(serving, at_most=patience) else []

    def _asked(
        self,
        route: Callable[..., Any],
        base: Services,
        body: Any = None,
        idempotency_key: str | None = None,
        *,
        query: Mapping[str, Any] | None = None,
        **path: str,
    ) -> Any:
        """Call a route of the API. It waits for nothing but the store, so it needs no event loop.

        Raises what the route raises.
        """
        headers = {"authorization": f"Bearer {self._secret}", "content-type": "application/json"}
        if idempotency_key is not None:
            headers["idempotency-key"] = idempotency_key
        raw = b"" if body is None else json.dumps(body).encode()
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/",
            "query_string": urlencode(query or {}).encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "state": {"request_id": "req"},
            "route": next(each for each in ROUTES if each.endpoint is route),
        }

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": raw, "more_body": False}

        try:
            route(base, HttpRequest(scope, receive), **path).send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("it waits for something else")

    @staticmethod
    def _answered(
        act: Callable[[Services], Any], base: Services
    ) -> tuple[Outcome, tuple[dict[str, Any], ...]]:
        try:
            given = act(base)
        except Unavailable:
            return Outcome.UNKNOWN, ()
        except ResourceMissing:
            return Outcome.MISSING, ()
        except CheckoutError as refused:
            return Outcome(refused.code), ()
        if isinstance(given, list):
            return Outcome.SHOWN, tuple(given)
        shown = json.loads(given.body)
        if given.status_code == 200:
            return Outcome.SHOWN, (shown,)
        assert given.body.decode() == document(shown), "so that equal documents are equal bytes"
        replayed = "idempotent-replayed" in given.headers
        return (Outcome.REPLAYED if replayed else Outcome.CREATED), (shown,)


def play(seed: int, sabotage: str | None = None) -> History:
    """Make one history."""
    return Run(seed, sabotage).play()


# --- sabotages ---

Operation = Callable[..., Any]
Sabotage = Callable[[str, Operation, dict[str, Any]], Any]


def _of_sessions(request: Mapping[str, Any]) -> bool:
    return str(request.get("TableName", "")).endswith("-checkout_sessions")


def _puts(name: str, request: Mapping[str, Any], table: str) -> bool:
    """Tell whether a session, or the answer under an idempotency key, is stored."""
    if name != "put_item" or not request["TableName"].endswith(f"-{table}"):
        return False
    return table == "idempotency_keys" or "version" in request["Item"]  # no cart, no search row


def _stale(run: Run, *, of_lists: bool) -> Sabotage:
    """A read by id, or a list, is as this process read it the time before."""
    before: dict[str, Any] = {}

    def call(name: str, operation: Operation, request: dict[str, Any]) -> Any:
        answer = operation(**request)
        listed = name == "query" and request.get("IndexName") == "by_merchant"
        read = name == "get_item" and _of_sessions(request)
        if not (listed if of_lists else read):
            return answer
        key = json.dumps(request, sort_keys=True)
        old = before.get(key, answer)
        before[key] = copy.deepcopy(answer)
        return old

    return call


def _lost_creations(run: Run) -> Sabotage:
    """One creation in five is acknowledged and not written."""

    def call(name: str, operation: Operation, request: dict[str, Any]) -> Any:
        if _puts(name, request, "checkout_sessions") and run.chance.random() < 0.2:
            return {}
        return operation(**request)

    return call


def _blind_saves(run: Run) -> Sabotage:
    """A session is saved whatever has become of it since it was read."""

    def call(name: str, operation: Operation, request: dict[str, Any]) -> Any:
        if name == "update_item" and _of_sessions(request):
            always = f"({request['ConditionExpression']}) OR attribute_exists(#version)"
            request = request | {"ConditionExpression": always}
        return operation(**request)

    return call


def _blind_keys(run: Run) -> Sabotage:
    """An idempotency key is written even where it is held."""

    def call(name: str, operation: Operation, request: dict[str, Any]) -> Any:
        if _puts(name, request, "idempotency_keys"):
            always = request["ConditionExpression"] + " OR attribute_exists(#key)"
            request = request | {"ConditionExpression": always}
        return operation(**request)

    return call


SABOTAGES: Final[dict[str, Callable[[Run], Sabotage]]] = {
    "stale reads": partial(_stale, of_lists=False),
    "stale index": partial(_stale, of_lists=True),
    "lost creations": _lost_creations,
    "blind saves": _blind_saves,
    "blind keys": _blind_keys,
}
