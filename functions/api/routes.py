"""The routes of the merchant API: parse, call one flow, render.

The key is always checked before the body, so that a caller without one learns nothing about it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response

from api.dependencies import Injected, Started, api_key, idempotency_key
from api.paging import page_json
from api.requests import CreateSession, expands, list_query
from checkout.domain.merchant import ApiKey
from checkout.domain.public import public_session
from checkout.domain.session import Session
from checkout.flows.idempotency import Answer, Posted, Reserve, answer, fingerprint_of
from checkout.flows.payment import sessions
from checkout.flows.payment.sessions import json_text
from checkout.ports.services import Services
from checkout.version import VERSION
from checkout.web import json_object, no_parameters, request_id, validated

End = Callable[[Services, ApiKey, str, Reserve[Session] | None], Session]

router = APIRouter(prefix="/api")
SESSIONS = "/checkout/sessions"


@router.post(SESSIONS)
async def create(services: Injected, request: Request) -> Response:
    key = api_key(services, request)
    new = validated(CreateSession, await json_object(request)).new_session()
    return _answer(
        sessions.create(services, key, new, idempotency_key(request), request_id(request))
    )


@router.get(SESSIONS)
async def list_sessions(services: Injected, request: Request) -> Response:
    key = api_key(services, request)
    listed = sessions.list_page(services, key, list_query(request.query_params.multi_items()))
    now = services.clock.now()
    shown = [public_session(each, base_url=services.base_url, now=now) for each in listed.sessions]

    def page(size: int) -> dict[str, Any]:
        next_cursor = listed.next_cursor
        if size < len(shown):
            next_cursor = sessions.cursor_behind(key, listed.sessions[size - 1])
        return {
            "object": "list",
            "url": f"/api{SESSIONS}",
            "data": shown[:size],
            "has_more": next_cursor is not None,
            "next_cursor": next_cursor,
        }

    return _json(page_json(shown, page))


@router.get(f"{SESSIONS}/{{session_id}}")
async def get(services: Injected, request: Request, session_id: str) -> Response:
    key, expanded = api_key(services, request), expands(request)
    session = sessions.get(services, key, session_id)
    if not expanded:
        return _json(sessions.native_answer(services, session))
    now = services.clock.now()
    shown = public_session(session, base_url=services.base_url, now=now)
    return _json(json_text(shown | _attempts(session)))


@router.get(f"{SESSIONS}/{{session_id}}/attempts")
async def attempts(services: Injected, request: Request, session_id: str) -> Response:
    session = sessions.get(services, api_key(services, request), session_id)
    found = _attempts(session)
    data = found["payment_attempts"]
    page = {
        "object": "list",
        "url": f"/api{SESSIONS}/{session.id}/attempts",
        "data": data,
        "has_more": False,
        "total_count": data[-1]["number"] if data else 0,
        "last_payment_error": found["last_payment_error"],
    }
    return _json(json_text(page))


@router.post(f"{SESSIONS}/{{session_id}}/expire")
async def expire(services: Injected, request: Request, session_id: str) -> Response:
    return await _ended(services, request, session_id, sessions.expire)


@router.post(f"{SESSIONS}/{{session_id}}/cancel")
async def cancel(services: Injected, request: Request, session_id: str) -> Response:
    return await _ended(services, request, session_id, sessions.cancel)


@router.post(f"{SESSIONS}/{{session_id}}/accept_as_paid")
async def accept_as_paid(services: Injected, request: Request, session_id: str) -> Response:
    return await _ended(services, request, session_id, sessions.accept_as_paid)


@router.post(f"{SESSIONS}/{{session_id}}/give_up")
async def give_up(services: Injected, request: Request, session_id: str) -> Response:
    return await _ended(services, request, session_id, sessions.give_up)


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


def _attempts(session: Session) -> dict[str, Any]:
    # Imported here, because most requests do not ask for it.
    from checkout.domain.public_attempts import last_payment_error, public_attempts

    return {
        "payment_attempts": public_attempts(session),
        "last_payment_error": last_payment_error(session),
    }


async def _ended(services: Services, request: Request, session_id: str, end: End) -> Response:
    key = api_key(services, request)
    await no_parameters(request)
    posted = Posted(
        merchant=key.merchant,
        key=idempotency_key(request),
        fingerprint=fingerprint_of(end.__name__, session_id),
        render=partial(sessions.native_answer, services),
    )
    return _answer(
        answer(services, posted, lambda reserve: end(services, key, session_id, reserve))
    )


def _answer(given: Answer) -> Response:
    headers = {"Idempotent-Replayed": "true"} if given.replayed else {}
    return _json(given.body, given.status, headers)


def _json(body: str | bytes, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(body, status, headers, media_type="application/json")
