"""The routes of the merchant API: parse, call one flow, render.

The key is always checked before the body, so that a caller without one learns nothing about it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Request, Response

from api.dependencies import Body, Injected, Key, Started
from api.requests import CreateSession, list_query
from checkout.domain.public import public_session
from checkout.domain.session import Session
from checkout.flows.payment import sessions
from checkout.flows.payment.sessions import json_text
from checkout.ports.services import Services
from checkout.version import VERSION
from checkout.web import no_parameters, validated

router = APIRouter(prefix="/api")
SESSIONS = "/checkout/sessions"
# Lambda's responses have at most 6 MB: a page of larger sessions ends early, and has a cursor.
PAGE_BYTES: Final = 5_000_000


@router.post(SESSIONS)
async def create(
    services: Injected,
    key: Key,
    body: Body,
    idempotency_key: Annotated[str | None, Header()] = None,
) -> Response:
    new = validated(CreateSession, body).new_session()
    created = sessions.create(services, key, new, idempotency_key)
    headers = {"Idempotent-Replayed": "true"} if created.replayed else {}
    return _json(created.body, created.status, headers)


@router.get(SESSIONS)
async def list_sessions(services: Injected, key: Key, request: Request) -> Response:
    listed = sessions.list_page(services, key, list_query(request.query_params.multi_items()))
    now = services.clock.now()
    next_cursor = listed.next_cursor
    data: list[dict[str, Any]] = []
    size = 0
    for number, session in enumerate(listed.sessions):
        shown = public_session(session, base_url=services.base_url, now=now)
        size += len(json.dumps(json_text(shown)))  # as Lambda writes it: a string within JSON
        if size > PAGE_BYTES and data:
            next_cursor = sessions.cursor_behind(key, listed.sessions[number - 1])
            break
        data.append(shown)
    page = {
        "object": "list",
        "url": f"/api{SESSIONS}",
        "data": data,
        "has_more": next_cursor is not None,
        "next_cursor": next_cursor,
    }
    return _json(json_text(page))


@router.get(f"{SESSIONS}/{{session_id}}")
async def get(services: Injected, key: Key, session_id: str) -> Response:
    return _session(services, sessions.get(services, key, session_id))


@router.post(f"{SESSIONS}/{{session_id}}/expire")
async def expire(
    services: Injected, key: Key, session_id: str, _: Annotated[None, Depends(no_parameters)]
) -> Response:
    return _session(services, sessions.expire(services, key, session_id))


@router.post(f"{SESSIONS}/{{session_id}}/cancel")
async def cancel(
    services: Injected, key: Key, session_id: str, _: Annotated[None, Depends(no_parameters)]
) -> Response:
    return _session(services, sessions.cancel(services, key, session_id))


@router.post(f"{SESSIONS}/{{session_id}}/accept_as_paid")
async def accept_as_paid(
    services: Injected, key: Key, session_id: str, _: Annotated[None, Depends(no_parameters)]
) -> Response:
    return _session(services, sessions.accept_as_paid(services, key, session_id))


@router.post(f"{SESSIONS}/{{session_id}}/give_up")
async def give_up(
    services: Injected, key: Key, session_id: str, _: Annotated[None, Depends(no_parameters)]
) -> Response:
    return _session(services, sessions.give_up(services, key, session_id))


@router.get("/health")
async def health(services: Injected, started_at: Started) -> Response:
    """Report health, without a key: a load balancer has none."""
    answers = services.database.ping()
    report = {
        "status": "healthy" if answers else "unhealthy",
        "uptime": int((services.clock.now() - started_at).total_seconds()),
        "version": VERSION,
        "checks": {"database": "ok" if answers else "failing"},
    }
    return _json(json_text(report), 200 if answers else 503)


def _session(services: Services, session: Session) -> Response:
    now = services.clock.now()
    return _json(json_text(public_session(session, base_url=services.base_url, now=now)))


def _json(body: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")
