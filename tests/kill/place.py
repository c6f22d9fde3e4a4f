"""The product between a real AWS emulator and wallets, on a clock that several processes share.

Everything that a process does to the outside passes `Marked`: it is named, told, and, where it is
the point of the test, the last thing that the process does before or after it is killed. The
product has no part in that.
"""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from checkout.adapters.outbound.wallets import SignedWallets
from checkout.adapters.queue import NoQueue, SqsEventQueue, SqsTaskQueue
from checkout.adapters.runtime import system_random
from checkout.adapters.vault import AesVault
from checkout.flows.schedule import sweep
from checkout.flows.webhooks.deliver import MessageResult, deliver
from checkout.ports import EventQueue, QueuedEvent, Receipt
from checkout.services import PayServices
from open_payments.transports import Request, Response, Transport
from sandbox import cloud
from tests.support import services

BASE_URL: Final = "http://localhost:4000"
ENCRYPTION_KEY: Final = "5c" * 32
WRITES: Final = (
    "put_item",
    "update_item",
    "transact_write_items",
    "send_message_batch",
    "send_message",
)
SWEEP_EVERY: Final = timedelta(minutes=1)  # as the schedule of template.yaml
EACH_CALL: Final = 0.02  # simulated seconds
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KNOWN: Final = ("complete", "incoming-payments", "outgoing-payments", "quotes", "continue")


class SharedClock:
    """`ports.Clock` for all processes that open the same file: 8 bytes, milliseconds since 1970."""

    def __init__(self, path: Path, start: datetime | None = None) -> None:
        if start is not None:
            path.write_bytes(bytes(8))
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 8)
        if start is not None:
            self._set(start)

    def now(self) -> datetime:
        return _EPOCH + timedelta(milliseconds=int.from_bytes(self._memory[:8], "big"))

    def sleep(self, seconds: float) -> None:
        self._set(self.now() + timedelta(milliseconds=round(seconds * 1000)))

    def _set(self, now: datetime) -> None:
        self._memory[:8] = ((now - _EPOCH) // timedelta(milliseconds=1)).to_bytes(8, "big")


@dataclass
class Marked:
    """Counts the calls to AWS that write and all calls to wallets, and kills this process at one.

    `tell` hears the name of each before it is made.
    """

    clock: SharedClock
    tell: Callable[[str], None] = lambda name: None
    die_at: int | None = None
    after: bool = False
    armed: bool = False
    count: int = field(default=0, init=False)

    def call(self, name: str, action: Callable[[], Any]) -> Any:
        self.clock.sleep(EACH_CALL)
        if not self.armed:
            return action()
        self.count += 1
        self.tell(name)
        if self.count == self.die_at and not self.after:
            die()
        result = action()
        if self.count == self.die_at and self.after:
            die()
        return result


def die() -> None:
    """As by a power cut: nothing is flushed, no handler runs."""
    os.kill(os.getpid(), signal.SIGKILL)


@dataclass(frozen=True)
class MarkedClient:
    """A boto3 client whose writes are marked."""

    client: Any
    marks: Marked

    def __getattr__(self, name: str) -> Any:
        operation = getattr(self.client, name)
        if name not in WRITES:
            return operation
        return lambda **request: self.marks.call(name, lambda: operation(**request))


@dataclass(frozen=True)
class MarkedTransport:
    """Every request to a wallet is marked, by method and what it asks for."""

    transport: Transport
    marks: Marked

    def send(self, request: Request, *, timeout: float) -> Response:
        response: Response = self.marks.call(
            _name(request), lambda: self.transport.send(request, timeout=timeout)
        )
        return response


def _name(request: Request) -> str:
    parts = urlsplit(request.url).path.split("/")
    what = next((known for known in _KNOWN if known in parts), None)
    return f"{request.method} {what or ('grant' if request.method == 'POST' else 'wallet')}"


@dataclass(frozen=True)
class Aws:
    """The emulator's stack, and clients of it that this process's children may use too."""

    prefix: str
    events_queue_url: str
    tasks_queue_url: str
    dynamodb: Any
    sqs: Any

    @classmethod
    def of(cls, place: dict[str, str]) -> Aws:
        return cls(
            prefix=place["prefix"],
            events_queue_url=place["events_queue_url"],
            tasks_queue_url=place["tasks_queue_url"],
            dynamodb=cloud.client("dynamodb", place["endpoint"]),
            sqs=cloud.client("sqs", place["endpoint"]),
        )


def vault() -> AesVault:
    return AesVault(lambda: ENCRYPTION_KEY, system_random)


def product(
    aws: Aws, sealed: AesVault, clock: SharedClock, transport: Transport, marks: Marked
) -> PayServices:
    """Build what `wiring.pay_services` builds, but on this clock, and marked."""
    client, sqs = MarkedClient(aws.dynamodb, marks), MarkedClient(aws.sqs, marks)
    base = services.core(
        client,
        aws.prefix,
        clock=clock,
        random_bytes=system_random,
        queue=SqsEventQueue(lambda: sqs, aws.events_queue_url),
        tasks=SqsTaskQueue(lambda: sqs, aws.tasks_queue_url),
        base_url=BASE_URL,
        allow_loopback=True,
    )
    wallets = SignedWallets(MarkedTransport(transport, marks), sealed, clock, allow_loopback=True)
    return services.pay(base, client, aws.prefix, vault=sealed, wallets=wallets)


class HeldHints:
    """`ports.EventQueue` on the shared clock: holds each hint until its time."""

    def __init__(self, clock: SharedClock) -> None:
        self._clock = clock
        self._held: list[tuple[datetime, str]] = []

    def enqueue(self, messages: Sequence[QueuedEvent]) -> None:
        now = self._clock.now()
        self._held += [
            (now + timedelta(seconds=enqueue.delay), enqueue.event) for enqueue in messages
        ]

    def take(self) -> str | None:
        """The event hinted at for the earliest time, which comes first; None: there is none."""
        if not self._held:
            return None
        at, event = min(self._held)
        self._held.remove((at, event))
        self._clock.sleep(max(0.0, (at - self._clock.now()).total_seconds()))
        return event


@dataclass(frozen=True)
class NotingReceiver:
    """`ports.Receivers`: the merchant's server, which notes what it got in a file and thanks."""

    file: Path
    marks: Marked

    def post(self, url: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Receipt:
        def got() -> Receipt:
            with self.file.open("a") as file:
                file.write(f"{headers['Checkout-Event-Id']}\n")
            return Receipt(status=200)

        receipt: Receipt = self.marks.call("POST webhook", got)
        return receipt


def sender(
    aws: Aws, sealed: AesVault, clock: SharedClock, queue: EventQueue, got: Path, marks: Marked
) -> Callable[[str], MessageResult]:
    """Build what `wiring.webhook_sender` builds, but on this clock, and marked."""
    base = services.core(
        MarkedClient(aws.dynamodb, marks),
        aws.prefix,
        clock=clock,
        random_bytes=system_random,
        queue=queue,
        tasks=NoQueue(),
        base_url=BASE_URL,
    )
    return partial(deliver, base, sealed, NotingReceiver(got, marks))


def one_round(services: PayServices) -> None:
    """Do the scheduled job's work of one minute."""
    counts = sweep.run(services, until=services.clock.now() + SWEEP_EVERY)
    assert counts.failed == 0
