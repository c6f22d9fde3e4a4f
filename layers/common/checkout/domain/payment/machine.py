"""The state machine of any record: the rows of a table of transitions, and what they change.

Each kind of record has its own table of transitions. This module stores nothing:
flows/payment/writes.py stores a change on condition that the record has not changed since it was
read.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

HISTORY_MAX: Final = 200
CHECKED: Final = "checked"  # the event of a check of the wallets, in each table of transitions


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    at: datetime
    event: str
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class Record(ABC):
    """The fields of each record with transitions. `writer` identifies the write of this version."""

    id: str
    merchant: str
    status: StrEnum
    version: int
    writer: str
    updated_at: datetime
    history: tuple[HistoryEntry, ...] = ()

    @property
    @abstractmethod
    def terminal(self) -> bool: ...

    def happened(self, event: str) -> bool:
        """Return whether the history contains `event`."""
        return any(entry.event == event for entry in self.history)


R = TypeVar("R", bound=Record)


@dataclass(frozen=True)
class Condition(Generic[R]):
    """A condition on the record as it was read, and on the time. The documentation shows `text`.

    If `in_time` is true, the write also fails if the stored `expires_at` has passed.
    """

    text: str
    holds: Callable[[R, datetime], bool]
    in_time: bool = False


ALWAYS: Final[Condition[Any]] = Condition("", lambda record, now: True)


@dataclass(frozen=True, slots=True)
class Row:
    """One transition: target status and phase, condition, removed fields, and webhook event.

    `beside` is a second webhook event of the same change, about another of Stripe's objects.
    `then_check` means that the record ends, and that a later check reads how much the incoming
    payment has received. `quiet` means that the history does not show the transition, because it
    happens too often.
    """

    to: StrEnum
    when: Condition[Any] = ALWAYS
    drops: tuple[str, ...] = ()
    webhook: str | None = None
    beside: str | None = None
    phase: StrEnum | None = None
    then_check: bool = False
    quiet: bool = False


class IllegalTransition(Exception):
    """The table has no row for the event, or the row's condition is false. Nothing changed."""

    def __init__(
        self, record: Any, event: StrEnum, condition: Condition[Any] | None = None
    ) -> None:
        super().__init__(f"{event} does not apply to a record that is {record.status}")
        self.record = record
        self.event = event
        self.condition = condition


@dataclass(frozen=True, slots=True)
class Change(Generic[R]):
    """A record before and after one event, which happened at the time `at`.

    If `in_time` is true, the write also fails if the stored `expires_at` has passed.
    """

    before: R
    after: R
    event: StrEnum
    at: datetime
    webhook: str | None
    in_time: bool
    beside: str | None = None


def row(table: Mapping[Any, Row], record: R, event: StrEnum, now: datetime) -> Row:
    """Return the row for `event`. Raise IllegalTransition if the event is not possible now."""
    found = table.get((record.status, event))
    if found is None:
        raise IllegalTransition(record, event)
    if not found.when.holds(record, now):
        raise IllegalTransition(record, event, found.when)
    return found


def advance(
    found: Row,
    record: R,
    event: StrEnum,
    *,
    now: datetime,
    writer: str,
    note: str | None = None,
    **changes: Any,
) -> Change[R]:
    """Return the change that `event` makes to `record` at `now`, by the row `found`.

    `writer` identifies the write. If the database's answer is lost, the stored `writer` shows
    whether this write or another process's write succeeded. `changes` are the fields that the event
    sets; the row lists the fields that the event removes. The history shows `note`. `updated_at`
    becomes `now`, unless the record has already ended or `changes` sets another time.
    """
    fields: dict[str, Any] = dict.fromkeys(found.drops)
    fields["updated_at"] = record.updated_at if record.terminal else now
    if found.phase is not None:
        fields["phase"] = found.phase
    fields.update(changes)
    # Checks get no line in the history.
    if event.value != CHECKED and not found.quiet:
        entry = HistoryEntry(at=now, event=event.value, note=note)
        fields["history"] = (*record.history, entry)[-HISTORY_MAX:]
    after = replace(
        record,
        status=found.to,
        version=record.version + 1,
        writer=writer,
        **fields,
    )
    return Change(
        before=record,
        after=after,
        event=event,
        at=now,
        webhook=found.webhook,
        in_time=found.when.in_time,
        beside=found.beside,
    )
