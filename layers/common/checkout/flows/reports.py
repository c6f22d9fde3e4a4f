"""Reports: the search for transactions, exports, statements and daily figures.

An export is read in parts, each of which fits into one Lambda response (6 MB, 29 s). Ended sessions
are counted in the stored daily totals some minutes after their end. The figures also include listed
sessions that have ended but are not counted yet, so the sums of the figures equal the sums of the
list. The index of the list is read in pages of up to 100 sessions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final

from checkout.domain.ground.errors import ResourceMissing, Unavailable
from checkout.domain.ground.grammar import EVENT_ID, SESSION_ID, email_of
from checkout.domain.ground.names import JOINERS
from checkout.domain.ground.providers import Provider
from checkout.domain.ground.typed_amount import said_amounts
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.record import Merchant
from checkout.domain.refund.record import APPROVAL_AWAITED, Refund
from checkout.domain.reports.daily_totals import DayTotals, tallied
from checkout.domain.reports.search_terms import PREFIX_LEAST, last_part, same_text
from checkout.domain.reports.statement import StatementDay, statement
from checkout.domain.session.record import Session
from checkout.flows.session import details, lists, lookup
from checkout.flows.session.lists import PAGE_MAX, ListQuery, SessionList, cursor_behind
from checkout.ports import ScanPositions, SecretUnreadable
from checkout.services import DashboardServices, PayServices, Services
from open_payments.models import Amount

if TYPE_CHECKING:
    from checkout.adapters.vault import AesVault

# A session's id, alone or within the address of a page.
_SESSION: Final = re.compile(rf"(?<![A-Za-z0-9_]){SESSION_ID.pattern}(?![A-Za-z0-9_])")
_PLAIN_ID: Final = re.compile(r"[^\s]{8,}")  # ids of wallets: a UUID, or another long text
_AROUND: Final = "".join(JOINERS) + " \t\r\n\N{NO-BREAK SPACE}"
NOTHING: Final = SessionList((), None)


def find_transactions(
    services: DashboardServices | PayServices, key: Actor, text: str, query: ListQuery
) -> SessionList:
    """Return a page of the merchant's sessions that match `text` and the query's bounds.

    An empty text matches all sessions. An id finds its session. An e-mail address finds the
    sessions whose customers gave this address. If nothing is found, the text is searched for in
    other fields: whole values, then order numbers, names and postal codes together, then sums of
    money. Invisible characters, and a "#" at the beginning, make no difference. Raises
    CursorInvalid. Also raises Unavailable, if the key that encrypts the details of the merchant's
    customers is needed but cannot be read.
    """
    typed, *spellings = _spellings(text)
    if not typed:
        return lists.list_page(services, key, query)
    first = query.cursor is None
    if first:
        for session_id in _ids(services, key, typed):
            with suppress(ResourceMissing):  # the text is then searched for as usual
                return _bounded(services, (lookup.get(services, key, session_id),), query)
    email = _mark(services, key, details.mark, email_of(typed))
    for each in (email, typed, *spellings):
        listed = lists.list_page(services, key, replace(query, search=each)) if each else NOTHING
        if listed.sessions or listed.unreadable or listed.next_cursor is not None:
            return listed
    ordered = _ordered(services, key, (typed, *spellings)) if first else ()
    named = _named(services, key, typed, query, found=bool(ordered))
    if ordered:
        return _with_first(_bounded(services, ordered, query), named)
    amounts = said_amounts(typed)
    if named.sessions or named.next_cursor is not None or not amounts:
        return named
    return lists.list_page(services, key, replace(query, sums=amounts))


def _spellings(text: str) -> list[str]:
    """Return the different spellings of the text to search for.

    The spellings are the text without invisible characters, as typed, and without "#" in front.
    """
    plain = text.strip()
    seen = "".join(each for each in plain if unicodedata.category(each) != "Cf" or each in JOINERS)
    seen = seen.strip(_AROUND)
    return list(dict.fromkeys((seen, plain, seen.lstrip("#").lstrip())))


def _mark(
    services: DashboardServices | PayServices,
    key: Actor,
    mark: Callable[[AesVault, Merchant, str], str | None],
    typed: str | None,
) -> str | None:
    """Return the lookup text that `mark` makes of a typed text, or None if it makes none.

    Also returns None if the merchant's key for customers' details cannot be decrypted; the operator
    then gets an alarm.
    """
    merchant = services.merchants.get(key.merchant) if typed else None
    if merchant is None or typed is None:
        return None
    with suppress(SecretUnreadable):
        return mark(services.vault, merchant, typed)
    return None


def _ordered(services: Services, key: Actor, typed: Sequence[str]) -> tuple[Session, ...]:
    """Return the sessions whose order number, or its last part, begins with one of the texts."""
    for each in typed:
        if len(same_text(each)) >= PREFIX_LEAST:
            found = services.sessions.ordered(key.lists, each, limit=PAGE_MAX)
            if found:
                return found
    return ()


def _named(
    services: DashboardServices | PayServices,
    key: Actor,
    typed: str,
    query: ListQuery,
    *,
    found: bool,
) -> SessionList:
    """Return a page of the sessions whose customers gave this name or postal code.

    If other sessions were already `found`, the page is empty, instead of an error, while the
    merchant's key for customers' details cannot be read.
    """
    try:
        marked = _mark(services, key, details.spoken_mark, typed)
    except Unavailable:
        if not found:
            raise
        marked = None
    return lists.list_page(services, key, replace(query, search=marked)) if marked else NOTHING


def _with_first(ordered: SessionList, named: SessionList) -> SessionList:
    """Return the sessions of both lists as one page, newest first, with the cursor of `named`."""
    both = {each.id: each for each in (*ordered.sessions, *named.sessions)}
    newest = sorted(both.values(), key=lambda each: (each.created_at, each.id), reverse=True)
    return replace(named, sessions=tuple(newest))


def _ids(services: Services, key: Actor, typed: str) -> Iterator[str]:
    """Yield the id of the session that the typed text belongs to, if the text is an id."""
    named = _SESSION.search(typed)
    if named:
        yield named[0]
    elif EVENT_ID.fullmatch(typed):
        event = services.events.get(typed)
        if event is not None and event.merchant == key.merchant and event.session:
            yield event.session
    elif _PLAIN_ID.fullmatch(typed):
        holder = services.sessions.holder(key.merchant, last_part(typed))
        if holder is not None:
            yield holder


def _bounded(services: Services, found: tuple[Session, ...], query: ListQuery) -> SessionList:
    """Return the sessions within the query's bounds, as one page."""
    now = services.clock.now()
    shown = tuple(
        each
        for each in found
        if (query.created_from is None or query.created_from <= each.created_at)
        and (query.created_before is None or each.created_at < query.created_before)
        and query.matches(each, now)
    )
    return SessionList(shown, None, found[-1].created_at)


PART_MAX: Final = 1_000  # sessions in a part
EXPORT_ROUNDS: Final = 10  # index pages of 100 that are read for a part


@dataclass(frozen=True, slots=True)
class ExportPart:
    """A part of an export: sessions, newest first; `next_cursor` is None in the final part.

    All sessions that were created after `looked_to` have been read.
    """

    sessions: tuple[Session, ...]
    next_cursor: str | None
    looked_to: datetime | None

    def cut(self, key: Actor, length: int) -> ExportPart:
        """Return the part with only the first `length` sessions, so that it fits the response."""
        if length == len(self.sessions):
            return self
        kept = self.sessions[:length]
        return ExportPart(kept, cursor_behind(key, kept[-1]), kept[-1].created_at)


def refunds_of_part(services: DashboardServices, part: ExportPart) -> dict[str, Refund]:
    """Return the refunds of the part's sessions by their ids."""
    ids = tuple(each.id for session in part.sessions for each in session.refunds or ())
    return {each.id: each for each in services.refunds.of(ids)}


def export_part(services: DashboardServices, key: Actor, text: str, query: ListQuery) -> ExportPart:
    """Return the part that begins at the query's cursor. Raise CursorInvalid."""
    wanted = replace(query, limit=PART_MAX, rounds=EXPORT_ROUNDS)
    found = find_transactions(services, key, text, wanted)
    return ExportPart(found.sessions, found.next_cursor, found.looked_to)


STATEMENT_DAYS_MAX: Final = 31
STATEMENT_PAGE: Final = 100
STATEMENT_ROUNDS: Final = 150  # a statement reads at most this many pages of an index
READ_FOR: Final = timedelta(seconds=5)  # after this time, a statement is shown with what was read
# A session can be decided long after its creation, if a partial payment is accepted or if money
# arrives late.
DECIDED_WITHIN: Final = timedelta(days=31)
# The longest time from a refund's request to its end, which includes the wait for its approval.
REFUNDED_WITHIN: Final = APPROVAL_AWAITED + timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Statement:
    """The days of a statement. `whole` is false if there were too many records to read."""

    days: tuple[StatementDay, ...]
    whole: bool


def read_statement(
    services: DashboardServices, key: Actor, *, first: date, last: date
) -> Statement:
    """Return the statement of these days, or of the latest STATEMENT_DAYS_MAX if there are more."""
    first = max(first, last - timedelta(days=STATEMENT_DAYS_MAX - 1))
    begin = datetime.combine(first, time(), UTC)
    end = datetime.combine(last + timedelta(days=1), time(), UTC)
    until = services.clock.now() + READ_FOR
    refunds, all_refunds = refunds_of(services, key, begin, until=until)
    sessions, all_sessions = _sessions(services, key, begin - DECIDED_WITHIN, end, until)
    nothing = Amount(0, key.asset_code, key.asset_scale)
    days = statement(sessions, refunds, nothing, first=first, last=last)
    return Statement(days, all_sessions and all_refunds)


def _sessions(
    services: DashboardServices, key: Actor, begin: datetime, end: datetime, until: datetime
) -> tuple[list[Session], bool]:
    """Return the sessions created in this time, and whether all were read by the time `until`."""
    found: list[Session] = []
    after = None
    for _ in range(STATEMENT_ROUNDS):
        page = services.sessions.page(
            key.lists, limit=STATEMENT_PAGE, after=after, created_from=begin, created_before=end
        )
        found += page.records
        after = page.next_key
        if after is None or services.clock.now() >= until:
            break
    return found, after is None


def refunds_of(
    services: DashboardServices,
    key: Actor,
    begin: datetime,
    *,
    until: datetime,
    rounds: int = STATEMENT_ROUNDS,
) -> tuple[list[Refund], bool]:
    """Return the refunds that may have ended since `begin`, and whether all of them were read.

    Stop at the time `until`, or after `rounds` reads.
    """
    begin -= REFUNDED_WITHIN
    found: list[Refund] = []
    after = None
    for _ in range(rounds):
        page = services.refunds.page(key.lists, limit=STATEMENT_PAGE, after=after)
        found += page.records
        after = page.next_key
        if after is None or (page.records and page.records[-1].created_at < begin):
            return found, True
        if services.clock.now() >= until:
            break
    return found, False


FIGURES_DAYS_MAX: Final = 92
NEWEST: Final = 100  # the newest sessions are read, to find uncounted ones
TRIES: Final = 3


@dataclass(frozen=True, slots=True)
class Figures:
    """The sums of some days, in the order of the days.

    Sessions that ended a few minutes ago and were created before `looked_to` may be missing.
    `looked_to` is None if no session is missing.
    """

    days: tuple[DayTotals, ...]
    looked_to: datetime | None


def daily_figures(services: DashboardServices, key: Actor, *, first: date, last: date) -> Figures:
    """Return the figures of the days from `first` to `last`, at most 2 * FIGURES_DAYS_MAX days.

    In a longer period, the earliest days are left out. The figures include ended sessions that were
    not counted yet. The merchant's lists have parts, the shards. The function makes one read for
    each shard per 100 days, two reads of how far the counting has come, and one read of a page.
    """
    first = max(first, last - timedelta(days=2 * FIGURES_DAYS_MAX - 1))
    wanted = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    currency = key.asset_code.lower()
    positions = services.daily_totals.positions()
    for _ in range(TRIES):
        counted = services.daily_totals.days(key.lists, currency, wanted)
        before, positions = positions, services.daily_totals.positions()
        if before.marks == positions.marks:
            break  # nothing was counted meanwhile, so the positions are right for these days
    ended, looked_to = _uncounted(services, key, positions)
    found = {each.day: each for each in counted}
    for more in tallied(ended, lambda _: _offered(services, key)):
        if more.day in found and more.currency == currency:
            found[more.day] = found[more.day].with_all(more)
    return Figures(tuple(found.values()), looked_to)


def _uncounted(
    services: DashboardServices, key: Actor, positions: ScanPositions
) -> tuple[list[Session], datetime | None]:
    """Return the newest ended sessions that were not counted, and where the reading stopped."""
    now = services.clock.now()
    page = services.sessions.page(
        key.lists, limit=NEWEST, after=None, created_from=None, created_before=None
    )
    ended = [
        each
        for each in page.records
        if each.over_at is not None
        and each.over_at <= now
        and not services.daily_totals.counted(each, positions)
    ]
    more = page.next_key is not None and page.records
    return ended, page.records[-1].created_at if more else None


def _offered(services: DashboardServices, key: Actor) -> Sequence[Provider]:
    merchant = services.known_merchants.get(key.merchant)
    return (merchant.providers if merchant else ()) or services.providers
