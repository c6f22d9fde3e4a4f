"""HTTP helpers of the merchant API: services, API keys, refused requests and pages of lists.

Tests replace the dependencies with `app.dependency_overrides`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Request, Response
from pydantic_core import to_json

from api.requests import refuse_query
from checkout import telemetry, wiring
from checkout.adapters.runtime import SystemClock
from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.grammar import SESSION_ID
from checkout.domain.merchant.failed_requests import FailedRequest
from checkout.domain.merchant.record import ApiKey
from checkout.flows.idempotency import Answer, Posted, Reserve, answer, fingerprint_of
from checkout.flows.merchant import api_keys
from checkout.services import Services
from checkout.web import ErrorResponse

T = TypeVar("T")

_STARTED_AT: Final = SystemClock().now()


async def services() -> Services:
    """Return the services of this process."""
    return wiring.api_services()


async def started_at() -> datetime:
    """Return the time at which this process started."""
    return _STARTED_AT


Injected = Annotated[Services, Depends(services)]
Started = Annotated[datetime, Depends(started_at)]


def api_key(services: Services, request: Request, query: Sequence[str] | None = ()) -> ApiKey:
    """Return the API key in the Authorization header.

    Raise the errors of `authenticate`, and ParameterUnknown if the request's query string has a
    parameter that is not in `query`. If `query` is None, the route checks the parameters itself.
    The routes call this function directly. Calling it as a FastAPI dependency would take more time
    than the function itself.
    """
    key = authenticated(services, request, request.headers.get("authorization"))
    if query is not None:
        refuse_query(request, *query)
    return key


def authenticated(services: Services, request: Request, authorization: str | None) -> ApiKey:
    """Return the API key in `authorization`, and store the key in `request.state`.

    If the request is refused later, `note` records the refusal for this key. Raise as
    `authenticate` does.
    """
    return api_keys.authenticate(
        services,
        authorization,
        request.method,
        request.scope["route"].path,
        known=partial(_remember, services, request),
    )


def idempotency_key(request: Request) -> str | None:
    """Return the Idempotency-Key, by which a repeated request is recognized, or None."""
    return request.headers.get("idempotency-key")


def performed(
    services: Services,
    key: ApiKey,
    request: Request,
    operation: str,
    parameters: Any,
    act: Callable[[Reserve[T] | None], T],
    render: Callable[[T], str],
    status: int = 200,
) -> Answer:
    """Execute a POST only once for its Idempotency-Key, and return the answer.

    A repeated request must have the same `operation` and `parameters`. `render` turns the result of
    `act` into the body of the response. Raise as `answer` does.
    """
    posted: Posted[T] = Posted(
        merchant=key.merchant,
        key=idempotency_key(request),
        fingerprint=fingerprint_of(operation, parameters),
        render=render,
        status=status,
    )
    return answer(services, posted, act)


def answered(given: Answer) -> Response:
    """Return the response with this answer. A header marks the answer to a repeated request."""
    headers = {"Idempotent-Replayed": "true"} if given.replayed else {}
    return json_response(given.body, given.status, headers)


def json_response(
    body: str | bytes, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return a response of compact JSON."""
    return Response(body, status, headers, media_type="application/json")


SHOWN_MAX: Final = 40  # characters of a wrong id that the answer repeats
_SECRETS: Final = ("sk_", "rk_", "whsec_")  # prefixes of our secrets and Stripe's


def with_id(request: Request, found: ErrorResponse) -> ErrorResponse:
    """Return the error. If the id in the path is malformed, its message explains the form of an id.

    The explanation depends only on the text of the id. So the message does not reveal whether a
    session exists.
    """
    given = request.path_params.get("session_id")
    if found.code != ResourceMissing.code or given is None or SESSION_ID.fullmatch(given):
        return found
    said = "A session's id looks like cs_ and 22 letters or digits"
    if not any(each in given for each in _SECRETS):
        said += f"; this is {json.dumps(given[:SHOWN_MAX])}"
    return replace(found, message=f"{said}.")


def _remember(services: Services, request: Request, key: ApiKey) -> None:
    request.state.refused = partial(_note, services, request, key)


def note(request: Request, found: ErrorResponse, status: int) -> None:
    """Record that a request with a valid API key was refused. A 5xx does not count as a refusal."""
    told = getattr(request.state, "refused", None)
    if told is not None and status < 500:
        told(found, status)


def _note(
    services: Services, request: Request, key: ApiKey, found: ErrorResponse, status: int
) -> None:
    # Secrets are removed, because a caller may send a secret in the wrong place. An API key as a
    # field name, for example, would be in the error's message or param.
    refusal = FailedRequest(
        at=services.clock.now(),
        method=request.method,
        route=request.scope["route"].path,
        status=status,
        code=found.code,
        message=telemetry.redacted(found.message),
        request_id=found.request_id,
        param=telemetry.redacted(found.param),
    )
    api_keys.note_failed_request(services, key, refusal)


# A page whose objects are too large ends early, because Lambda limits a response to 6 MB.
PAGE_BYTES: Final = 5_000_000
# In a JSON string, a byte takes at most this many bytes: a character of four bytes becomes two
# escapes of six bytes each, as in \ud83d\ude00.
_LONGEST: Final = 3

Object = Mapping[str, object]


def page_json(objects: Sequence[Object], page: Callable[[int], Object]) -> bytes:
    """Return, as JSON, a page with as many of the objects as fit, but at least one.

    `page` returns the page with the first N objects, given N. This function uses pydantic's
    encoder, which takes a third of the time of the module `json` for a hundred sessions.
    """
    # Nearly all pages fit, so the whole page is written first. The objects are written one by one
    # only if the page is too large.
    whole = to_json(page(len(objects)))
    if len(whole) * _LONGEST <= PAGE_BYTES or _size(whole) <= PAGE_BYTES:
        return whole
    return to_json(page(_fitting(objects)))


def _fitting(objects: Iterable[Object]) -> int:
    """Return the number of objects that fit on a page, at least 1."""
    count = size = 0
    for each in objects:
        size += _size(to_json(each))
        if size > PAGE_BYTES and count:
            break
        count += 1
    return count


def _size(document: bytes) -> int:
    """Return the size in bytes of a JSON document as Lambda sends it: as a string within JSON."""
    return len(json.dumps(document.decode()))
