"""List a merchant's webhook events, for /v1/events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.grammar import position
from checkout.domain.webhooks import WebhookEvent
from checkout.ports.services import Services

_LOOKED_AT: Final = 100  # events of a round


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """The filters of a list, whose page begins behind `anchor` and goes back in time, or `upward`.

    The times bound `created_at` (from inclusive, before exclusive). `rounds` bounds the index pages
    that are read.
    """

    limit: int
    anchor: WebhookEvent | None = None
    upward: bool = False
    created_from: datetime | None = None
    created_before: datetime | None = None
    wanted: Callable[[WebhookEvent], bool] | None = None
    rounds: int


def page(
    services: Services, merchant_id: str, query: EventQuery
) -> tuple[tuple[WebhookEvent, ...], bool]:
    """Return a page, newest first, and whether there may be more in its direction."""
    after = position(query.anchor.created_at, query.anchor.id) if query.anchor else None
    found: list[WebhookEvent] = []
    for _ in range(query.rounds):
        looked = services.events.page(
            merchant_id,
            limit=_LOOKED_AT if query.wanted else query.limit,
            after=after,
            created_from=query.created_from,
            created_before=query.created_before,
            upward=query.upward,
        )
        found += [each for each in looked.events if not query.wanted or query.wanted(each)]
        after = looked.next_key
        if after is None or len(found) >= query.limit:
            break
    events = found[: query.limit]
    more = after is not None or len(found) > query.limit
    return tuple(reversed(events) if query.upward else events), more
