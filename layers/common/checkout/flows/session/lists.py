"""List a merchant's sessions page by page, newest first, with filters.

A request asks for one page of the list. To fill this page, it reads parts of an index.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from checkout.domain.ground.grammar import SESSION_ID, position
from checkout.domain.merchant.people import Actor
from checkout.domain.reports.search_terms import NEEDS_SOMEBODY, PAID, finds, last_part, sums
from checkout.domain.session.attempts import Concern
from checkout.domain.session.record import Session, Status
from checkout.flows.cursors import cursor, position_of
from checkout.services import Services

PAGE_MAX: Final = 100
FILTER_ROUNDS: Final = 5  # parts of the index that one filtered list request reads at most
READ_FOR: Final = timedelta(seconds=5)  # the time for reading; then returns what was found
# A session that was paid in a range of time was created at most this long before the range.
# Exception: a session that was partly paid, or undecided for an hour, can have been created
# earlier. Each of these is flagged, and an index finds it by the flag.
PAID_WITHIN: Final = timedelta(days=2)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """The filters of a list.

    `created_from` (inclusive) and `created_before` (exclusive) limit `created_at`; `amount_from`
    and `amount_to` (both inclusive) limit `amount_total` in minor units. `search` must be the whole
    text of a search term (domain/reports/search_terms.py). A session matches if it has any of the
    `statuses`, and any of the `sums` (search_terms.sums). `paid_from` and `paid_before` limit
    `paid_at` of completed sessions. For one response, at most `rounds` parts of the index are read;
    while nothing is found, reading goes on up to `rounds_if_empty`. The list continues with the
    sessions older than the cursor; with `upward`, with those just newer. Both are newest first.
    """

    limit: int = 10
    cursor: str | None = None
    status: Status | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    paid_from: datetime | None = None
    paid_before: datetime | None = None
    amount_from: int | None = None
    amount_to: int | None = None
    search: str | None = None
    statuses: tuple[Status, ...] = ()
    sums: frozenset[Decimal] = frozenset()
    concern: Concern | None = None
    rounds: int = FILTER_ROUNDS
    rounds_if_empty: int = 0
    upward: bool = False

    @property
    def filters(self) -> bool:
        """Return whether sessions must be read to filter them, because no index can filter them."""
        by_field = (self.status, self.amount_from, self.amount_to, self.concern)
        return bool(self.statuses or self.sums) or any(each is not None for each in by_field)

    @property
    def ranges(self) -> tuple[IndexRange, ...]:
        """Return the ranges of the indexes that contain all matching sessions, newest first."""
        low, high = self.created_from, self.created_before
        if self.search:
            return (IndexRange(last_part(self.search), low, high),)
        if (Status.COMPLETED,) not in (self.statuses, (self.status,)):
            return (IndexRange(None, low, high),)
        if self.paid_before is not None:
            high = min(high or self.paid_before, self.paid_before)
        if self.paid_from is None:
            return (IndexRange(PAID, low, high),)
        soon = self.paid_from - PAID_WITHIN
        older = soon if high is None else min(high, soon)
        return (
            IndexRange(PAID, soon if low is None else max(low, soon), high),
            IndexRange(NEEDS_SOMEBODY, low, older),
        )

    def holds(self, session: Session, now: datetime) -> bool:
        """Return whether the session matches, including its creation time."""
        low, high = self.created_from, self.created_before
        if low is not None and session.created_at < low:
            return False
        return (high is None or session.created_at < high) and self.matches(session, now)

    def matches(self, session: Session, now: datetime) -> bool:
        """Return whether the session matches, without regard to its creation time."""
        amount, paid_at = session.amount_total, session.paid_at
        return (
            (self.status is None or self.status is session.status_at(now))
            and (not self.statuses or session.status_at(now) in self.statuses)
            and (self.paid_from is None or self.paid_from <= paid_at)
            and (self.paid_before is None or paid_at < self.paid_before)
            and (self.amount_from is None or self.amount_from <= amount)
            and (self.amount_to is None or amount <= self.amount_to)
            and (self.concern is None or self.concern.holds(session))
            and (self.search is None or finds(session, self.search))
            and (not self.sums or not self.sums.isdisjoint(sums(session)))
        )


@dataclass(frozen=True, slots=True)
class IndexRange:
    """The sessions created in a time range: all, or only those that an index has for `found_by`."""

    found_by: str | None
    created_from: datetime | None
    created_before: datetime | None


@dataclass(frozen=True, slots=True)
class SessionList:
    """A page of a list. `looked_to` is the creation time of the last session that was read.

    With a filter, more sessions may follow even if this page has few sessions or none. `unreadable`
    has the ids of damaged records, which are left out.
    """

    sessions: tuple[Session, ...]
    next_cursor: str | None
    looked_to: datetime | None = None
    unreadable: tuple[str, ...] = ()


def list_page(services: Services, key: Actor, query: ListQuery) -> SessionList:
    """Return a page of the merchant's sessions, newest first by (created_at, id).

    If more may follow, the page has a cursor to older sessions, or to newer ones if the query is
    `upward`. Reading stops when the time READ_FOR is over, or after `rounds` parts of the index
    (`rounds_if_empty` while nothing is found). Otherwise, a filter with few matches could make one
    request read without end. Raises CursorInvalid.
    """
    after = position_of(key.merchant, query.cursor, SESSION_ID)
    now = services.clock.now()
    found: list[Session] = []
    unreadable: tuple[str, ...] = ()
    looked_to: datetime | None = None
    ranges = list(query.ranges[::-1] if query.upward else query.ranges)
    for number in range(max(query.rounds, query.rounds_if_empty) + len(ranges) - 1):
        page = services.sessions.page(
            key.lists,
            limit=PAGE_MAX if query.filters else min(PAGE_MAX, query.limit - len(found)),
            after=after,
            created_from=ranges[0].created_from,
            created_before=ranges[0].created_before,
            search=ranges[0].found_by,
            upward=query.upward,
        )
        unreadable += page.unreadable
        for session in page.records:
            if query.matches(session, now):
                if len(found) == query.limit:  # one more than requested, so there is a next page
                    more, last = cursor_behind(key, found[-1]), found[-1].created_at
                    return SessionList(_newest_first(found, query), more, last, unreadable)
                found.append(session)
            looked_to = session.created_at
        if page.next_key is None and ranges[1:]:
            del ranges[0]
            if page.records:
                after = _place(page.records[-1])
            continue
        after = page.next_key
        over = bool(found) and number + 1 >= query.rounds
        if after is None or over or (len(found) == query.limit and not query.filters):
            break
        if services.clock.now() >= now + READ_FOR:
            break
    rest = None if after is None else cursor(key.merchant, after)
    return SessionList(_newest_first(found, query), rest, looked_to, unreadable)


def _newest_first(found: list[Session], query: ListQuery) -> tuple[Session, ...]:
    return tuple(reversed(found) if query.upward else found)


def cursor_behind(key: Actor, session: Session) -> str:
    """Return the cursor that continues a list after `session`."""
    return cursor(key.merchant, _place(session))


def session_at(key: Actor, presented: str) -> str:
    """Return the id of the session after which a cursor of this list continues."""
    return (position_of(key.merchant, presented, SESSION_ID) or "").partition("#")[2]


def _place(session: Session) -> str:
    return position(session.created_at, session.id)
