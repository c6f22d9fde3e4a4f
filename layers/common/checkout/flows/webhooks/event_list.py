"""Read pages of a merchant's webhook events, for /v1/events and the dashboard's log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.ground.grammar import position
from checkout.domain.merchant.people import Actor
from checkout.domain.webhooks.record import WebhookEvent, copy_id
from checkout.flows.checkout.lists import READ_FOR
from checkout.ports.services import Services

_LOOKED_AT: Final = 100  # events of a round


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """The filters of a list. Its page begins after `after` and goes back in time, or `upward`.

    The times bound `created_at` (from inclusive, before exclusive). `rounds` limits the index pages
    that are read, `patience` those that are read while nothing is found. With an `endpoint`, it is
    the list of that endpoint's copies. `delivered` tells whether every endpoint that asked for an
    event has got it.
    """

    limit: int
    after: str | None = None
    upward: bool = False
    created_from: datetime | None = None
    created_before: datetime | None = None
    wanted: Callable[[WebhookEvent], bool] | None = None
    rounds: int
    patience: int = 0
    endpoint: str | None = None
    delivered: bool | None = None

    @property
    def filters(self) -> bool:
        return self.wanted is not None or self.delivered is not None


def page(
    services: Services, key: Actor, query: EventQuery
) -> tuple[tuple[WebhookEvent, ...], str | None]:
    """Return a page, newest first, and the position after which to continue, or None at the end.

    With a filter, more may follow even if this page holds few events or none.
    """
    after, until = query.after, services.clock.now() + READ_FOR
    found: list[WebhookEvent] = []
    for number in range(max(query.rounds, query.patience)):
        looked = services.events.page(
            key.lists,
            limit=_LOOKED_AT if query.filters else query.limit,
            after=after,
            created_from=query.created_from,
            created_before=query.created_before,
            upward=query.upward,
            endpoint=query.endpoint,
        )
        some = [each for each in looked.events if not query.wanted or query.wanted(each)]
        if query.delivered is not None:
            waiting = undelivered(services, key, some)
            some = [each for each in some if query.delivered is not (waiting[each.id] > 0)]
        found += some
        after = looked.next_key
        over = bool(found) and number + 1 >= query.rounds
        if after is None or len(found) >= query.limit or over or services.clock.now() >= until:
            break
    events = found[: query.limit]
    if len(found) > query.limit:
        after = place(events[-1])
    return tuple(reversed(events) if query.upward else events), after


def undelivered(
    services: Services, key: Actor, events: Sequence[WebhookEvent]
) -> Mapping[str, int]:
    """Return, by the event's id, how many endpoints asked for it and have not got it.

    Those are counted that the merchant still has. An attempt may be under way, or none be left.
    """
    merchant = services.merchants.get(key.merchant)
    further = [each.id for each in merchant.further_endpoints if each.id] if merchant else []
    of = {each.id: [copy_id(each.id, endpoint) for endpoint in further] for each in events}
    ids = [each for copies in of.values() for each in copies]
    found = {each.id: each for each in events} | dict(services.events.many(ids))
    return {
        event: sum(found[each].undelivered for each in (event, *copies) if each in found)
        for event, copies in of.items()
    }


def place(event: WebhookEvent) -> str:
    """Return the position of an event in the list."""
    return position(event.created_at, event.id)
