"""Webhook deliveries in simulated time: the event queue, merchants' receivers, and what must hold.

Used by the simulated worlds, whose payments make the events, and by the soak, which makes ten
thousand and waits for days. A host gives what `Host` says; everything random is the host's.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any, Final, Protocol

from checkout.adapters.dynamo.events import event_from
from checkout.domain.webhooks.event_types import COMPLETED, LATE_PAYMENT
from checkout.domain.webhooks.record import DELAYS, Endpoint, EventStatus, GivenUp, WebhookEvent
from checkout.flows.webhooks import endpoints
from checkout.ports import QueuedEvent, Receipt
from tests.simulation.boundaries import Process, moment
from tests.simulation.providers import SKEW
from tests.simulation.scheduler import Scheduler
from tests.support.protected import DELIVERY_ATTEMPTS, DELIVERY_LEASE, DELIVERY_TIMEOUT, FILLED

if TYPE_CHECKING:
    from tests.simulation.sim_world import SimWorld

VISIBILITY: Final = 180_000  # milliseconds; template.yaml's
RECEIVES_MAX: Final = 5
SPACING: Final = 0.1
RESENDING: Final = 0.2  # of the storms
DEAD: Final = "https://dead.example/hooks"  # says 410 to everything


@dataclass(frozen=True, slots=True)
class Weather:
    """Chances, per attempt or hint."""

    fails: float = 0.0
    hangs: float = 0.0
    gone: float = 0.0
    lost_hint: float = 0.0
    doubled_hint: float = 0.0
    latency: int = 400  # of the queue, milliseconds at most


FAIR: Final = Weather()


class Host(Protocol):
    rng: Random
    scheduler: Scheduler
    weather: Weather

    def note(self, what: str) -> None: ...

    def fail(self, check: str, detail: str) -> None: ...

    def send_event(self, event_id: str) -> bool:
        """Have a process of the sender serve the message; False: it comes again."""
        ...

    def endpoints_of(self, merchant: str) -> Sequence[Endpoint]:
        """Return the merchant's endpoints, which never change, the first one first."""
        ...


@dataclass
class _Known:
    """One event's facts besides its record. `told`: the receivers that answered with a success.

    `overran`: an attempt began when another's lease was over and its outcome not noted, as it may.
    """

    record: WebhookEvent
    told: list[Process] = field(default_factory=list)
    overran: bool = False
    rounds: int = 0
    got: int = 0
    ended_at: datetime | None = None  # of the last attempt that was recorded as failed
    lost: bool = False  # a hint, or the process of an attempt, since then


class Deliveries:
    """Watches one world's events. `counts` is for the table."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._known: dict[str, _Known] = {}
        self.counts: Counter[str] = Counter()
        self.worst: Counter[int] = Counter()  # per attempt: permille of lateness or earliness
        self._gone: set[str] = set()  # addresses that have said 410

    # --- the queue ---

    def enqueue(self, messages: Sequence[QueuedEvent]) -> None:
        host = self._host
        for enqueue in messages:
            if host.rng.random() < host.weather.lost_hint:
                self.counts["hints lost"] += 1
                if enqueue.event in self._known:
                    self._known[enqueue.event].lost = True
                continue
            copies = 1 + (host.rng.random() < host.weather.doubled_hint)
            for _ in range(copies):
                after = enqueue.delay * 1000 + host.rng.randrange(5, host.weather.latency)
                host.scheduler.spawn("queue", self._message(enqueue.event), after=after)

    def _message(self, event_id: str) -> Callable[[], None]:
        def received() -> None:
            for _ in range(RECEIVES_MAX):
                if self._host.send_event(event_id):
                    return
                if event_id in self._known:
                    self._known[event_id].lost = True
                self._host.scheduler.sleep(VISIBILITY)
            self.counts["dead letters"] += 1

        return received

    # --- the receivers ---

    def post(self, process: Process, url: str, event_id: str, body: bytes) -> Receipt:
        """Answer for the endpoint at `url`, whose own record of the event it is that counts."""
        host, event_id = self._host, self._id_at(url, event_id)
        known = self._known.get(event_id)
        if known is None:
            host.fail("each_endpoint_gets_its_own", f"{event_id} is not for {url}")
            return Receipt(error="unknown")
        record = known.record
        frozen = record.body_for(self._endpoint(event_id)).encode()
        if body != frozen and _as_it_happened(body) != _as_it_happened(frozen):
            host.fail("event_bytes_are_frozen", event_id)
        # An attempt that began before another one succeeded, and froze, is still under way.
        begun = any(each.duration_ms is None for each in record.deliveries)
        owed = begun or record.status is not EventStatus.DELIVERED
        if not owed:  # one operand, so that each attempt is counted (probes.py)
            host.fail("nothing_is_sent_after_success", event_id)
        self.counts["attempts"] += 1
        process.pass_turn(host.rng.randrange(20, 300))
        drawn, weather = host.rng.random(), host.weather
        if drawn < weather.gone or url == DEAD:
            self._gone.add(url)
            self.counts["answers 410"] += 1
            return self._answered(process, Receipt(status=410))
        drawn -= weather.gone
        if drawn < weather.hangs:
            self.counts["hangs"] += 1
            process.pass_turn(round(DELIVERY_TIMEOUT.total_seconds() * 1000))
            return Receipt(error="no answer: out of time")
        drawn -= weather.hangs
        if drawn < weather.fails:
            self.counts["failures"] += 1
            status = (None, 500, 503, 302, 404)[host.rng.randrange(5)]
            return self._answered(process, Receipt(status=status, error=None if status else "?"))
        self._succeeded(process, event_id, known)
        return self._answered(process, Receipt(status=200, answer="ok"))

    def _answered(self, process: Process, receipt: Receipt) -> Receipt:
        process.pass_turn(self._host.rng.randrange(5, 80))
        return receipt

    def _succeeded(self, process: Process, event_id: str, known: _Known) -> None:
        known.got += 1
        if known.told:
            self.counts["duplicates"] += 1
            why = "the sender died before it could note it"
            if all(not told.dead for told in known.told):
                why = "the lease was over before the sender was" if self._overran(known) else ""
            if not why:
                self._host.fail("duplicates_are_explained", event_id)
            self.counts[f"duplicate: {why}"] += 1
        known.told.append(process)

    def _overran(self, known: _Known) -> bool:
        """Whether an attempt's lease was over before its outcome was noted.

        It may be noted by now: `overran` remembers it from when another began.
        """
        unknown = [each.at for each in known.record.deliveries if each.duration_ms is None]
        now = moment(self._host.scheduler.now)
        return known.overran or any(now >= each + DELIVERY_LEASE - SKEW for each in unknown)

    # --- the records ---

    def written(self, old: Any, item: Any) -> None:
        """An event's record has changed from `old` to `item`, as they lie in the table."""
        after = event_from(item)
        if old is None:
            self._made(after)
            return
        known, before = self._known[after.id], event_from(old)
        known.record = after
        self._each_by_itself(before, after)
        if after == before:  # put off in the due index
            return
        if after.version != before.version + 1:
            self._host.fail("event_version_grows", f"{before.version} -> {after.version}")
        if after.body != before.body:
            self._host.fail("event_bytes_are_frozen", after.id)
        if after.attempts > DELIVERY_ATTEMPTS:
            self._host.fail("attempts_are_bounded", str(after.attempts))
        if after.attempts == before.attempts + 1:
            self._leased(known, before, after)
        elif after.attempts < before.attempts or before.status is not EventStatus.PENDING:
            self._again(known, before, after)
        elif after.status is EventStatus.DELIVERED and not known.got:
            self._host.fail("delivered_was_received", after.id)
        elif after.status is EventStatus.PENDING:
            known.ended_at = moment(self._host.scheduler.now)
            known.lost = False

    def _leased(self, known: _Known, before: WebhookEvent, after: WebhookEvent) -> None:
        at = after.deliveries[-1].at
        if at < before.next_at:
            self._host.fail("no_attempt_is_early", f"{before.next_at - at} early")
        if known.ended_at is not None and not known.lost:
            self._spacing(before, at - known.ended_at)
        known.lost = True  # until its outcome is known
        known.overran = self._overran(known)

    def _spacing(self, before: WebhookEvent, pause: timedelta) -> None:
        wanted = DELAYS[before.attempts - 1]
        off = abs(pause - wanted) / wanted
        self.counts["spacings"] += 1
        self.worst[before.attempts] = max(self.worst[before.attempts], round(off * 1000))

    def _again(self, known: _Known, before: WebhookEvent, after: WebhookEvent) -> None:
        as_before = after.status is before.status is not EventStatus.PENDING
        late_success = after.status is EventStatus.DELIVERED and known.got > 0
        if (as_before or late_success) and after.attempts == before.attempts:
            return  # an attempt told so late that others had gone on
        if after.status is not EventStatus.PENDING or after.attempts:  # else it is sent once more
            self._host.fail("ended_events_stay_so", f"{before.status} -> {after.status}")
        known.rounds += 1
        known.told.clear()
        known.overran = False
        known.ended_at = None

    def _made(self, event: WebhookEvent) -> None:
        self._known[event.id] = _Known(event)
        if event.is_copy and event.id not in self._copies_of(event.event):
            self._host.fail("copies_are_wanted", event.id)

    def _each_by_itself(self, before: WebhookEvent, after: WebhookEvent) -> None:
        """Each copy is there before anything is done with the event: none waits for it."""
        if before.version == 1 and after.version > 1 and not after.is_copy:
            for each in self._copies_of(after.id):
                if each not in self._known:
                    self._host.fail("copies_come_first", each)
                self.counts["copies"] += 1
        disabled = after.given_up in (GivenUp.GONE, GivenUp.DISABLED)
        if disabled and self._url(after) not in self._gone:
            self._host.fail("no_endpoint_holds_back_another", f"{after.id} {after.given_up}")

    def _copies_of(self, event_id: str) -> list[str]:
        """The copies that the event is to have."""
        event = self._known[event_id].record
        return [
            f"{event_id}~{each.id}"
            for each in self._host.endpoints_of(event.merchant)[1:]
            if event.type in (COMPLETED, LATE_PAYMENT, *each.events)
            and (each.created_at is None or each.created_at <= event.created_at)
        ]

    def _id_at(self, url: str, event_id: str) -> str:
        further = self._host.endpoints_of(self._known[event_id].record.merchant)[1:]
        return next((f"{event_id}~{each.id}" for each in further if each.url == url), event_id)

    def _url(self, event: WebhookEvent) -> str:
        return self._endpoint(event.id).url

    def _endpoint(self, event_id: str) -> Endpoint:
        """Return the endpoint that the event, or the copy of one, is for."""
        merchant, named = self._known[event_id].record.merchant, event_id.partition("~")[2]
        first, *further = self._host.endpoints_of(merchant)
        return next((each for each in further if each.id == named), first)

    # --- the end ---

    @property
    def unfinished(self) -> list[WebhookEvent]:
        records = [known.record for known in self._known.values()]
        return [record for record in records if record.status is EventStatus.PENDING]

    @property
    def records(self) -> list[WebhookEvent]:
        return [known.record for known in self._known.values()]

    def due(self, until: datetime) -> bool:
        """Whether the due index would name one."""
        return any(event.next_at <= until for event in self.unfinished)

    def finished(self) -> None:
        """The time is up by which each event must be delivered or given up, at each endpoint."""
        for event_id in [each for each in self._known if "~" not in each]:
            for missing in set(self._copies_of(event_id)) - set(self._known):
                self._host.fail("no_event_is_lost", f"{missing} was never made")
        for event in self.unfinished:
            self._host.fail("no_event_is_lost", f"{event.id} after {event.attempts} attempts")


def _as_it_happened(body: bytes) -> Any:
    """Return what was sent without what the customer gave, which is put in when it is sent."""
    event = json.loads(body)
    shown = event.get("data", {}).get("object")
    if isinstance(shown, dict):
        for name in FILLED.get(shown.get("object", ""), ()):
            shown.pop(name, None)
    return event


class Resender:
    """A merchant who has events sent once more: delivered ones, and those that were given up."""

    def __init__(self, world: SimWorld) -> None:
        self.world = world
        self.rng = world.apart("resends")

    def begin(self) -> None:
        apart = self.world.claims and self.world.changing is None  # of the worlds of old seeds
        if apart and self.world.profile == "storm" and self.rng.random() < RESENDING:
            self.world.scheduler.spawn("resender", self._run)

    def _run(self) -> None:
        while self.world.calm_since is None:
            self.world.scheduler.sleep(self.rng.randrange(120_000))
            events = [each.id for each in self.world.deliveries.records]
            if events:
                again = partial(self._resend, event_id=events[self.rng.randrange(len(events))])
                self.world.request("resend", again)

    @staticmethod
    def _resend(services: Any, *, event_id: str) -> WebhookEvent:
        return endpoints.resend(services, "mer_1", event_id)


class SimReceivers:
    """`ports.Receivers` of one process."""

    def __init__(self, process: Process, deliveries: Deliveries) -> None:
        self._process = process
        self._deliveries = deliveries

    def post(self, url: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Receipt:
        self._process.sends += 1
        return self._deliveries.post(self._process, url, headers["Checkout-Event-Id"], body)
