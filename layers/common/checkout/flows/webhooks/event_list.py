"""Read pages of a merchant's webhook events, for /v1/events and the dashboard's log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.grammar import position
from checkout.domain.people import Actor
from checkout.domain.webhooks import WebhookEvent
from checkout.ports.services import Services

_LOOKED_AT: Final = 100  # events of a round


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """The filters of a list. Its page begins after `after` and goes back in time, or `upward`.

    The times bound `created_at` (from inclusive, before exclusive). `rounds` limits the index pages
    that are read. With an `endpoint`, it is the list of that endpoint's copies.
    """

    limit: int
    after: str | None = None
    upward: bool = False
    created_from: datetime | None = None
    created_before: datetime | None = None
    wanted: Callable[[WebhookEvent], bool] | None = None
    rounds: int
    endpoint: str | None = None


def page(
    services: Services, key: Actor, query: EventQuery
) -> tuple[tuple[WebhookEvent, ...], str | None]:
    """Return a page, newest first, and the position after which to continue, or None at the end.

    With a filter, more may follow even if this page holds few events or none.
    """
    after = query.after
    found: list[WebhookEvent] = []
    for _ in range(query.rounds):
        looked = services.events.page(
            key.lists,
            limit=_LOOKED_AT if query.wanted else query.limit,
            after=after,
            created_from=query.created_from,
            created_before=query.created_before,
            upward=query.upward,
            endpoint=query.endpoint,
        )
        found += [each for each in looked.events if not query.wanted or query.wanted(each)]
        after = looked.next_key
        if after is None or len(found) >= query.limit:
            break
    events = found[: query.limit]
    if len(found) > query.limit:
        after = place(events[-1])
    return tuple(reversed(events) if query.upward else events), after


def place(event: WebhookEvent) -> str:
    """Return the position of an event in the list."""
    return position(event.created_at, event.id)
