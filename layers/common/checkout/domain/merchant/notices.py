"""Notices: e-mails to members about cases that need a person.

Each member who has asked for notices has one record. A mark is a text that identifies a case. The
field `told` contains the marks of the cases that an e-mail has already reported. A mark is dropped
a day after its case was solved, so that the case is reported again if it comes back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, time, timedelta
from enum import StrEnum
from typing import Any, ClassVar, Final

EVERY: Final = timedelta(minutes=5)  # between two checks for a member who is notified at once
DAILY_AT: Final = time(7, tzinfo=UTC)
CONFIRM_WITHIN: Final = timedelta(days=1)
FORGOTTEN_AFTER: Final = timedelta(days=1)  # from the solution of a case until its mark is dropped
TOLD_MAX: Final = 500  # marks; the oldest are dropped first


class Topic(StrEnum):
    """The topics that a member can choose."""

    PAYMENTS = "payments"
    WALLET = "wallet"
    WEBHOOKS = "webhooks"
    ENDS = "ends"  # keys and budgets that have ended or will end


class Pace(StrEnum):
    """How often a member gets notices."""

    AT_ONCE = "at_once"
    DAILY = "daily"


@dataclass(frozen=True, slots=True)
class Told:
    """A case that an e-mail has reported. `seen_at` is when the case last needed a person."""

    mark: str
    seen_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    """A member who has asked for notices, which are written in `language`.

    `address` is confirmed. `asked` is a new address, which the member must confirm before
    `asked_until`, by a link whose token has the hash `asked_hash`. `look_at` is when the sweep (the
    scheduled job) next checks the record; None if the member has stopped the notices. `writer`
    identifies the write that made this version.
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

    # The sweep reads these fields of every record. A subscriber has no payment and no history.
    payment_in_flight: ClassVar[bool] = False
    terminal: ClassVar[bool] = False
    attention: ClassVar[None] = None
    history: ClassVar[tuple[()]] = ()

    def changed(self, *, writer: str, **fields: Any) -> Subscriber:
        """Return the next version, with these fields, for `Subscribers.put` to write."""
        return replace(self, version=self.version + 1, writer=writer, **fields)

    def stopped(self, *, writer: str) -> Subscriber:
        """Return the next version, which gets no notices and has no address."""
        nothing = dict.fromkeys(("address", "asked", "asked_hash", "asked_until", "look_at"))
        return self.changed(writer=writer, told=(), **nothing)

    def waits_at(self, now: datetime) -> bool:
        """Return whether there is a new address that can still be confirmed."""
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
    """Return the reported cases whose marks are kept, the newest last.

    `found` are the marks of the cases that need a person now. If `all_read` is false, not all cases
    were read. Then the marks that are not in `found` are also kept, because their cases may still
    need a person.
    """
    kept = []
    for each in told:
        if each.mark in found or not all_read:
            kept.append(Told(each.mark, now))
        elif now < each.seen_at + FORGOTTEN_AFTER:
            kept.append(each)
    return tuple(sorted(kept, key=lambda each: each.seen_at)[-TOLD_MAX:])
