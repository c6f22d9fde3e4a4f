"""Histories: threads that call the API through several environments, at random from a seed.

The seed repeats what each thread asks; the threads' turns are the machine's. Each history has its
own tables. A thread takes any free environment for each request, as API Gateway does, and sometimes
stops waiting for the answer; the environment goes on with the request all the same.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final

import pytest

from checkout.adapters.clock import system_random
from checkout.domain.ids import api_key_hash, new_api_key
from tests.adapters.samples import a_key, a_merchant
from tests.adapters.stores import boto, with_tables
from tests.kill.place import SharedClock
from tests.kill.stage import BEGINNING
from tests.linearizability import environment
from tests.linearizability.environment import Asked, Sweep
from tests.linearizability.purchases import Outcome, Recorded, Request, Tick, document, violations
from tests.merchant_api import Answer, a_body, an_item

THREADS: Final = 6
ENVIRONMENTS: Final = 8  # more than threads: some still work on what nobody waits for
REQUESTS: Final = 20  # of each thread
IMPATIENCE: Final = 0.05  # of the requests are not waited for
PATIENCE_MAX: Final = 0.015  # seconds
LIFE: Final = 300  # seconds until a session expires: the API's minimum
STEPS: Final = (20, 60, 120)  # seconds by which the clock is moved
PAGE: Final = 6

# How often a thread does what. A sweep is a round of the scheduled job, whose writes no answer
# tells of: the reads see them.
ACTIONS: Final = {
    "create": 22,
    "get": 26,
    "cancel": 11,
    "expire": 8,
    "list": 12,
    "list by pages": 5,
    "move the clock": 6,
    "sweep": 2,
}


class Environment:
    """One process that runs the function, from the outside."""

    def __init__(self, process: Any, connection: Connection) -> None:
        self._process = process
        self._connection = connection
        self._late = False

    def ready(self) -> None:
        """Wait for the end of a request whose answer nobody waited for."""
        if self._late:
            self._connection.recv()
            self._late = False

    def ask(self, order: Asked | Sweep, patience: float | None = None) -> Answer | None:
        """Return the answer, or None if it took longer than `patience` (in seconds)."""
        self._connection.send(order)
        if patience is not None and not self._connection.poll(patience):
            self._late = True
            return None
        answer: Answer = self._connection.recv()
        return answer

    def close(self) -> None:
        self._connection.close()
        self._process.join()
        self._process.close()


@dataclass(frozen=True)
class Deployed:
    """The emulator, the clock and the running environments."""

    endpoint: str
    clock: SharedClock
    environments: tuple[Environment, ...]


@contextmanager
def deployed(endpoint: str, folder: Path) -> Iterator[Deployed]:
    """Start the environments, forked from one process that has loaded everything."""
    clock = SharedClock(folder / "clock", BEGINNING)
    context = get_context("forkserver")
    context.set_forkserver_preload([environment.__name__])
    started = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
        for number in range(ENVIRONMENTS):
            ours, theirs = context.Pipe()
            process = context.Process(
                target=environment.serve, args=(theirs, endpoint, folder / "clock", number)
            )
            process.start()
            theirs.close()
            started.append(Environment(process, ours))
    try:
        yield Deployed(endpoint, clock, tuple(started))
    finally:
        for each in started:
            each.close()


@dataclass(frozen=True)
class History:
    """The requests of one run with their answers, and the movements of the clock."""

    seed: int
    records: list[Recorded] = field(default_factory=list)
    ticks: list[Tick] = field(default_factory=list)

    def violations(self) -> list[str]:
        return violations(self.records, self.ticks)


def play(on: Deployed, seed: int, sabotage: str | None = None) -> History:
    """Make one history; at its end, when all is quiet, every session is read once more."""
    run = _Run(on, seed, sabotage)
    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(run.thread, range(THREADS)))
    run.audit()
    return run.history


class _Run:
    def __init__(self, on: Deployed, seed: int, sabotage: str | None) -> None:
        self.history = History(seed)
        self._on = on
        self._sabotage = sabotage
        self._prefix = f"linear-{uuid.uuid4().hex[:8]}"
        self._key = self._join()
        self._free: SimpleQueue[Environment] = SimpleQueue()
        for each in on.environments:
            self._free.put(each)
        self._numbers = count(1)
        self._newest = "purchase-0"
        self._known: dict[str, None] = {}  # the sessions' ids, the newest last
        self._moving = threading.Lock()
        self._start = threading.Barrier(THREADS, timeout=30)

    def _join(self) -> str:
        """Make the tables and one merchant; return its API key."""
        client = with_tables(boto(self._on.endpoint), self._prefix)
        secret = new_api_key(system_random)
        key = a_key(hash=api_key_hash(secret), last_used_at=BEGINNING)
        stores = environment.core(client, self._prefix, self._on.clock)
        assert stores.merchants.add(a_merchant(), key) is None
        return secret

    def thread(self, number: int) -> None:
        chance = random.Random(f"{self.history.seed}/{number}")
        who = f"thread {number}"
        self._start.wait()
        self._create(who, chance)  # all the same purchase
        for _ in range(REQUESTS - 1):
            [action] = chance.choices(list(ACTIONS), list(ACTIONS.values()))
            self._act(action, who, chance)

    def _act(self, action: str, who: str, chance: random.Random) -> None:
        if action == "move the clock":
            self._move_clock(chance.choice(STEPS))
        elif action == "sweep":
            with self._environment() as free:
                free.ask(Sweep(self._prefix, self._sabotage))
        elif action == "list":
            self._list(who)
        elif action == "list by pages":
            self._list(who, PAGE)
        elif action == "create" or not self._known:
            self._create(who, chance)
        else:
            known = list(self._known)
            chosen = chance.choice(known[-3:] if chance.random() < 0.8 else known)
            self._about(Request(action), chosen, who, _patience(chance))

    def audit(self) -> None:
        for each in self._on.environments:
            each.ready()
        self._list("audit")
        for session in list(self._known):
            self._about(Request.GET, session, "audit", None)

    @contextmanager
    def _environment(self) -> Iterator[Environment]:
        free = self._free.get(timeout=30)
        try:
            free.ready()
            yield free
        finally:
            self._free.put(free)

    def _move_clock(self, seconds: float) -> None:
        with self._moving:
            begun = time.monotonic_ns()
            self._on.clock.sleep(seconds)
            now = self._on.clock.now()
            tick = Tick(invoked=begun, responded=time.monotonic_ns(), now=now)
            self.history.ticks.append(tick)

    def _create(self, who: str, chance: random.Random) -> None:
        with_key = chance.random() < 0.85
        if not with_key or chance.random() < 0.4:
            name = f"purchase-{next(self._numbers)}"
            if with_key:
                self._newest = name
        else:
            name = self._newest
        amount = 2000 if chance.random() < 0.1 else 1000
        body = a_body(
            metadata={"purchase": name},
            expires_in_seconds=LIFE,
            line_items=[an_item(unit_amount=amount)],
        )
        order = self._order("POST", body=body, idempotency_key=name if with_key else None)
        asked = {"request": Request.CREATE, "purchase": name, "parameters": f"amount={amount}"}
        self._record(who, order, _patience(chance), **asked)

    def _about(self, request: Request, session: str, who: str, patience: float | None) -> None:
        if request is Request.GET:
            order = self._order("GET", f"/{session}")
        else:
            order = self._order("POST", f"/{session}/{request}")
        self._record(who, order, patience, request=request, session=session)

    def _list(self, who: str, limit: int = 100) -> None:
        """Record all pages as one request."""
        query: dict[str, Any] = {"limit": limit}
        found: list[dict[str, Any]] = []
        with self._environment() as free:
            clock, begun = self._on.clock.now(), time.monotonic_ns()
            while True:
                answer = free.ask(self._order("GET", query=query))
                assert answer is not None
                assert answer.status == 200, answer
                found += answer.json["data"]
                if answer.json["next_cursor"] is None:
                    break
                query["cursor"] = answer.json["next_cursor"]
            ended = time.monotonic_ns()
        self._learn(session["id"] for session in reversed(found))
        self.history.records.append(
            Recorded(
                invoked=begun,
                responded=ended,
                who=who,
                request=Request.LIST,
                clock=clock,
                outcome=Outcome.SHOWN,
                sessions=tuple(found),
            )
        )

    def _order(self, method: str, path: str = "", **more: Any) -> Asked:
        return Asked(
            prefix=self._prefix,
            key=self._key,
            method=method,
            path=path,
            sabotage=self._sabotage,
            **more,
        )

    def _record(self, who: str, order: Asked, patience: float | None, **asked: Any) -> None:
        with self._environment() as free:
            clock, begun = self._on.clock.now(), time.monotonic_ns()
            answer = free.ask(order, patience)
            ended = time.monotonic_ns()
        outcome = _outcome(answer)
        unknown = outcome is Outcome.UNKNOWN
        if unknown and asked["request"] is Request.GET:
            return  # it says nothing and does nothing
        sessions: tuple[dict[str, Any], ...] = ()
        if answer is not None and answer.status in (200, 201):
            sessions = (answer.json,)
            self._learn([answer.json["id"]])
        if answer is not None and answer.status == 201:  # so that equal documents are equal bytes
            assert answer.body == document(answer.json)
        self.history.records.append(
            Recorded(
                invoked=begun,
                responded=None if unknown else ended,
                who=who,
                clock=clock,
                outcome=outcome,
                sessions=sessions,
                **asked,
            )
        )

    def _learn(self, ids: Iterable[str]) -> None:
        for each in ids:
            self._known.setdefault(each)


def _patience(chance: random.Random) -> float | None:
    return chance.uniform(0, PATIENCE_MAX) if chance.random() < IMPATIENCE else None


def _outcome(answer: Answer | None) -> Outcome:
    """Return the kind of answer. 503 says that the outcome is unknown."""
    if answer is None or answer.status == 503:
        return Outcome.UNKNOWN
    if answer.status == 201:
        replayed = answer.headers.get("idempotent-replayed") == "true"
        return Outcome.REPLAYED if replayed else Outcome.CREATED
    if answer.status == 200:
        return Outcome.SHOWN
    if answer.status == 404:
        return Outcome.MISSING
    assert answer.status in (400, 409), answer
    return Outcome(answer.code)
