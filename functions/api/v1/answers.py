"""Responses of /v1: JSON with Stripe's headers, and errors as its libraries read them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from fastapi import Request, Response

from api import refusals
from api.paging import page_json
from api.v1.forms import Parsed, with_brackets
from checkout import wiring
from checkout.domain.ground import errors
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.merchant.record import ApiKey
from checkout.flows.idempotency import (
    Answer,
    Posted,
    Reserve,
    answer,
    fingerprint_of,
    json_text,
)
from checkout.services import Services
from checkout.web import STATUS, ErrorResponse

T = TypeVar("T")

IGNORED: Final = "Ignored-Parameters"
IGNORED_MAX: Final = 2000  # characters of that header

# Statuses that differ from the native API's. Stripe's libraries repeat a 409 within a second: this
# helps if another request holds the session, but not while a payment is under way.
STATUSES: Final[Mapping[type[CheckoutError], int]] = {errors.PaymentInProgress: 400}
_RETRY: Final = (409, 429, 500, 503)
_BY_CODE: Final = {error.code: status for error, status in STATUSES.items()}
# The types of Stripe's libraries; ours are more.
_TYPES: Final = {
    "authentication_error": "invalid_request_error",
    "conflict_error": "invalid_request_error",
    "permission_error": "invalid_request_error",
    "rate_limit_error": "invalid_request_error",
}


def status_of(error: type[CheckoutError]) -> int:
    """Return the status of an error under /v1."""
    return STATUSES.get(error, STATUS[error][0])


def type_of(error: type[CheckoutError]) -> str:
    """Return the type of an error under /v1."""
    return _TYPES.get(STATUS[error][1], STATUS[error][1])


def problem(request: Request, found: ErrorResponse) -> Response:
    """Return `{"error": {code, doc_url, message, param?, request_id, type}}`."""
    status = _BY_CODE.get(found.code, found.status)
    found = refusals.with_id(request, found)
    refusals.note(request, found, status)
    body: dict[str, Any] = {
        "code": found.code,
        "doc_url": wiring.doc_url(found.code),
        "message": found.message,
        "request_id": found.request_id,
        "type": _TYPES.get(found.type, found.type),
    }
    if found.param is not None:
        # The name of an unknown parameter is returned as sent.
        unknown = found.code == errors.ParameterUnknown.code
        body["param"] = found.param if unknown else with_brackets(found.param)
    elif found.code == errors.ResourceMissing.code and request.path_params.keys() - {"rest"}:
        body["param"] = "id"  # in the path of an existing route
    retry = {"Stripe-Should-Retry": "true" if status in _RETRY else "false"}
    return _response(request, json_text({"error": body}), status, {**found.headers, **retry})


def answered(request: Request, done: Answer, ignored: Sequence[str] = ()) -> Response:
    """Return the response to a POST."""
    headers = {IGNORED: ", ".join(ignored)[:IGNORED_MAX]} if ignored else {}
    if done.replayed:
        headers["Idempotent-Replayed"] = "true"
    return _response(request, done.body, done.status, headers)


def performed(
    services: Services,
    key: ApiKey,
    request: Request,
    given: Parsed,
    act: Callable[[Reserve[T] | None], T],
    *,
    operation: str,
    record: str | None = None,
    idempotency_key: str | None,
    render: Callable[[T], str],
) -> Response:
    """Execute a POST, once for its Idempotency-Key, and return the response.

    `record` is the id of the changed record, if it is in the path. `render` makes the body of the
    result. Raises as `answer` does.
    """
    parameters = given.given if record is None else [record, given.given]
    posted: Posted[T] = Posted(
        merchant=key.merchant,
        key=idempotency_key,
        fingerprint=fingerprint_of(operation, parameters),
        render=render,
    )
    return answered(request, answer(services, posted, act), given.ignored)


def shown(request: Request, value: Any) -> Response:
    """Return the response with the requested object."""
    return _response(request, json_text(value), 200, {})


def listed(
    request: Request,
    objects: list[dict[str, Any]],
    *,
    more: bool,
    upward: bool = False,
    after: str | None = None,
) -> Response:
    """Return a page of a list, which ends early if it would be too large.

    An empty page of a list that continues has the id `after` which it continues.
    """
    name = "ending_before" if upward else "starting_after"
    further = {"open_payments": {name: after}} if more and not objects else {}

    def page(size: int) -> dict[str, Any]:
        return {
            "object": "list",
            "url": request.url.path,
            "has_more": more or size < len(objects),
            "data": objects[len(objects) - size :] if upward else objects[:size],
            **further,
        }

    body = page_json(objects[::-1] if upward else objects, page)
    return _response(request, body, 200, {})


def _response(
    request: Request, body: str | bytes, status: int, headers: Mapping[str, str]
) -> Response:
    echoed = {
        name: value
        for name in ("Stripe-Version", "Idempotency-Key")
        if (value := request.headers.get(name, "")).isascii() and 0 < len(value) <= 255
    }
    return Response(body, status, {**echoed, **headers}, media_type="application/json")
