"""Events as /v1 shows and filters them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from api.requests import ListSessions
from api.v1.forms import Parsed
from api.v1.sessions import PATIENCE, ROUNDS, anchored, between
from checkout.domain.ground.errors import ParameterInvalid, ResourceMissing
from checkout.domain.merchant.record import ApiKey
from checkout.domain.record_kinds import with_details
from checkout.domain.webhooks.event_types import stripe_name
from checkout.domain.webhooks.record import WebhookEvent
from checkout.flows.session import details
from checkout.flows.webhooks import event_log
from checkout.flows.webhooks.event_log import EventQuery
from checkout.services import Services
from checkout.web import validated

TYPES_MAX = 20


def event_objects(
    services: Services, key: ApiKey, events: Sequence[WebhookEvent]
) -> list[dict[str, Any]]:
    """Return the events as they are sent, with the number of endpoints that have not got it."""
    pending = event_log.undelivered(services, key, events)
    return [
        json.loads(each.stripe_body) | {"pending_webhooks": pending[each.id]}
        for each in _with_details(services, events)
    ]


def _with_details(services: Services, events: Sequence[WebhookEvent]) -> Iterator[WebhookEvent]:
    """Yield the events with the customers' details of their sessions."""
    named = {each.details_of for each in events if each.details_of is not None}
    found = [session for each in named if (session := services.sessions.get(each))]
    sessions, known = {each.id: each for each in found}, details.known(services, found)
    for each in events:
        session = sessions.get(each.details_of or "")
        if session is None:
            yield each
        else:
            given = known[session.id]
            yield with_details(each, session, given, base_url=services.base_url)


def event_query(services: Services, key: ApiKey, given: Parsed) -> EventQuery:
    """Return the query of the flow. Raises ParameterInvalid…, ResourceMissing (the anchor)."""
    values = given.values
    given.expands_nothing()
    limit = validated(ListSessions, {"limit": str(values.get("limit", 10))}).limit
    created_from, created_before = between(values)
    name, anchor = anchored(values)
    event = None
    if name is not None:
        try:
            event = event_log.get(services, key.merchant, anchor)
        except ResourceMissing:
            raise ResourceMissing(f"No such event: '{anchor[:100]}'", param=name) from None
    return EventQuery(
        limit=limit,
        after=event_log.place(event) if event else None,
        upward=name == "ending_before",
        created_from=created_from,
        created_before=created_before,
        wanted=_wanted(values),
        delivered=values.get("delivery_success"),
        rounds=ROUNDS,
        patience=PATIENCE,
    )


def _wanted(values: dict[str, Any]) -> Any:
    types = [*values.get("types", ()), *([values["type"]] if "type" in values else ())]
    if len(types) > TYPES_MAX:
        raise ParameterInvalid(f"At most {TYPES_MAX} types.", param="types")
    if not types:
        return None
    return lambda event: any(_fits(stripe_name(event.type), each) for each in types)


def _fits(named: str, wanted: str) -> bool:
    return named == wanted or (wanted.endswith("*") and named.startswith(wanted[:-1]))
