"""Find transactions in the dashboard by session id, wallet address or metadata value."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from checkout.domain.errors import ResourceMissing
from checkout.domain.people import Actor
from checkout.flows.payment import sessions
from checkout.flows.payment.sessions import Listed, ListQuery
from checkout.ports.services import Services


def find(services: Services, key: Actor, text: str, query: ListQuery) -> Listed:
    """Return a page of the merchant's sessions that match `text` and the query's bounds.

    An empty text matches all. Raises CursorInvalid.
    """
    typed = text.strip()
    if not typed:
        return sessions.list_page(services, key, query)
    with suppress(ResourceMissing):  # an unknown id is searched for like any other text
        return _by_id(services, key, typed, query)
    return sessions.list_page(services, key, replace(query, search=typed))


def _by_id(services: Services, key: Actor, session_id: str, query: ListQuery) -> Listed:
    session = sessions.get(services, key, session_id)
    at = session.created_at
    fits = (
        (query.created_from is None or query.created_from <= at)
        and (query.created_before is None or at < query.created_before)
        and query.matches(session, services.clock.now())
    )
    return Listed((session,) if fits else (), None, at)
