"""Find transactions by anything that support may know (domain/reports/search_terms.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.grammar import EVENT_ID, SESSION_ID, email_of
from checkout.domain.merchant.people import Actor
from checkout.domain.reports.search_terms import PREFIX_LEAST, last_part, same_text
from checkout.domain.session.record import Session
from checkout.flows import merchants
from checkout.flows.checkout import details, lists, lookup
from checkout.flows.checkout.lists import PAGE_MAX, ListQuery, SessionList
from checkout.ports.services import DashboardServices, PayServices, Services

# In the address of a page, or alone.
_SESSION: Final = re.compile(rf"(?<![A-Za-z0-9_]){SESSION_ID.pattern}(?![A-Za-z0-9_])")
_PLAIN_ID: Final = re.compile(r"[^\s]{8,}")  # ids of wallets: a UUID, or another long text


def find(
    services: DashboardServices | PayServices, key: Actor, text: str, query: ListQuery
) -> SessionList:
    """Return a page of the merchant's sessions that match `text` and the query's bounds.

    An empty text matches all. An e-mail address finds the sessions whose customers gave it, or else
    the same text elsewhere. Raises CursorInvalid.
    """
    typed = text.strip()
    marked = _mark(services, key, typed)
    if marked is not None:
        listed = lists.list_page(services, key, replace(query, search=marked))
        if listed.sessions or query.cursor is not None:
            return listed
    if not typed:
        return lists.list_page(services, key, query)
    if query.cursor is None:
        for session_id in _ids(services, key, typed):
            with suppress(ResourceMissing):  # any other text is searched for as usual
                return _bounded(services, (lookup.get(services, key, session_id),), query)
    listed = lists.list_page(services, key, replace(query, search=typed))
    if listed.sessions or query.cursor is not None or len(same_text(typed)) < PREFIX_LEAST:
        return listed
    found = services.sessions.ordered(key.lists, typed, limit=PAGE_MAX)
    return _bounded(services, found, query) if found else listed


def _mark(services: DashboardServices | PayServices, key: Actor, typed: str) -> str | None:
    """Return the text by which a typed e-mail address finds sessions; None for other texts."""
    email = email_of(typed)
    if email is None:
        return None
    return details.mark(services.vault, merchants.get(services.merchants, key.merchant), email)


def _ids(services: Services, key: Actor, typed: str) -> Iterator[str]:
    """Yield the session with the typed id, if it is an id."""
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
