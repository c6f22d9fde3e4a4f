"""The OpenAPI 3.1 document of the merchant API; `python -m api.openapi` prints docs/openapi.json.

The fields of requests come from `requests.py`, the errors from `web.py`. The descriptions of
operations and responses are written here.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from typing import Any, Final

from api.requests import EXPANDABLE, ListSessions
from api.responses import EXAMPLE_ID, REF, schemas
from checkout.domain import errors as e
from checkout.domain.errors import CheckoutError
from checkout.domain.grammar import SESSION_ID
from checkout.domain.session import Status
from checkout.domain.webhooks import (
    CANCELED,
    COMPLETED,
    EXPIRED,
    LATE_PAYMENT,
    PARTIALLY_PAID,
    PAYMENT_FAILED,
    PING,
)
from checkout.version import VERSION
from checkout.web import STATUS

_REPLAYED: Final = {
    "Idempotent-Replayed": {
        "description": "`true` if this is the response to an earlier request with this key.",
        "schema": {"const": "true"},
    }
}
_MEANING: Final = {
    400: "The request is invalid; sending it again will fail again.",
    401: "There is no API key, or it is not valid.",
    403: "The API key has not the scope that this needs.",
    404: "You have no such session.",
    405: "The path does not support this method.",
    409: "Conflict: a payment is in progress, or another request is changing the session.",
    413: "The body is larger than 256 KiB.",
    415: "The body is not application/json in UTF-8.",
    429: "Too many requests.",
    500: "An internal error.",
    503: "A dependency of the service is unavailable; nothing was changed.",
}
_ALWAYS: Final = (
    e.ApiKeyMissing,
    e.ApiKeyInvalid,
    e.PermissionMissing,
    e.MethodNotAllowed,
    e.Unavailable,
)
_BODY: Final = (e.InvalidJson, e.BodyTooLarge, e.ContentTypeInvalid, e.ParameterUnknown)
_CREATE: Final = (
    *_BODY,
    e.ParameterMissing,
    e.ParameterInvalid,
    e.ParameterInvalidInteger,
    e.UrlInvalid,
    e.AmountTooSmall,
    e.AmountTooLarge,
    e.AmountNotRepresentable,
    e.CurrencyMismatch,
    e.CurrencyNotSupported,
    e.IdempotencyKeyInvalid,
    e.IdempotencyKeyReused,
)
_LIST: Final = (
    e.ParameterUnknown,
    e.ParameterInvalid,
    e.ParameterInvalidInteger,
    e.CursorInvalid,
)
_END: Final = (
    *_BODY,
    e.ResourceMissing,
    e.SessionUnexpectedState,
    e.SessionBusy,
    e.PaymentInProgress,
    e.IdempotencyKeyInvalid,
    e.IdempotencyKeyReused,
)
_ENDABLE: Final = (
    "While it is open or awaiting approval. During a payment the answer is 409. If the payment has "
    "had no result for 30 seconds, that request also begins to close the incoming payment: "
    "about a minute after it is closed, the session is completed, open again, or paid in part."
)
_ACCEPTABLE: Final = (
    "While only a part of the money has arrived, in a session that is processing. It is completed "
    "with `amount_received` below `amount_total`, and the event checkout.session.completed is sent."
)
_PARTLY_PAID: Final = (
    "While only a part of the money has arrived, in a session that is processing, and no more can "
    "arrive. It ends as expired. Before that the answer is 409, and the incoming payment is being "
    "closed: ask again in about a minute. You still have `amount_received`."
)
_POSSIBLE: Final[set[type[CheckoutError]]] = {*_ALWAYS, *_CREATE, *_LIST, *_END, e.RateLimited}


def document() -> dict[str, Any]:
    """Return the whole document as JSON values."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Checkout Sessions",
            "version": VERSION,
            "summary": "Accept one-time payments from Open Payments wallets.",
            "description": "Paths carry no version; changes are additive: ignore fields that you "
            "do not know. Amounts are integers in the currency's smallest unit. Times are ISO 8601 "
            "in UTC. Every response has a `Request-Id`.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {
                "url": "{base_url}",
                "variables": {"base_url": {"default": "https://checkout.example"}},
            }
        ],
        "security": [{"api_key": []}],
        "paths": _paths(),
        "webhooks": _webhooks(),
        "components": {
            "schemas": schemas(_POSSIBLE),
            "securitySchemes": {
                "api_key": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "Your API key: `sk_` and 43 letters and digits.",
                }
            },
        },
    }


def _paths() -> dict[str, Any]:
    sessions = "/api/checkout/sessions"
    return {
        sessions: {"post": _create(), "get": _list()},
        f"{sessions}/{{id}}": {
            "get": {
                "operationId": "getSession",
                "summary": "Read a session",
                "parameters": [_id_parameter(), _expand_parameter()],
                "responses": _responses(
                    200,
                    "The session.",
                    "ExpandableSession",
                    (e.ResourceMissing, e.ParameterInvalid),
                ),
            }
        },
        f"{sessions}/{{id}}/attempts": {
            "get": {
                "operationId": "listPaymentAttempts",
                "summary": "List a session's payment attempts",
                "description": "Oldest first: one for each wallet that the customer gave.",
                "parameters": [_id_parameter()],
                "responses": _responses(
                    200, "The attempts.", "PaymentAttemptList", (e.ResourceMissing,)
                ),
            }
        },
        f"{sessions}/{{id}}/expire": {"post": _end("expire", "Expire a session", _ENDABLE)},
        f"{sessions}/{{id}}/cancel": {"post": _end("cancel", "Cancel a session", _ENDABLE)},
        f"{sessions}/{{id}}/accept_as_paid": {
            "post": _end("accept", "Accept a part of the money as payment", _ACCEPTABLE)
        },
        f"{sessions}/{{id}}/give_up": {
            "post": _end("giveUp", "Give up a session that was paid in part", _PARTLY_PAID)
        },
        "/api/health": {
            "get": {
                "operationId": "getHealth",
                "summary": "Check the health of the service",
                "security": [],
                "responses": {
                    "200": _answer("The service is healthy.", "Health"),
                    "405": _errors(405, (e.MethodNotAllowed,)),
                    "500": _errors(500, ()),
                    "503": _answer("The service is unhealthy.", "Health"),
                },
            }
        },
    }


# The schemas of bodies that have more than seven fields.
_BODIES: Final = {LATE_PAYMENT: "LatePayment", PARTIALLY_PAID: "PartialPayment"}


def _webhooks() -> dict[str, Any]:
    """Return the events that are sent to a merchant's endpoint in the native form."""
    told = {
        COMPLETED: "A session is paid.",
        EXPIRED: "A session was not paid in time, or was expired.",
        CANCELED: "A session was canceled.",
        PAYMENT_FAILED: "A payment failed, and the session is open again.",
        LATE_PAYMENT: "Money arrived after the end of a session.",
        PARTIALLY_PAID: "A part of the money arrived.",
        PING: "A test event.",
    }
    return {
        name: {
            "post": {
                "operationId": "on" + "".join(map(str.capitalize, re.split(r"[._]", name))),
                "summary": summary,
                "security": [],
                "parameters": [_event_header(each) for each in _EVENT_HEADERS],
                "requestBody": {
                    "required": True,
                    "content": {
                        "application/json": {"schema": {"$ref": REF + _BODIES.get(name, "Event")}}
                    },
                },
                "responses": {"200": {"description": "Any status from 200 to 299: received."}},
            }
        }
        for name, summary in told.items()
    }


_EVENT_HEADERS: Final = {
    "Checkout-Signature": "`t=<Unix seconds>,v1=<hex>`; verify it (docs/webhooks.md).",
    "Checkout-Event-Id": "Remember it: an event can come twice.",
    "Checkout-Event-Type": "The name of the event.",
}


def _event_header(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": True,
        "description": _EVENT_HEADERS[name],
        "schema": {"type": "string"},
    }


def _create() -> dict[str, Any]:
    return {
        "operationId": "createSession",
        "summary": "Create a session",
        "description": "Send your customer to the `url` in the response.",
        "parameters": [_key_parameter()],
        "requestBody": {
            "required": True,
            "description": "At most 256 KiB of JSON, nested at most 20 levels deep.",
            "content": {
                "application/json": {
                    "schema": {"$ref": f"{REF}CreateSession"},
                    "example": {
                        "mode": "payment",
                        "line_items": [
                            {
                                "price_data": {
                                    "currency": "usd",
                                    "product_data": {"name": "Espresso beans, 1 kg"},
                                    "unit_amount": 1000,
                                },
                                "quantity": 2,
                            }
                        ],
                        "success_url": "https://shop.example/thanks?session={CHECKOUT_SESSION_ID}",
                        "cancel_url": "https://shop.example/basket",
                        "metadata": {"order": "1234"},
                    },
                }
            },
        },
        "responses": _responses(201, "The new session.", "Session", _CREATE, _REPLAYED),
    }


def _list() -> dict[str, Any]:
    schema = ListSessions.model_json_schema(by_alias=True)
    return {
        "operationId": "listSessions",
        "summary": "List your sessions",
        "description": "Newest first. Follow `next_cursor` while `has_more` is true. With a "
        "`status` filter a page may hold fewer sessions than `limit`, even none, and there may "
        "still be more; a page of very large sessions ends at 5 MB.",
        "parameters": [_query_parameter(*item) for item in schema["properties"].items()],
        "responses": _responses(200, "A page of sessions.", "SessionList", _LIST),
    }


def _end(operation: str, summary: str, description: str) -> dict[str, Any]:
    return {
        "operationId": f"{operation}Session",
        "summary": summary,
        "description": description,
        "parameters": [_id_parameter(), _key_parameter()],
        "requestBody": {
            "required": False,
            "description": "Nothing, or an empty object.",
            "content": {
                "application/json": {"schema": {"type": "object", "additionalProperties": False}}
            },
        },
        "responses": _responses(200, "The session as it is now.", "Session", _END, _REPLAYED),
    }


def _id_parameter() -> dict[str, Any]:
    return {
        "name": "id",
        "in": "path",
        "required": True,
        "description": "The session's id.",
        "schema": {"type": "string", "pattern": f"^{SESSION_ID.pattern}$"},
        "example": EXAMPLE_ID,
    }


def _expand_parameter() -> dict[str, Any]:
    return {
        "name": "expand",
        "in": "query",
        "description": "Adds `payment_attempts` and `last_payment_error` to the session.",
        "schema": {"type": "string", "enum": [EXPANDABLE]},
    }


def _key_parameter() -> dict[str, Any]:
    return {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "Your key for this request. For 24 hours, the same key with the same "
        "request returns the same response and changes nothing; with another request it is "
        "rejected.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
        "example": "order-1234",
    }


def _query_parameter(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Return one field of `ListSessions` as a parameter; None there means absent."""
    plain = next((arm for arm in schema.get("anyOf", []) if arm.get("type") != "null"), schema)
    if "$ref" in plain:
        plain = {"type": "string", "enum": [status.value for status in Status]}
    plain = {k: v for k, v in plain.items() if k not in ("title", "description")}
    return {"name": name, "in": "query", "description": schema["description"], "schema": plain}


def _responses(
    status: int,
    meaning: str,
    schema: str,
    refusals: Iterable[type[CheckoutError]],
    headers: dict[str, Any] | None = None,
) -> dict[str, Any]:
    answers = {str(status): _answer(meaning, schema, headers)}
    possible = {*refusals, *_ALWAYS}
    for code in sorted({STATUS[error][0] for error in possible} | {429, 500}):
        answers[str(code)] = _errors(code, [one for one in possible if STATUS[one][0] == code])
    return answers


def _errors(status: int, possible: Iterable[type[CheckoutError]]) -> dict[str, Any]:
    codes = sorted(one.code for one in possible) or [_BARE[status]]
    headers: dict[str, Any] = {}
    if status == 401:
        headers["WWW-Authenticate"] = {"schema": {"const": "Bearer"}}
    if status == 429:
        headers["Retry-After"] = {"description": "Seconds.", "schema": {"type": "integer"}}
    listed = ", ".join(f"`{code}`" for code in codes)
    return _answer(f"{_MEANING[status]} Codes: {listed}.", "Error", headers)


_BARE: Final = {429: "rate_limited", 500: "internal_error"}


def _answer(meaning: str, schema: str, headers: dict[str, Any] | None = None) -> dict[str, Any]:
    request_id = {"description": "Quote it when you ask for support.", "schema": {"type": "string"}}
    return {
        "description": meaning,
        "headers": {"Request-Id": request_id} | (headers or {}),
        "content": {"application/json": {"schema": {"$ref": f"{REF}{schema}"}}},
    }


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=2, ensure_ascii=False) + "\n")
