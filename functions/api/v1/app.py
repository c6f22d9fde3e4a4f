"""The application of /v1, with its routes for sessions, events and the balance.

The Lambda function `api` loads this application at the first request to /v1. The function
`dashboard` also loads it, to serve /v1/webhook_endpoints. The application shares nothing with the
native API's application.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from fastapi import APIRouter, Response

from api.v1 import account, endpoints, parity, payments, refunds
from api.v1.collection import first_asking
from api.v1.expansions import ITEMS, SESSION, parsed_for
from api.v1.forms import Parsed, parsed
from api.v1.http import Body, Call, Called, Query, listed, performed, problem, shown
from api.v1.sessions import (
    ROUNDS,
    ROUNDS_IF_EMPTY,
    anchored,
    between,
    limit_of,
    merged_metadata,
    new_session,
    page,
    session_page,
)
from api.v1.sessions import shown as session_shown
from checkout.adapters.runtime import system_random
from checkout.domain.ground.errors import ParameterInvalid, ResourceMissing, SessionUnexpectedState
from checkout.domain.merchant.record import ApiKey
from checkout.domain.record_kinds import with_details
from checkout.domain.session.record import Session
from checkout.domain.stripe.objects import line_items, livemode
from checkout.domain.webhooks.event_types import stripe_name
from checkout.domain.webhooks.record import WebhookEvent
from checkout.flows import limits
from checkout.flows.idempotency import Reserve, json_text
from checkout.flows.session import close, details, lookup, metadata
from checkout.flows.session.create import open_session
from checkout.flows.webhooks import event_log
from checkout.flows.webhooks.event_log import EventQuery
from checkout.services import Services
from checkout.web import application, lambda_handler, request_id

router = APIRouter(prefix="/v1")
SESSIONS = "/checkout/sessions"


@router.post(SESSIONS)
async def create(call: Called, body: Body) -> Response:
    """Create a session. A header of the response names the parameters that were ignored."""
    given = parsed(body, parity.CREATE_SESSION)

    def opened(reserve: Reserve[Session] | None) -> Session:
        new = new_session(call.services, given)
        try:
            return open_session(call.services, call.key, new, reserve, request_id(call.request))
        except ParameterInvalid as error:
            if error.param != "collect":
                raise
            raise ParameterInvalid(error.message, param=first_asking(given)) from None

    render = _render(call, given)
    return performed(call, given, opened, render, operation="v1 create session")


@router.get(SESSIONS)
async def list_sessions(call: Called, query: Query) -> Response:
    """Return a page of sessions, or the session of one payment."""
    given = parsed_for(SESSION, query, parity.LIST_SESSIONS, "data.")
    now = call.services.clock.now()
    found, upward, after = session_page(call.services, call.key, given, SESSION)
    known = details.known(call.services, found)
    data = [
        session_shown(call.services, each, given, now, within="data.", details=known[each.id])
        for each in found
    ]
    return listed(call, data, more=after is not None, upward=upward, after=after)


@router.get(f"{SESSIONS}/{{session_id}}")
async def get(call: Called, query: Query, session_id: str) -> Response:
    given = parsed_for(SESSION, query, parity.ONE)
    now = call.services.clock.now()
    session = lookup.get(call.services, call.key, session_id)
    known = details.known(call.services, [session])[session.id]
    return shown(call, session_shown(call.services, session, given, now, details=known))


@router.post(f"{SESSIONS}/{{session_id}}")
async def update(call: Called, body: Body, session_id: str) -> Response:
    """Change the session's metadata: set the given keys, and remove keys with an empty value."""
    given = parsed_for(SESSION, body, parity.UPDATE_SESSION)
    merge = partial(merged_metadata, given)
    act = partial(metadata.update, call.services, call.key, session_id, merge)
    render = _render(call, given)
    return performed(call, given, act, render, operation="v1 update session", record=session_id)


@router.post(f"{SESSIONS}/{{session_id}}/expire")
async def expire(call: Called, body: Body, session_id: str) -> Response:
    """Expire a session. A repeat with the same Idempotency-Key gets the same answer."""
    given = parsed_for(SESSION, body, parity.ONE)

    def end(reserve: Reserve[Session] | None) -> Session:
        try:
            return close.expire(call.services, call.key, session_id, reserve)
        except SessionUnexpectedState:  # its message names statuses that Stripe does not have
            raise SessionUnexpectedState(
                "Only a session with the status `open` can be expired."
            ) from None

    render = _render(call, given)
    return performed(call, given, end, render, operation="v1 expire session", record=session_id)


@router.get(f"{SESSIONS}/{{session_id}}/line_items")
async def session_line_items(call: Called, query: Query, session_id: str) -> Response:
    """Return a page of a session's line items. Only prices and products can be expanded."""
    given = parsed_for(ITEMS, query, parity.LINE_ITEMS)
    whole, base_url = given.expands("data.price.product"), call.services.base_url
    session = lookup.get(call.services, call.key, session_id)
    items = line_items(session, base_url=base_url, expand_product=whole)
    data, more = page(items, given.values)
    return listed(call, data, more=more, upward="ending_before" in given.values)


@router.get("/events")
async def events(call: Called, query: Query) -> Response:
    """Return a page of events."""
    given = parsed(query, parity.LIST_EVENTS)
    limits.admit_list(call.services, call.key.merchant)
    asked = event_query(call.services, call.key, given)
    found, behind = event_log.events_page(call.services, call.key, asked)
    data = event_objects(call.services, call.key, found)
    after = None if behind is None else behind.partition("#")[2]
    return listed(call, data, more=after is not None, upward=asked.upward, after=after)


@router.get("/events/{event_id}")
async def event(call: Called, query: Query, event_id: str) -> Response:
    parsed(query, parity.ONE)
    found = event_log.get(call.services, call.key.merchant, event_id)
    [one] = event_objects(call.services, call.key, [found])
    return shown(call, one)


@router.get("/balance")
async def balance(call: Called, query: Query) -> Response:
    """Return a balance of zero, because this service holds no money."""
    parsed(query, parity.ONE)
    nothing = [{"amount": 0, "currency": call.key.asset_code.lower(), "source_types": {}}]
    live = livemode(call.services.base_url)
    held = {"available": nothing, "pending": nothing, "livemode": live}
    return shown(call, {"object": "balance", **held})


def _render(call: Call, given: Parsed) -> Callable[[Session], str]:
    def render(session: Session) -> str:
        now = call.services.clock.now()
        return json_text(session_shown(call.services, session, given, now))

    return render


TYPES_MAX = 20


def event_objects(
    services: Services, key: ApiKey, events: Sequence[WebhookEvent]
) -> list[dict[str, Any]]:
    """Return the events as they are sent, each with the number of endpoints still to receive it."""
    pending = event_log.undelivered(services, key, events)
    return [
        json.loads(each.stripe_body) | {"pending_webhooks": pending[each.id]}
        for each in _with_details(services, events)
    ]


def _with_details(services: Services, events: Sequence[WebhookEvent]) -> Iterator[WebhookEvent]:
    """Yield the events, each with the details that the customer of its session has given."""
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
    """Return the flow's query.

    Raises ParameterInvalid…, and ResourceMissing if there is no event with the id in
    `starting_after` or `ending_before`.
    """
    values = given.values
    given.expands_nothing()
    limit = limit_of(values)
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
        rounds_if_empty=ROUNDS_IF_EMPTY,
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


# This must be the last route, because it matches every path.
@router.api_route("/{rest:path}", methods=["DELETE", "GET", "PATCH", "POST", "PUT"])
async def unknown(call: Called, rest: str) -> Response:
    """Refuse all other paths: 401 without a key, 404 with a key."""
    path = call.request.url.path
    cure = "see /docs/v1."
    if rest.startswith("v1/"):
        cure = f"set the library's base to {call.services.base_url}, without /v1."
    elif path.endswith("/"):
        cure = "leave out the final slash."
    raise ResourceMissing(f"{call.request.method} {path[:100]} is not supported: {cure}")


app = application(random_bytes=system_random, render=problem)
app.include_router(account.router)
app.include_router(endpoints.router)
app.include_router(payments.router)
app.include_router(refunds.router)
app.include_router(router)
handler = lambda_handler(app)
