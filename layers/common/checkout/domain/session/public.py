"""The public checkout session: the fields of spec.md in its order, then newer fields.

It has no field for grants, tokens, nonces, interact addresses, merchant ids and servers.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from checkout.domain.ground.json_values import amount, compact, timestamp
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.public_details import public_details
from checkout.domain.session.record import LineItem, Session
from checkout.domain.webhooks.event_types import COMPLETED, WITH_AMOUNT


def public_session(
    session: Session, *, base_url: str, now: datetime, details: CustomerDetails = NONE_GIVEN
) -> dict[str, Any]:
    """Return `session` as its merchant sees it at `now`, with the details of its customer.

    After its expiry it is shown as `expired`, even before that is written. `base_url` has no
    trailing slash. Amounts are in minor units.
    """
    return {
        "id": session.id,
        "object": "checkout.session",
        "status": session.status_at(now).value,
        "url": f"{base_url}/pay/{session.id}",
        "amount_total": session.amount_total,
        "currency": session.currency,
        "mode": "payment",
        "line_items": [_line_item(item) for item in session.line_items],
        "metadata": dict(session.metadata),
        "success_url": session.success_url,
        "cancel_url": session.cancel_url,
        "customer_wallet": session.customer.id if session.customer else None,
        "incoming_payment": session.incoming_payment.id if session.incoming_payment else None,
        "outgoing_payment": session.outgoing_payment,
        "expires_at": timestamp(session.expires_at),
        "created_at": timestamp(session.created_at),
        "completed_at": timestamp(session.completed_at) if session.completed_at else None,
        "amount_received": session.amount_received,
        "client_reference_id": session.client_reference_id,
        "customer_debit": amount(session.customer_debit),
        "amount_refunded": session.refunded,
        "customer_details": public_details(details),
    }


def event_body(session: Session, event_type: str = COMPLETED) -> str:
    """Return the seven fields of spec.md "Events", in its order, as compact JSON.

    Events of late and partial payments are not in the specification: their bodies also have
    `amount_received`.
    """
    body: dict[str, Any] = {
        "id": session.id,
        "status": session.status.value,
        "amount_total": session.amount_total,
        "currency": session.currency,
        "metadata": session.metadata,
        "outgoing_payment": session.outgoing_payment,
        "customer_wallet": session.customer.id if session.customer else None,
    }
    if event_type in WITH_AMOUNT:
        body["amount_received"] = session.amount_received
    return compact(body)


def _line_item(item: LineItem) -> dict[str, Any]:
    product: dict[str, Any] = {"name": item.name}
    if item.description is not None:
        product["description"] = item.description
    if item.image is not None:
        product["image"] = item.image
    return {
        "price_data": {
            "currency": item.currency,
            "product_data": product,
            "unit_amount": item.unit_amount,
        },
        "quantity": item.quantity,
    }
