"""The document of the merchant API: its operations and webhooks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel

from api.refunds import CreateRefund, ListRefunds
from api.requests import EXPANDABLE, CreateSession, ListSessions
from checkout import answers
from checkout.answers import EXAMPLE_ID, EXAMPLE_REFUND
from checkout.domain.ground import errors as e
from checkout.domain.ground.grammar import REFUND_ID, SESSION_ID
from checkout.domain.session.record import Status
from checkout.domain.webhooks.event_types import (
    BESIDE,
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
from docs.openapi.parts import Answers, Error, Errors, Object, answer, ref

SESSIONS: Final = "/api/checkout/sessions"
REFUNDS: Final = "/api/checkout/refunds"
ANSWERS: Final = Answers(
    STATUS.__getitem__,
    {
        400: "The request is invalid; sending it again will fail again.",
        401: "The API key is missing or not valid.",
        403: "The API key lacks the scope that this request needs, or the merchant is suspended or "
        "has not confirmed the wallet yet.",
        404: "You have no such session or refund.",
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
_ENDABLE: Final = (
    "Allowed while the session is open or awaiting approval. During a payment the answer is 409. "
    "If the payment has "
    "had no result for 30 seconds, that request also begins to close the incoming payment: "
    "about a minute after it is closed, the session is completed, open again, or paid in part."
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
    *parts.POST,
    e.ParameterMissing,
    e.ParameterInvalid,
    e.ParameterInvalidInteger,
    e.AmountTooSmall,
    e.AmountTooLarge,
    e.AmountNotRepresentable,
    e.SessionBusy,
    e.ResourceMissing,
    e.SessionUnexpectedState,
    e.RefundUnexpectedState,
    e.PaymentInProgress,
)
_END_REFUND: Final = (*parts.POST, e.RefundUnexpectedState, e.SessionBusy)
_EXPAND: Final = {
    "name": "expand",
    "in": "query",
    "description": "Adds `payment_attempts` and `last_payment_error` to the session.",
    "schema": {"type": "string", "enum": [EXPANDABLE]},
}
# The bodies of events that have more than seven fields.
_BODIES: Final[Mapping[str, type]] = {
    LATE_PAYMENT: answers.LatePayment,
    PARTIALLY_PAID: answers.PartialPayment,
    REFUND_CREATED: answers.Refund,
    REFUND_UPDATED: answers.Refund,
    REFUND_FAILED: answers.Refund,
}
_BY_HAND: Final = "Sent by hand, from the dashboard, to any endpoint; none asks for it."
_EVENT_HEADERS: Final = {
    "Checkout-Signature": "`t=<Unix seconds>,v1=<hex>`; /docs#verify describes how to verify it.",
    "Checkout-Event-Id": "Remember it: an event can come twice.",
    "Checkout-Event-Type": "The name of the event.",
}


def document() -> Object:
    """Return the whole document as JSON values."""
    schemas = parts.schemas(
        *(CreateSession, CreateRefund, Error),
        *(answers.ExpandableSession, answers.SessionList, answers.PaymentAttemptList),
        *(answers.RefundList, answers.Health),
        *(answers.Event, answers.LatePayment, answers.PartialPayment),
    )
    ANSWERS.limit(schemas, {*ANSWERS.always, *parts.CREATE, *_LIST, *parts.END, *_REFUND})
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
    one, refund, missing = f"{SESSIONS}/{{id}}", f"{REFUNDS}/{{id}}", [e.ResourceMissing]
    return {
        SESSIONS: {
            "post": _post(
                "createSession",
                "Create a session",
                "Send your customer to the `url` in the response.",
                *(answers.Session, "The new session.", parts.CREATE),
                body=(CreateSession, _EXAMPLE),
                status=201,
            ),
            "get": _get(
                "listSessions",
                "List your sessions",
                "Newest first. Follow `next_cursor` while `has_more` is true. With a `status` "
                "filter a page may hold fewer sessions than `limit`, even none, and there may "
                "still be more; a page of very large sessions ends at 5 MB.",
                *(answers.SessionList, "A page of sessions.", _LIST),
                *_in_query(ListSessions),
            ),
        },
        one: {
            "get": _get(
                "getSession",
                "Read a session",
                "",
                *(answers.ExpandableSession, "The session.", (*missing, e.ParameterInvalid)),
                *(_ID, _EXPAND),
            )
        },
        f"{one}/attempts": {
            "get": _get(
                "listPaymentAttempts",
                "List a session's payment attempts",
                "Oldest first; there is one for each wallet that the customer gave.",
                *(answers.PaymentAttemptList, "The attempts.", missing),
                _ID,
            )
        },
        f"{one}/expire": _end("expireSession", "Expire a session", _ENDABLE),
        f"{one}/cancel": _end("cancelSession", "Cancel a session", _ENDABLE),
        f"{one}/accept_as_paid": _end(
            "acceptSession",
            "Accept a part of the money as payment",
            "Allowed while the session is processing and only a part of the money has arrived. "
            "The session is completed with `amount_received` below `amount_total`, and the event "
            "checkout.session.completed is sent.",
        ),
        f"{one}/give_up": _end(
            "giveUpSession",
            "Give up a session that was paid in part",
            "Allowed while the session is processing, only a part of the money has arrived, and no "
            "more can arrive. The session ends as expired. Until then the answer is 409, and the "
            "incoming payment is being closed: ask again in about a minute. The money that has "
            "arrived (`amount_received`) stays in your wallet.",
        ),
        REFUNDS: {
            "post": _post(
                "createRefund",
                "Request a refund",
                "Holds the amount. The refund is then paid from your refund budget; if there is "
                "none, or it does not pay this one, you approve it in your own wallet, on the page "
                "in `approval_url`. Needs a key with the scope `refund`. The session must have "
                "ended and received money. Refunds without an approval are canceled after 30 days.",
                *(answers.Refund, "The new refund.", _REFUND),
                body=(CreateRefund, {"session": EXAMPLE_ID, "amount": 500}),
                status=201,
            ),
            "get": _get(
                "listRefunds",
                "List your refunds",
                "Newest first. The refunds of one session come on one page.",
                *(answers.RefundList, "A page of refunds.", (*_LIST, *missing)),
                *_in_query(ListRefunds),
            ),
        },
        refund: {
            "get": _get(
                *("getRefund", "Read a refund", ""),
                *(answers.Refund, "The refund.", missing),
                _REFUND_ID,
            )
        },
        f"{refund}/cancel": {
            "post": _post(
                "cancelRefund",
                "Cancel a refund",
                "Allowed until it is sent. The amount can be refunded again.",
                *(answers.Refund, "The refund as it is now.", (*_END_REFUND, *missing)),
                _REFUND_ID,
            )
        },
        "/api/health": {
            "get": {
                "operationId": "getHealth",
                "summary": "Check the health of the service",
                "security": [],
                "responses": {
                    "200": answer("The service is healthy.", answers.Health),
                    "405": ANSWERS.error(405, [e.MethodNotAllowed]),
                    "500": ANSWERS.error(500, ()),
                    "503": answer("The service is unhealthy.", answers.Health),
                },
            }
        },
    }


def _get(
    name: str,
    summary: str,
    description: str,
    shown: type,
    meaning: str,
    refusals: Errors,
    *parameters: Object,
) -> Object:
    return {
        "operationId": name,
        "summary": summary,
        **({"description": description} if description else {}),
        **({"parameters": list(parameters)} if parameters else {}),
        "responses": ANSWERS.of(shown, meaning, refusals),
    }


def _post(
    name: str,
    summary: str,
    description: str,
    shown: type,
    meaning: str,
    refusals: Errors,
    *path: Object,
    body: tuple[type, Object] | None = None,
    status: int = 200,
) -> Object:
    content: Object = {"schema": {"type": "object", "additionalProperties": False}}
    taken = "Nothing, or an empty object."
    if body is not None:
        content = {"schema": ref(body[0]), "example": body[1]}
        taken = "At most 256 KiB of JSON, nested at most 20 levels deep."
    return {
        "operationId": name,
        "summary": summary,
        "description": description,
        "parameters": [*path, parts.KEY],
        "requestBody": {
            "required": body is not None,
            "description": taken,
            "content": {"application/json": content},
        },
        "responses": ANSWERS.of(shown, meaning, refusals, status=status, headers=parts.REPLAYED),
    }


def _end(name: str, summary: str, description: str) -> Object:
    shown = (answers.Session, "The session as it is now.", (*parts.END, e.ResourceMissing))
    return {"post": _post(name, summary, description, *shown, _ID)}


def _in_query(form: type[BaseModel]) -> list[Object]:
    """Return the fields of a form as parameters; None there means absent."""
    found = []
    for name, schema in form.model_json_schema(by_alias=True)["properties"].items():
        plain = next((arm for arm in schema.get("anyOf", []) if arm.get("type") != "null"), schema)
        if "$ref" in plain:
            plain = {"type": "string", "enum": [status.value for status in Status]}
        plain = {k: v for k, v in plain.items() if k not in ("title", "description")}
        about = {"description": schema["description"], "schema": plain}
        found.append({"name": name, "in": "query", **about})
    return found


def _webhook(name: str) -> Object:
    """Return an event that is sent to a merchant's endpoint in the native form."""
    body = {"schema": ref(_BODIES.get(name, answers.Event))}
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
