"""List and read a merchant's webhook events, as the dashboard does."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.grammar import DELIVERY_ID, EVENT_ID
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import EventStatus, WebhookEvent, copy_id
from checkout.flows.cursors import cursor, position_of
from checkout.flows.webhooks import endpoints, event_list
from checkout.flows.webhooks.endpoints import Resent
from checkout.flows.webhooks.event_list import EventQuery
from checkout.ports.services import DashboardServices, Services

PAGE: Final = 25
ROUNDS: Final = 3  # index pages that one filtered page reads


@dataclass(frozen=True, slots=True)
class EventList:
    """A page of events. With a filter, more may follow even if this page holds few or none."""

    events: tuple[WebhookEvent, ...]
    next_cursor: str | None


def page(
    services: DashboardServices,
    key: Actor,
    *,
    status: EventStatus | None,
    after: str | None,
    endpoint: str | None = None,
) -> EventList:
    """Return a page, newest first, from at most `ROUNDS` index pages. Raises CursorInvalid.

    With an `endpoint` that is not the first, these are the events that were copied for it.
    """
    start = position_of(key.merchant, after, DELIVERY_ID)
    query = EventQuery(
        limit=PAGE,
        after=start,
        wanted=None if status is None else lambda event: event.status is status,
        rounds=1 if status is None else ROUNDS,
        endpoint=endpoint,
    )
    events, behind = event_list.page(services, key, query)
    return EventList(events, cursor(key.merchant, behind) if behind else None)


def get(
    services: Services, merchant_id: str, event_id: str, ids: re.Pattern[str] = EVENT_ID
) -> WebhookEvent:
    """Read an event; with DELIVERY_ID, also a copy. Raises ResourceMissing, also for another's."""
    event = services.events.get(event_id) if ids.fullmatch(event_id) else None
    if event is None or event.merchant != merchant_id:
        raise ResourceMissing("No such event.")
    return event


def of_session(services: DashboardServices, session: Session) -> WebhookEvent | None:
    """Return the webhook event of the session's end, or None where there is none."""
    event = services.events.get(session.event) if session.event else None
    return event if event is not None and event.merchant == session.merchant else None


def of_others(
    services: DashboardServices, merchant: Merchant, event: WebhookEvent
) -> tuple[WebhookEvent, ...]:
    """Return the copies of an event for the endpoints that the merchant has besides the first."""
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
