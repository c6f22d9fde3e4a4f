"""Declare the store of webhook events, the queue that announces them, and their receivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from checkout.domain.parts import Lists
from checkout.domain.webhooks import WebhookEvent
from checkout.ports.runtime import WHOLE, ShardRange, SideBySide
from checkout.ports.sessions import Reservation
from checkout.ports.stale import Stale


class StaleEvent(Stale):
    """Report that the event changed since it was read; `current` is the winner's version."""

    current: WebhookEvent


@dataclass(frozen=True, slots=True)
class DueEvent:
    """An entry of the due index: an event that should have been enqueued at `since`.

    `at` is its sort key, which postponing changes.
    """

    id: str
    merchant: str
    at: datetime
    since: datetime


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events; `next_key` is the position of the last one read, or None at the end."""

    events: tuple[WebhookEvent, ...]
    next_key: str | None


class Events(Protocol):
    """Store webhook events. `Sessions.save` adds those of sessions."""

    def add(self, event: WebhookEvent, reservation: Reservation | None = None) -> None:
        """Write a new event that belongs to no session, and the reservation with it.

        Both are written in one transaction. Raises KeyHeld.
        """
        ...

    def add_copy(self, event: WebhookEvent) -> None:
        """Write a copy of an event, unless it is already stored in any state."""
        ...

    def get(self, event_id: str) -> WebhookEvent | None:
        """Read the event, strongly consistent."""
        ...

    def many(self, ids: list[str]) -> Mapping[str, WebhookEvent]:
        """Read the events by their ids, strongly consistent. Missing ones are left out."""
        ...

    def save(self, event: WebhookEvent) -> None:
        """Write the event if the stored version is one less than `event.version`.

        Raises StaleEvent.
        """
        ...

    def due(
        self, until: datetime, *, limit: int, side_by_side: SideBySide, part: ShardRange = WHOLE
    ) -> tuple[DueEvent, ...]:
        """Return events whose next attempt is due by `until`, oldest first.

        Only a range of the shards is read, and at most `limit` events of each shard. The index lags
        a little.
        """
        ...

    def put_off(self, event: DueEvent, until: datetime) -> bool:
        """Hide the event from the due index until `until`.

        Returns False if it was delivered, given up or postponed meanwhile.
        """
        ...

    def page(
        self,
        of: Lists,
        *,
        limit: int,
        after: str | None = None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
        upward: bool = False,
        endpoint: str | None = None,
    ) -> EventPage:
        """Read a merchant's events, newest first by `grammar.position`; `limit` is 1 to 100.

        With the id of a further `endpoint`, these are the copies for it. `upward` reads from the
        oldest, or from `after`, to the newest. `after` is the position of the last event seen.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """A receiver's response: its status and the first bytes of its body, or the error instead."""

    status: int | None = None
    error: str | None = None
    answer: str | None = None
    retry_after: timedelta | None = None


class Receivers(Protocol):
    """Send to merchants' webhook endpoints."""

    def post(self, url: str, headers: Mapping[str, str], body: bytes, *, now: datetime) -> Receipt:
        """Send once, within `domain.webhooks.TIMEOUT`; never raises for a receiver's behaviour."""
        ...


class Hosts(Protocol):
    """Resolve host names before an address is saved."""

    def permitted(self, host: str) -> bool:
        """Tell whether the name resolves, and to public addresses only."""
        ...


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """A request to attempt this event in `delay` seconds (0 to 900).

    `merchant` is the message group, for the queue's fairness between merchants.
    """

    event: str
    merchant: str
    delay: int = 0


class EventQueue(Protocol):
    """Announce events to the sender.

    The sweep finds events whose message is lost, by their records.
    """

    def enqueue(self, messages: Sequence[QueuedEvent]) -> None:
        """Send the messages, best effort; never raises."""
        ...
