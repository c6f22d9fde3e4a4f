"""Notices: what members want to be told by e-mail of what needs somebody, and what was told.

There is one record of each member who has asked for notices. `told` has the marks of what an e-mail
has said already; a mark is dropped when what it stands for was solved a day ago, so that it is told
again if it comes back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Final

EVERY: Final = timedelta(minutes=5)  # between two looks of somebody who is told at once
DAILY_AT: Final = time(7, tzinfo=UTC)
CONFIRM_WITHIN: Final = timedelta(days=1)
FORGOTTEN_AFTER: Final = timedelta(days=1)  # a mark, after what it stands for was solved
TOLD_MAX: Final = 500  # marks; the oldest are forgotten first


class Topic(StrEnum):
    """The topics that a member can choose."""

    PAYMENTS = "payments"
    WALLET = "wallet"
    WEBHOOKS = "webhooks"
    ENDS = "ends"  # keys and budgets that end


class Pace(StrEnum):
    """The pace at which a member is told."""

    AT_ONCE = "at_once"
    DAILY = "daily"


@dataclass(frozen=True, slots=True)
class Told:
    """Something that an e-mail has said; `seen_at` is when it was last found to need somebody."""

    mark: str
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A member who has asked for notices, in this `language`.

    `address` is confirmed. `asked` is a new address that waits for its confirmation by the link
    whose token has `asked_hash`, until `asked_until`. The sweep looks at `look_at`; None if the
    member has stopped. `writer` marks the write of this version.
    """

    id: str
    merchant: str
    member: str
    topics: tuple[Topic, ...]
    pace: Pace
    language: str
    writer: str
    version: int = 1
    look_at: datetime | None = None
    address: str | None = field(default=None, repr=False)
    asked: str | None = field(default=None, repr=False)
    asked_hash: str | None = field(default=None, repr=False)
    asked_until: datetime | None = None
    told: tuple[Told, ...] = ()

    # The sweep asks this of each record: nothing is in flight here, and no history is kept.
    payment_in_flight: ClassVar[bool] = False
    terminal: ClassVar[bool] = False
    attention: ClassVar[None] = None
    history: ClassVar[tuple[()]] = ()

    def changed(self, *, writer: str, **fields: Any) -> Subscriber:
        """Return the next version, with these fields; `Subscribers.put` writes it."""
        return replace(self, version=self.version + 1, writer=writer, **fields)

    def stopped(self, *, writer: str) -> Subscriber:
        """Return the next version, which is told nothing and holds no address."""
        nothing = dict.fromkeys(("address", "asked", "asked_hash", "asked_until", "look_at"))
        return self.changed(writer=writer, told=(), **nothing)

    def waits_at(self, now: datetime) -> bool:
        """Return whether an address can still be confirmed."""
        return self.asked_until is not None and now < self.asked_until

    def next_look(self, now: datetime) -> datetime:
        """Return when the next e-mail may be sent."""
        if self.pace is Pace.AT_ONCE:
            return now + EVERY
        today = datetime.combine(now.astimezone(UTC).date(), DAILY_AT)
        return today if now < today else today + timedelta(days=1)


def remembered(
    told: Collection[Told], found: Collection[str], now: datetime, *, all_read: bool
) -> tuple[Told, ...]:
    """Return what was told and is still to be remembered, the newest last.

    `found` are the marks of all that needs somebody. Unless all was `read`, a mark that is not
    among them may stand for something that still does.
    """
    kept = []
    for each in told:
        if each.mark in found or not all_read:
            kept.append(Told(each.mark, now))
        elif now < each.seen_at + FORGOTTEN_AFTER:
            kept.append(each)
    return tuple(sorted(kept, key=lambda each: each.seen_at)[-TOLD_MAX:])
