"""The routes of /v1 on sessions, events and the balance: parse, call one flow, render."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fastapi import APIRouter, Request, Response

from api.v1 import parity
from api.v1.answers import listed, performed, shown
from api.v1.collection import first_asking
from api.v1.dependencies import Body, IdempotencyKey, Injected, Key, Query
from api.v1.events import event_objects, event_query
from api.v1.expansions import ITEMS, SESSION, expandable
from api.v1.forms import Parsed, parsed
from api.v1.sessions import (
    continued,
    list_query,
    merged_metadata,
    new_session,
    of_payment,
    page,
)
from api.v1.sessions import shown as session_shown
from checkout.domain.ground.errors import ParameterInvalid, ResourceMissing, SessionUnexpectedState
from checkout.domain.session.record import Session
from checkout.domain.stripe.objects import line_items, livemode
from checkout.flows import limits
from checkout.flows.idempotency import Reserve, json_text
from checkout.flows.session import close, details, lists, lookup, metadata
from checkout.flows.session.create import open_session
from checkout.flows.webhooks import event_log
from checkout.services import Services
from checkout.web import request_id

router = APIRouter(prefix="/v1")
SESSIONS = "/checkout/sessions"


@router.post(SESSIONS)
async def create(
    services: Injected,
    key: Key,
    request: Request,
    body: Body,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Create a session. A header of the answer names the parameters that were ignored."""
    given = parsed(body, parity.CREATE_SESSION)

    def opened(reserve: Reserve[Session] | None) -> Session:
        new = new_session(services, given)
        try:
            return open_session(services, key, new, reserve, request_id(request))
        except ParameterInvalid as error:
            if error.param != "collect":
                raise
            raise ParameterInvalid(error.message, param=first_asking(given)) from None

    return performed(
        services,
        key,
        request,
        given,
        opened,
        operation="v1 create session",
        idempotency_key=idempotency_key,
        render=_render(services, given),
    )


@router.get(SESSIONS)
async def list_sessions(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return a page of sessions, or those of a payment."""
    given = parsed(query, parity.LIST_SESSIONS)
    expandable(given, SESSION, "data.")
    limits.admit_list(services, key.merchant)
    asked, now = list_query(services, key, given), services.clock.now()
    if "payment_intent" in given.values:
        found, after = of_payment(services, key, given.values["payment_intent"], asked), None
    else:
        result = lists.list_page(services, key, asked)
        found, after = result.sessions, continued(key, result)
    known = details.known(services, found)
    data = [
        session_shown(services, each, given, now, within="data.", details=known[each.id])
        for each in found
    ]
    return listed(request, data, more=after is not None, upward=asked.upward, after=after)


@router.get(f"{SESSIONS}/{{session_id}}")
async def get(
    services: Injected, key: Key, request: Request, query: Query, session_id: str
) -> Response:
    given = parsed(query, parity.ONE)
    expandable(given, SESSION)
    now = services.clock.now()
    session = lookup.get(services, key, session_id)
    known = details.known(services, [session])[session.id]
    return shown(request, session_shown(services, session, given, now, details=known))


@router.post(f"{SESSIONS}/{{session_id}}")
async def update(
    services: Injected,
    key: Key,
    request: Request,
    body: Body,
    session_id: str,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Change the session's metadata: keys are merged, and an empty value removes its key."""
    given = parsed(body, parity.UPDATE_SESSION)
    expandable(given, SESSION)
    merge = partial(merged_metadata, given)
    return performed(
        services,
        key,
        request,
        given,
        lambda reserve: metadata.update(services, key, session_id, merge, reserve),
        operation="v1 update session",
        record=session_id,
        idempotency_key=idempotency_key,
        render=_render(services, given),
    )


@router.post(f"{SESSIONS}/{{session_id}}/expire")
async def expire(
    services: Injected,
    key: Key,
    request: Request,
    body: Body,
    session_id: str,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    """Expire a session. A repeat with the same Idempotency-Key gets the first answer."""
    given = parsed(body, parity.ONE)
    expandable(given, SESSION)

    def end(reserve: Reserve[Session] | None) -> Session:
        try:
            return close.expire(services, key, session_id, reserve)
        except SessionUnexpectedState:  # its message has our own statuses
            raise SessionUnexpectedState(
                "Only a session with the status `open` can be expired."
            ) from None

    return performed(
        services,
        key,
        request,
        given,
        end,
        operation="v1 expire session",
        record=session_id,
        idempotency_key=idempotency_key,
        render=_render(services, given),
    )


@router.get(f"{SESSIONS}/{{session_id}}/line_items")
async def session_line_items(
    services: Injected, key: Key, request: Request, query: Query, session_id: str
) -> Response:
    """Return a page of a session's line items. Only prices and products can be expanded."""
    given = parsed(query, parity.LINE_ITEMS)
    product = "data.price.product"
    expandable(given, ITEMS)
    session = lookup.get(services, key, session_id)
    items = line_items(session, base_url=services.base_url, expand_product=given.expands(product))
    data, more = page(items, [each["id"] for each in items], given.values)
    return listed(request, data, more=more, upward="ending_before" in given.values)


@router.get("/events")
async def events(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return a page of events."""
    given = parsed(query, parity.LIST_EVENTS)
    limits.admit_list(services, key.merchant)
    asked = event_query(services, key, given)
    found, behind = event_log.events_page(services, key, asked)
    data = event_objects(services, key, found)
    after = None if behind is None else behind.partition("#")[2]
    return listed(request, data, more=after is not None, upward=asked.upward, after=after)


@router.get("/events/{event_id}")
async def event(
    services: Injected, key: Key, request: Request, query: Query, event_id: str
) -> Response:
    parsed(query, parity.ONE)
    found = event_log.get(services, key.merchant, event_id)
    [one] = event_objects(services, key, [found])
    return shown(request, one)


@router.get("/balance")
async def balance(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Return a balance of zero: no money is held here."""
    parsed(query, parity.ONE)
    nothing = [{"amount": 0, "currency": key.asset_code.lower(), "source_types": {}}]
    held = {"available": nothing, "pending": nothing, "livemode": livemode(services.base_url)}
    return shown(request, {"object": "balance", **held})


def unknown(router: APIRouter) -> None:
    """Add the route for all other paths: 401 without a key, 404 with a key."""

    @router.api_route("/{rest:path}", methods=["DELETE", "GET", "PATCH", "POST", "PUT"])
    async def missing(services: Injected, _: Key, request: Request, rest: str) -> Response:
        path = request.url.path
        cure = "see /docs/v1."
        if rest.startswith("v1/"):
            cure = f"set the library's base to {services.base_url}, without /v1."
        elif path.endswith("/"):
            cure = "leave out the final slash."
        raise ResourceMissing(f"{request.method} {path[:100]} is not supported: {cure}")


def _render(services: Services, given: Parsed) -> Callable[[Session], str]:
    def render(session: Session) -> str:
        return json_text(session_shown(services, session, given, services.clock.now()))

    return render
