"""The answers and events that the reference shows: made by the code that answers, so they are true.

One purchase runs through all of them. The others are made of their schemas (page.py).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from checkout.answers import EXAMPLE_EVENT, EXAMPLE_ID, EXAMPLE_REFUND
from checkout.domain.refund.public import public_refund
from checkout.domain.refund.record import AmountMode, Refund, RefundProblem, RefundStatus
from checkout.domain.session.public import event_body, public_session
from checkout.domain.session.record import LineItem, Session, Status
from checkout.domain.stripe import objects as stripe
from checkout.domain.stripe.refunds import refund_object
from checkout.domain.webhooks import event_types as types
from checkout.domain.webhooks.record import ping_body
from open_payments.models import Amount, WalletAddress

Object = Mapping[str, Any]

BASE_URL: Final = "https://checkout.example"  # is replaced by the deployment's own address
_AT: Final = datetime(2026, 3, 2, 11, tzinfo=UTC)
_PAID_AT: Final = _AT + timedelta(minutes=3)
_OPEN: Final = Session(
    id=EXAMPLE_ID,
    merchant="mer_1",
    status=Status.OPEN,
    version=1,
    writer="",
    created_at=_AT,
    updated_at=_AT,
    expires_at=_AT + timedelta(days=1),
    amount_total=2000,
    currency="usd",
    receive=Amount(2000, "USD", 2),
    line_items=(LineItem("usd", "Espresso beans, 1 kg", None, 1000, 2),),
    metadata_json='{"order":"1234"}',
    success_url=f"https://shop.example/thanks?session={EXAMPLE_ID}",
    cancel_url="https://shop.example/basket",
)
_WALLET: Final = WalletAddress(
    id="https://wallet.example/alice",
    asset_code="USD",
    asset_scale=2,
    auth_server="https://auth.wallet.example",
    resource_server="https://wallet.example",
)
_PAID: Final = replace(
    _OPEN,
    status=Status.COMPLETED,
    customer=_WALLET,
    outgoing_payment="https://wallet.example/outgoing-payments/5d1f",
    received=2000,
    completed_at=_PAID_AT,
)
_EXPIRED: Final = replace(_OPEN, status=Status.EXPIRED)
_CANCELED: Final = replace(_OPEN, status=Status.CANCELED)
_PART: Final = replace(_PAID, received=1500, completed_at=None)
_REFUND: Final = Refund(
    id=EXAMPLE_REFUND,
    merchant="mer_1",
    status=RefundStatus.NEEDS_APPROVAL,
    version=1,
    writer="",
    updated_at=_PAID_AT,
    created_at=_PAID_AT,
    session=EXAMPLE_ID,
    amount=500,
    currency="usd",
    mode=AmountMode.AT_COST,
    cost=Amount(500, "USD", 2),
    wallet=_WALLET.id,
    by="",
)
_UNDONE: Final = replace(
    _REFUND, status=RefundStatus.CANCELED, ended_at=_PAID_AT + timedelta(hours=1)
)
_SENT: Final = replace(
    _UNDONE,
    status=RefundStatus.SUCCEEDED,
    outgoing_payment="https://wallet.example/outgoing-payments/8c2a",
    sent=500,
    confirmed=1,
)
_SENT_IN_PART: Final = replace(
    _SENT, status=RefundStatus.FAILED, problem=RefundProblem.SENT_IN_PART, sent=200, confirmed=0
)


def _session(session: Session) -> Object:
    return public_session(session, base_url=BASE_URL, now=_PAID_AT)


def _stripe(session: Session) -> Object:
    return stripe.checkout_session(session, base_url=BASE_URL, now=_PAID_AT)


def _page(url: str, shown: Object, **more: Any) -> Object:
    return {"object": "list", "url": url, "data": [shown], "has_more": False, **more}


NATIVE: Final[Mapping[str, Object]] = {
    "createSession": _session(_OPEN),
    "listSessions": _page("/api/checkout/sessions", _session(_PAID), next_cursor=None),
    "getSession": _session(_PAID),
    "expireSession": _session(_EXPIRED),
    "cancelSession": _session(_CANCELED),
    "acceptSession": _session(replace(_PART, status=Status.COMPLETED, completed_at=_PAID_AT)),
    "giveUpSession": _session(replace(_PART, status=Status.EXPIRED)),
    "createRefund": public_refund(_REFUND, base_url=BASE_URL),
    "listRefunds": _page(
        "/api/checkout/refunds", public_refund(_SENT, base_url=BASE_URL), next_cursor=None
    ),
    "getRefund": public_refund(_SENT, base_url=BASE_URL),
    "cancelRefund": public_refund(_UNDONE, base_url=BASE_URL),
}
# The bodies of the native form.
EVENTS: Final[Mapping[str, Object]] = {
    types.COMPLETED: json.loads(event_body(_PAID)),
    types.EXPIRED: json.loads(event_body(_EXPIRED)),
    types.CANCELED: json.loads(event_body(_CANCELED)),
    types.PAYMENT_FAILED: json.loads(event_body(replace(_OPEN, customer=_WALLET))),
    types.PARTIALLY_PAID: json.loads(
        event_body(replace(_PART, status=Status.PROCESSING), types.PARTIALLY_PAID)
    ),
    types.LATE_PAYMENT: json.loads(
        event_body(replace(_PART, status=Status.EXPIRED), types.LATE_PAYMENT)
    ),
    types.REFUND_CREATED: NATIVE["createRefund"],
    types.REFUND_UPDATED: NATIVE["getRefund"],
    types.REFUND_FAILED: public_refund(_SENT_IN_PART, base_url=BASE_URL),
    types.PING: json.loads(ping_body(EXAMPLE_EVENT, currency="usd")),
}
_PAYMENT: Final = stripe.payment_intent(_PAID, base_url=BASE_URL, now=_PAID_AT)
_CHARGE: Final = stripe.charge(_PAID, base_url=BASE_URL)
_PRICE: Final = stripe.line_items(_PAID, base_url=BASE_URL)[0]["price"]
_PRODUCT: Final = stripe.line_items(_PAID, base_url=BASE_URL, expand_product=True)[0]["price"][
    "product"
]
_PENDING: Final = refund_object(_REFUND, base_url=BASE_URL)
_EVENT: Final[Object] = json.loads(
    stripe.event_json(
        _PAID,
        event_id=EXAMPLE_EVENT,
        event_type=types.COMPLETED,
        base_url=BASE_URL,
        at=_PAID_AT,
    )
)
_ENDPOINT: Final[Object] = {
    "id": "we_2pTMd0wvG8PZx5nNq2LrYb",
    "object": "webhook_endpoint",
    "api_version": stripe.API_VERSION,
    "application": None,
    "created": stripe.unix(_AT),
    "description": None,
    "enabled_events": [types.COMPLETED],
    "livemode": True,
    "metadata": {},
    "open_payments": {"format": "stripe"},
    "status": "enabled",
    "url": "https://shop.example/hooks",
}
STRIPE: Final[Mapping[str, Object]] = {
    "createSession": _stripe(_OPEN),
    "listSessions": _page("/v1/checkout/sessions", _stripe(_PAID)),
    "getSession": _stripe(_PAID),
    "updateSession": _stripe(_OPEN),
    "expireSession": _stripe(_EXPIRED),
    "listLineItems": _page(
        f"/v1/checkout/sessions/{EXAMPLE_ID}/line_items",
        stripe.line_items(_OPEN, base_url=BASE_URL)[0],
    ),
    "listEvents": _page("/v1/events", _EVENT),
    "getEvent": _EVENT,
    "listPayments": _page("/v1/payment_intents", _PAYMENT),
    "getPayment": _PAYMENT,
    "listCharges": _page("/v1/charges", _CHARGE),
    "getCharge": _CHARGE,
    "getPaymentMethod": stripe.payment_method(_PAID, base_url=BASE_URL),
    "getBalanceTransaction": stripe.charge_transaction(_PAID),
    "getPrice": _PRICE,
    "getProduct": _PRODUCT,
    "createRefund": _PENDING,
    "listRefunds": _page("/v1/refunds", refund_object(_SENT, base_url=BASE_URL)),
    "getRefund": refund_object(_SENT, base_url=BASE_URL),
    "updateRefund": _PENDING,
    "cancelRefund": refund_object(_UNDONE, base_url=BASE_URL),
    "createEndpoint": {**_ENDPOINT, "secret": "whsec_9fTMd0wvG8PZx5nNq2LrYb3kTMd0wvG8"},
    "listEndpoints": _page("/v1/webhook_endpoints", _ENDPOINT),
    "getEndpoint": _ENDPOINT,
    "updateEndpoint": _ENDPOINT,
    "deleteEndpoint": {"id": _ENDPOINT["id"], "object": "webhook_endpoint", "deleted": True},
}
