"""The document of /v1: its operations.

Parameters come from `api/v1/parity.py`, so a parameter that is refused is not in it. Bounds that a
row does not have are written here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from api.v1 import parity
from api.v1.http import IGNORED, status_of, type_of
from api.v1.parity import Does, Parameter, ParameterKind
from checkout.domain.ground import errors as e
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.grammar import EMAIL_MAX, EVENT_ID, REFUND_ID, SESSION_ID
from checkout.domain.session.collect import (
    ANSWER_MAX,
    KEY_MAX,
    LABEL_MAX,
    OPTION_MAX,
    OPTIONS_MAX,
    QUESTIONS_MAX,
)
from checkout.domain.stripe.objects import NULL, NULL_CHARGE, NULL_PAYMENT
from checkout.domain.webhooks.record import ENDPOINTS_MAX
from docs.openapi import parts
from docs.openapi.parts import Answer, Answers, Error, Object
from docs.openapi.stripe_answers import (
    LIST_MAX,
    Account,
    AccountList,
    Balance,
    BalanceTransaction,
    Charge,
    ChargeList,
    Deleted,
    Endpoint,
    EndpointList,
    Event,
    EventList,
    LineItemList,
    PaymentIntent,
    PaymentList,
    PaymentMethod,
    Price,
    PriceList,
    Product,
    ProductList,
    Refund,
    RefundList,
    Session,
    SessionList,
)

_POST: Final = parts.POST
_EXPIRE: Final = parts.END
_LIST: Final = (e.ParameterInvalidInteger,)
_MANAGE: Final = (
    *_POST,
    e.ParameterMissing,
    e.UrlInvalid,
    e.WebhookUnexpectedState,
    e.Conflict,
)
_CANCEL: Final = (*_POST, e.RefundUnexpectedState, e.SessionBusy)
_UPDATE: Final = (*_POST, e.PaymentInProgress, e.SessionBusy)
_REFUND: Final = (
    *_CANCEL,
    e.ParameterMissing,
    e.ParameterInvalidInteger,
    e.AmountTooSmall,
    e.AmountTooLarge,
    e.AmountNotRepresentable,
    e.SessionUnexpectedState,
    e.PaymentInProgress,
)
ANSWERS: Final = Answers(
    lambda error: (status_of(error), type_of(error)),
    {
        400: "The request is refused; sending it again will fail again.",
        401: "The API key is missing or not valid.",
        403: "The API key lacks the scope that this request needs, or the merchant is suspended or "
        "has not confirmed the wallet yet.",
        404: "There is no such object.",
        409: "Another request is changing the same object; the same request may succeed shortly.",
        413: "The body is larger than 256 KiB.",
        415: "The body is neither a form nor JSON in UTF-8.",
        429: "Too many requests.",
        500: "An internal error.",
        503: "A dependency of the service is unavailable; nothing was changed.",
    },
    (
        e.ApiKeyMissing,
        e.ApiKeyInvalid,
        e.PermissionMissing,
        e.ParameterInvalid,
        e.ParameterUnknown,
        e.ResourceMissing,
        e.Unavailable,
        e.RateLimited,
    ),
    "line_items[0][price_data][currency]",
)
_NULLS: Final = {"Session": NULL, "PaymentIntent": NULL_PAYMENT, "Charge": NULL_CHARGE}
# Facts that are not in a parameter's row: bounds, and the required fields of objects.
_BOUNDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "line_items": {"minItems": 1, "maxItems": 100},
    "line_items[]": {"required": ["price_data", "quantity"]},
    "line_items[][quantity]": {"minimum": 1, "maximum": 1_000_000},
    "line_items[][price_data]": {"required": ["currency", "product_data"]},
    "line_items[][price_data][currency]": {"pattern": "^[A-Za-z]{3}$"},
    "line_items[][price_data][unit_amount]": {"minimum": 0},
    "line_items[][price_data][unit_amount_decimal]": {"pattern": r"^[0-9]{1,15}(\.0{1,12})?$"},
    "line_items[][price_data][product_data]": {"required": ["name"]},
    "line_items[][price_data][product_data][name]": {"minLength": 1, "maxLength": 5000},
    "line_items[][price_data][product_data][description]": {"minLength": 1, "maxLength": 40_000},
    "line_items[][price_data][product_data][images]": {"maxItems": 8},
    "limit": {"minimum": 1, "maximum": LIST_MAX},
    "client_reference_id": {"minLength": 1, "maxLength": 200},
    "customer_email": {"minLength": 1, "maxLength": EMAIL_MAX},
    "shipping_address_collection[allowed_countries]": {"minItems": 1},
    "shipping_address_collection[allowed_countries][]": {"pattern": "^[A-Za-z]{2}$"},
    "name_collection[individual]": {"required": ["enabled"]},
    "custom_fields": {"maxItems": QUESTIONS_MAX},
    "custom_fields[]": {"required": ["key", "label", "type"]},
    "custom_fields[][key]": {"pattern": "^[A-Za-z0-9]+$", "maxLength": KEY_MAX},
    "custom_fields[][label]": {"required": ["custom", "type"]},
    "custom_fields[][label][custom]": {"minLength": 1, "maxLength": LABEL_MAX},
    "custom_fields[][dropdown]": {"required": ["options"]},
    "custom_fields[][dropdown][options]": {"minItems": 1, "maxItems": OPTIONS_MAX},
    "custom_fields[][dropdown][options][]": {"required": ["label", "value"]},
    "custom_fields[][dropdown][options][][label]": {"minLength": 1, "maxLength": OPTION_MAX},
    "custom_fields[][dropdown][options][][value]": {
        "pattern": "^[A-Za-z0-9]+$",
        "maxLength": OPTION_MAX,
    },
    **{
        f"custom_fields[][{kind}][{bound}_length]": {"minimum": low, "maximum": ANSWER_MAX}
        for kind in ("numeric", "text")
        for bound, low in (("minimum", 0), ("maximum", 1))
    },
    "types": {"maxItems": 20},
    "description": {"minLength": 0, "maxLength": 500},
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


def document() -> Object:
    """Return the whole document as JSON values."""
    lists = (
        SessionList,
        LineItemList,
        EventList,
        EndpointList,
        PaymentList,
        ChargeList,
        RefundList,
        PriceList,
        ProductList,
    )
    schemas = parts.schemas(*lists, Account, AccountList, Balance, Deleted, Error)
    for name, nulls in _NULLS.items():
        _add_nulls(schemas[name], nulls)
    ANSWERS.limit(schemas, {*ANSWERS.always, *parts.CREATE, *_EXPIRE, *_LIST, *_MANAGE, *_REFUND})
    schemes = {
        "bearer": {"type": "http", "scheme": "bearer", "description": "Your API key."},
        "basic": {
            "type": "http",
            "scheme": "basic",
            "description": "Your API key as user name, and no password.",
        },
    }
    return parts.document(
        "Checkout Sessions, /v1",
        "The part of Stripe's API that its client libraries need for a checkout.",
        "Nothing else is supported. Bodies are forms or JSON. Amounts are in "
        "Stripe's units of the currency; times are Unix seconds.",
        schemes,
        paths=_paths(),
        components={"schemas": schemas, "securitySchemes": schemes},
    )


def _add_nulls(schema: Object, names: Iterable[str]) -> None:
    """Add the fields that are null in each answer, as the code that answers lists them."""
    found = {name: {"type": "null"} for name in names} | schema["properties"]
    left_out = found.keys() - {*schema["required"], *names}
    in_order = sorted(found, key=lambda name: (name not in ("id", "object"), name))
    schema["properties"] = {name: found[name] for name in in_order}
    schema["required"] = [name for name in in_order if name not in left_out]


def _paths() -> Object:
    sessions, endpoints, events = "/v1/checkout/sessions", "/v1/webhook_endpoints", "/v1/events"
    session = parts.in_path("session", SESSION_ID.pattern)
    endpoint = parts.in_path("endpoint", "we_[0-9A-Za-z]{22}")
    event = parts.in_path("event", EVENT_ID.pattern)
    refunds, refund = "/v1/refunds", parts.in_path("refund", REFUND_ID.pattern)
    payments, payment = "/v1/payment_intents", parts.in_path("payment", _like("pi_"))
    charge = parts.in_path("charge", _like("ch_"))
    method = parts.in_path("payment_method", _like("pm_"))
    of_refund = REFUND_ID.pattern.replace("re_", "txn_re")
    transaction = parts.in_path("transaction", f"(?:{_like('txn_')}|{of_refund})")
    price = parts.in_path("price", _like("price_") + "[0-9]{2}")
    product = parts.in_path("product", _like("prod_") + "[0-9]{2}")
    account = parts.in_path("account", "acct_[0-9A-Za-z_]{1,40}")
    create = _post(
        "createSession",
        Session,
        parity.CREATE_SESSION,
        parts.CREATE,
        required=("mode", "line_items", "success_url"),
        example=_EXAMPLE,
    )
    add = _post(
        "createEndpoint",
        Endpoint,
        parity.CREATE_ENDPOINT,
        _MANAGE,
        required=("url", "enabled_events"),
        description="Needs a key with the scope `manage`; without `read`, the events to its "
        f"address have no details of customers. A merchant has at most {ENDPOINTS_MAX} endpoints. "
        "Only the answer to this request has the signing `secret`; keep it on your server. An "
        "endpoint can miss events other than `checkout.session.completed` of the first minute "
        "after it began to ask for them.",
    )
    return {
        sessions: {
            "post": create,
            "get": _get("listSessions", SessionList, parity.LIST_SESSIONS, _LIST),
        },
        f"{sessions}/{{session}}": {
            "get": _get("getSession", Session, parity.ONE, (), session),
            "post": _post("updateSession", Session, parity.UPDATE_SESSION, _UPDATE, session),
        },
        f"{sessions}/{{session}}/expire": {
            "post": _post("expireSession", Session, parity.ONE, _EXPIRE, session)
        },
        f"{sessions}/{{session}}/line_items": {
            "get": _get("listLineItems", LineItemList, parity.LINE_ITEMS, _LIST, session)
        },
        events: {"get": _get("listEvents", EventList, parity.LIST_EVENTS, _LIST)},
        f"{events}/{{event}}": {"get": _get("getEvent", Event, parity.ONE, (), event)},
        payments: {"get": _get("listPayments", PaymentList, parity.LIST_PAYMENTS, _LIST)},
        f"{payments}/{{payment}}": {
            "get": _get("getPayment", PaymentIntent, parity.ONE, (), payment)
        },
        "/v1/charges": {"get": _get("listCharges", ChargeList, parity.LIST_CHARGES, _LIST)},
        "/v1/charges/{charge}": {"get": _get("getCharge", Charge, parity.ONE, (), charge)},
        "/v1/payment_methods/{payment_method}": {
            "get": _get("getPaymentMethod", PaymentMethod, parity.ONE, (), method),
        },
        "/v1/balance_transactions/{transaction}": {
            "get": _get("getBalanceTransaction", BalanceTransaction, parity.ONE, (), transaction),
        },
        "/v1/prices": {"get": _get("listPrices", PriceList, parity.NOTHING, ())},
        "/v1/prices/{price}": {"get": _get("getPrice", Price, parity.ONE, (), price)},
        "/v1/products": {"get": _get("listProducts", ProductList, parity.NOTHING, ())},
        "/v1/products/{product}": {"get": _get("getProduct", Product, parity.ONE, (), product)},
        refunds: {
            "post": _post("createRefund", Refund, parity.CREATE_REFUND, _REFUND),
            "get": _get("listRefunds", RefundList, parity.LIST_REFUNDS, _LIST),
        },
        f"{refunds}/{{refund}}": {
            "get": _get("getRefund", Refund, parity.ONE, (), refund),
            "post": _post("updateRefund", Refund, parity.UPDATE_REFUND, _CANCEL, refund),
        },
        f"{refunds}/{{refund}}/cancel": {
            "post": _post("cancelRefund", Refund, parity.ONE, _CANCEL, refund)
        },
        "/v1/account": {"get": _get("getAccount", Account, parity.ONE, ())},
        "/v1/accounts": {
            "get": _get("listAccounts", AccountList, parity.LIST_ENDPOINTS, _LIST),
        },
        "/v1/accounts/{account}": {
            "get": _get("getAccountById", Account, parity.ONE, (), account),
        },
        "/v1/balance": {"get": _get("getBalance", Balance, parity.ONE, ())},
        endpoints: {
            "post": add,
            "get": _get("listEndpoints", EndpointList, parity.LIST_ENDPOINTS, _LIST),
        },
        f"{endpoints}/{{endpoint}}": {
            "get": _get("getEndpoint", Endpoint, parity.ONE, (), endpoint),
            "post": _post("updateEndpoint", Endpoint, parity.UPDATE_ENDPOINT, _MANAGE, endpoint),
            "delete": _get("deleteEndpoint", Deleted, parity.NOTHING, [e.Conflict], endpoint),
        },
    }


def _like(prefix: str) -> str:
    """Return the pattern of ids that are made of a session's."""
    return SESSION_ID.pattern.replace("cs_", prefix)


def _get(
    operation: str,
    model: type[Answer],
    rows: Sequence[Parameter],
    refusals: Iterable[type[CheckoutError]],
    *path: Object,
) -> Object:
    return {
        "operationId": operation,
        "parameters": [*path, *(_in_query(row) for row in rows if row.does is not Does.REFUSED)],
        "responses": ANSWERS.of(model, "The object.", refusals),
    }


def _post(
    operation: str,
    model: type[Answer],
    rows: Sequence[Parameter],
    refusals: Iterable[type[CheckoutError]],
    *path: Object,
    required: Sequence[str] = (),
    example: Object | None = None,
    description: str = "",
) -> Object:
    body = _nested(rows) | ({"required": list(required)} if required else {})
    content = {"schema": body} | ({"example": example} if example else {})
    deep = {"style": "deepObject", "explode": True}
    form = {
        "encoding": {
            name: deep
            for name, each in body["properties"].items()
            if each.get("type") in ("object", "array")
        }
    }
    headers = {
        **parts.REPLAYED,
        IGNORED: {
            "description": "Names of the parameters that had no effect.",
            "schema": {"type": "string"},
        },
    }
    return {
        "operationId": operation,
        **({"description": description} if description else {}),
        "parameters": [*path, parts.KEY],
        "requestBody": {
            "required": bool(required),
            "content": {
                "application/json": content,
                "application/x-www-form-urlencoded": content | form,
            },
        },
        "responses": ANSWERS.of(model, "The object.", refusals, headers=headers),
    }


def _in_query(row: Parameter) -> Object:
    schema = _leaf(row) | dict(_BOUNDS.get(row.path, {}))
    if row.path.endswith("[]"):
        schema = {"type": "array", "items": _leaf(row), **_BOUNDS.get(row.path[:-2], {})}
    return {"name": row.path, "in": "query", "description": row.text, "schema": schema}


def _leaf(row: Parameter) -> Object:
    if row.only == ("false",):
        return {"const": False}
    schema: Object = {"type": row.kind.value}
    if row.only:
        schema["enum"] = list(row.only)
    elif row.kind is ParameterKind.TEXT and not row.path.endswith("[*]"):
        schema["minLength"] = 1
    return schema


def _nested(rows: Sequence[Parameter]) -> Object:
    """Return the schema of a body with the parameters of `rows`, nested as their paths are."""
    root = _empty_object()
    for row in rows:
        if row.does is Does.REFUSED or "[*][" in row.path:
            continue
        steps = re.findall(r"[^\[\]]+|\[\]", row.path)
        place, path = root, ""
        for step, following in zip(steps, [*steps[1:], None], strict=True):
            path += f"[{step}]" if path and step != "[]" else step
            made = _at(row, path, following)
            if step == "[]":
                place = place.setdefault("items", made)
            elif step == "*":
                place.update(additionalProperties=made, maxProperties=50)
                place["propertyNames"] = {"minLength": 1, "maxLength": 40}
                place.pop("properties", None)
            else:
                place = place["properties"].setdefault(step, made)
    return root


def _at(row: Parameter, path: str, following: str | None) -> Object:
    """Return the schema at one step of a path: a value, a list or an object."""
    bounds = dict(_BOUNDS.get(path, {}))
    if following == "[]":
        return {"type": "array"} | bounds
    if following is not None:
        return _empty_object() | bounds
    text = f"Ignored. {row.text}" if row.does is Does.IGNORED else row.text
    if row.does is Does.IGNORED and not row.only:
        return {"description": text}
    longest = {"maxLength": 500} if path.endswith("[*]") else {}
    return _leaf(row) | bounds | longest | {"description": text}


def _empty_object() -> Object:
    return {"type": "object", "properties": {}, "additionalProperties": False}
