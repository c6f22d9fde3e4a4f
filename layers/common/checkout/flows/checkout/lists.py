"""List a merchant's sessions by pages, newest first, with filters."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.attempts import Concern
from checkout.domain.grammar import SESSION_ID, position
from checkout.domain.people import Actor
from checkout.domain.search import PAID, finds, last_part
from checkout.domain.session import Session, Status
from checkout.flows.cursors import cursor, position_of
from checkout.ports.services import Services

PAGE_MAX: Final = 100
FILTER_ROUNDS: Final = 5  # index pages that one filtered list request reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """The filters of a list.

    The times bound `created_at` (from inclusive, before exclusive), the amounts `amount_total` in
    minor units (both inclusive). `search` is a text in full (domain/search.py). `statuses` are
    several to choose from. `rounds` bounds the index pages that are read for one response. `upward`
    asks for the sessions just newer than the cursor; the page is newest first all the same.
    """

    limit: int = 10
    cursor: str | None = None
    status: Status | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    amount_from: int | None = None
    amount_to: int | None = None
    search: str | None = None
    statuses: tuple[Status, ...] = ()
    concern: Concern | None = None
    rounds: int = FILTER_ROUNDS
    upward: bool = False

    @property
    def filters(self) -> bool:
        """Tell whether sessions must be read to be filtered: no index has these fields."""
        by_field = (self.status, self.amount_from, self.amount_to, self.concern)
        return bool(self.statuses) or any(each is not None for each in by_field)

    @property
    def found_by(self) -> str | None:
        """The text by which an index finds all that match; None if none does."""
        if self.search:
            return last_part(self.search)
        completed = (Status.COMPLETED,)
        return PAID if completed in (self.statuses, (self.status,)) else None

    def matches(self, session: Session, now: datetime) -> bool:
        amount = session.amount_total
        return (
            (self.status is None or self.status is session.status_at(now))
            and (not self.statuses or session.status_at(now) in self.statuses)
            and (self.amount_from is None or self.amount_from <= amount)
            and (self.amount_to is None or amount <= self.amount_to)
            and (self.concern is None or self.concern.holds(session))
            and (self.search is None or finds(session, self.search))
        )


@dataclass(frozen=True, slots=True)
class SessionList:
    """A page of a list. All sessions created since `looked_to` were read.

    With a filter, more may follow even if this page holds few sessions or none. `unreadable`: the
    ids of damaged records, which are left out, as nothing is known of them.
    """

    sessions: tuple[Session, ...]
    next_cursor: str | None
    looked_to: datetime | None = None
    unreadable: tuple[str, ...] = ()


def list_page(services: Services, key: Actor, query: ListQuery) -> SessionList:
    """Return a page of the merchant's sessions, newest first by (created_at, id).

    Its cursor continues in the direction of the query. Reads at most `rounds` index pages and then
    returns a cursor, so that a filter with few matches cannot make one request read without end.
    Raises CursorInvalid.
    """
    after = position_of(key.merchant, query.cursor, SESSION_ID)
    now = services.clock.now()
    found: list[Session] = []
    unreadable: tuple[str, ...] = ()
    looked_to: datetime | None = None
    for _ in range(query.rounds):
        page = services.sessions.page(
            key.lists,
            limit=PAGE_MAX if query.filters else min(PAGE_MAX, query.limit - len(found)),
            after=after,
            created_from=query.created_from,
            created_before=query.created_before,
            search=query.found_by,
            upward=query.upward,
        )
        after = page.next_key
        unreadable += page.unreadable
        for session in page.sessions:
            if query.matches(session, now):
                if len(found) == query.limit:  # one more than asked: there is a next page
                    more, last = cursor_behind(key, found[-1]), found[-1].created_at
                    return SessionList(_newest_first(found, query), more, last, unreadable)
                found.append(session)
            looked_to = session.created_at
        if after is None or (len(found) == query.limit and not query.filters):
            break
    rest = None if after is None else cursor(key.merchant, after)
    return SessionList(_newest_first(found, query), rest, looked_to, unreadable)


def _newest_first(found: list[Session], query: ListQuery) -> tuple[Session, ...]:
    return tuple(reversed(found) if query.upward else found)


def cursor_behind(key: Actor, session: Session) -> str:
    """Return the cursor that continues a list after `session`."""
    return cursor(key.merchant, position(session.created_at, session.id))
