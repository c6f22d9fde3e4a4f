"""A day of load: abandoned carts, payments that lose their answers, a flood of webhook events.

`python -m tests.simulation.load` runs the real sweep once a minute for a day in which each minute 1
000 sessions are created that nobody ever opens, a few whose customers gave a wallet and left, and
payments whose answer is lost, some at wallets that hang. Time passes with each call, as it would
with the threads of a round at work. Each minute these conditions are checked:

- each payment in doubt is decided within the bound of docs/payments.md, and completed if the
  money is there
- `SweepBacklog` is the number of due sessions that the round left, `OldestDuePayment` is true
- each merchant's due event is enqueued in the next round, whatever another merchant owes
- nothing is written for a session that nobody opened, and the sums are those of the sessions

Fewer customers with wallets than in a real day are simulated, with calls that take longer, so that
they use up the whole time of each round. Sessions that the clock has ended, and that are counted,
are taken from the table, as the time to live does.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from tests.support.protected import CLOCK_IS_FINAL_AFTER

if __name__ == "__main__":
    _ROOT = Path(__file__).parents[2]
    sys.path[:0] = [str(_ROOT / "layers" / "common"), str(_ROOT / "functions"), str(_ROOT)]

from checkout.adapters.dynamo.codec import Item, instant_from
from checkout.adapters.dynamo.records import session_item
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.parts import Lists
from checkout.domain.payment.events import Event
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.record import WebhookEvent
from checkout.flows.schedule import expiries, sweep
from checkout.ports import QueuedEvent, Scan
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request, Response
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.basics import NOW, HandClock
from tests.support.flows import CEDAR, PREFIX, World

THREADS: Final = 16  # calls of a round at the same time
ROUND: Final = 50.0  # seconds
STORE: Final = 0.005  # seconds for a call of the store, and of the queue
EXPIRES_IN: Final = 1800
DOUBT: Final = timedelta(seconds=95)  # docs/payments.md, the money can be seen
UNSEEN: Final = timedelta(minutes=5)  # after the quote's life
RICH: Final = 10**12  # minor units: enough for the payments of a day
SESSIONS: Final = f"{PREFIX}-checkout_sessions"


@dataclass(frozen=True, slots=True)
class Load:
    """The load of each minute. `wallet` is how many seconds a wallet's call takes of a round."""

    minutes: int = 1440
    abandoned: int = 1000
    left: int = 14
    in_doubt: int = 2
    hanging: int = 20
    flood: int = 20_000
    wallet: float = 10.0
    seed: int = 1


SMALL: Final = Load(minutes=45, abandoned=20, hanging=24, flood=300)


class LoadClock(HandClock):
    """A clock that passes by fractions of milliseconds, and shows whole ones."""

    def __init__(self) -> None:
        super().__init__()
        self._passed = 0.0  # seconds since NOW

    def now(self) -> datetime:
        return NOW + timedelta(milliseconds=int(self._passed * 1000))

    def pass_time(self, seconds: float) -> None:
        self._passed += seconds

    def pass_until(self, at: datetime) -> None:
        self._passed = max(self._passed, (at - NOW).total_seconds())


class SlowStore:
    """The tables, with a clock that passes at each call while the sweep is at work."""

    def __init__(self, tables: InMemoryDynamoDb, day: Day) -> None:
        self._tables = tables
        self._day = day

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._tables, name)
        if not callable(found):
            return found

        def call(**request: Any) -> Any:
            self._day.takes(STORE)
            if name == "update_item" and request["TableName"].endswith("webhook_events"):
                self._day.takes(self._day.per_event)
            return found(**request)

        return found if name == "rows" else call


@dataclass
class Doubt:
    """A payment whose answer was lost; `payable` where the wallet has the money for it."""

    session: str
    payable: bool
    since: datetime
    until: datetime


@dataclass
class Day:
    """The world of one run, and what was seen in it."""

    load: Load
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[str, str]] = field(default_factory=list)
    longest: timedelta = timedelta(0)
    backlog_most: int = 0
    sweeping: bool = False

    def __post_init__(self) -> None:
        from sandbox.cloud import table_definitions

        self.rng = random.Random(self.load.seed)
        self.clock = LoadClock()
        self.tables = InMemoryDynamoDb(table_definitions(PREFIX), noted=False)
        self.world = World(client=SlowStore(self.tables, self), clock=self.clock)
        self.doubts: list[Doubt] = []
        self.waiting: dict[str, datetime] = {}  # events of small merchants, and when they are due
        self.ended: Counter[str] = Counter()
        self.per_event = ROUND * 4 / max(1, self.load.flood)
        self._hanging: set[str] = set()
        self._number = 0
        self._untouched: list[tuple[datetime, str]] = []
        self._sample: Session | None = None
        self.world.network.state.accounts[f"{CEDAR}/alice"].balance = RICH
        self.world.transport.before = self._call
        self.world.queue.enqueue = self._enqueued  # type: ignore[method-assign]

    # --- a day ---

    def run(self) -> None:
        self._flood()
        for minute in range(self.load.minutes):
            begins = NOW + timedelta(minutes=minute)
            self._come(minute)
            self.clock.pass_until(begins + timedelta(seconds=self.rng.randrange(5, 25)))
            self._pay(minute)
            self.clock.pass_until(begins + timedelta(minutes=1))
            self._round()
            if self.violations:
                return  # as a world does
        self._finish()

    def takes(self, seconds: float) -> None:
        """Let time pass for a call, if the sweep makes it: the others' calls are not its own."""
        if self.sweeping:
            self.clock.pass_time(seconds / THREADS)

    def fail(self, check: str, detail: str) -> None:
        self.violations.append((check, detail))

    # --- who comes ---

    def _come(self, minute: int) -> None:
        """Create what is abandoned: untouched sessions, and some whose customers gave a wallet."""
        for _ in range(self.load.abandoned):
            self._untouched_one()
        for _ in range(self.load.left):
            session = self.world.create(expires_in_seconds=EXPIRES_IN)
            if self.rng.random() < 0.5:
                self.world.submit(session)  # approves nothing
            else:
                self._elsewhere(session)
            self.counts["left at their wallet"] += 1
        if self.load.flood and minute % 5 == 0:
            due = self.clock.now() + timedelta(seconds=30)
            event = self._event(f"mer_small_{minute}", due)
            self.waiting[event.id] = due

    def _elsewhere(self, session: Session) -> None:
        try:
            self.world.submit(session, "https://nowhere.example/alice")
        except CheckoutError:
            return

    def _untouched_one(self) -> None:
        """Store a copy of an open session: what `create` would, at a tenth of its time."""
        if self._sample is None:
            self._sample = self.world.create(expires_in_seconds=EXPIRES_IN)
        self._number += 1
        now = self.clock.now()
        session = replace(
            self._sample,
            id=f"cs_{self._number:022d}",
            created_at=now,
            updated_at=now,
            expires_at=now + timedelta(seconds=EXPIRES_IN),
        )
        self.tables.put_item(TableName=SESSIONS, Item=session_item(session))
        self._untouched.append((session.expires_at, session.id))
        self.counts["abandoned"] += 1

    def _pay(self, minute: int) -> None:
        """Have customers pay: answers are lost, wallets hang, money does not come."""
        if minute % 25 == 0:
            for _ in range(self.load.hanging):
                self._in_doubt("hanging", "never-credits")
        for number in range(self.load.in_doubt):
            wallet = ("alice", "alice", "no-funds")[(minute + number) % 3]
            self._in_doubt("paid" if wallet == "alice" else "unpaid", wallet)

    def _in_doubt(self, kind: str, wallet: str) -> None:
        world = self.world
        session = world.submit(world.create(expires_in_seconds=86_400), f"{CEDAR}/{wallet}")
        callback = world.approve(session)
        lost = [kind != "hanging"]

        def lose(request: Request, response: Response) -> None:
            if lost[0] and request.method == "POST" and "/outgoing-payments" in request.url:
                lost[0] = False
                raise OutcomeUnknown("lost")

        world.transport.after = lose
        paying = world.finish(session, callback).record
        world.transport.after = lambda request, response: None
        self.counts[f"in doubt, {kind}"] += 1
        if not paying.payment_in_flight:
            return
        assert paying.quote is not None
        if kind == "hanging":
            assert paying.customer is not None
            self._hanging.add(paying.quote.id.rsplit("/", 1)[-1])
        bound = self.clock.now() + DOUBT
        if kind != "paid":
            assert paying.quote.expires_at is not None
            bound = paying.quote.expires_at + UNSEEN
        self.doubts.append(Doubt(paying.id, kind == "paid", self.clock.now(), bound))

    def _call(self, request: Request) -> None:
        """Let time pass for a wallet's call; a hostile one keeps a quarter of the threads."""
        if any(quote in request.url for quote in self._hanging) and request.method == "GET":
            self.clock.pass_time(5.0 / 4 if self.sweeping else 0)
            self.counts["calls that hung"] += 1
            raise OutcomeUnknown("no answer")
        self.takes(self.load.wallet)

    # --- the schedule ---

    def _round(self) -> None:
        """Do what functions/expirer does, and check what it says."""
        begun = self.clock.now()
        oldest = min((at for at, urgent in self._due(begun) if urgent), default=begun)
        services = self.world.services
        self.sweeping = True
        counts = sweep.run(services, until=begun + timedelta(seconds=ROUND * 0.8))
        self._follow(begun + timedelta(seconds=ROUND))
        self.sweeping = False
        self.counts["rounds"] += 1
        self.counts["checks"] += counts.checked
        self.counts["failed"] += counts.failed
        left = len(self._due(begun))
        if counts.not_reached != left:
            self.fail("backlog_is_true", f"{counts.not_reached}, and {left} are due")
        self.backlog_most = max(self.backlog_most, left)
        if counts.oldest_payment != begun - oldest:
            self.fail("oldest_is_true", f"{counts.oldest_payment}, not {begun - oldest}")
        self._judge()
        self._events_in_time(begun)
        self._forget(begun)

    def _due(self, now: datetime) -> list[tuple[datetime, bool]]:
        """Return when each due session fell due, and whether it is a payment in doubt."""
        return [
            (at, not row["due_shard"]["S"].startswith("later-"))
            for row in self._items().values()
            if "due_at" in row and (at := instant_from(row["due_at"])) <= now
        ]

    def _judge(self) -> None:
        """Check how long payments have been in doubt."""
        now, open_ = self.clock.now(), []
        for doubt in self.doubts:
            session = self.world.session(doubt.session)
            if session.payment_in_flight:
                open_.append(doubt)
                if now > doubt.until:
                    self.fail("decided_in_time", f"{now - doubt.until} late, {session.status}")
                continue
            if doubt.payable and session.status is not Status.COMPLETED:
                self.fail("payable_is_paid", f"{doubt.session}: {session.status}")
            decided = self._decided_at(session)
            self.longest = max(self.longest, decided - doubt.since)
            if decided > doubt.until:
                self.fail("decided_in_time", f"{decided - doubt.until} late, {session.status}")
            self.counts[f"decided: {session.status}"] += 1
        self.doubts = open_

    def _follow(self, until: datetime) -> None:
        """Follow the clock, as the schedule does."""
        for walk in Scan:
            followed = expiries.run(self.world.services, until=until, walks=[walk])
            self.counts["failed"] += followed.failed
            self.ended["by a write" if walk is Scan.ENDS else "by the clock"] += followed.counted

    @staticmethod
    def _decided_at(session: Session) -> datetime:
        ends = (Event.RECONCILED, Event.PAYMENT_DISPROVED, Event.PAYMENT_REFUSED)
        return max(entry.at for entry in session.history if entry.event in ends)

    def _forget(self, now: datetime) -> None:
        """Take from the table what is counted: a day of it would fill the memory."""
        items = self._items()
        counted = now - CLOCK_IS_FINAL_AFTER - expiries.GATHERED - timedelta(minutes=2)
        while self._untouched and self._untouched[0][0] < counted:
            _, session_id = self._untouched.pop(0)
            table = self.tables._tables[SESSIONS]
            row = items[(session_id,)]
            if row["version"]["N"] != "1" or "due_at" in row:
                self.fail("nothing_is_written", f"v{row['version']['N']}")
            for index in table.indexes.values():
                index.remove(row, (session_id,))
            del items[(session_id,)]

    def _items(self) -> dict[Any, Item]:
        return self.tables._tables[SESSIONS].items

    # --- webhook events ---

    def _flood(self) -> None:
        since = self.clock.now() - timedelta(hours=1)
        for _ in range(self.load.flood):
            self._event("mer_flood", since)

    def _event(self, merchant: str, due: datetime) -> WebhookEvent:
        self._number += 1
        event = WebhookEvent(
            id=f"evt_{self._number:022d}",
            merchant=merchant,
            subject=None,
            type="checkout.session.completed",
            body="{}",
            stripe_body="{}",
            created_at=due,
            next_at=due,
        )
        self.world.services.events.add(event)
        return event

    def _enqueued(self, messages: Sequence[QueuedEvent]) -> None:
        self.takes(STORE)
        for message in messages:
            self.counts["events enqueued"] += 1
            self.waiting.pop(message.event, None)

    def _events_in_time(self, begun: datetime) -> None:
        for event, due in list(self.waiting.items()):
            if due <= begun:
                self.fail("merchants_take_turns", f"{event} waits since {due.time()}")
                del self.waiting[event]

    # --- the end ---

    def _finish(self) -> None:
        """Have everything counted, and compare the sums with the sessions."""
        final = self.clock.now() + timedelta(seconds=EXPIRES_IN) + 3 * CLOCK_IS_FINAL_AFTER
        self.clock.pass_until(final)
        services, until = self.world.services, self.clock.now() + timedelta(hours=9)
        self._follow(until)
        days = [NOW.date() + timedelta(days=number) for number in range(4)]
        merchant = self.world.merchant.id
        sums = sum(day.ended for day in services.daily_totals.days(Lists(merchant), "usd", days))
        untouched = self.counts["abandoned"] + (self._sample is not None)
        if self.ended["by the clock"] != untouched:
            self.fail("sums_are_true", f"{self.ended} of {untouched}")
        if sums != self.ended.total():
            self.fail("sums_are_true", f"{sums} in the days, {self.ended.total()} counted")
        ended = sum(
            row["status"]["S"] in (Status.COMPLETED, Status.EXPIRED, Status.CANCELED)
            for row in self._items().values()
            if "version" in row
        )
        if self.ended["by a write"] != ended:
            self.fail("sums_are_true", f"{self.ended} of {ended} ended")


def run(load: Load = SMALL) -> Day:
    """Run a day of this load."""
    day = Day(load)
    day.run()
    return day


def main(arguments: Sequence[str]) -> int:
    """Print what became of a day; return 1 on any violation."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.load")
    parser.add_argument("--minutes", type=int, default=Load().minutes)
    parser.add_argument("--abandoned", type=int, default=Load().abandoned, help="each minute")
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    began = time.monotonic()
    load = Load(minutes=chosen.minutes, abandoned=chosen.abandoned, seed=chosen.seed)
    day = run(load)
    rows: list[tuple[str, object]] = [
        ("simulated minutes", load.minutes),
        *((name, count) for name, count in sorted(day.counts.items())),
        *((f"counted {how}", count) for how, count in sorted(day.ended.items())),
        ("longest in doubt", day.longest),
        ("backlog at most", day.backlog_most),
        ("violations", len(day.violations)),
        ("seconds", f"{time.monotonic() - began:.1f}"),
    ]
    for name, value in rows:
        print(f"{name:<36} {value}")
    for check, detail in day.violations[:20]:
        print(f"VIOLATION {check}: {detail}")
    return int(bool(day.violations))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
