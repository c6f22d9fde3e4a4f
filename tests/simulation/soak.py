"""Thousands of webhook events over days of simulated time, through the real sender and sweep.

30 % of the attempts fail, 5 % hang, 1 % answer 410 and so disable their merchant's endpoint (whose
owner enables it again hours later and has all that failed sent once more); the queue loses and
doubles messages, and processes die at random. `python -m tests.simulation --soak 10000` prints
what became of them, and exits with 1 on any violation.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from datetime import timedelta
from functools import cache
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.dynamo.events import event_item
from checkout.adapters.queue import NoQueue
from checkout.adapters.runtime import run_in_turn
from checkout.adapters.vault import AesVault, derive
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.ids import new_event_id
from checkout.domain.webhooks.event_types import COMPLETED
from checkout.domain.webhooks.record import Endpoint, EventStatus, WebhookEvent
from checkout.flows.webhooks import endpoints
from checkout.flows.webhooks.deliver import AHEAD, deliver, due_events, enqueue_due
from checkout.ports import QueuedEvent
from checkout.services import DashboardServices, Services
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.simulation.boundaries import BEGINNING, Process, SimDynamo, moment
from tests.simulation.faults import Faults, Rates
from tests.simulation.scheduler import Died, Scheduler
from tests.simulation.swarm import Swarm
from tests.simulation.webhooks import SPACING, Deliveries, SimReceivers, Weather
from tests.support import services
from tests.support.samples import a_key, a_merchant

PREFIX: Final = "soak"
MERCHANTS: Final = 40
MINUTE: Final = 60_000  # milliseconds
SWEEP_TIME: Final = timedelta(seconds=50)
MADE_WITHIN: Final = 12 * 60 * MINUTE
DAYS_MAX: Final = 14
RATES: Final = Rates(death=0.002)
STORMY: Final = Weather(
    fails=0.30, hangs=0.05, gone=0.01, lost_hint=0.005, doubled_hint=0.02, latency=45
)


class Soak:
    """`webhooks.Host`, and what `Process` and `SimDynamo` need of a world."""

    def __init__(self, seed: int, events: int) -> None:
        self.rng = random.Random(seed)
        self.scheduler = Scheduler()
        self.faults = Faults(self.rng, RATES)
        self.weather = STORMY
        self.swarm = Swarm()
        self.crosser = None
        self.checker = self
        self.violations: list[tuple[str, str]] = []
        self.deliveries = Deliveries(self)
        self.tables = InMemoryDynamoDb(table_definitions(PREFIX), noted=False)
        self.vault = AesVault(lambda: "11" * 32, self.rng.randbytes, derive=_derived)
        self._events = events
        self._served = 0
        self._changes: list[tuple[Any, Any]] = []
        self._endpoints_of: dict[str, tuple[Endpoint, ...]] = {}
        self._watch()
        for number in range(MERCHANTS):
            self._join(f"mer_{number}")

    def run(self) -> None:
        for number in range(self._events):
            at = self.rng.randrange(MADE_WITHIN)
            self.scheduler.spawn("shop", lambda number=number: self._make(number), after=at)  # type: ignore[misc]
        self.scheduler.spawn("schedule", self._tick)
        for number in range(MERCHANTS):
            self.scheduler.spawn("owner", lambda number=number: self._own(number))  # type: ignore[misc]
        self.scheduler.run(until=MADE_WITHIN + MINUTE)
        while self._owing() and self.scheduler.now < DAYS_MAX * 24 * 60 * MINUTE:
            self.scheduler.run(until=self.scheduler.now + 60 * MINUTE)
        self.deliveries.finished()
        self.scheduler.close()

    def note(self, what: str) -> None:
        """No trace is kept: it would be a gigabyte."""

    def calling_aws(self, operation: str) -> None:
        """Check nothing: no payment is made here."""

    def store_failed(self) -> None:
        """Check nothing: nothing was read at a wallet."""

    def fail(self, check: str, detail: str) -> None:
        self.violations.append((check, detail))

    def send_event(self, event_id: str) -> bool:
        process = self._process()
        try:
            receivers = SimReceivers(process, self.deliveries)
            deliver(self._services(process, SimDynamo(process)), self.vault, receivers, event_id)
        except (CheckoutError, Died):
            return False
        return True

    def apply(self, operation: str, request: dict[str, Any], what: str, by: str) -> Any:
        self._changes.clear()
        answer = getattr(self.tables, operation)(**request)
        for old, new in self._changes:
            self.deliveries.written(old, new)
        return answer

    # --- who lives here ---

    def _make(self, number: int) -> None:
        """As the transaction that completes a session does, and its hint."""
        now = moment(self.scheduler.now)
        event = WebhookEvent(
            id=new_event_id(self.rng.randbytes),
            merchant=f"mer_{self.rng.randrange(MERCHANTS)}",
            subject=f"cs_{number:022d}",
            type=COMPLETED,
            body=f'{{"id":"cs_{number:022d}","status":"completed"}}',
            stripe_body="{}",
            created_at=now,
            next_at=now,
        )
        self.apply("put_item", {"TableName": self._table, "Item": event_item(event)}, "", "")
        self.deliveries.enqueue([QueuedEvent(event.id, event.merchant)])

    def _tick(self) -> None:
        while True:
            self.scheduler.sleep(MINUTE)
            if self.deliveries.due(moment(self.scheduler.now) + AHEAD):
                self.scheduler.spawn("sweep", self._sweep)

    def _sweep(self) -> None:
        process = self._process()
        base = self._services(process, SimDynamo(process))
        try:
            found = due_events(base.events, process.now(), run_in_turn)
            until = process.now() + SWEEP_TIME
            enqueue_due(base.events, base.queue, process, run_in_turn, found, until=until)
        except (CheckoutError, Died, ClientError):
            return

    def _own(self, number: int) -> None:
        """A merchant looks once in a while, and enables endpoints again that a 410 has disabled."""
        merchant_id, services = f"mer_{number}", self._endpoints()
        while True:
            self.scheduler.sleep(self.rng.randrange(4 * 60 * MINUTE, 8 * 60 * MINUTE))
            merchant = services.merchants.get(merchant_id)
            assert merchant is not None
            for endpoint in merchant.endpoints:
                if endpoint.disabled_at is not None:
                    self._mend(services, merchant_id, endpoint)

    def _mend(self, services: DashboardServices, merchant_id: str, endpoint: Endpoint) -> None:
        assert endpoint.disabled_at is not None
        endpoints.enable(services, merchant_id, endpoint=endpoint.id)
        since, after = endpoint.disabled_at - timedelta(days=4), None
        while True:
            done = endpoints.resend_failed(
                services, merchant_id, since=since, after=after, endpoint=endpoint.id
            )
            self.deliveries.counts["sent again"] += done.count
            after = done.next_key
            if after is None:
                break

    def endpoints_of(self, merchant: str) -> tuple[Endpoint, ...]:
        """Return the merchant's endpoints, of which some merchants have more than one."""
        return self._endpoints_of[merchant]

    def _owing(self) -> bool:
        return bool(self.deliveries.unfinished)

    # --- what they run in ---

    def _process(self) -> Process:
        self._served += 1
        return Process(self, f"p{self._served}", 0)  # type: ignore[arg-type]

    def _services(self, process: Process, client: Any) -> Services:
        return services.core(
            client,
            PREFIX,
            clock=process,
            random_bytes=self.rng.randbytes,
            queue=self.deliveries,
            tasks=NoQueue(),
            base_url="https://pay.example",
        )

    def _endpoints(self) -> DashboardServices:
        """A merchant's own actions neither fail nor take time here."""
        client: Any = _Watched(self)
        clock = Process(self, "owner", 0)  # type: ignore[arg-type]
        base = self._services(clock, client)
        return services.dashboard(base, client, PREFIX, vault=self.vault, hosts=_Public())

    @property
    def _table(self) -> str:
        return f"{PREFIX}-webhook_events"

    def _watch(self) -> None:
        watched = self.tables._tables[self._table]
        store = watched.store

        def noted(key: Any, item: Any) -> None:
            self._changes.append((watched.items.get(key), item))
            store(key, item)

        watched.store = noted  # type: ignore[method-assign]

    def _join(self, merchant_id: str) -> None:
        wallet = f"https://wallet.example/{merchant_id}"
        merchant = a_merchant(id=merchant_id, wallet_address=wallet, created_at=BEGINNING)
        key = a_key(id=f"key_{merchant_id}", hash=merchant_id, merchant=merchant_id)
        owned = self._endpoints()
        assert owned.merchants.add(merchant, key) is None
        host = merchant_id.replace("_", "-")
        for number in range(1 + len(self._endpoints_of) % 3):
            url = f"https://{host}.example/hooks/{number}"
            done = endpoints.configure(owned, merchant_id, url=url, events=(), add=True)
        self._endpoints_of[merchant_id] = done.merchant.endpoints


class _Watched:
    """The tables without faults and without time, but seen by the checks."""

    def __init__(self, soak: Soak) -> None:
        self._soak = soak

    def __getattr__(self, operation: str) -> Any:
        return lambda **request: self._soak.apply(operation, request, "", "")


class _Public:
    def permitted(self, host: str) -> bool:
        return True


def soak(events: int, seed: int) -> Soak:
    """The results of a number of events."""
    done = Soak(seed, events)
    done.run()
    return done


def report(events: int, seed: int) -> int:
    began = time.monotonic()
    done = soak(events, seed)
    deliveries = done.deliveries
    ended = Counter(str(record.status) for record in deliveries.records)
    reasons = Counter(str(r.given_up) for r in deliveries.records if r.given_up)
    over = {attempt: worst / 10 for attempt, worst in sorted(deliveries.worst.items())}
    for attempt, off in over.items():
        if off > SPACING * 100:
            done.fail("spacing_is_kept", f"after attempt {attempt}: {off:.1f} %")
    rows: list[tuple[str, object]] = [
        ("events", f"{len(deliveries.records)} (seed {seed})"),
        *((f"  {status}", ended[status]) for status in EventStatus),
        *((f"    by {reason}", count) for reason, count in sorted(reasons.items())),
        *((name, count) for name, count in sorted(deliveries.counts.items())),
        ("attempts of one round at most", max(r.attempts for r in deliveries.records)),
        *((f"spacing after attempt {n}: worst", f"{off:.1f} %") for n, off in over.items()),
        ("processes died", done.faults.counts["process died"]),
        ("simulated days", f"{done.scheduler.now / MINUTE / 60 / 24:.1f}"),
        ("violations", len(done.violations)),
        ("seconds", f"{time.monotonic() - began:.1f}"),
    ]
    for name, value in rows:
        print(f"{name:<48} {value}")
    for check, detail in done.violations[:20]:
        print(f"VIOLATION {check}: {detail}")
    return int(bool(done.violations))


@cache
def _derived(secret: str) -> bytes:
    return derive(secret)
