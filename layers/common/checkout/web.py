"""Parts that all public functions share: HTTP errors, request ids, and the reading of bodies.

No response and no log line has the text of an unforeseen error, because the text could contain a
secret.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, get_args

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from mangum import Mangum
from pydantic import BaseModel, ValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from checkout import telemetry, wiring
from checkout.adapters.aws import one_request
from checkout.client_address import EDGE_HEADER, proven
from checkout.domain.ground import errors
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.ids import RandomBytes, new_request_id, session_ref
from checkout.domain.ground.strict_json import parse_object
from checkout.ports import SecretUnreadable

BODY_MAX: Final = 256 * 1024  # bytes
PARAM_MAX: Final = 200  # characters of a field name that a response repeats

_log: Final = logging.getLogger("checkout.web")

# Host, RFC 9110 section 7.2: a name or an address, and a port.
_HOST: Final = re.compile(r"(?:[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{0,5})?")
_MALFORMED: Final = "malformed"  # marks an event that is not a valid request

_METHODS: Final = ("DELETE", "GET", "HEAD", "PATCH", "POST", "PUT")
_REQUEST, _IDEMPOTENCY = "invalid_request_error", "idempotency_error"
_CONFLICT, _WALLET, _API = "conflict_error", "wallet_error", "api_error"

# The HTTP status and the `type` of each class of error (decisions.md "Errors"). The `code` of an
# error is an attribute of its class.
STATUS: Final[dict[type[CheckoutError], tuple[int, str]]] = {
    errors.ParameterMissing: (400, _REQUEST),
    errors.ParameterUnknown: (400, _REQUEST),
    errors.ParameterInvalid: (400, _REQUEST),
    errors.ParameterInvalidInteger: (400, _REQUEST),
    errors.UrlInvalid: (400, _REQUEST),
    errors.InvalidJson: (400, _REQUEST),
    errors.CursorInvalid: (400, _REQUEST),
    errors.AmountTooSmall: (400, _REQUEST),
    errors.AmountTooLarge: (400, _REQUEST),
    errors.AmountNotRepresentable: (400, _REQUEST),
    errors.CurrencyMismatch: (400, _REQUEST),
    errors.CurrencyNotSupported: (400, _REQUEST),
    errors.SessionUnexpectedState: (400, _REQUEST),
    errors.RefundUnexpectedState: (400, _REQUEST),
    errors.WebhookUnexpectedState: (400, _REQUEST),
    errors.KeyUnexpectedState: (400, _REQUEST),
    errors.MemberUnexpectedState: (400, _REQUEST),
    errors.CallbackInvalid: (400, _REQUEST),
    errors.EmailInvalid: (400, _REQUEST),
    errors.ReceiptsUsedUp: (400, _REQUEST),
    errors.IdempotencyKeyInvalid: (400, _IDEMPOTENCY),
    errors.IdempotencyKeyReused: (400, _IDEMPOTENCY),
    errors.ApiKeyMissing: (401, "authentication_error"),
    errors.ApiKeyInvalid: (401, "authentication_error"),
    errors.PasskeyInvalid: (401, "authentication_error"),
    errors.PermissionMissing: (403, "permission_error"),
    errors.MerchantSuspended: (403, "permission_error"),
    errors.MerchantUnproven: (403, "permission_error"),
    errors.ResourceMissing: (404, _REQUEST),
    errors.MethodNotAllowed: (405, _REQUEST),
    errors.SessionBusy: (409, _CONFLICT),
    errors.PaymentInProgress: (409, _CONFLICT),
    errors.Conflict: (409, _CONFLICT),
    errors.BodyTooLarge: (413, _REQUEST),
    errors.ContentTypeInvalid: (415, _REQUEST),
    errors.WalletUnreachable: (424, _WALLET),
    errors.WalletInvalid: (424, _WALLET),
    errors.WalletUnavailable: (424, _WALLET),
    errors.AmountTooSmallForWallet: (424, _WALLET),
    errors.MerchantWalletError: (424, _WALLET),
    errors.MailRefused: (424, _API),
    errors.RateLimited: (429, "rate_limit_error"),
    errors.Unavailable: (503, _API),
}
_BY_CODE: Final = {error.code: error for error in STATUS}
_BY_PYDANTIC_TYPE: Final[dict[str, type[CheckoutError]]] = {
    "missing": errors.ParameterMissing,
    "extra_forbidden": errors.ParameterUnknown,
    "int_type": errors.ParameterInvalidInteger,
    "int_from_float": errors.ParameterInvalidInteger,
    "int_parsing": errors.ParameterInvalidInteger,
    "int_parsing_size": errors.ParameterInvalidInteger,
    "greater_than_equal": errors.ParameterInvalidInteger,
    "less_than_equal": errors.ParameterInvalidInteger,
}
# Pydantic's own messages speak of validation, inputs and items. These sentences describe a valid
# value instead.
_SENTENCES: Final[dict[str, str]] = {
    "missing": "This parameter is required.",
    "string_type": "This must be a string.",
    "string_too_short": "This must not be empty.",
    "string_too_long": "This must have at most {max_length} characters.",
    "list_type": "This must be a list.",
    "too_short": "This list is empty; send at least {min_length}.",
    "too_long": "This list is too long; send at most {max_length}.",
    "model_type": "This must be an object.",
    "literal_error": "This must be {expected}.",
    "enum": "This must be {expected}.",
    "int_type": "This must be a whole number: digits only, without quotes.",
    "int_parsing": "This must be a whole number: digits only.",
    "greater_than_equal": "This must be at least {ge}.",
    "less_than_equal": "This must be at most {le}.",
}
_NAMED_MAX: Final = 12  # a message lists at most this many parameters
_LIKE: Final = 0.6  # the difflib ratio from which two names are alike


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorResponse:
    """An error as the response shows it: the fields of decisions.md, and its headers."""

    status: int
    type: str
    code: str
    message: str
    request_id: str
    param: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


Render = Callable[[Request, ErrorResponse], Response]
LambdaHandler = Callable[[dict[str, Any], Any], dict[str, Any]]
Model = TypeVar("Model", bound=BaseModel)


def status_of(error: CheckoutError) -> int:
    """Return the HTTP status of `error`."""
    return STATUS[type(error)][0]


def problem_of(error: CheckoutError, request_id: str) -> ErrorResponse:
    """Return `error` as the response shows it.

    The headers include WWW-Authenticate (RFC 6750 section 3) or Retry-After in seconds if they
    apply.
    """
    status, kind = STATUS[type(error)]
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, errors.RateLimited):
        headers["Retry-After"] = str(error.retry_after)
    return ErrorResponse(
        status=status,
        type=kind,
        code=error.code,
        message=error.message,
        param=error.param,
        request_id=request_id,
        headers=headers,
    )


def problem_json(_request: Request, problem: ErrorResponse, doc_url: str = "") -> Response:
    """Return `{"error": {type, code, message, param?, doc_url?, request_id}}`."""
    body = {"type": problem.type, "code": problem.code, "message": problem.message}
    if problem.param is not None:
        body["param"] = problem.param
    if doc_url:
        body["doc_url"] = doc_url
    body["request_id"] = problem.request_id
    return JSONResponse({"error": body}, problem.status, dict(problem.headers))


def application(
    *,
    random_bytes: RandomBytes,
    render: Render = problem_json,
    elsewhere: str = "",
    repeated: Collection[str] = (),
) -> FastAPI:
    """Return an application without routes.

    Every response has `Request-Id`, and `Cache-Control: no-store` unless `may_be_kept` changes it;
    `render` renders every error. The answer to an unknown address ends with the sentence
    `elsewhere`, which names the known addresses. `repeated` are the routes that programs poll. The
    share of failing requests is counted without these routes, because they get most requests.
    """
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, redirect_slashes=False)

    async def foreseen(request: Request, error: Exception) -> Response:
        assert isinstance(error, CheckoutError)
        if status_of(error) >= 500:
            telemetry.count("Unavailable", reason=errors.cause(error))
            _log.error("unavailable", extra=_trace(request, error))
        return render(request, problem_of(error, request_id(request)))

    async def unreadable(request: Request, error: Exception) -> Response:
        unavailable = errors.Unavailable("A stored secret cannot be decrypted.")
        unavailable.__cause__ = error
        return await foreseen(request, unavailable)

    async def unrouted(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if error.status_code == 404:
            path = request.url.path
            slash = path != "/" and path.endswith("/") and _allowed(request, path.rstrip("/"))
            cure = "Leave out the final slash." if slash else elsewhere
            said = f"There is nothing at this address. {cure}".strip()
            return await foreseen(request, errors.ResourceMissing(said))
        if error.status_code == 405:
            methods = _allowed(request, request.scope["path"])
            refused = errors.MethodNotAllowed(f"This address accepts only {' and '.join(methods)}.")
            response = await foreseen(request, refused)
            response.headers["Allow"] = ", ".join(methods)
            return response
        return await foreseen(request, errors.ParameterInvalid("The request is malformed."))

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        found = [{**one, "loc": one["loc"][1:]} for one in error.errors()]  # without "query"
        return await foreseen(request, from_validation(found))

    app.add_exception_handler(CheckoutError, foreseen)
    app.add_exception_handler(SecretUnreadable, unreadable)
    app.add_exception_handler(HTTPException, unrouted)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_middleware(
        _Envelope, random_bytes=random_bytes, render=render, repeated=frozenset(repeated)
    )
    return app


def may_be_kept(request: Request, cache_control: str) -> None:
    """Set the response's Cache-Control to `cache_control`, if it is a 200."""
    request.scope["state"]["kept"] = cache_control.encode()


def request_id(request: Request) -> str:
    """Return the id of this request, which is also in the response's `Request-Id`."""
    found: str = request.scope["state"]["request_id"]
    return found


@dataclass(frozen=True, slots=True)
class _Envelope:
    """Middleware that adds the request id and headers, and handles unforeseen errors."""

    app: ASGIApp
    random_bytes: RandomBytes
    render: Render
    repeated: frozenset[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        identity = new_request_id(self.random_bytes)
        scope.setdefault("state", {})["request_id"] = identity
        started = False

        async def send_with_headers(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                self._count(scope, failed=message["status"] >= 500)
                kept = scope["state"].get("kept") if message["status"] == 200 else None
                message["headers"] = [
                    *(pair for pair in message["headers"] if pair[0] != b"cache-control"),
                    (b"request-id", identity.encode()),
                    (b"cache-control", kept or b"no-store"),
                    (b"x-content-type-options", b"nosniff"),
                ]
            await send(message)

        if _MALFORMED in scope.get("aws.event", {}):
            refusal = problem_of(errors.ParameterInvalid("The request is malformed."), identity)
            await self.render(Request(scope), refusal)(scope, receive, send_with_headers)
            return
        try:
            with telemetry.request(identity):
                await self.app(scope, receive, send_with_headers)
        except Exception as error:
            request = Request(scope)
            telemetry.count("UnforeseenErrors")
            _log.error("unforeseen error", extra=_trace(request, error))
            if started:  # the response has begun, so the server cuts it off
                raise
            problem = ErrorResponse(
                status=500,
                type=_API,
                code="internal_error",
                message="Something went wrong on our side.",
                request_id=identity,
            )
            await self.render(request, problem)(scope, receive, send_with_headers)

    def _count(self, scope: Scope, *, failed: bool) -> None:
        """Count whether a request failed; count a request without a route only if it failed."""
        path = getattr(scope.get("route"), "path", None)
        if path not in self.repeated and (failed or path is not None):
            telemetry.share("RequestsFailed", failed)


class _LoopOfThread(threading.local):
    """One event loop per thread, closed when the thread ends."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        weakref.finalize(threading.current_thread(), self.loop.close)


_of_thread: Final = _LoopOfThread()


# The response to a request without the edge's secret. API Gateway gives the same response at a
# disabled address.
_CLOSED: Final = {
    "statusCode": 403,
    "headers": {"content-type": "application/json"},
    "body": '{"message":"Forbidden"}',
}


def lambda_handler(
    app: FastAPI, edge_secret: Callable[[], str] = wiring.edge_secret
) -> LambdaHandler:
    """Return the Lambda handler, which may be called from any thread.

    With an `edge_secret`, the handler answers only requests that have this secret in the header
    Edge-Secret. The edge (a CDN in front of the service) adds this header.

    Each thread gets its own event loop, because Mangum uses the thread's current event loop. In a
    thread without an event loop, Python 3.13 warns and 3.14 fails.
    """
    asyncio.set_event_loop(_of_thread.loop)
    mangum = Mangum(app, lifespan="off")
    # Mangum would log each URL, and a session's URL is a secret. Errors are logged in this module.
    logging.getLogger("mangum.http").setLevel(logging.CRITICAL)

    @telemetry.observed
    def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
        if not _came_through(event, edge_secret()):
            telemetry.count("DirectRequests")
            return dict(_CLOSED)
        asyncio.set_event_loop(_of_thread.loop)
        with one_request(context):
            return mangum(_readable(event), context)

    return handler


def _came_through(event: dict[str, Any], secret: str) -> bool:
    """Return whether the event has the edge's secret. Without a secret, all events are accepted."""
    if not secret:
        return True
    return proven(_encodable(event.get("headers", {}).get(EDGE_HEADER, "")), secret)


def _readable(event: dict[str, Any]) -> dict[str, Any]:
    """Return the event in a form that mangum reads without an error.

    The event has payload format 2.0 and comes from API Gateway. Its body is returned as bytes. An
    invalid Host (RFC 9112 section 3.2), a body that is not base64, and lone surrogates make the
    event `_MALFORMED`, and the request is answered with 400. Host and the forwarded port are left
    out, because our address is BASE_URL.
    """
    http = event["requestContext"]["http"]
    headers = {name.lower(): value for name, value in event.get("headers", {}).items()}
    headers.pop("x-forwarded-port", None)
    if headers.get("x-forwarded-proto") not in ("http", "https"):
        headers.pop("x-forwarded-proto", None)
    host = headers.pop("host", "none")
    cookies, query = event.get("cookies", []), event.get("rawQueryString", "")
    body = event.get("body") or ""
    try:
        "".join((http["path"], query, *headers, *headers.values(), *cookies)).encode()
        raw = base64.b64decode(body, validate=True) if event["isBase64Encoded"] else body.encode()
    except ValueError:
        raw = None
    changed = {"headers": headers, "body": raw or b"", "isBase64Encoded": False}
    if raw is not None and _HOST.fullmatch(host):
        return event | changed
    headers = {_encodable(name): _encodable(value) for name, value in headers.items()}
    path = http | {"path": _encodable(http["path"])}
    return event | {
        "headers": headers,
        "cookies": [],
        "rawQueryString": "",
        "requestContext": event["requestContext"] | {"http": path},
        "body": b"",
        "isBase64Encoded": False,
        _MALFORMED: True,
    }


def _encodable(text: str) -> str:
    return text.encode(errors="replace").decode()


async def body_bytes(request: Request, *, most: int = BODY_MAX) -> bytes:
    """Return the body. Raise BodyTooLarge as soon as it exceeds `most` bytes."""
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise errors.BodyTooLarge(f"The body must be at most {most} bytes long.")
        chunks.append(chunk)
    return b"".join(chunks)


async def json_object(request: Request, *, most: int = BODY_MAX) -> dict[str, Any]:
    """Return the body's JSON object. Raise ContentTypeInvalid, BodyTooLarge, InvalidJson."""
    require_json(request.headers.get("content-type"))
    return parse_object(await body_bytes(request, most=most))


async def no_parameters(request: Request) -> None:
    """Raise ParameterUnknown unless the body is empty or `{}`."""
    raw = await body_bytes(request)
    if not raw:
        return
    require_json(request.headers.get("content-type"))
    for name in parse_object(raw):
        raise errors.ParameterUnknown("This request takes no parameters.", param=name[:PARAM_MAX])


def require_json(content_type: str | None) -> None:
    """Raise ContentTypeInvalid unless the type is application/json. A charset must be UTF-8."""
    media_type, *options = (part.strip().lower() for part in (content_type or "").split(";"))
    good = {"", "charset=utf-8", 'charset="utf-8"', "charset=utf8"}
    if media_type != "application/json":
        raise errors.ContentTypeInvalid("Send the body as Content-Type: application/json.")
    if not good.issuperset(options):
        raise errors.ContentTypeInvalid(
            "Send the body in UTF-8, and do not give another charset: Content-Type: "
            "application/json."
        )


def validated(model: type[Model], value: object) -> Model:
    """Return `value` as `model`. Raise the CheckoutError for the first fault in `value`."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise from_validation(found, model) from None


def from_validation(found: Any, model: type[BaseModel] | None = None) -> CheckoutError:
    """Return the first of pydantic's errors as one of ours.

    If one name is unknown and another name is missing, the unknown name is reported, because this
    is probably the missing name with a typing error. A validator can use one of our codes as the
    type of its error.
    """
    first = found[0]
    if first["type"] == "missing":
        beside = (each for each in found if each["loc"][:-1] == first["loc"][:-1])
        first = next((each for each in beside if each["type"] == "extra_forbidden"), first)
    kind = first["type"]
    chosen = _BY_CODE.get(kind) or _BY_PYDANTIC_TYPE.get(kind, errors.ParameterInvalid)
    # A rule about a whole object can name the offending key in its error's context.
    param = _path((*first["loc"], *first.get("ctx", {}).get("within", ())))
    if chosen is errors.ParameterUnknown:
        *place, name = first["loc"]
        message = no_parameter(str(name), list(_names(model, place)) if model else ())
    elif kind in _SENTENCES:
        message = _SENTENCES[kind].format(**first.get("ctx", {}))
    else:
        message = str(first["msg"]).rstrip(".") + "."
    return chosen(message, param=param or None)


def no_parameter(name: str, known: Collection[str]) -> str:
    """Return the message about an unknown name.

    The message suggests the most similar known name, or lists all known names if they are few.
    """
    said = "There is no such parameter."
    if near := like(name, known):
        return f"{said} Did you mean `{near}`?"
    if 0 < len(known) <= _NAMED_MAX:
        return f"{said} Known here: {', '.join(f'`{each}`' for each in known)}."
    return said


def like(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, or None."""
    from difflib import get_close_matches  # loaded only for a mistyped name

    alike = {each.lower(): each for each in known}
    near = get_close_matches(name[:PARAM_MAX].lower(), alike, n=1, cutoff=_LIKE)
    return alike[near[0]] if near else None


def _names(model: type[BaseModel], place: list[str | int]) -> Iterator[str]:
    """Yield the names of the parameters at a place within the model's value."""
    for part in place:
        if isinstance(part, str):
            kind = model.model_fields[part].annotation
            model = next(
                each
                for each in (kind, *get_args(kind))
                if isinstance(each, type) and issubclass(each, BaseModel)
            )
    for name, described in model.model_fields.items():
        yield described.alias or name


def _path(location: tuple[str | int, ...]) -> str:
    """Return ('line_items', 0, 'quantity') as line_items[0].quantity."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return path.removeprefix(".")[:PARAM_MAX]


def _allowed(request: Request, path: str) -> list[str]:
    """Return the methods of all routes of this path (RFC 9110 section 10.2.1)."""
    scope = {**request.scope, "path": path}
    return [
        method
        for method in _METHODS
        for route in request.app.routes
        if route.matches({**scope, "method": method})[0] is Match.FULL
    ]


def _trace(request: Request, error: BaseException) -> dict[str, Any]:
    """Return the place of the error, for the log."""
    route = request.scope.get("route")
    session = request.path_params.get("session_id")
    return {
        "request_id": request.scope["state"]["request_id"],
        "method": request.method,
        "route": getattr(route, "path", None),  # not the URL: a session's URL is a secret
        "session": session_ref(session) if session else None,
        **telemetry.failure(error),
    }
