"""Find transactions in the dashboard by what a support person may hold (domain/search.py)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from checkout.domain.errors import ResourceMissing
from checkout.domain.grammar import EVENT_ID, SESSION_ID
from checkout.domain.people import Actor
from checkout.domain.search import PREFIX_LEAST, last_part, same_text
from checkout.domain.session import Session
from checkout.flows.payment import sessions
from checkout.flows.payment.sessions import PAGE_MAX, Listed, ListQuery
from checkout.ports.services import Services

# In an address of a page, or alone.
_SESSION: Final = re.compile(rf"(?<![A-Za-z0-9_]){SESSION_ID.pattern}(?![A-Za-z0-9_])")
_PLAIN_ID: Final = re.compile(r"[^\s]{8,}")  # as wallets have them: a UUID, or another long text


def find(services: Services, key: Actor, text: str, query: ListQuery) -> Listed:
    """Return a page of the merchant's sessions that match `text` and the query's bounds.

    An empty text matches all. Raises CursorInvalid.
    """
    typed = text.strip()
    if not typed:
        return sessions.list_page(services, key, query)
    if query.cursor is None:
        for session_id in _ids(services, key, typed):
            with suppress(ResourceMissing):  # what is no id is searched for like any other text
                return _bounded(services, (sessions.get(services, key, session_id),), query)
    listed = sessions.list_page(services, key, replace(query, search=typed))
    if listed.sessions or query.cursor is not None or len(same_text(typed)) < PREFIX_LEAST:
        return listed
    found = services.sessions.ordered(key.merchant, typed, limit=PAGE_MAX, shards=key.shards)
    return _bounded(services, found, query) if found else listed


def _ids(services: Services, key: Actor, typed: str) -> Iterator[str]:
    """Yield the session of the id that was typed, if it is one."""
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


def _bounded(services: Services, found: tuple[Session, ...], query: ListQuery) -> Listed:
    """Return those of the sessions that are within the query's bounds, as one page."""
    now = services.clock.now()
    shown = tuple(
        each
        for each in found
        if (query.created_from is None or query.created_from <= each.created_at)
        and (query.created_before is None or each.created_at < query.created_before)
        and query.matches(each, now)
    )
    return Listed(shown, None, found[-1].created_at)
