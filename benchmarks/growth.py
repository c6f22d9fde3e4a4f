"""`python -m benchmarks.growth`: does a step cost more if more sessions are stored?

It counts calls to DynamoDB, items read, and read and write units of the real handlers beside 10^3,
10^4, 10^5 and 10^6 stored sessions of one merchant, whose list is in one partition. Exits with 1 if
a count differs by more than LIMIT from the count beside the fewest sessions. No time is measured.
bulk.py makes the stored sessions. The sweep's round finds the same number of due sessions at every
size.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from benchmarks.bulk import ORDER, Bulk, Samples, grow
from benchmarks.cost import Observed
from checkout import telemetry
from checkout.adapters.dynamo import index_keys
from checkout.domain.reports.daily_totals import DayTotals
from checkout.domain.session.record import CLOCK_IS_FINAL_AFTER, Session, Status
from checkout.domain.webhooks.event_types import EXPIRED
from checkout.flows.schedule import expiries
from checkout.flows.session import close
from checkout.ports import Batch, Scan
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.dashboard_pages import Browser, dashboard_of
from tests.support.flows import PREFIX, World
from tests.support.merchant_api import a_body

SIZES: Final = (1_000, 10_000, 100_000, 1_000_000)
LIMIT: Final = 5.0  # per cent
SHORT: Final = 1_800  # seconds: the shortest life of a session
# Sessions that the round finds.
AWAITING: Final = 10  # customers who have not yet come back
GONE: Final = 5  # customers who never did
IN_DOUBT: Final = 5  # payments whose answer was lost
LEFT: Final = 10  # carts that have ended by the clock, and need an event and counting
CANCELED: Final = 5  # to be counted
DUE: Final = AWAITING + GONE + IN_DOUBT

_REQUEST: Final = "req_5dTMd0wvG8PZx5nNq2LrYb"


@dataclass(frozen=True, slots=True)
class Counts:
    """The use of one step."""

    calls: float
    items: float
    reads: float
    writes: float

    def __str__(self) -> str:
        return f"{self.calls:g}, {self.items:g}, {self.reads:g}, {self.writes:g}"


class Grown:
    """A deployment whose merchant has `count` sessions."""

    def __init__(self, count: int) -> None:
        client = InMemoryDynamoDb(table_definitions(PREFIX))
        self._observed = Observed(client)
        self._deployed = self._observed.deployed
        self._world: World = self._deployed.world
        self._world.listen(EXPIRED)
        self.bulk = Bulk(count, self._samples(), self._world.clock.now())
        grow(client, f"{PREFIX}-checkout_sessions", self.bulk)
        self._count_days()
        self._orders = 0

    def steps(self) -> dict[str, Counts]:
        """Return the use of each step.

        Requests are counted the second time, the round the first time.
        """
        found = {}
        with dashboard_of(self._world) as browser:
            for name, step in self._steps(browser).items():
                step()
                found[name] = self._counted(step)
        self._make_due()
        found["a round of the sweep"] = self._counted(self._round)
        return found

    def _steps(self, browser: Browser) -> Mapping[str, Callable[[], object]]:
        paid = self.bulk.session(self.bulk.a_paid_one)
        assert paid.customer is not None
        assert paid.incoming_payment is not None
        number = str(paid.client_reference_id)
        incoming = paid.incoming_payment.id.rpartition("/")[2]
        texts = {
            "the beginning of one order number": (number[:-1], 1),
            "the beginning of all order numbers": (ORDER, 100),
            "a customer's wallet": (paid.customer.id.rpartition("/")[2], 25),
            "a value that all have": ("web", 25),
            "a payment's id": (incoming, 1),
        }
        return {
            "create": self._create,
            "get": partial(self._api, f"/sessions/{paid.id}"),
            "list of 10": partial(self._api, "/sessions", "limit=10"),
            "list of 100": partial(self._api, "/sessions", "limit=100"),
            "the dashboard's transactions": partial(self._page, browser, "", 25),
            **{
                f"search: {name}": partial(self._page, browser, text, rows)
                for name, (text, rows) in texts.items()
            },
        }

    def _counted(self, step: Callable[[], object]) -> Counts:
        used = self._observed.used(step)
        return Counts(used.calls, used.items, used.reads, used.writes + used.index_writes)

    def _create(self) -> None:
        self._orders += 1
        body = a_body(client_reference_id=f"{ORDER}{self._orders:08d}", metadata={"channel": "web"})
        answer = self._deployed.call("POST", "/sessions", body, Idempotency_Key=f"{self._orders}")
        assert answer.status == 201

    def _api(self, path: str, query: str = "") -> None:
        answer = self._deployed.call("GET", path, query=query)
        assert answer.status == 200
        if query:
            assert query == f"limit={len(answer.json['data'])}"

    def _page(self, browser: Browser, text: str, rows: int) -> None:
        answer = browser.get(f"?{urlencode({'q': text})}" if text else "")
        assert answer.status == 200
        links = answer.body.count('href="/dashboard/transactions/cs_')
        assert links == rows, (text, links)

    def _round(self) -> None:
        done = self._deployed.sweep()
        assert (done["SessionsChecked"], done["Failed"], done["SweepBacklog"]) == (DUE, 0, 0)
        assert done["Counted"] == LEFT + CANCELED, done

    def _create_session(self, **changes: Any) -> Session:
        """Create a session like those of the bulk."""
        self._orders += 1
        return self._world.create(
            client_reference_id=f"{ORDER}{self._orders:08d}",
            metadata_json='{"channel":"web"}',
            request_id=_REQUEST,
            **changes,
        )

    def _samples(self) -> Samples:
        world, self._orders = self._world, 0
        awaiting = world.submit(self._create_session())
        world.clock.pass_time(600)
        world.sweep()
        awaiting = world.session(awaiting.id)
        assert not index_keys.urgent(awaiting)
        paid = world.pay(self._create_session())
        assert paid.status is Status.COMPLETED
        return Samples(self._create_session(), paid, awaiting)

    def _count_days(self) -> None:
        """Store that the walks have passed the ended sessions of the bulk and counted its days."""
        world = self._world
        now = world.clock.now()
        daily_totals = world.services.daily_totals
        days = [
            DayTotals(
                merchant=world.merchant.id,
                currency="usd",
                day=(now - timedelta(days=ago)).date(),
                ended=20_000,
                wallet=6_000,
                priced=6_000,
                approved=6_000,
                paid=6_000,
                amount=12_000_000,
            )
            for ago in range(60)
        ]
        marks = daily_totals.positions().marks
        for shard in daily_totals.shards:
            for walk in Scan:
                since = marks.get((walk, shard))
                batch = Batch(walk=walk, shard=shard, since=since, to=now, sessions=())
                first = shard == 0 and walk is Scan.ENDS
                assert daily_totals.passed(batch, days if first else ())

    def _make_due(self) -> None:
        """Create the sessions that a round finds, and let time pass until they are due."""
        world = self._world
        world.clock.pass_time(1)
        for _ in range(LEFT):
            self._create_session(expires_in_seconds=SHORT)
        for _ in range(GONE):
            world.submit(self._create_session(expires_in_seconds=SHORT))
        for _ in range(CANCELED):
            close.cancel(world.services, world.key(), self._create_session().id)
        world.clock.pass_time((CLOCK_IS_FINAL_AFTER + expiries.GATHERED).total_seconds() + SHORT)
        for _ in range(IN_DOUBT):
            world.in_doubt()
        for _ in range(AWAITING):
            world.submit(self._create_session())
        world.clock.pass_time(60)


def measured(sizes: Sequence[int] = SIZES) -> list[dict[str, Counts]]:
    """Return the use of the steps at each size."""
    telemetry.start("api")
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return [Grown(size).steps() for size in sizes]
    finally:
        telemetry.stop()


def change(first: Counts, other: Counts) -> float:
    """Return the largest change of a count, in per cent."""
    pairs = [(getattr(first, name), getattr(other, name)) for name in Counts.__slots__]
    changes = [(100 * (new - old) / old) if old else (100.0 if new else 0.0) for old, new in pairs]
    return max(changes, key=abs)


def table(found: Sequence[Mapping[str, Counts]], sizes: Sequence[int]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"| step | {' | '.join(f'{size:,}'.replace(',', ' ') for size in sizes)} | change, % |"
    yield "|---|" + "---|" * (len(sizes) + 1)
    for name, first in found[0].items():
        row = [each[name] for each in found]
        yield f"| {name} | {' | '.join(map(str, row))} | {change(first, row[-1]):.1f} |"


def grows(found: Sequence[Mapping[str, Counts]]) -> list[str]:
    """Return the steps with a count that changes by more than the limit."""
    fewest, *others = found
    return [
        name
        for name, first in fewest.items()
        if any(abs(change(first, each[name])) > LIMIT for each in others)
    ]


def main() -> int:
    """Print the table; return 1 if a step grows."""
    found = measured()
    print("Each cell: calls to DynamoDB, items read, read units, write units\n")
    print("\n".join(table(found, SIZES)))
    wrong = grows(found)
    if wrong:
        print(f"\nBy more than {LIMIT:g} %: {', '.join(wrong)}")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
