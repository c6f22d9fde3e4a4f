"""Sessions, payments, line items and events in the shapes that Stripe's client libraries read.

These objects are served under /v1 and sent to webhook endpoints whose format is `stripe`. Amounts
are in Stripe's units of a currency, which for three currencies differ from the units of ISO 4217.
Times are Unix seconds. Fields that have no meaning here are null, so that clients that read them do
not fail. Fields that Stripe itself leaves out are left out here, too. Facts that Stripe has no
field for are in the field `open_payments`. Parameters named `details` contain the customer's
details in plain text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from checkout.domain.ground.errors import AmountNotRepresentable
from checkout.domain.ground.grammar import SESSION_ID, TestUrl
from checkout.domain.ground.json_values import amount
from checkout.domain.payment.attempt import Outcome
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.public import last_payment_error
from checkout.domain.session.record import LineItem, Session, Status
from checkout.domain.stripe import details as stripe_details
from checkout.domain.webhooks.event_types import PAYMENT_FAILED, PAYMENT_SUCCEEDED, stripe_name

METHOD_TYPE: Final = "custom"  # Stripe's type of payment methods from outside Stripe
API_VERSION: Final = "2026-10-28.endive"  # the version of Stripe's API that has these shapes
STATUS: Final = {
    Status.COMPLETED: "complete",
    Status.EXPIRED: "expired",
    Status.CANCELED: "expired",
}  # every other status is "open": a payment that has not arrived can still fail and be repeated

# The currencies for which Stripe's smallest unit is not that of ISO 4217. Each pair is one sum in
# Stripe's units and in ISO's: 5 krónur are 500 units at Stripe and 5 here; 5 ariary are 5 units at
# Stripe and 500 here (Stripe, "Supported currencies", special cases and zero-decimal currencies).
_UNITS: Final = {"isk": (100, 1), "ugx": (100, 1), "mga": (1, 100)}
# In currencies with three decimal digits Stripe charges in steps of ten units.
_TENS: Final = ("bhd", "jod", "kwd", "omr", "tnd")

# The fields have the order in which they occur in the dictionary that compresses stored records. A
# field keeps its place if a value replaces the null.
NULL: Final = dict.fromkeys(
    (
        "adaptive_pricing",
        "after_expiration",
        "allow_promotion_codes",
        "allowed_payment_method_types",
        "billing_address_collection",
        "client_secret",
        "collected_information",
        "consent",
        "consent_collection",
        "currency_conversion",
        "customer",
        "customer_account",
        "customer_creation",
        "integration_identifier",
        "invoice",
        "invoice_creation",
        "managed_payments",
        "optional_items",
        "origin_context",
        "payment_link",
        "payment_method_configuration_details",
        "payment_method_options",
        "permissions",
        "recovered_from",
        "saved_payment_method_options",
        "setup_intent",
        "shipping_address_collection",
        "shipping_cost",
        "shipping_details",
        "subscription",
        "wallet_options",
    )
)
NULL_PAYMENT: Final = dict.fromkeys(
    (
        "allowed_payment_method_types",
        "application",
        "application_fee_amount",
        "automatic_payment_methods",
        "client_secret",
        "customer",
        "customer_account",
        "excluded_payment_method_types",
        "managed_payments",
        "next_action",
        "on_behalf_of",
        "payment_method_configuration_details",
        "payment_method_options",
        "payment_record",
        "processing",
        "receipt_email",
        "review",
        "setup_future_usage",
        "shipping",
        "source",
        "statement_descriptor",
        "statement_descriptor_suffix",
        "transfer_data",
        "transfer_group",
    )
)
NULL_CHARGE: Final = dict.fromkeys(
    (
        "application",
        "application_fee",
        "application_fee_amount",
        "calculated_statement_descriptor",
        "customer",
        "failure_balance_transaction",
        "failure_code",
        "failure_message",
        "fraud_details",
        "on_behalf_of",
        "outcome",
        "receipt_email",
        "receipt_number",
        "review",
        "shipping",
        "source",
        "source_transfer",
        "statement_descriptor",
        "statement_descriptor_suffix",
        "transfer_data",
        "transfer_group",
    )
)
_PAYMENT_STATUS: Final = {
    Status.OPEN: "requires_payment_method",
    Status.PREPARING: "requires_payment_method",
    Status.AWAITING_APPROVAL: "requires_action",
    Status.PROCESSING: "processing",
    Status.COMPLETED: "succeeded",
}
# Stripe's codes for the reasons why an attempt failed. _FAILED is used for all other reasons.
_FAILED: Final = "payment_intent_payment_attempt_failed"
_CODES: Final[Mapping[str, str]] = {
    Problem.WALLET_UNREACHABLE: "payment_method_provider_timeout",
    Problem.WALLET_UNAVAILABLE: "payment_method_not_available",
    Problem.AMOUNT_TOO_SMALL_FOR_WALLET: "amount_too_small",
    Problem.APPROVAL_UNUSABLE: "payment_intent_authentication_failure",
    Problem.PAYMENT_REFUSED: "payment_method_provider_decline",
    Outcome.DECLINED: "payment_method_customer_decline",
    Outcome.TIMED_OUT: "payment_intent_payment_attempt_expired",
}
# The fields of each object that contain the customer's details.
_GIVEN: Final = {
    "charge": ("billing_details", "shipping"),
    "checkout.session": (
        "collected_information",
        "custom_fields",
        "customer_details",
        "shipping_details",
    ),
    "payment_intent": ("shipping",),
}
_TEXTS: Final = ("after_submit", "shipping_address", "submit", "terms_of_service_acceptance")


def from_stripe(units: int, currency: str, *, param: str) -> int:
    """Convert a price from Stripe's units of `currency` (lower case) to ISO 4217's, exactly.

    Raises AmountNotRepresentable for a price that Stripe would reject.
    """
    theirs, ours = _UNITS.get(currency, (1, 1))
    step = 10 if currency in _TENS else theirs
    if units % step:
        raise AmountNotRepresentable(
            f"A price in {currency.upper()} must be a multiple of {step}.", param=param
        )
    return units * ours // theirs


def to_stripe(value: int, currency: str) -> int:
    """Convert ISO 4217 minor units to Stripe's units, rounded down if Stripe's are coarser."""
    theirs, ours = _UNITS.get(currency, (1, 1))
    return value * theirs // ours


def checkout_session(
    session: Session, *, base_url: str, now: datetime, details: CustomerDetails = NONE_GIVEN
) -> dict[str, Any]:
    """Return the session as `checkout.session`, without `line_items`."""
    echo, collect = echo_of(session), session.collect
    status = session.status_at(now)
    paid, shown = status is Status.COMPLETED, STATUS.get(status, "open")
    total = to_stripe(session.amount_total, session.currency)
    received = session.amount_received
    email = echo.get("customer_email")
    known = paid or email or details != NONE_GIVEN
    return {
        "id": session.id,
        "object": "checkout.session",
        **NULL,
        "amount_subtotal": total,
        "amount_total": total,
        "automatic_tax": {"enabled": False, "liability": None, "provider": None, "status": None},
        "cancel_url": None if echo.get("no_cancel_url") else session.cancel_url,
        "client_reference_id": session.client_reference_id,
        "collected_information": stripe_details.collected(collect, details),
        "created": unix(session.created_at),
        "currency": session.currency,
        **stripe_details.asked(collect, details, auto=echo.get("billing_address_collection")),
        "custom_text": dict.fromkeys(_TEXTS),
        "customer_details": (
            stripe_details.customer(collect, details, email=email) if known else None
        ),
        "customer_email": email,
        "discounts": [],
        "expires_at": unix(session.expires_at),
        "livemode": livemode(base_url),
        "locale": echo.get("locale"),
        "metadata": _strings(session.metadata),
        "mode": "payment",
        "open_payments": {
            "status": status.value,
            "customer_wallet": session.customer.id if session.customer else None,
            "incoming_payment": session.incoming_payment.id if session.incoming_payment else None,
            "outgoing_payment": session.outgoing_payment,
            "amount_received": None if received is None else to_stripe(received, session.currency),
            "customer_debit": amount(session.customer_debit),
        },
        "payment_intent": payment_intent_id(session.id) if paid else None,
        "payment_method_collection": "if_required",
        "payment_method_types": ["open_payments"],
        "payment_status": "paid" if paid else "unpaid",
        "shipping_details": stripe_details.shipping(details),  # clients from before 2025 read this
        "shipping_options": [],
        "status": shown,
        "submit_type": echo.get("submit_type"),
        "success_url": session.success_url,
        "total_details": {"amount_discount": 0, "amount_shipping": 0, "amount_tax": 0},
        "ui_mode": "hosted_page",
        "url": f"{base_url}/pay/{session.id}" if shown == "open" else None,
    }


def payment_intent(
    session: Session,
    *,
    base_url: str,
    now: datetime,
    details: CustomerDetails = NONE_GIVEN,
) -> dict[str, Any]:
    """Return the payment of a session as `payment_intent`, even if nothing was paid yet."""
    given = echo_of(session).get("payment_intent_data", {})
    status = session.status_at(now)
    paid, canceled = status is Status.COMPLETED, status in (Status.EXPIRED, Status.CANCELED)
    received = session.amount_received if paid else 0
    total = to_stripe(session.amount_total, session.currency)
    error = last_payment_error(session)
    return {
        "id": payment_intent_id(session.id),
        "object": "payment_intent",
        **NULL_PAYMENT,
        "amount": total,
        "amount_capturable": 0,
        "amount_received": total if received is None else to_stripe(received, session.currency),
        "canceled_at": unix(session.over_at or session.expires_at) if canceled else None,
        "cancellation_reason": "abandoned" if canceled else None,
        "capture_method": "automatic",
        "confirmation_method": "automatic",
        "created": unix(session.created_at),
        "currency": session.currency,
        "description": given.get("description"),
        "last_payment_error": error
        and {
            "type": "invalid_request_error",
            "code": _CODES.get(error["code"], _FAILED),
            "message": error["message"],
        },
        "latest_charge": charge_id(session.id) if paid else None,
        "livemode": livemode(base_url),
        "metadata": given.get("metadata", {}),
        "open_payments": {"session": session.id, "problem": error["code"] if error else None},
        "payment_method": payment_method_id(session.id) if paid else None,
        "payment_method_types": ["open_payments"],
        "shipping": stripe_details.shipping(details),
        "status": "canceled" if canceled else _PAYMENT_STATUS[status],
    }


def charge(
    session: Session, *, base_url: str, details: CustomerDetails = NONE_GIVEN
) -> dict[str, Any]:
    """Return the only `charge` of a session for which `has_charge` is true.

    As in Stripe, `amount_refunded` is what refunds have sent back plus what pending refunds hold.
    """
    given = echo_of(session).get("payment_intent_data", {})
    paid = session.status is Status.COMPLETED
    total = to_stripe(session.amount_total if paid else session.amount_paid, session.currency)
    refunded = to_stripe(session.refunded, session.currency)
    email = echo_of(session).get("customer_email")
    return {
        "id": charge_id(session.id),
        "object": "charge",
        **NULL_CHARGE,
        "amount": total,
        "amount_captured": total,
        "amount_refunded": min(refunded, total),
        "balance_transaction": transaction_id(session.id),
        "billing_details": stripe_details.billing_details(details, email=email),
        "captured": True,
        "created": unix(session.paid_at),
        "currency": session.currency,
        "description": given.get("description"),
        "disputed": False,
        "livemode": livemode(base_url),
        "metadata": given.get("metadata", {}),
        "open_payments": {"session": session.id},
        "paid": True,
        "payment_intent": payment_intent_id(session.id),
        "payment_method": payment_method_id(session.id),
        "payment_method_details": {"type": METHOD_TYPE},
        # The customer's page of the session, which anybody with the link can read.
        "receipt_url": f"{base_url}/pay/{session.id}/success" if paid else None,
        "refunded": refunded >= total,
        "shipping": stripe_details.shipping(details),
        "status": "succeeded",
    }


def payment_method(
    session: Session, *, base_url: str, details: CustomerDetails = NONE_GIVEN
) -> dict[str, Any]:
    """Return the wallet that paid as `payment_method`. `has_charge(session)` must be true."""
    email = echo_of(session).get("customer_email")
    return {
        "id": payment_method_id(session.id),
        "object": "payment_method",
        "allow_redisplay": "unspecified",
        "billing_details": stripe_details.billing_details(details, email=email),
        "created": unix(session.paid_at),
        METHOD_TYPE: {"display_name": "Open Payments", "logo": None, "type": "open_payments"},
        "customer": None,
        "customer_account": None,
        "livemode": livemode(base_url),
        "metadata": {},
        "type": METHOD_TYPE,
    }


def charge_transaction(session: Session) -> dict[str, Any]:
    """Return a session's money as `balance_transaction`. `has_charge(session)` must be true."""
    received = session.amount_received
    value = session.amount_total if received is None else received
    return balance_transaction(
        transaction_id(session.id),
        to_stripe(value, session.currency),
        session.currency,
        session.paid_at,
        source=charge_id(session.id),
        kind="charge",
    )


def balance_transaction(
    named: str, value: int, currency: str, at: datetime, *, source: str, kind: str
) -> dict[str, Any]:
    """Return a `balance_transaction` for money that the merchant's wallet received or paid.

    `value` is in Stripe's units, and below 0 if the wallet paid. `fee` is 0, because the value
    already accounts for a fee of the wallet's provider.
    """
    return {
        "id": named,
        "object": "balance_transaction",
        "amount": value,
        "available_on": unix(at),
        "balance_type": "payments",
        "created": unix(at),
        "currency": currency,
        "description": None,
        "exchange_rate": None,
        "fee": 0,
        "fee_details": [],
        "net": value,
        "reporting_category": kind,
        "source": source,
        "status": "available",
        "type": kind,
    }


def line_items(
    session: Session, *, base_url: str, expand_product: bool = False
) -> list[dict[str, Any]]:
    """Return all line items of the session as `item`, each with its price."""
    extras = echo_of(session).get("line_items") or [{}] * len(session.line_items)
    items = [
        _item(session, number, item, extra, base_url)
        for number, (item, extra) in enumerate(zip(session.line_items, extras, strict=True))
    ]
    return items if expand_product else [_folded(item) for item in items]


def event_json(
    session: Session, *, event_id: str, event_type: str, base_url: str, at: datetime
) -> str:
    """Return the `event` about a change of the session at the time `at`, as compact JSON.

    If the event reports that a payment was made or has failed, its object is the `payment_intent`.
    """
    if event_type in (PAYMENT_FAILED, PAYMENT_SUCCEEDED):
        shown = payment_intent(session, base_url=base_url, now=at)
    else:
        shown = checkout_session(session, base_url=base_url, now=at)
    return envelope(shown, event_id=event_id, event_type=event_type, base_url=base_url, at=at)


def filled(
    stripe_body: str, session: Session, details: CustomerDetails, *, base_url: str, at: datetime
) -> str:
    """Return the `event` with the details of its session's customer, as compact JSON.

    An event is stored without the details, so that the details can be erased.
    """
    event: dict[str, Any] = json.loads(stripe_body)
    shown = event["data"]["object"]
    if shown["object"] == "charge":
        whole = charge(session, base_url=base_url, details=details)
    elif shown["object"] == "payment_intent":
        whole = payment_intent(session, base_url=base_url, now=at, details=details)
    else:
        whole = checkout_session(session, base_url=base_url, now=at, details=details)
    shown |= {name: whole[name] for name in _GIVEN[shown["object"]]}
    return json.dumps(event, separators=(",", ":"), ensure_ascii=False)


def envelope(
    shown: Mapping[str, object], *, event_id: str, event_type: str, base_url: str, at: datetime
) -> str:
    """Return the `event` about one object, as compact JSON."""
    body = {
        "id": event_id,
        "object": "event",
        "api_version": API_VERSION,
        "created": unix(at),
        "data": {"object": shown},
        "livemode": livemode(base_url),
        "pending_webhooks": 1,
        "request": {"id": None, "idempotency_key": None},
        "type": stripe_name(event_type),
    }
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def echo_of(session: Session) -> dict[str, Any]:
    """Return the parameters of a request to /v1 that are kept only to be returned.

    For a session that was not created by /v1, the result is empty.
    """
    echo: dict[str, Any] = json.loads(session.echo_json or "{}")
    return echo


def payment_intent_id(session_id: str) -> str:
    return session_id.replace("cs_", "pi_", 1)


def charge_id(session_id: str) -> str:
    return session_id.replace("cs_", "ch_", 1)


def payment_method_id(session_id: str) -> str:
    return session_id.replace("cs_", "pm_", 1)


def transaction_id(session_id: str) -> str:
    return session_id.replace("cs_", "txn_", 1)


def has_charge(session: Session) -> bool:
    """Return whether money arrived: by a payment, or late or in part for an ended session.

    Late and partial money has a charge, too, because a refund of this money refers to the charge.
    """
    return session.status is Status.COMPLETED or (session.terminal and bool(session.received))


def account_id(merchant_id: str) -> str:
    """Return the id that a merchant has as an account: `acct_…`."""
    return f"acct_{merchant_id.removeprefix('mer_')}"


def session_of(named: str, prefix: str) -> str | None:
    """Return the id of the session whose object has the id `named`, or None for other ids."""
    session_id = f"cs_{named.removeprefix(prefix)}"
    right = named.startswith(prefix) and SESSION_ID.fullmatch(session_id)
    return session_id if right else None


def item_of(named: str, prefix: str) -> tuple[str, int] | None:
    """Return the session's id and the line item's position for the id of a price or product."""
    session_id, place = session_of(named[:-2], prefix), named[-2:]
    right = session_id is not None and place.isascii() and place.isdigit()
    return (session_id, int(place)) if session_id is not None and right else None


def livemode(base_url: str) -> bool:
    """Return true, except on a test stage, and in development with a service address in http."""
    return base_url.startswith("https://") and not isinstance(base_url, TestUrl)


def unix(at: datetime) -> int:
    return int(at.timestamp())


def _item(
    session: Session, number: int, item: LineItem, extra: dict[str, Any], base_url: str
) -> dict[str, Any]:
    unit = to_stripe(item.unit_amount, session.currency)
    digits = session.id.removeprefix("cs_")
    created, live = unix(session.created_at), livemode(base_url)
    total = to_stripe(item.unit_amount * item.quantity, session.currency)
    product = {
        "id": f"prod_{digits}{number:02d}",
        "object": "product",
        "active": False,
        "created": created,
        "default_price": None,
        "description": item.description or None,
        "images": extra.get("images") or ([item.image] if item.image else []),
        "livemode": live,
        "marketing_features": [],
        "metadata": extra.get("product_metadata", {}),
        "name": item.name,
        "package_dimensions": None,
        "shippable": None,
        "tax_details": None,
        "type": "service",
        "updated": created,
        "url": None,
    }
    price = {
        "id": f"price_{digits}{number:02d}",
        "object": "price",
        "active": False,
        "billing_scheme": "per_unit",
        "created": created,
        "currency": session.currency,
        "custom_unit_amount": None,
        "livemode": live,
        "lookup_key": None,
        "metadata": {},
        "nickname": None,
        "product": product,
        "recurring": None,
        "tax_behavior": "unspecified",
        "tiers_mode": None,
        "transform_quantity": None,
        "type": "one_time",
        "unit_amount": unit,
        "unit_amount_decimal": str(unit),
    }
    return {
        "id": f"li_{digits}{number:02d}",
        "object": "item",
        "adjustable_quantity": None,
        "amount_discount": 0,
        "amount_subtotal": total,
        "amount_tax": 0,
        "amount_total": total,
        "currency": session.currency,
        "description": item.name,
        "metadata": extra.get("metadata", {}),
        "price": price,
        "quantity": item.quantity,
    }


def _folded(item: dict[str, Any]) -> dict[str, Any]:
    """Return the item with its product's id in place of the product."""
    price = item["price"]
    return item | {"price": price | {"product": price["product"]["id"]}}


def _strings(metadata: Any) -> dict[str, str]:
    """Return metadata for /v1, in which values that are not text are written as JSON."""
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in metadata.items()
    }
