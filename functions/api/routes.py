"""The routes of the merchant API. Each route parses, calls one flow, and renders.

The API key is always checked before the body, so that a caller without a key learns nothing about
errors in the body. The state of a session is computed for a time just before the session was read.
Otherwise a session that was canceled just before its expiry could be shown as expired.

The Lambda function `api` also serves client documents. A client document is the public identity of
a merchant without a key file, for whom this service signs requests to wallets. At each signed
request, a wallet provider reads the keys at the document's address, and the payment waits until the
provider has them. The answers must be fast, and `api` never waits for a wallet, so it serves the
documents. Each process reads a merchant's record at most once a minute, and caches can keep an
answer for a minute. Requests for the documents are not limited per client, because a provider sends
the requests for all its customers from a few addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from api.http import (
    Injected,
    Started,
    answered,
    api_key,
    idempotency_key,
    json_response,
    page_json,
    performed,
)
from api.requests import CreateSession, expands, list_query
from checkout import wiring
from checkout.domain.merchant.record import ApiKey
from checkout.domain.session.public import last_payment_error, public_attempts, public_session
from checkout.domain.session.record import Session
from checkout.flows import limits
from checkout.flows.idempotency import Reserve, json_text
from checkout.flows.merchant import client_documents
from checkout.flows.session import close, details, lists, lookup
from checkout.flows.session.create import create_session, native_answer
from checkout.services import Services
from checkout.version import VERSION
from checkout.web import json_object, may_be_kept, no_parameters, request_id, validated

if TYPE_CHECKING:
    from checkout import answers

End = Callable[[Services, ApiKey, str, Reserve[Session] | None], Session]

router = APIRouter(prefix="/api")
SESSIONS = "/checkout/sessions"


@router.post(SESSIONS)
async def create(services: Injected, request: Request) -> Response:
    """Create a session. A repeat with the same Idempotency-Key gets the same answer."""
    key = api_key(services, request)
    new = validated(CreateSession, await json_object(request)).new_session()
    return answered(
        create_session(services, key, new, idempotency_key(request), request_id(request))
    )


@router.get(SESSIONS)
async def list_sessions(services: Injected, request: Request) -> Response:
    """Return a page of sessions, fewer than `limit` if the response would be too large."""
    key, now = api_key(services, request, None), services.clock.now()
    asked = list_query(request.query_params.multi_items())
    limits.admit_list(services, key.merchant)
    listed = lists.list_page(services, key, asked)
    known = details.known(services, listed.sessions)
    shown = [
        public_session(each, base_url=services.base_url, now=now, details=known[each.id])
        for each in listed.sessions
    ]

    def page(size: int) -> answers.SessionList:
        next_cursor = listed.next_cursor
        if size < len(shown):
            next_cursor = lists.cursor_behind(key, listed.sessions[size - 1])
        return {
            "object": "list",
            "url": "/api/checkout/sessions",
            "data": shown[:size],
            "has_more": next_cursor is not None,
            "next_cursor": next_cursor,
        }

    return json_response(page_json(shown, page))


@router.get(f"{SESSIONS}/{{session_id}}")
async def get(services: Injected, request: Request, session_id: str) -> Response:
    """Return a session, with its payment attempts if `expand` asks for them."""
    key, expanded = api_key(services, request, ["expand"]), expands(request)
    now = services.clock.now()
    session = lookup.get(services, key, session_id)
    known = details.known(services, [session])[session.id]
    shown = public_session(session, base_url=services.base_url, now=now, details=known)
    return json_response(json_text({**shown, **_attempts(session)} if expanded else shown))


@router.get(f"{SESSIONS}/{{session_id}}/attempts")
async def attempts(services: Injected, request: Request, session_id: str) -> Response:
    """Return the stored payment attempts of a session, and the number of all attempts."""
    session = lookup.get(services, api_key(services, request), session_id)
    found = _attempts(session)
    data = found["payment_attempts"]
    page: answers.PaymentAttemptList = {
        "object": "list",
        "url": f"/api{SESSIONS}/{session.id}/attempts",
        "data": data,
        "has_more": False,
        "total_count": data[-1]["number"] if data else 0,
        "last_payment_error": found["last_payment_error"],
    }
    return json_response(json_text(page))


@router.post(f"{SESSIONS}/{{session_id}}/expire")
async def expire(services: Injected, request: Request, session_id: str) -> Response:
    return await _ended(services, request, session_id, close.expire)


@router.post(f"{SESSIONS}/{{session_id}}/cancel")
async def cancel(services: Injected, request: Request, session_id: str) -> Response:
    return await _ended(services, request, session_id, close.cancel)


@router.post(f"{SESSIONS}/{{session_id}}/accept_as_paid")
async def accept_as_paid(services: Injected, request: Request, session_id: str) -> Response:
    return await _ended(services, request, session_id, close.accept_as_paid)


@router.post(f"{SESSIONS}/{{session_id}}/give_up")
async def give_up(services: Injected, request: Request, session_id: str) -> Response:
    return await _ended(services, request, session_id, close.give_up)


@router.get("/health")
async def health(services: Injected, started_at: Started) -> Response:
    """Report the health of the service. The route needs no key: a load balancer has none."""
    healthy = services.database.ping()
    report: answers.Health = {
        "status": "healthy" if healthy else "unhealthy",
        "uptime": int((services.clock.now() - started_at).total_seconds()),
        "version": VERSION,
        "checks": {"database": "ok" if healthy else "failing"},
    }
    return json_response(json_text(report), 200 if healthy else 503)


def _attempts(session: Session) -> answers.Attempts:
    return {
        "payment_attempts": public_attempts(session),
        "last_payment_error": last_payment_error(session),
    }


async def _ended(services: Services, request: Request, session_id: str, end: End) -> Response:
    key = api_key(services, request)
    await no_parameters(request)
    act, render = partial(end, services, key, session_id), partial(native_answer, services)
    return answered(performed(services, key, request, end.__name__, session_id, act, render))


clients_router = APIRouter(prefix="/clients/{client_id}", include_in_schema=False)
READ: Final = ["GET", "HEAD"]
_KEPT: Final = "public, max-age=60"
_JSON: Final = frozenset({"application/json", "application/*", "*/*"})


async def client_services() -> Services:
    """Return the services of this process. The merchants' records in them can be a minute old."""
    return wiring.client_services()


ClientServices = Annotated[Services, Depends(client_services)]


@clients_router.api_route("", methods=READ)
async def document(services: ClientServices, request: Request, client_id: str) -> Response:
    """Return the wallet address document of the client."""
    return _kept(
        request, client_documents.document(services.merchants, services.base_url, client_id)
    )


@clients_router.api_route("/jwks.json", methods=READ)
async def jwks(services: ClientServices, request: Request, client_id: str) -> Response:
    """Return the public keys of the client."""
    return _kept(request, client_documents.jwks(services.merchants, client_id))


def _kept(request: Request, answer: dict[str, Any]) -> Response:
    """Return `answer`, and allow caches to keep it.

    If the client does not accept JSON, return 406, as wallets do.
    """
    accepted = request.headers.get("accept") or "*/*"
    if all(each.split(";")[0].strip().lower() not in _JSON for each in accepted.split(",")):
        return Response("This address returns only JSON.", 406, media_type="text/plain")
    may_be_kept(request, _KEPT)
    return JSONResponse(answer)
