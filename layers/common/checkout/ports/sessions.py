"""Declare the stores of checkout sessions and of the daily tallies made of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any, Protocol, TypeVar

from checkout.domain.machine import Change, Record
from checkout.domain.parts import Lists
from checkout.domain.refund import Refund
from checkout.domain.session import Session
from checkout.domain.tally import DayTally
from checkout.domain.webhooks import WebhookEvent
from checkout.ports.runtime import WHOLE, ShardRange, SideBySide
from checkout.ports.stale import Stale

R = TypeVar("R", bound=Record)


class StaleSession(Stale):
    """Report that the session changed since it was read; `current` is the winner's version."""

    current: Session


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


class AllowanceUsed(Exception):
    """Report that an allowance has less left. Nothing was written. `used` is what is counted."""

    def __init__(self, used: int) -> None:
        super().__init__("the allowance is used up")
        self.used = used


class OutOfStock(Exception):
    """Report that a payment link has no item left, or is stopped. Nothing was written."""


@dataclass(frozen=True, slots=True)
class SessionPage:
    """A page of sessions; `next_key` is the position of the last one read, or None at the end.

    `unreadable`: the ids of damaged records, which the page lacks.
    """

    sessions: tuple[Session, ...]
    next_key: str | None
    unreadable: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DueSessions:
    """The ids of due sessions, the longest due first.

    `oldest` is the earliest due time; `total` counts all.
    """

    ids: tuple[str, ...]
    total: int
    oldest: datetime | None


class Records(Protocol):
    """Write the changes of all kinds of records that are paid with (domain/subjects.py)."""

    def save(
        self,
        change: Change[R],
        event: WebhookEvent | None = None,
        reservation: Reservation | None = None,
        *,
        new: Refund | None = None,
        also: Change[Any] | None = None,
        second: WebhookEvent | None = None,
        allowance: Allowance | None = None,
    ) -> R:
        """Write the change on its condition, with event and reservation in the same transaction.

        The same transaction stores a `second` event and the `new` refund, counts in the
        `allowance`, makes the change of another record that is made `also`, on its own condition,
        and gives an item back to the stock of the link that the change `restocks`. If `also` has
        lost a race, StaleSession has the change's own record as it was read. Returns the record as
        written. A write of ours whose response was lost counts as written. Raises KeyHeld if a live
        record holds the reservation's key, AllowanceUsed if the allowance has less left, else
        StaleSession.
        Only `flows.payment.writes` calls this.
        """
        ...


class Sessions(Records, Protocol):
    """Store checkout sessions, and the records written in the same transactions."""

    def create(self, session: Session, reservation: Reservation | None) -> Reservation | None:
        """Write the record, then the session, and take an item from the row that is its `link`.

        Both are written in one transaction if an item is taken, or if the record names no session.
        Raises OutOfStock. Returns None if they were written, or the live record that already holds
        the key (then nothing was written). An expired record is replaced.
        """
        ...

    def get(self, session_id: str) -> Session | None:
        """Read the session, strongly consistent."""
        ...

    def reservation(self, key: str) -> Reservation | None:
        """Read the idempotency record, strongly consistent; it may be expired."""
        ...

    def page(
        self,
        of: Lists,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None,
        created_before: datetime | None,
        search: str | None = None,
        upward: bool = False,
    ) -> SessionPage:
        """Read a merchant's sessions, newest first by `grammar.position`; `limit` is 1 to 100.

        `upward` reads from the oldest, or from `after`, to the newest. `after` is the position of
        the last session seen. `search` finds sessions by the name of a wallet, a metadata value, or
        a word in an item's name (domain/search.py), with an index that lags.
        """
        ...

    def holder(self, merchant: str, outer_id: str) -> str | None:
        """Return the session of an id of `search.outer_ids`, or None."""
        ...

    def ordered(self, of: Lists, beginning: str, *, limit: int) -> tuple[Session, ...]:
        """Return up to `limit` sessions whose order number, or its last part, begins with it."""
        ...

    def due(
        self,
        now: datetime,
        *,
        urgent: bool,
        limit: int,
        side_by_side: SideBySide,
        part: ShardRange = WHOLE,
    ) -> DueSessions:
        """Return the sessions due for a check at `now` that are, or are not, `urgent`.

        At most `limit` of each shard are returned. The index lags a little: read each session
        before acting on it.
        """
        ...


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


class Tallies(Protocol):
    """Store the daily sums of each merchant, counted after sessions have ended.

    Counting writes no session: the walks store their positions.
    """

    @property
    def shards(self) -> range:
        """Return the shards along which walks go."""
        ...

    def positions(self) -> Positions:
        """Return the positions of all walks."""
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

        `since` is the walk's mark, if it has one. Returns None if there are none, or if there are
        far fewer and the first ended less than `gathered` before `until`: passing them together
        later costs less.
        """
        ...

    def passed(
        self,
        stretch: Stretch,
        tallies: Sequence[DayTally],
        untold: frozenset[str] = frozenset(),
    ) -> bool:
        """Add to the days and store that the stretch was passed, or do neither.

        The shard's `untold` sessions, if there are any, are stored with it. Returns False if
        another run has passed it.
        """
        ...

    def told(self, shard: int, was: frozenset[str], untold: frozenset[str]) -> None:
        """Store the shard's `untold` sessions, unless another run has changed them as they were."""
        ...

    def counted(self, session: Session, positions: Positions) -> bool:
        """Return whether the walks had passed this ended session when they had these positions."""
        ...

    def days(self, of: Lists, currency: str, days: Sequence[date]) -> tuple[DayTally, ...]:
        """Return the sums of these days, at most 100, in their order."""
        ...
