"""The schemas of the OpenAPI document.

Those of requests come from `requests.py`. Those of responses are written here, and tests compare
them with real responses.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from api.requests import CreateSession
from checkout.domain.attempts import KEPT_MAX
from checkout.domain.errors import CheckoutError
from checkout.domain.payment_attempt import EndedBy, Outcome
from checkout.domain.public_attempts import MESSAGES
from checkout.domain.session import Status
from checkout.flows.payment.sessions import PAGE_MAX
from checkout.web import STATUS

REF: Final = "#/components/schemas/"
EXAMPLE_ID: Final = "cs_3kTMd0wvG8PZx5nNq2LrYb"
EXAMPLE_REQUEST_ID: Final = "req_5dTMd0wvG8PZx5nNq2LrYb"


def schemas(possible: Iterable[type[CheckoutError]]) -> dict[str, Any]:
    """Return all schemas by name; `possible` are the errors that the API responds with."""
    return _requests() | {
        "Session": _session(),
        "LineItem": _line_item(),
        "SessionList": _list(),
        "ExpandableSession": _expandable_session(),
        "PaymentAttempt": _attempt(),
        "PaymentAttemptList": _attempt_list(),
        "Error": _error(possible),
        "Health": _health(),
        "Event": _event(),
        "LatePayment": _late_payment(),
        "PartialPayment": _partial_payment(),
    }


def _requests() -> dict[str, Any]:
    schema = CreateSession.model_json_schema(ref_template=REF + "{model}")
    inner: dict[str, Any] = schema.pop("$defs")
    plain: dict[str, Any] = _plain({"CreateSession": schema, **inner})
    return plain


def _plain(value: Any) -> Any:
    """Return a schema without titles and defaults.

    Generators of typed clients take a field with a default for one that is always there; the
    descriptions tell the defaults.
    """
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if k not in ("title", "default")}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _object(
    properties: dict[str, Any], optional: tuple[str, ...] = (), **more: Any
) -> dict[str, Any]:
    """Return the schema of a response's object; only the `optional` fields may be absent."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "required": required, "properties": properties, **more}


def _session() -> dict[str, Any]:
    url = {"type": "string", "format": "uri"}
    url_or_null = {"type": ["string", "null"], "format": "uri"}
    time = {"type": "string", "format": "date-time"}
    metadata = CreateSession.model_json_schema()["properties"]["metadata"]
    return _object(
        {
            "id": {"type": "string", "pattern": "^cs_", "examples": [EXAMPLE_ID]},
            "object": {"const": "checkout.session"},
            "status": {
                "enum": [status.value for status in Status],
                "description": "completed, expired and canceled never change again.",
            },
            "url": url
            | {"description": "The customer's checkout page. Anyone who has it can pay."},
            "amount_total": {
                "type": "integer",
                "minimum": 1,
                "description": "Sum of unit_amount times quantity, in the smallest unit.",
            },
            "currency": {"type": "string", "pattern": "^[a-z]{3}$"},
            "mode": {"const": "payment"},
            "line_items": {"type": "array", "items": {"$ref": f"{REF}LineItem"}},
            "metadata": {
                "type": "object",
                "additionalProperties": metadata["additionalProperties"],
            },
            "success_url": url | {"description": "With the session's id inserted."},
            "cancel_url": url | {"description": "With the session's id inserted."},
            "customer_wallet": url_or_null | {"description": "null until a wallet is submitted."},
            "incoming_payment": url_or_null
            | {"description": "The payment that your wallet expects; null until it is prepared."},
            "outgoing_payment": url_or_null
            | {"description": "The payment at the customer's wallet; null until it is made."},
            "expires_at": time | {"examples": ["2026-03-02T12:00:00.000Z"]},
            "created_at": time,
            "completed_at": {"type": ["string", "null"], "format": "date-time"},
            "amount_received": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "Amount that arrived in your wallet, in the smallest unit, rounded "
                "down; null until it is known. It may be above or below amount_total, and be "
                "there in a session that expired or was canceled.",
            },
            "client_reference_id": {
                "type": ["string", "null"],
                "description": "As submitted; null if there was none.",
            },
            "customer_debit": _amount_or_null()
            | {
                "description": "Price that the customer has paid, in the customer's currency, as "
                "quoted; null until a payment is made, and if none was quoted.",
            },
        },
        description="A checkout session.",
    )


def _expandable_session() -> dict[str, Any]:
    """Return the schema of a session that may have its payment attempts with it."""
    expanded = {
        "payment_attempts": {
            "type": "array",
            "maxItems": KEPT_MAX,
            "items": {"$ref": f"{REF}PaymentAttempt"},
            "description": "One for each wallet that the customer gave, oldest first; the last 20 "
            "are kept.",
        },
        "last_payment_error": _payment_error() | {"description": _LAST_ERROR},
    }
    return _object(
        _session()["properties"] | expanded,
        optional=tuple(expanded),
        description="A checkout session; with `expand=payment_attempts` the last two fields too.",
    )


_LAST_ERROR: Final = (
    "Reason why the last attempt that failed did so; null if none has, and once the session is "
    "paid."
)


def _payment_error() -> dict[str, Any]:
    error = _object(
        {
            "code": {"enum": sorted(str(code) for code in MESSAGES)},
            "message": {"type": "string", "description": "For people; may change."},
        }
    )
    return error | {"type": ["object", "null"]}


def _attempt() -> dict[str, Any]:
    url_or_null = {"type": ["string", "null"], "format": "uri"}
    time = {"type": "string", "format": "date-time"}
    time_or_null = {"type": ["string", "null"], "format": "date-time"}

    def when(text: str) -> dict[str, Any]:
        return time_or_null | {"description": text}

    return _object(
        {
            "object": {"const": "payment_attempt"},
            "number": {
                "type": "integer",
                "minimum": 1,
                "description": "Counts the wallets that were given in this session.",
            },
            "outcome": {
                "enum": [*(each.value for each in Outcome), None],
                "description": "null while the attempt runs. It never changes after that.",
            },
            "ended_by": {"enum": [*(each.value for each in EndedBy), None]},
            "error": _payment_error() | {"description": "null unless the attempt failed."},
            "reported_by_browser": {
                "enum": ["declined", "timed_out", None],
                "description": "What the customer's browser said when it came back from the "
                "wallet. Nobody has signed it, and it decides nothing.",
            },
            "wallet_typed": {
                "type": ["string", "null"],
                "description": "As the customer entered it, up to 200 characters.",
            },
            "customer_wallet": url_or_null | {"description": "null until it was found."},
            "incoming_payment": url_or_null
            | {"description": "The payment that your wallet expected; attempts may share it."},
            "quote": url_or_null,
            "customer_debit": _amount_or_null()
            | {"description": "Price in the customer's currency, as quoted."},
            "quote_expires_at": time_or_null,
            "outgoing_payment": url_or_null
            | {"description": "The payment at the customer's wallet, if one was made."},
            "amount_received": {
                "type": ["integer", "null"],
                "minimum": 0,
                "description": "Amount in your wallet at the end of the attempt, in the smallest "
                "unit, rounded down; null where it was not asked for.",
            },
            "submitted_at": time,
            "wallet_resolved_at": when("The wallet was found, and your wallet expects a payment."),
            "prepared_at": when("The customer saw the price."),
            "reported_at": when("The browser came back without an approval."),
            "approved_at": when("The customer came back with an approval that verified."),
            "sent_at": when("The payment was about to be sent."),
            "accepted_at": when("The payment was seen at the customer's wallet, or its money."),
            "ended_at": time_or_null,
        },
        description="One wallet that the customer gave, and what came of it.",
    )


def _attempt_list() -> dict[str, Any]:
    return _object(
        {
            "object": {"const": "list"},
            "url": {"type": "string"},
            "data": {
                "type": "array",
                "maxItems": KEPT_MAX,
                "items": {"$ref": f"{REF}PaymentAttempt"},
            },
            "has_more": {"const": False},
            "total_count": {
                "type": "integer",
                "minimum": 0,
                "description": "Counts older attempts too, which are not kept.",
            },
            "last_payment_error": _payment_error() | {"description": _LAST_ERROR},
        }
    )


def _amount_or_null() -> dict[str, Any]:
    amount = _object(
        {
            "value": {"type": "string", "pattern": "^[0-9]+$"},
            "asset_code": {"type": "string", "examples": ["EUR"]},
            "asset_scale": {"type": "integer", "minimum": 0, "maximum": 255},
        }
    )
    return amount | {"type": ["object", "null"]}


def _line_item() -> dict[str, Any]:
    product = _object(
        {name: {"type": "string"} for name in ("name", "description", "image")},
        optional=("description", "image"),
    )
    price = _object(
        {
            "currency": {"type": "string", "pattern": "^[a-z]{3}$"},
            "product_data": product,
            "unit_amount": {"type": "integer"},
        }
    )
    return _object(
        {"price_data": price, "quantity": {"type": "integer"}},
        description="As submitted, with the currency in lowercase and always with a quantity.",
    )


def _list() -> dict[str, Any]:
    return _object(
        {
            "object": {"const": "list"},
            "url": {"const": "/api/checkout/sessions"},
            "data": {
                "type": "array",
                "maxItems": PAGE_MAX,
                "items": {"$ref": f"{REF}Session"},
            },
            "has_more": {"type": "boolean"},
            "next_cursor": {
                "type": ["string", "null"],
                "description": "Opaque; for `cursor` in the next request. null at the end.",
            },
        }
    )


def _event() -> dict[str, Any]:
    """Return the schema of a webhook's body: seven fields of the session."""
    shown = _session()["properties"]
    names = ("amount_total", "currency", "metadata", "outgoing_payment", "customer_wallet")
    identity = {"type": "string", "description": "The session's id; of a ping, the event's."}
    status = {"enum": ["completed", "expired", "canceled", "open", "ping"]}
    fields = {"id": identity, "status": status} | {name: shown[name] for name in names}
    return _object(fields | {"amount_total": {"type": "integer", "minimum": 0}})


def _late_payment() -> dict[str, Any]:
    event = _event()["properties"]
    return _object(event | {"amount_received": {"type": "integer", "minimum": 0}})


def _partial_payment() -> dict[str, Any]:
    late = _late_payment()["properties"]
    return _object(late | {"status": {"const": "processing"}})


def _error(possible: Iterable[type[CheckoutError]]) -> dict[str, Any]:
    refusals = set(possible)
    inner = _object(
        {
            "type": {"enum": sorted({STATUS[error][1] for error in refusals} | {"api_error"})},
            "code": {
                "enum": sorted({error.code for error in refusals} | {"internal_error"}),
                "description": "Stable; for programs.",
            },
            "message": {"type": "string", "description": "For people; may change."},
            "param": {
                "type": "string",
                "description": "The field that is wrong.",
                "examples": ["line_items[0].price_data.unit_amount"],
            },
            "request_id": {"type": "string", "examples": [EXAMPLE_REQUEST_ID]},
        },
        optional=("param",),
    )
    return _object({"error": inner})


def _health() -> dict[str, Any]:
    return _object(
        {
            "status": {"enum": ["healthy", "unhealthy"]},
            "uptime": {"type": "integer", "minimum": 0, "description": "Seconds."},
            "version": {"type": "string"},
            "checks": _object({"database": {"enum": ["ok", "failing"]}}),
        }
    )
