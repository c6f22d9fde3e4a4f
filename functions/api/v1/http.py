"""Read the keys and parameters of /v1 requests, and write responses with Stripe's headers.

A key can be a Bearer token or a Basic user name. Parameters can be a form or JSON. Errors have the
form that Stripe's libraries read.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar

from fastapi import Depends, Request, Response

from api import http
from api.http import Injected, page_json
from api.v1.forms import Leaf, Parsed, from_form, from_json, with_brackets
from checkout import wiring
from checkout.domain.ground import errors
from checkout.domain.ground.errors import (
    CheckoutError,
    ContentTypeInvalid,
    ParameterInvalid,
    PermissionMissing,
)
from checkout.domain.ground.strict_json import parse_object
from checkout.domain.merchant.record import ApiKey
from checkout.domain.stripe.objects import account_id
from checkout.flows.idempotency import Answer, Reserve, json_text
from checkout.services import DashboardServices, Services
from checkout.web import STATUS, ErrorResponse, body_bytes, require_json

_FORM = "application/x-www-form-urlencoded"
_JSON = "application/json"
# Both headers name the account for which Stripe would act.
_OTHER_ACCOUNT = ("Stripe-Account", "Stripe-Context")


async def managing() -> DashboardServices:
    """Return the dashboard's services, which the routes of webhook endpoints need."""
    return wiring.dashboard_services()


Managing = Annotated[DashboardServices, Depends(managing)]


@dataclass(frozen=True, slots=True)
class Call:
    """A request with its key, and the services of this process."""

    services: Services
    key: ApiKey
    request: Request


async def call(injected: Injected, request: Request) -> Call:
    """Return the request with its API key, which is the Bearer token or the Basic user name.

    Raises as `authenticate` does. Raises PermissionMissing if a header names another account. If
    the request were accepted, the other account's money would go to the wallet of this key's
    merchant. A header that names the key's own account is accepted, as at Stripe.
    """
    key = http.authenticated(injected, request, _bearer(request.headers.get("authorization")))
    own = account_id(key.merchant)
    for name in _OTHER_ACCOUNT:
        if request.headers.get(name, own) != own:
            raise PermissionMissing(
                f"There are no connected accounts here. Leave out the header {name}, and use the "
                "API key of the merchant who is to be paid."
            )
    return Call(injected, key, request)


async def query(request: Request) -> list[Leaf]:
    """Return the parameters of the query string. A body is not read."""
    return from_form(request.url.query)


async def body(request: Request) -> list[Leaf]:
    """Return the parameters in the body, which is a form, JSON or empty.

    Raises ContentTypeInvalid, BodyTooLarge, InvalidJson, ParameterInvalid.
    """
    raw = await body_bytes(request)
    sent = request.headers.get("content-type", "")
    if request.url.query:
        raise ParameterInvalid("Send the parameters in the body.")
    if not raw:
        return []
    if sent.partition(";")[0].strip().lower() == _FORM:
        try:
            return from_form(raw.decode("ascii"))
        except UnicodeDecodeError:
            raise ParameterInvalid("The parameters are not form-encoded.") from None
    try:
        require_json(sent)
    except ContentTypeInvalid:
        if sent.partition(";")[0].strip().lower() == _JSON:
            raise  # the error is about the charset
        raise ContentTypeInvalid(f"Send the body as {_FORM} or {_JSON}.") from None
    return from_json(parse_object(raw))


Called = Annotated[Call, Depends(call)]
Query = Annotated[list[Leaf], Depends(query)]
Body = Annotated[list[Leaf], Depends(body)]


def _bearer(authorization: str | None) -> str | None:
    """Turn `Basic …` with the key as user name (RFC 7617) into `Bearer …`. Keep other values."""
    scheme, _, credentials = (authorization or "").strip().partition(" ")
    if scheme.lower() != "basic":
        return authorization
    try:
        user = base64.b64decode(credentials.strip(), validate=True).decode().partition(":")[0]
    except (binascii.Error, UnicodeDecodeError):
        return None
    return f"Bearer {user}"


T = TypeVar("T")

IGNORED: Final = "Ignored-Parameters"
IGNORED_MAX: Final = 2000  # characters in this header

# Statuses that differ from the native API's. After a 409, Stripe's libraries repeat the request
# within a second. Repeating is useful if another request is changing the session, but useless while
# a payment is under way. So PaymentInProgress is a 400 here.
STATUSES: Final[Mapping[type[CheckoutError], int]] = {errors.PaymentInProgress: 400}
_RETRY: Final = (409, 429, 500, 503)
_BY_CODE: Final = {error.code: status for error, status in STATUSES.items()}
# The error types that Stripe's API does not have, and the types that replace them.
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
    found = http.with_id(request, found)
    http.note(request, found, status)
    body: dict[str, Any] = {
        "code": found.code,
        "doc_url": wiring.doc_url(found.code),
        "message": found.message,
        "request_id": found.request_id,
        "type": _TYPES.get(found.type, found.type),
    }
    if found.param is not None:
        # The name of an unknown parameter is returned as the caller has sent it.
        unknown = found.code == errors.ParameterUnknown.code
        body["param"] = found.param if unknown else with_brackets(found.param)
    elif found.code == errors.ResourceMissing.code and request.path_params.keys() - {"rest"}:
        body["param"] = "id"  # in the path of an existing route
    retry = {"Stripe-Should-Retry": "true" if status in _RETRY else "false"}
    return _response(request, json_text({"error": body}), status, {**found.headers, **retry})


def answered(call: Call, done: Answer, given: Parsed) -> Response:
    """Return the response to a POST, with a header that names the ignored parameters."""
    headers = {IGNORED: ", ".join(given.ignored)[:IGNORED_MAX]} if given.ignored else {}
    if done.replayed:
        headers["Idempotent-Replayed"] = "true"
    return _response(call.request, done.body, done.status, headers)


def performed(
    call: Call,
    given: Parsed,
    act: Callable[[Reserve[T] | None], T],
    render: Callable[[T], str],
    *,
    operation: str,
    record: str | None = None,
) -> Response:
    """Execute a POST only once for its Idempotency-Key, and return the response.

    `record` is the id of the changed record, if the path contains it. `render` turns the result
    into the body. Raises as `answer` does.
    """
    parameters = given.given if record is None else [record, given.given]
    done = http.performed(call.services, call.key, call.request, operation, parameters, act, render)
    return answered(call, done, given)


def shown(call: Call, value: Any) -> Response:
    """Return the response with the requested object."""
    return _response(call.request, json_text(value), 200, {})


def listed(
    call: Call,
    objects: list[dict[str, Any]],
    *,
    more: bool,
    upward: bool = False,
    after: str | None = None,
) -> Response:
    """Return a page of a list. The page ends early if it would be too large.

    `after` is the id after which the list continues. The client usually finds this id in the page's
    final object, so the response contains `after` only if the page is empty.
    """
    name = "ending_before" if upward else "starting_after"
    further = {"open_payments": {name: after}} if more and not objects else {}

    def page(size: int) -> dict[str, Any]:
        return {
            "object": "list",
            "url": call.request.url.path,
            "has_more": more or size < len(objects),
            "data": objects[len(objects) - size :] if upward else objects[:size],
            **further,
        }

    body = page_json(objects[::-1] if upward else objects, page)
    return _response(call.request, body, 200, {})


def _response(
    request: Request, body: str | bytes, status: int, headers: Mapping[str, str]
) -> Response:
    echoed = {
        name: value
        for name in ("Stripe-Version", "Idempotency-Key")
        if (value := request.headers.get(name, "")).isascii() and 0 < len(value) <= 255
    }
    return Response(body, status, {**echoed, **headers}, media_type="application/json")
