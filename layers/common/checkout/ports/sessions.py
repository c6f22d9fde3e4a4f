"""Declare the stores of checkout sessions and of the daily tallies made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Protocol

from checkout.domain.session import Session
from checkout.domain.tally import DayTally
from checkout.domain.transitions import Change
from checkout.domain.webhooks import WebhookEvent
from checkout.ports.runtime import WHOLE, Part, SideBySide
from checkout.ports.stale import Stale


class StaleSession(Stale):
    """Report that the session changed since it was read; `current` is the winner's version."""

    current: Session


@dataclass(frozen=True, slots=True)
class Reservation:
    """An idempotency record: the response to repeat for a request with the same key.

    `key` is a hash over merchant and header value; `writer` marks the write. The key is free again
    from `expires_at`, 24 hours after its first use.

    With `session`, the answer tells that this session was made at `created_at`, and is stored
    before it: whoever gives the answer again first makes sure of the session.
    """

    key: str
    fingerprint: str
    status: int
    body: str
    writer: str
    created_at: datetime
    expires_at: datetime
    session: str | None = None


class KeyHeld(Exception):
    """Report that the place of a reservation is taken by this live one; nothing was written."""

    def __init__(self, reservation: Reservation) -> None:
        super().__init__("the idempotency key is in use")
        self.reservation = reservation


class OutOfStock(Exception):
    """Report that a payment link has no item left, or is stopped; nothing was written."""


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of sessions; `next_key` is the position of the last one read, or None at the end."""

    sessions: tuple[Session, ...]
    next_key: str | None


@dataclass(frozen=True, slots=True)
class DueSessions:
    """The ids of due sessions, the longest due first, since `oldest`; `total` counts all."""

    ids: tuple[str, ...]
    total: int
    oldest: datetime | None


class Sessions(Protocol):
    """Store checkout sessions, and the records written in the same transactions."""

    def create(self, session: Session, reservation: Reservation | None) -> Reservation | None:
        """Write the record, then the session, and take an item from the stock of its `link`.

        Where an item is taken, or the record names no session, it is both or neither. Raises
        OutOfStock. Returns None if they were written, or the live record that already holds the
        key (then nothing was written). An expired record is replaced.
        """
        ...

    def get(self, session_id: str) -> Session | None:
        """Read the session, strongly consistent."""
        ...

    def reservation(self, key: str) -> Reservation | None:
        """Read the idempotency record, strongly consistent; it may be expired."""
        ...

    def save(
        self,
        change: Change,
        event: WebhookEvent | None = None,
        reservation: Reservation | None = None,
    ) -> Session:
        """Write the change on its condition, and event and reservation in the same transaction.

        In it too, an item goes back to the stock of the link that the change `restocks`. Returns
        the session as written. A write of ours whose response was lost counts as written. Raises
        KeyHeld if a live record holds the reservation's key, else StaleSession. Only
        `flows.payment.writes` calls this.
        """
        ...

    def page(
        self,
        merchant: str,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None,
        created_before: datetime | None,
        search: str | None = None,
        upward: bool = False,
        shards: int = 1,
    ) -> SessionPage:
        """Read a merchant's sessions, newest first by `grammar.position`; `limit` is 1 to 100.

        `upward` reads from the oldest, or from `after`, to the newest. `after` is the position of
        the last session seen. `shards` is the most that the merchant has ever had. `search` keeps
        those with a wallet of that name, with that value in their metadata, or that word in an
        item's name (domain/search.py), by an index that lags.
        """
        ...

    def holder(self, merchant: str, outer_id: str) -> str | None:
        """Return the session of an id of `search.outer_ids`, or None."""
        ...

    def ordered(
        self, merchant: str, beginning: str, *, limit: int, shards: int = 1
    ) -> tuple[Session, ...]:
        """Return up to `limit` sessions whose order number, or its last part, begins like this."""
        ...

    def due(
        self,
        now: datetime,
        *,
        urgent: bool,
        limit: int,
        side_by_side: SideBySide,
        part: Part = WHOLE,
    ) -> DueSessions:
        """Return the sessions due for a check at `now` that are, or are not, `urgent`.

        Only those of a part of the shards are looked at. Of each shard of the index at most
        `limit` are named. The index lags a little: read each session before acting on it.
        """
        ...


class Walk(StrEnum):
    """A walk along sessions by the time of their end, each of which it passes once."""

    TELL = "tell"  # of those that the clock ends: writes the event where the merchant wants it
    COUNT = "count"  # of the same
    ENDS = "ends"  # of those whose end was written: counts them


# How far each walk has come along each shard; nothing for one that never began.
Marks = Mapping[tuple[Walk, int], datetime]


@dataclass(frozen=True, slots=True)
class Stretch:
    """The sessions of one shard that a walk passes next, by the time of their end.

    `since` is where the walk stands, None at its beginning, and `to` where it stands afterwards.
    `unreadable` counts records that are no session. `more`: the stretch ends before its time.
    """

    walk: Walk
    shard: int
    since: datetime | None
    to: datetime
    sessions: tuple[Session, ...]
    unreadable: int = 0
    more: bool = False


class Tallies(Protocol):
    """Store the daily sums of each merchant, counted after sessions have ended.

    No session is written to be counted: walks remember how far they have come along the ends.
    """

    @property
    def shards(self) -> range:
        """Return the shards along which walks go."""
        ...

    def marks(self) -> Marks:
        """Return how far all walks have come."""
        ...

    def ahead(
        self,
        walk: Walk,
        shard: int,
        until: datetime,
        *,
        since: datetime | None,
        limit: int,
        gathered: timedelta = timedelta(0),
    ) -> Stretch | None:
        """Return the next stretch of a walk, of about `limit` sessions that ended by `until`.

        `since` is the walk's mark, if it has one. None if there is none, or if there are far fewer,
        the first of which ended less than `gathered` before `until`: to pass them later together
        costs less.
        """
        ...

    def passed(self, stretch: Stretch, tallies: Sequence[DayTally]) -> bool:
        """Add to the days and remember that the stretch is passed, or do neither.

        Returns False if another run has passed it.
        """
        ...

    def days(
        self, merchant: str, currency: str, days: Sequence[date], *, shards: int = 1
    ) -> tuple[DayTally, ...]:
        """Return the sums of these days, at most 100, in their order.

        `shards` is the most that the merchant has ever had.
        """
        ...
