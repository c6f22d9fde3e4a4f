"""Finding transactions in the dashboard: what is typed is a session's id, a wallet address, or a
value of the metadata.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from checkout.domain.errors import ResourceMissing
from checkout.domain.merchant import ApiKey
from checkout.flows.payment import sessions
from checkout.flows.payment.sessions import Listed, ListQuery
from checkout.ports.services import Services


def find(services: Services, key: ApiKey, text: str, query: ListQuery) -> Listed:
    """A page of what `text` finds among the merchant's sessions, within the query's bounds; without
    a text, of all of them. Raises CursorInvalid.
    """
    typed = text.strip()
    if not typed:
        return sessions.list_page(services, key, query)
    with suppress(ResourceMissing):  # an id of nobody's, or another merchant's, is only a text
        return _by_id(services, key, typed, query)
    return sessions.list_page(services, key, replace(query, search=typed))


def _by_id(services: Services, key: ApiKey, session_id: str, query: ListQuery) -> Listed:
    session = sessions.get(services, key, session_id)
    at = session.created_at
    fits = (
        (query.created_from is None or query.created_from <= at)
        and (query.created_before is None or at < query.created_before)
        and query.matches(session, services.clock.now())
    )
    return Listed((session,) if fits else (), None, at)
