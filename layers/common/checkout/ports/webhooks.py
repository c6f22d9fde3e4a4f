"""Declare the queue that announces webhook events, their receivers, and what their store shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from checkout.domain.webhooks.record import WebhookEvent
from checkout.ports.sessions import Stale


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
