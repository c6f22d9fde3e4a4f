"""Read a merchant's webhook events for /v1/events and the dashboard; send failed events again."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.grammar import DELIVERY_ID, EVENT_ID, position
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import EventStatus, WebhookEvent, copy_id
from checkout.flows.cursors import CursorPage, cursor, position_of, with_cursor
from checkout.flows.session.lists import READ_FOR
from checkout.flows.webhooks import endpoints
from checkout.flows.webhooks.endpoints import Resent
from checkout.ports import Page
from checkout.services import DashboardServices, Services

_LOOKED_AT: Final = 100  # events that one round reads, as one part of the index


@dataclass(frozen=True, slots=True, kw_only=True)
class EventQuery:
    """The filters of a list. A page of the list has the events just older than the event `after`.

    With `upward`, the page has the events just newer than `after`, and is still newest first.
    `created_from` (inclusive) and `created_before` (exclusive) limit `created_at`. At most `rounds`
    parts of the index are read; while nothing is found, reading goes on up to `rounds_if_empty`.
    With an `endpoint`, the list contains the copies of events for that endpoint. If `delivered` is
    false, the list has the events that at least one endpoint has requested but not received. If
    `delivered` is true, the list has the other events.
    """

    limit: int
    after: str | None = None
    upward: bool = False
    created_from: datetime | None = None
    created_before: datetime | None = None
    wanted: Callable[[WebhookEvent], bool] | None = None
    rounds: int
    rounds_if_empty: int = 0
    endpoint: str | None = None
    delivered: bool | None = None

    @property
    def filters(self) -> bool:
        return self.wanted is not None or self.delivered is not None


def events_page(
    services: Services, key: Actor, query: EventQuery
) -> tuple[tuple[WebhookEvent, ...], str | None]:
    """Return a page, newest first, and the position after which to continue, or None at the end.

    With a filter, more events may follow even if this page has few events or none.
    """
    after, until = query.after, services.clock.now() + READ_FOR
    found: list[WebhookEvent] = []
    for number in range(max(query.rounds, query.rounds_if_empty)):
        looked = services.events.page(
            key.lists,
            limit=_LOOKED_AT if query.filters else query.limit,
            after=after,
            created_from=query.created_from,
            created_before=query.created_before,
            upward=query.upward,
            endpoint=query.endpoint,
        )
        some = [each for each in looked.records if not query.wanted or query.wanted(each)]
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
    """Return, by event id, how many endpoints requested the event but have not received it.

    Only endpoints that the merchant still has are counted, even if no further attempt is made.
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


PAGE: Final = 25
ROUNDS: Final = 3  # parts of the index that are read at most for one filtered page


def page(
    services: DashboardServices,
    key: Actor,
    *,
    status: EventStatus | None,
    after: str | None,
    endpoint: str | None = None,
) -> CursorPage[WebhookEvent]:
    """Return a page, newest first, from at most ROUNDS parts of the index. Raises CursorInvalid.

    With a `status`, more events may follow even if this page has few events or none. With an
    `endpoint` other than the first, the page has the events that were copied for that endpoint.
    """
    start = position_of(key.merchant, after, DELIVERY_ID)
    query = EventQuery(
        limit=PAGE,
        after=start,
        wanted=None if status is None else lambda event: event.status is status,
        rounds=1 if status is None else ROUNDS,
        endpoint=endpoint,
    )
    return with_cursor(key.merchant, Page(*events_page(services, key, query)))


def get(
    services: Services, merchant_id: str, event_id: str, ids: re.Pattern[str] = EVENT_ID
) -> WebhookEvent:
    """Read an event, or with the pattern DELIVERY_ID also a copy. Raises ResourceMissing."""
    event = services.events.get(event_id) if ids.fullmatch(event_id) else None
    if event is None or event.merchant != merchant_id:
        raise ResourceMissing("No such event.")
    return event


def of_session(services: DashboardServices, session: Session) -> WebhookEvent | None:
    """Return the webhook event about the session's end, or None."""
    event = services.events.get(session.event) if session.event else None
    return event if event is not None and event.merchant == session.merchant else None


def of_others(
    services: DashboardServices, merchant: Merchant, event: WebhookEvent
) -> tuple[WebhookEvent, ...]:
    """Return the copies of an event. They are for the merchant's endpoints other than the first."""
    ids = [copy_id(event.event, each.id or "") for each in merchant.further_endpoints]
    found = (services.events.get(each) for each in ids)
    return tuple(each for each in found if each is not None)


def resend_failed(
    services: DashboardServices,
    key: Actor,
    *,
    since: datetime,
    after: str | None,
    endpoint: str | None = None,
) -> Resent:
    """Call `endpoints.resend_failed` with this merchant's cursor. Raises CursorInvalid."""
    start = position_of(key.merchant, after, DELIVERY_ID)
    done = endpoints.resend_failed(
        services, key.merchant, since=since, after=start, endpoint=endpoint
    )
    return Resent(done.count, cursor(key.merchant, done.next_key) if done.next_key else None)
