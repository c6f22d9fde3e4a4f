"""The export, a part at a time: what one answer of Lambda (6 MB, 29 s) can hold of what was asked
for, and where the next part begins.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from checkout.domain.audit import Action
from checkout.domain.merchant import ApiKey
from checkout.domain.session import Session
from checkout.flows import audit
from checkout.flows.merchant import search
from checkout.flows.payment.sessions import ListQuery, cursor_behind
from checkout.ports.services import DashboardServices

PART_MAX: Final = 1_000  # sessions in a part
ROUNDS: Final = 10  # index pages of 100 that are looked at for it


@dataclass(frozen=True, slots=True)
class Part:
    """`next_cursor` is None in the last part; all down to `looked_to` was looked at."""

    sessions: tuple[Session, ...]
    next_cursor: str | None
    looked_to: datetime | None

    def cut(self, key: ApiKey, length: int) -> Part:
        """The first `length` sessions, where more do not fit into an answer."""
        if length == len(self.sessions):
            return self
        kept = self.sessions[:length]
        return Part(kept, cursor_behind(key, kept[-1]), kept[-1].created_at)


def part(services: DashboardServices, key: ApiKey, text: str, query: ListQuery) -> Part:
    """The part that begins at the query's cursor. Raises CursorInvalid."""
    wanted = replace(query, limit=PART_MAX, rounds=ROUNDS)
    found = search.find(services, key, text, wanted)
    return Part(found.sessions, found.next_cursor, found.looked_to)


def note(services: DashboardServices, key: ApiKey, query: ListQuery, what: str) -> None:
    """That a copy was taken is noted once, with its first part."""
    if query.cursor is None:
        audit.note(services, key, Action.EXPORTED, what)
