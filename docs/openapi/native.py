"""The document of the merchant API: its operations and webhooks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from api.budget import RequestBudget
from api.refunds import CreateRefund, ListRefunds
from api.requests import EXPANDABLE, CreateSession, ListSessions
from checkout.domain.ground import errors as e
from checkout.domain.ground.grammar import REFUND_ID, SESSION_ID
from checkout.domain.session.record import Status
from checkout.domain.webhooks.event_types import (
    BESIDE,
    BUDGET_UPDATED,
    EVENTS,
    LATE_PAYMENT,
    PARTIALLY_PAID,
    PING,
    REFUND_CREATED,
    REFUND_FAILED,
    REFUND_UPDATED,
)
from checkout.web import STATUS
from docs.openapi import parts
from docs.openapi.native_answers import (
    EXAMPLE_ID,
    EXAMPLE_REFUND,
    Event,
    ExpandableSession,
    Health,
    LatePayment,
    PartialPayment,
    PaymentAttemptList,
    Refund,
    RefundBudget,
    RefundList,
    Session,
    SessionList,
)
from docs.openapi.parts import Answer, Answers, Error, Object, answer, ref

SESSIONS: Final = "/api/checkout/sessions"
REFUNDS: Final = "/api/checkout/refunds"
BUDGET: Final = "/api/checkout/refund_budget"
ANSWERS: Final = Answers(
    STATUS.__getitem__,
    {
        400: "The request is invalid; sending it again will fail again.",
        401: "The API key is missing or not valid.",
        403: "The API key lacks the scope that this request needs, or the merchant is suspended or "
        "has not confirmed the wallet yet.",
        404: "You have no such session or refund, or no refund budget.",
        405: "The path does not support this method.",
        409: "Conflict: a payment is in progress, or another request is changing the record.",
        413: "The body is larger than 256 KiB.",
        415: "The body is not application/json in UTF-8.",
        429: "Too many requests.",
        500: "An internal error.",
        503: "A dependency of the service is unavailable; nothing was changed.",
    },
    (
        e.ApiKeyMissing,
        e.ApiKeyInvalid,
        e.PermissionMissing,
        e.ParameterUnknown,
        e.MethodNotAllowed,
        e.Unavailable,
    ),
    "line_items[0].price_data.unit_amount",
)
_LIST: Final = (
    e.ParameterUnknown,
    e.ParameterInvalid,
    e.ParameterInvalidInteger,
    e.CursorInvalid,
    e.RateLimited,
)
_END: Final = (*parts.END, e.ResourceMissing)
_ENDABLE: Final = (
    "Allowed while the session is open or awaiting approval. During a payment the answer is 409. "
    "If the payment has "
    "had no result for 30 seconds, that request also begins to close the incoming payment: "
    "about a minute after it is closed, the session is completed, open again, or paid in part."
)
_ACCEPTABLE: Final = (
    "Allowed while the session is processing and only a part of the money has arrived. The "
    "session is completed with `amount_received` below `amount_total`, and the event "
    "checkout.session.completed is sent."
)
_PARTLY_PAID: Final = (
    "Allowed while the session is processing, only a part of the money has arrived, and no more "
    "can arrive. The session ends as expired. Until then the answer is 409, and the incoming "
    "payment is being closed: ask again in about a minute. The money that has arrived "
    "(`amount_received`) stays in your wallet."
)
_EXAMPLE: Final = {
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
}
_ID: Final = parts.in_path(
    "id", SESSION_ID.pattern, description="The session's id.", example=EXAMPLE_ID
)
_REFUND_ID: Final = parts.in_path(
    "id", REFUND_ID.pattern, description="The refund's id.", example=EXAMPLE_REFUND
)
_REFUND: Final = (
    *parts.BODY,
    *parts.REPEATABLE,
    e.ParameterMissing,
    e.ParameterInvalid,
    e.ParameterInvalidInteger,
    e.AmountTooSmall,
    e.AmountTooLarge,
    e.AmountNotRepresentable,
    e.ResourceMissing,
    e.SessionUnexpectedState,
    e.RefundUnexpectedState,
    e.SessionBusy,
    e.PaymentInProgress,
)
_CANCEL: Final = (
    *parts.BODY,
    *parts.REPEATABLE,
    e.ResourceMissing,
    e.RefundUnexpectedState,
    e.SessionBusy,
)
_BUDGET: Final = (
    *parts.BODY,
    *parts.REPEATABLE,
    e.MerchantSuspended,
    e.MerchantUnproven,
    e.ParameterMissing,
    e.ParameterInvalid,
    e.ParameterInvalidInteger,
    e.AmountTooSmall,
    e.AmountTooLarge,
    e.AmountNotRepresentable,
    e.SessionBusy,
)
_END_BUDGET: Final = (*parts.BODY, *parts.REPEATABLE, e.RefundUnexpectedState, e.SessionBusy)
_EXPAND: Final = {
    "name": "expand",
    "in": "query",
    "description": "Adds `payment_attempts` and `last_payment_error` to the session.",
    "schema": {"type": "string", "enum": [EXPANDABLE]},
}
# The bodies of events that have more than seven fields.
_BODIES: Final[Mapping[str, type[Answer]]] = {
    LATE_PAYMENT: LatePayment,
    PARTIALLY_PAID: PartialPayment,
    REFUND_CREATED: Refund,
    REFUND_UPDATED: Refund,
    REFUND_FAILED: Refund,
    BUDGET_UPDATED: RefundBudget,
}
_BY_HAND: Final = "Sent by hand, from the dashboard, to any endpoint; none asks for it."
_EVENT_HEADERS: Final = {
    "Checkout-Signature": "`t=<Unix seconds>,v1=<hex>`; /docs#verify describes how to verify it.",
    "Checkout-Event-Id": "Remember it: an event can come twice.",
    "Checkout-Event-Type": "The name of the event.",
}


def document() -> Object:
    """Return the whole document as JSON values."""
    models = (CreateSession, ExpandableSession, SessionList, PaymentAttemptList, Health, Error)
    refunds = (CreateRefund, Refund, RefundList, RequestBudget, RefundBudget)
    schemas = parts.schemas(*models, *refunds, Event, LatePayment, PartialPayment)
    own = (*_REFUND, *_CANCEL, *_BUDGET, *_END_BUDGET, e.RateLimited)
    possible = {*ANSWERS.always, *parts.CREATE, *_LIST, *_END, *own}
    ANSWERS.limit(schemas, possible)
    schemes = {
        "api_key": {
            "type": "http",
            "scheme": "bearer",
            "description": "Your API key: `sk_` and 43 letters and digits.",
        }
    }
    return parts.document(
        "Checkout Sessions",
        "Accept one-time payments from Open Payments wallets.",
        "Paths carry no version; changes are additive: ignore fields that you do not know. Amounts "
        "are integers in the currency's smallest unit. Times are ISO 8601 in UTC. Every response "
        "has a `Request-Id`.",
        schemes,
        paths=_paths(),
        webhooks={name: {"post": _webhook(name)} for name in EVENTS if name not in BESIDE},
        components={"schemas": schemas, "securitySchemes": schemes},
    )


def _paths() -> Object:
    one = f"{SESSIONS}/{{id}}"
    return {
        SESSIONS: {"post": _create(), "get": _list()},
        one: {
            "get": {
                "operationId": "getSession",
                "summary": "Read a session",
                "parameters": [_ID, _EXPAND],
                "responses": ANSWERS.of(
                    ExpandableSession, "The session.", (e.ResourceMissing, e.ParameterInvalid)
                ),
            }
        },
        f"{one}/attempts": {
            "get": {
                "operationId": "listPaymentAttempts",
                "summary": "List a session's payment attempts",
                "description": "Oldest first; there is one for each wallet that the customer gave.",
                "parameters": [_ID],
                "responses": ANSWERS.of(PaymentAttemptList, "The attempts.", [e.ResourceMissing]),
            }
        },
        f"{one}/expire": _end("expire", "Expire a session", _ENDABLE),
        f"{one}/cancel": _end("cancel", "Cancel a session", _ENDABLE),
        f"{one}/accept_as_paid": _end(
            "accept", "Accept a part of the money as payment", _ACCEPTABLE
        ),
        f"{one}/give_up": _end("giveUp", "Give up a session that was paid in part", _PARTLY_PAID),
        REFUNDS: {"post": _request_refund(), "get": _list_refunds()},
        f"{REFUNDS}/{{id}}": {
            "get": {
                "operationId": "getRefund",
                "summary": "Read a refund",
                "parameters": [_REFUND_ID],
                "responses": ANSWERS.of(Refund, "The refund.", [e.ResourceMissing]),
            }
        },
        f"{REFUNDS}/{{id}}/cancel": {"post": _cancel_refund()},
        BUDGET: {
            "post": _request_budget(),
            "get": {
                "operationId": "getRefundBudget",
                "summary": "Read the refund budget",
                "responses": ANSWERS.of(RefundBudget, "The budget.", [e.ResourceMissing]),
            },
        },
        f"{BUDGET}/end": {"post": _end_budget()},
        "/api/health": {
            "get": {
                "operationId": "getHealth",
                "summary": "Check the health of the service",
                "security": [],
                "responses": {
                    "200": answer("The service is healthy.", Health),
                    "405": ANSWERS.error(405, [e.MethodNotAllowed]),
                    "500": ANSWERS.error(500, ()),
                    "503": answer("The service is unhealthy.", Health),
                },
            }
        },
    }


def _create() -> Object:
    return {
        "operationId": "createSession",
        "summary": "Create a session",
        "description": "Send your customer to the `url` in the response.",
        "parameters": [parts.KEY],
        "requestBody": {
            "required": True,
            "description": "At most 256 KiB of JSON, nested at most 20 levels deep.",
            "content": {"application/json": {"schema": ref(CreateSession), "example": _EXAMPLE}},
        },
        "responses": ANSWERS.of(
            Session, "The new session.", parts.CREATE, status=201, headers=parts.REPLAYED
        ),
    }


def _list() -> Object:
    fields = ListSessions.model_json_schema(by_alias=True)["properties"]
    return {
        "operationId": "listSessions",
        "summary": "List your sessions",
        "description": "Newest first. Follow `next_cursor` while `has_more` is true. With a "
        "`status` filter a page may hold fewer sessions than `limit`, even none, and there may "
        "still be more; a page of very large sessions ends at 5 MB.",
        "parameters": [_in_query(*field) for field in fields.items()],
        "responses": ANSWERS.of(SessionList, "A page of sessions.", _LIST),
    }


def _request_refund() -> Object:
    return {
        "operationId": "createRefund",
        "summary": "Request a refund",
        "description": "Holds the amount. The refund is then paid from your refund budget; if "
        "there is none, or it does not pay this one, you approve it in your own wallet, on the "
        "page in `approval_url`. Needs a key with the scope `refund`. The session must have ended "
        "with money. Refunds without an approval are canceled after 30 days.",
        "parameters": [parts.KEY],
        "requestBody": {
            "required": True,
            "description": "At most 256 KiB of JSON, nested at most 20 levels deep.",
            "content": {
                "application/json": {
                    "schema": ref(CreateRefund),
                    "example": {"session": EXAMPLE_ID, "amount": 500},
                }
            },
        },
        "responses": ANSWERS.of(
            Refund, "The new refund.", _REFUND, status=201, headers=parts.REPLAYED
        ),
    }


def _list_refunds() -> Object:
    fields = ListRefunds.model_json_schema(by_alias=True)["properties"]
    return {
        "operationId": "listRefunds",
        "summary": "List your refunds",
        "description": "Newest first. The refunds of one session come on one page.",
        "parameters": [_in_query(*field) for field in fields.items()],
        "responses": ANSWERS.of(RefundList, "A page of refunds.", (*_LIST, e.ResourceMissing)),
    }


def _cancel_refund() -> Object:
    empty = {"schema": {"type": "object", "additionalProperties": False}}
    return {
        "operationId": "cancelRefund",
        "summary": "Cancel a refund",
        "description": "Allowed until it is sent. The amount can be refunded again.",
        "parameters": [_REFUND_ID, parts.KEY],
        "requestBody": {
            "required": False,
            "description": "Nothing, or an empty object.",
            "content": {"application/json": empty},
        },
        "responses": ANSWERS.of(
            Refund, "The refund as it is now.", _CANCEL, headers=parts.REPLAYED
        ),
    }


def _request_budget() -> Object:
    return {
        "operationId": "requestRefundBudget",
        "summary": "Request a refund budget",
        "description": "Moves no money: an owner approves the amount a month in your own wallet, "
        "on the page in `approval_url`. Refunds are then paid from it without an approval of each. "
        "A budget that is in use stays so until then. Needs a key with the scope `refund`.",
        "parameters": [parts.KEY],
        "requestBody": {
            "required": True,
            "description": "At most 256 KiB of JSON, nested at most 20 levels deep.",
            "content": {
                "application/json": {"schema": ref(RequestBudget), "example": {"amount": 50000}}
            },
        },
        "responses": ANSWERS.of(
            RefundBudget, "The budget as it is now.", _BUDGET, headers=parts.REPLAYED
        ),
    }


def _end_budget() -> Object:
    empty = {"schema": {"type": "object", "additionalProperties": False}}
    return {
        "operationId": "endRefundBudget",
        "summary": "End the refund budget",
        "description": "Refunds wait for an approval of each again. A payment that your wallet has "
        "accepted before may still be sent. Needs a key with the scope `refund`.",
        "parameters": [parts.KEY],
        "requestBody": {
            "required": False,
            "description": "Nothing, or an empty object.",
            "content": {"application/json": empty},
        },
        "responses": ANSWERS.of(
            RefundBudget, "The budget as it is now.", _END_BUDGET, headers=parts.REPLAYED
        ),
    }


def _end(operation: str, summary: str, description: str) -> Object:
    empty = {"schema": {"type": "object", "additionalProperties": False}}
    return {
        "post": {
            "operationId": f"{operation}Session",
            "summary": summary,
            "description": description,
            "parameters": [_ID, parts.KEY],
            "requestBody": {
                "required": False,
                "description": "Nothing, or an empty object.",
                "content": {"application/json": empty},
            },
            "responses": ANSWERS.of(
                Session, "The session as it is now.", _END, headers=parts.REPLAYED
            ),
        }
    }


def _in_query(name: str, schema: dict[str, Any]) -> Object:
    """Return one field of `ListSessions` as a parameter; None there means absent."""
    plain = next((arm for arm in schema.get("anyOf", []) if arm.get("type") != "null"), schema)
    if "$ref" in plain:
        plain = {"type": "string", "enum": [status.value for status in Status]}
    plain = {k: v for k, v in plain.items() if k not in ("title", "description")}
    return {"name": name, "in": "query", "description": schema["description"], "schema": plain}


def _webhook(name: str) -> Object:
    """Return an event that is sent to a merchant's endpoint in the native form."""
    body = {"schema": ref(_BODIES.get(name, Event))}
    return {
        "operationId": "on" + "".join(map(str.capitalize, re.split(r"[._]", name))),
        "summary": f"{EVENTS[name].sentence}.",
        **({"description": _BY_HAND} if name == PING else {}),
        "security": [],
        "parameters": [
            {
                "name": header,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string"},
            }
            for header, description in _EVENT_HEADERS.items()
        ],
        "requestBody": {"required": True, "content": {"application/json": body}},
        "responses": {"200": {"description": "Any status from 200 to 299: received."}},
    }
