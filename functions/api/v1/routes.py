"""The routes of /v1 on sessions, events and the balance: parse, call one flow, render."""

from __future__ import annotations

from collections.abc import Callable

from fastapi import APIRouter, Request, Response

from api.v1 import parity
from api.v1.answers import answered, listed, shown
from api.v1.dependencies import Body, IdempotencyKey, Injected, Key, Query
from api.v1.events import event_object, event_query
from api.v1.forms import Parsed, parsed
from api.v1.sessions import (
    ROUNDS,
    expandable,
    list_query,
    new_session,
    of_payment,
    page,
)
from api.v1.sessions import shown as session_shown
from checkout.domain.errors import ParameterInvalid, ResourceMissing
from checkout.domain.session import Session
from checkout.domain.stripe_objects import line_items, livemode
from checkout.flows.idempotency import Posted, answer, fingerprint_of
from checkout.flows.payment import sessions
from checkout.flows.payment.sessions import json_text
from checkout.flows.webhooks import delivery_log, event_list
from checkout.ports.services import Services
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
    given = parsed(body, parity.CREATE_SESSION)
    posted = Posted(
        merchant=key.merchant,
        key=idempotency_key,
        fingerprint=fingerprint_of("v1 create session", given.given),
        render=_render(services, given),
    )
    done = answer(
        services,
        posted,
        lambda reserve: sessions.open_session(
            services, key, new_session(services, given), reserve, request_id(request)
        ),
    )
    return answered(request, done, given.ignored)


@router.get(SESSIONS)
async def list_sessions(services: Injected, key: Key, request: Request, query: Query) -> Response:
    given = parsed(query, parity.LIST_SESSIONS)
    expandable(given, "data.")
    asked = list_query(services, key, given)
    if "payment_intent" in given.values:
        found, more = tuple(of_payment(services, key, given.values["payment_intent"])), False
    else:
        result = sessions.list_page(services, key, asked)
        found, more = result.sessions, result.next_cursor is not None
    if more and not found:
        raise _too_wide("status")
    data = [session_shown(services, each, given, within="data.") for each in found]
    return listed(request, data, more=more, upward=asked.upward)


@router.get(f"{SESSIONS}/{{session_id}}")
async def get(
    services: Injected, key: Key, request: Request, query: Query, session_id: str
) -> Response:
    given = parsed(query, parity.ONE)
    expandable(given, "")
    session = sessions.get(services, key, session_id)
    return shown(request, session_shown(services, session, given))


@router.post(f"{SESSIONS}/{{session_id}}/expire")
async def expire(
    services: Injected,
    key: Key,
    request: Request,
    body: Body,
    session_id: str,
    idempotency_key: IdempotencyKey = None,
) -> Response:
    given = parsed(body, parity.ONE)
    expandable(given, "")
    posted = Posted(
        merchant=key.merchant,
        key=idempotency_key,
        fingerprint=fingerprint_of("v1 expire session", [session_id, given.given]),
        render=_render(services, given),
    )
    return answered(
        request,
        answer(
            services, posted, lambda reserve: sessions.expire(services, key, session_id, reserve)
        ),
    )


@router.get(f"{SESSIONS}/{{session_id}}/line_items")
async def session_line_items(
    services: Injected, key: Key, request: Request, query: Query, session_id: str
) -> Response:
    given = parsed(query, parity.LINE_ITEMS)
    product = "data.price.product"
    for number, name in enumerate(given.values.get("expand", ())):
        if name not in (product, "data.price"):
            raise ParameterInvalid("This cannot be expanded.", param=f"expand[{number}]")
    session = sessions.get(services, key, session_id)
    items = line_items(session, base_url=services.base_url, expand_product=given.expands(product))
    data, more = page(items, [each["id"] for each in items], given.values)
    return listed(request, data, more=more, upward="ending_before" in given.values)


@router.get("/events")
async def events(services: Injected, key: Key, request: Request, query: Query) -> Response:
    given = parsed(query, parity.LIST_EVENTS)
    asked = event_query(services, key, given, rounds=ROUNDS)
    found, behind = event_list.page(services, key, asked)
    if behind and not found:
        raise _too_wide("type")
    data = [event_object(services, each) for each in found]
    return listed(request, data, more=behind is not None, upward=asked.upward)


@router.get("/events/{event_id}")
async def event(
    services: Injected, key: Key, request: Request, query: Query, event_id: str
) -> Response:
    parsed(query, parity.ONE)
    found = delivery_log.get(services, key.merchant, event_id)
    return shown(request, event_object(services, found))


@router.get("/balance")
async def balance(services: Injected, key: Key, request: Request, query: Query) -> Response:
    """Tell that no money is held here."""
    parsed(query, parity.ONE)
    nothing = [{"amount": 0, "currency": key.asset_code.lower(), "source_types": {}}]
    held = {"available": nothing, "pending": nothing, "livemode": livemode(services.base_url)}
    return shown(request, {"object": "balance", **held})


def unknown(router: APIRouter) -> None:
    """Add the route of everything else, which is known to need a key and not to exist."""

    @router.api_route("/{rest:path}", methods=["DELETE", "GET", "PATCH", "POST", "PUT"])
    async def missing(_: Key, request: Request) -> Response:
        raise ResourceMissing(
            f"There is no {request.method} {request.url.path[:100]} here; docs/stripe.md lists "
            "what there is."
        )


def _render(services: Services, given: Parsed) -> Callable[[Session], str]:
    def render(session: Session) -> str:
        return json_text(session_shown(services, session, given))

    return render


def _too_wide(param: str) -> ParameterInvalid:
    return ParameterInvalid(
        "None of the last entries fits, and there are more: narrow the list by `created`.",
        param=param,
    )
