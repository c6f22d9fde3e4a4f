"""Declare what the stores return and raise, and the records that they write with sessions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Generic, TypeVar

from checkout.domain.payment.machine import Change, Record
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import WebhookEvent

R = TypeVar("R", bound=Record)


class Stale(Exception):
    """Report that a record changed since it was read; `current` is the winner's version."""

    def __init__(self, current: Any) -> None:
        super().__init__(f"the record is at version {current.version}")
        self.current = current


class StaleRecord(Stale, Generic[R]):
    """Report a lost race for a session, refund or mandate; `current` is the winner's version."""

    current: R


@dataclass(frozen=True, slots=True)
class Reservation:
    """An idempotency record: the response to repeat for a request with the same key.

    `key` is a hash over merchant and header value; `writer` marks the write. The key is free again
    from `expires_at`, 24 hours after its first use.

    With `session`, the answer says that this session was created at `created_at`, and is stored
    before it: a replay first makes sure that the session exists.
    """

    key: str
    fingerprint: str
    status: int
    body: str = field(repr=False)  # it may hold a webhook endpoint's new secret
    writer: str
    created_at: datetime
    expires_at: datetime
    session: str | None = None


class KeyHeld(Exception):
    """Report that another live reservation holds the key. Nothing was written."""

    def __init__(self, reservation: Reservation) -> None:
        super().__init__("the idempotency key is in use")
        self.reservation = reservation


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowance:
    """A count that a change's transaction raises by `amount`, unless it would be more than `most`.

    It is kept until `until` at least.
    """

    id: str
    amount: int
    most: int
    until: datetime


@dataclass(frozen=True, slots=True)
class Transaction(Generic[R]):
    """A change of a record, and what is written with it, or not at all."""

    change: Change[R]
    events: tuple[WebhookEvent, ...] = ()
    refund: Refund | None = None  # a new one
    reservation: Reservation | None = None
    allowance: Allowance | None = None  # it is counted in
    also: Change[Any] | None = None  # of another record, on its own condition


class AllowanceUsed(Exception):
    """Report that an allowance has less left. Nothing was written. `used` is what is counted."""

    def __init__(self, used: int) -> None:
        super().__init__("the allowance is used up")
        self.used = used


class OutOfStock(Exception):
    """Report that a payment link has no item left, or is stopped. Nothing was written."""


@dataclass(frozen=True, slots=True)
class DueSessions:
    """The ids of due sessions, the longest due first.

    `oldest` is the earliest due time; `total` counts all.
    """

    ids: tuple[str, ...]
    total: int
    oldest: datetime | None


class Walk(StrEnum):
    """A walk along sessions by the time of their end. It passes each session once."""

    TELL = "tell"  # sessions that end by the clock: write the event if the merchant wants it
    COUNT = "count"  # the same sessions: count them
    ENDS = "ends"  # sessions whose end was written: count them


@dataclass(frozen=True, slots=True)
class Positions:
    """The mark of each walk in each shard, and the ids that TELL has passed there `untold`.

    A walk that never began has no mark. The end of an untold session could not be written.
    """

    marks: Mapping[tuple[Walk, int], datetime]
    untold: Mapping[int, frozenset[str]]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The sessions of one shard that a walk passes next, by the time of their end.

    `since` is where the walk stands, None at its beginning, and `to` where it stands afterwards.
    `unreadable` are the ids of damaged records. With `more`, sessions before `until` are left.
    """

    walk: Walk
    shard: int
    since: datetime | None
    to: datetime
    sessions: tuple[Session, ...]
    unreadable: tuple[str, ...] = ()
    more: bool = False
