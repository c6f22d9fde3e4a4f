"""Export transactions in parts that fit into one Lambda response (6 MB, 29 s)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from checkout.domain.merchant.people import Actor
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import Session
from checkout.flows.checkout.lists import ListQuery, cursor_behind
from checkout.flows.merchant import search
from checkout.ports.services import DashboardServices

PART_MAX: Final = 1_000  # sessions in a part
ROUNDS: Final = 10  # index pages of 100 that are read for a part


@dataclass(frozen=True, slots=True)
class Part:
    """Sessions of an export, newest first; `next_cursor` is None in the last part.

    Every session created after `looked_to` was examined.
    """

    sessions: tuple[Session, ...]
    next_cursor: str | None
    looked_to: datetime | None

    def cut(self, key: Actor, length: int) -> Part:
        """Return the first `length` sessions, for a response that holds no more."""
        if length == len(self.sessions):
            return self
        kept = self.sessions[:length]
        return Part(kept, cursor_behind(key, kept[-1]), kept[-1].created_at)


def refunds(services: DashboardServices, part: Part) -> dict[str, Refund]:
    """Return the refunds of the part's sessions by their ids."""
    ids = tuple(each.id for session in part.sessions for each in session.refunds or ())
    return {each.id: each for each in services.refunds.of(ids)}


def part(services: DashboardServices, key: Actor, text: str, query: ListQuery) -> Part:
    """Return the part that begins at the query's cursor. Raise CursorInvalid."""
    wanted = replace(query, limit=PART_MAX, rounds=ROUNDS)
    found = search.find(services, key, text, wanted)
    return Part(found.sessions, found.next_cursor, found.looked_to)
