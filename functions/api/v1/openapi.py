"""The OpenAPI 3.1 document of /v1; `python -m api.v1.openapi` prints docs/openapi-v1.json.

Parameters come from `parity.py`, so a parameter that is refused is not in it. Bounds that a row
does not tell, and the shapes of responses, are written here; tests compare them with real ones.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from api.v1 import parity
from api.v1.answers import IGNORED, status_of, type_of
from api.v1.parity import Does, Row
from checkout.domain import errors as e
from checkout.domain.errors import CheckoutError
from checkout.domain.grammar import EVENT_ID, SESSION_ID
from checkout.domain.webhooks import Format
from checkout.version import VERSION

REF: Final = "#/components/schemas/"
_SESSION: Final = f"^{SESSION_ID.pattern}$"
_TIME: Final = {"type": "integer", "minimum": 0}
_MONEY: Final = {"type": "integer", "minimum": 0}
_TEXT_OR_NULL: Final = {"type": ["string", "null"]}
_METADATA: Final = {"type": "object", "additionalProperties": {"type": "string"}}

_ALWAYS: Final = (
    e.ApiKeyMissing,
    e.ApiKeyInvalid,
    e.PermissionMissing,
    e.ParameterInvalid,
    e.ParameterUnknown,
    e.ResourceMissing,
    e.Unavailable,
    e.RateLimited,
)
_BODY: Final = (
    e.InvalidJson,
    e.BodyTooLarge,
    e.ContentTypeInvalid,
    e.IdempotencyKeyInvalid,
    e.IdempotencyKeyReused,
)
_CREATE: Final = (
    *_BODY,
    e.ParameterMissing,
    e.ParameterInvalidInteger,
    e.UrlInvalid,
    e.AmountTooSmall,
    e.AmountTooLarge,
    e.AmountNotRepresentable,
    e.CurrencyMismatch,
    e.CurrencyNotSupported,
)
_EXPIRE: Final = (*_BODY, e.SessionUnexpectedState, e.SessionBusy, e.PaymentInProgress)
_LIST: Final = (e.ParameterInvalidInteger, e.ResourceMissing)
_MANAGE: Final = (
    *_BODY,
    e.ParameterMissing,
    e.UrlInvalid,
    e.WebhookUnexpectedState,
    e.Conflict,
)
_MEANING: Final = {
    400: "The request is refused; sending it again will fail again.",
    401: "There is no API key, or it is not valid.",
    403: "The API key has not the scope that this needs.",
    404: "There is no such object.",
    409: "Another request is changing the same object; the same request may succeed shortly.",
    413: "The body is larger than 256 KiB.",
    415: "The body is neither a form nor JSON in UTF-8.",
    429: "Too many requests.",
    500: "An internal error.",
    503: "A dependency of the service is unavailable; nothing was changed.",
}
# What a parameter's row does not tell: bounds, and what an object must have.
_BOUNDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "line_items": {"minItems": 1, "maxItems": 100},
    "line_items[]": {"required": ["price_data", "quantity"]},
    "line_items[][quantity]": {"minimum": 1, "maximum": 1_000_000},
    "line_items[][price_data]": {"required": ["currency", "product_data"]},
    "line_items[][price_data][currency]": {"pattern": "^[A-Za-z]{3}$"},
    "line_items[][price_data][unit_amount]": {"minimum": 0},
    "line_items[][price_data][unit_amount_decimal]": {"pattern": r"^[0-9]{1,15}(\.0{1,12})?$"},
    "line_items[][price_data][product_data]": {"required": ["name"]},
    "line_items[][price_data][product_data][name]": {"minLength": 1, "maxLength": 200},
    "line_items[][price_data][product_data][description]": {"minLength": 1, "maxLength": 1000},
    "line_items[][price_data][product_data][images]": {"maxItems": 8},
    "limit": {"minimum": 1, "maximum": 100},
    "client_reference_id": {"minLength": 1, "maxLength": 200},
    "customer_email": {"minLength": 1, "maxLength": 512},
    "types": {"maxItems": 20},
    "description": {"minLength": 1, "maxLength": 500},
}
_EXAMPLE: Final = {
    "mode": "payment",
    "line_items": [
        {
            "price_data": {
                "currency": "usd",
                "unit_amount": 1000,
                "product_data": {"name": "Espresso beans, 1 kg"},
            },
            "quantity": 2,
        }
    ],
    "success_url": "https://shop.example/thanks?session={CHECKOUT_SESSION_ID}",
    "client_reference_id": "order-1234",
}


def document() -> dict[str, Any]:
    """Return the whole document as JSON values."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Checkout Sessions, /v1",
            "version": VERSION,
            "summary": "The part of Stripe's API that its client libraries need for a checkout.",
            "description": "docs/stripe.md says what is there and what is not. Amounts are in "
            "Stripe's units of the currency; times are Unix seconds.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [
            {
                "url": "{base_url}",
                "variables": {"base_url": {"default": "https://checkout.example"}},
            }
        ],
        "security": [{"bearer": []}, {"basic": []}],
        "paths": _paths(),
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "Your API key."},
                "basic": {
                    "type": "http",
                    "scheme": "basic",
                    "description": "Your API key as user name, and no password.",
                },
            },
        },
    }


def _paths() -> dict[str, Any]:
    sessions, endpoints = "/v1/checkout/sessions", "/v1/webhook_endpoints"
    session = _path_parameter("session", _SESSION)
    endpoint = _path_parameter("endpoint", "^we_[0-9A-Za-z]{22}$")
    event = _path_parameter("event", f"^{EVENT_ID.pattern}$")
    return {
        sessions: {
            "post": _post(
                "createSession", "Session", parity.CREATE_SESSION, _CREATE, example=_EXAMPLE
            ),
            "get": _get("listSessions", "SessionList", parity.LIST_SESSIONS, _LIST),
        },
        f"{sessions}/{{session}}": {"get": _get("getSession", "Session", parity.ONE, (), session)},
        f"{sessions}/{{session}}/expire": {
            "post": _post("expireSession", "Session", parity.ONE, _EXPIRE, session)
        },
        f"{sessions}/{{session}}/line_items": {
            "get": _get("listLineItems", "LineItemList", parity.LINE_ITEMS, _LIST, session)
        },
        "/v1/events": {"get": _get("listEvents", "EventList", parity.LIST_EVENTS, _LIST)},
        "/v1/events/{event}": {"get": _get("getEvent", "Event", parity.ONE, (), event)},
        "/v1/balance": {"get": _get("getBalance", "Balance", parity.ONE, ())},
        endpoints: {
            "post": _post(
                "createEndpoint",
                "Endpoint",
                parity.CREATE_ENDPOINT,
                _MANAGE,
                required=("url", "enabled_events"),
            ),
            "get": _get("listEndpoints", "EndpointList", parity.LIST_ENDPOINTS, _LIST),
        },
        f"{endpoints}/{{endpoint}}": {
            "get": _get("getEndpoint", "Endpoint", parity.ONE, (), endpoint),
            "post": _post("updateEndpoint", "Endpoint", parity.UPDATE_ENDPOINT, _MANAGE, endpoint),
            "delete": _get("deleteEndpoint", "Deleted", parity.NOTHING, (e.Conflict,), endpoint),
        },
    }


def _get(
    operation: str,
    schema: str,
    rows: Sequence[Row],
    refusals: Iterable[type[CheckoutError]],
    *path: dict[str, Any],
) -> dict[str, Any]:
    return {
        "operationId": operation,
        "parameters": [*path, *_query(rows)],
        "responses": _responses(schema, refusals),
    }


def _post(
    operation: str,
    schema: str,
    rows: Sequence[Row],
    refusals: Iterable[type[CheckoutError]],
    *path: dict[str, Any],
    required: Sequence[str] = (),
    example: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    needed = list(required) or (["mode", "line_items", "success_url"] if example else [])
    body = _nested(rows) | ({"required": needed} if needed else {})
    content = {"schema": body} | ({"example": example} if example else {})
    key = {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "For 24 hours the same request with the same key gets the same response.",
        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
    }
    headers = {
        "Idempotent-Replayed": {
            "description": "`true` if this is the response to an earlier request with this key.",
            "schema": {"const": "true"},
        },
        IGNORED: {
            "description": "Names of the parameters that had no effect.",
            "schema": {"type": "string"},
        },
    }
    return {
        "operationId": operation,
        "parameters": [*path, key],
        "requestBody": {
            "required": bool(needed),
            "content": {
                "application/json": content,
                "application/x-www-form-urlencoded": content
                | {
                    "encoding": {
                        name: {"style": "deepObject", "explode": True}
                        for name, each in body["properties"].items()
                        if each.get("type") in ("object", "array")
                    }
                },
            },
        },
        "responses": _responses(schema, refusals, headers),
    }


def _path_parameter(name: str, pattern: str) -> dict[str, Any]:
    schema = {"type": "string", "pattern": pattern}
    return {"name": name, "in": "path", "required": True, "schema": schema}


def _query(rows: Sequence[Row]) -> list[dict[str, Any]]:
    return [
        {
            "name": row.path,
            "in": "query",
            "description": row.text,
            "schema": {"type": "array", "items": _leaf(row), **_bound(row.path[:-2])}
            if row.path.endswith("[]")
            else _leaf(row) | _bound(row.path),
        }
        for row in rows
        if row.does is not Does.REFUSED
    ]


def _leaf(row: Row) -> dict[str, Any]:
    if row.only == ("false",):
        return {"const": False}
    schema: dict[str, Any] = {"type": row.kind.value}
    if row.only:
        schema["enum"] = list(row.only)
    elif row.kind is parity.Kind.TEXT and not row.path.endswith("[*]"):
        schema["minLength"] = 1
    return schema


def _bound(path: str) -> dict[str, Any]:
    return dict(_BOUNDS.get(path, {}))


def _nested(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the schema of a body with the parameters of `rows`, nested as their paths are."""
    root: dict[str, Any] = _empty_object()
    for row in rows:
        if row.does is Does.REFUSED:
            continue
        parts = re.findall(r"[^\[\]]+|\[\]", row.path)
        place, path = root, ""
        for number, part in enumerate(parts):
            path += f"[{part}]" if path and part != "[]" else part
            last = number + 1 == len(parts)
            made = _at(row, path, parts[number + 1] if not last else None)
            if part == "[]":
                place = place.setdefault("items", made)
            elif part == "*":
                place.update(additionalProperties=made, maxProperties=50)
                place["propertyNames"] = {"minLength": 1, "maxLength": 40}
                place.pop("properties", None)
            else:
                place = place["properties"].setdefault(part, made)
    return root


def _at(row: Row, path: str, following: str | None) -> dict[str, Any]:
    """Return the schema at one step of a path: the value itself, a list or an object."""
    if following is None:
        if row.does is Does.IGNORED and not row.only:
            return {"description": f"Ignored. {row.text}"}
        ignored = "Ignored. " if row.does is Does.IGNORED else ""
        longest = {"maxLength": 500} if path.endswith("[*]") else {}
        return _leaf(row) | _bound(path) | longest | {"description": f"{ignored}{row.text}"}
    if following == "[]":
        return {"type": "array"} | _bound(path)
    return _empty_object() | _bound(path)


def _empty_object() -> dict[str, Any]:
    return {"type": "object", "properties": {}, "additionalProperties": False}


def _responses(
    schema: str,
    refusals: Iterable[type[CheckoutError]],
    headers: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    answers = {"200": _answer("The object.", schema, headers)}
    possible: set[type[CheckoutError]] = {*refusals, *_ALWAYS}
    for code in sorted({status_of(error) for error in possible} | {500}):
        codes = sorted(error.code for error in possible if status_of(error) == code)
        listed = ", ".join(f"`{each}`" for each in codes or ["internal_error"])
        answers[str(code)] = _answer(f"{_MEANING[code]} Codes: {listed}.", "Error", {})
    return answers


def _answer(meaning: str, schema: str, headers: Mapping[str, Any] | None) -> dict[str, Any]:
    request_id = {"description": "Quote it when you ask for support.", "schema": {"type": "string"}}
    return {
        "description": meaning,
        "headers": {"Request-Id": request_id, **(headers or {})},
        "content": {"application/json": {"schema": {"$ref": f"{REF}{schema}"}}},
    }


def _object(properties: dict[str, Any], *optional: str) -> dict[str, Any]:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": properties}


def _schemas() -> dict[str, Any]:
    return {
        "Session": _session(),
        "LineItem": _line_item(),
        "Event": _event(),
        "Endpoint": _endpoint(),
        "Balance": _balance(),
        "SessionList": _list("Session"),
        "LineItemList": _list("LineItem"),
        "EventList": _list("Event"),
        "EndpointList": _list("Endpoint"),
        "Deleted": _object(
            {
                "id": {"type": "string"},
                "object": {"const": "webhook_endpoint"},
                "deleted": {"const": True},
            }
        ),
        "Error": _error(),
    }


def _list(schema: str) -> dict[str, Any]:
    return _object(
        {
            "object": {"const": "list"},
            "url": {"type": "string"},
            "has_more": {"type": "boolean"},
            "data": {"type": "array", "maxItems": 100, "items": {"$ref": f"{REF}{schema}"}},
        }
    )


def _session() -> dict[str, Any]:
    amount = _object(
        {
            "value": {"type": "string", "pattern": "^[0-9]+$"},
            "asset_code": {"type": "string"},
            "asset_scale": {"type": "integer"},
        }
    )
    own = {
        "status": {"type": "string"},
        "customer_wallet": _TEXT_OR_NULL,
        "incoming_payment": _TEXT_OR_NULL,
        "outgoing_payment": _TEXT_OR_NULL,
        "amount_received": {"type": ["integer", "null"], "minimum": 0},
        "customer_debit": amount | {"type": ["object", "null"]},
    }
    return _object(
        {
            "id": {"type": "string", "pattern": _SESSION},
            "object": {"const": "checkout.session"},
            "amount_subtotal": _MONEY,
            "amount_total": _MONEY,
            "cancel_url": _TEXT_OR_NULL,
            "client_reference_id": _TEXT_OR_NULL,
            "created": _TIME,
            "currency": {"type": "string", "pattern": "^[a-z]{3}$"},
            "customer_details": {"type": ["object", "null"]},
            "customer_email": _TEXT_OR_NULL,
            "expires_at": _TIME,
            "line_items": {"$ref": f"{REF}LineItemList"},
            "livemode": {"type": "boolean"},
            "locale": _TEXT_OR_NULL,
            "metadata": _METADATA,
            "mode": {"const": "payment"},
            "open_payments": _object(own),
            "payment_intent": {
                "type": ["string", "object", "null"],
                "description": "The id of the payment that was made; the payment if expanded.",
            },
            "payment_status": {"enum": ["paid", "unpaid"]},
            "status": {"enum": ["open", "complete", "expired"]},
            "submit_type": _TEXT_OR_NULL,
            "success_url": {"type": "string"},
            "ui_mode": {"const": "hosted"},
            "url": _TEXT_OR_NULL,
        },
        "line_items",
    ) | {"description": "A checkout session; more fields are constant or null."}


def _line_item() -> dict[str, Any]:
    price = _object(
        {
            "id": {"type": "string"},
            "object": {"const": "price"},
            "currency": {"type": "string"},
            "product": {"type": ["string", "object"]},
            "unit_amount": _MONEY,
        }
    )
    return _object(
        {
            "id": {"type": "string", "pattern": "^li_"},
            "object": {"const": "item"},
            "amount_subtotal": _MONEY,
            "amount_total": _MONEY,
            "currency": {"type": "string"},
            "description": {"type": "string"},
            "metadata": _METADATA,
            "price": price,
            "quantity": {"type": "integer", "minimum": 1},
        }
    )


def _event() -> dict[str, Any]:
    return _object(
        {
            "id": {"type": "string", "pattern": f"^{EVENT_ID.pattern}$"},
            "object": {"const": "event"},
            "api_version": {"type": "string"},
            "created": _TIME,
            "data": _object({"object": {"type": "object"}}),
            "livemode": {"type": "boolean"},
            "pending_webhooks": {"type": "integer"},
            "type": {"type": "string"},
        }
    )


def _endpoint() -> dict[str, Any]:
    return _object(
        {
            "id": {"type": "string", "pattern": "^we_"},
            "object": {"const": "webhook_endpoint"},
            "created": _TIME,
            "description": _TEXT_OR_NULL,
            "enabled_events": {"type": "array", "items": {"type": "string"}},
            "format": {"enum": [each.value for each in Format]},
            "livemode": {"type": "boolean"},
            "metadata": _METADATA,
            "secret": {"type": "string", "description": "In the answer to the creation only."},
            "status": {"enum": ["enabled", "disabled"]},
            "url": {"type": "string"},
        },
        "secret",
    )


def _balance() -> dict[str, Any]:
    held = _object({"amount": {"const": 0}, "currency": {"type": "string"}})
    amounts = {"type": "array", "items": held}
    return _object(
        {
            "object": {"const": "balance"},
            "available": amounts,
            "pending": amounts,
            "livemode": {"type": "boolean"},
        }
    )


def _error() -> dict[str, Any]:
    possible: set[type[CheckoutError]] = {*_ALWAYS, *_CREATE, *_EXPIRE, *_LIST, *_MANAGE}
    inner = _object(
        {
            "type": {"enum": sorted({type_of(error) for error in possible} | {"api_error"})},
            "code": {"enum": sorted({error.code for error in possible} | {"internal_error"})},
            "message": {"type": "string"},
            "param": {"type": "string", "examples": ["line_items[0][price_data][currency]"]},
            "request_id": {"type": "string", "pattern": "^req_"},
        },
        "param",
    )
    return _object({"error": inner})


if __name__ == "__main__":
    sys.stdout.write(json.dumps(document(), indent=2, ensure_ascii=False) + "\n")
