"""View records and text that several pages share.

A record without a field for grants, tokens, nonces and interact addresses cannot show them. Amounts
are exact (no float is used), times are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.money import from_minor_units, minor_unit_digits
from checkout.domain.public import timestamp
from checkout.domain.session import Session
from checkout.domain.webhooks import Delivery, WebhookEvent
from checkout.open_payments.models import Amount
from checkout.pages import Moment
from dashboard.texts import CONNECTION, DELIVERY, ERASED, GIVEN_UP, NOT_SENT

USUAL_COLOR: Final = "#0b5cad"  # as in the customers' page.css


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver an event; `answer` is the start of the response's body."""

    at: Moment
    outcome: str
    took: str | None
    answer: str | None
    bad: bool


@dataclass(frozen=True, slots=True)
class Delivered:
    """The delivery of an event to the merchant's server."""

    id: str
    type: str
    status: str
    bad: bool
    given_up: str | None
    next_at: Moment | None
    attempts: tuple[Attempt, ...]


def delivered(event: WebhookEvent) -> Delivered:
    """Return the delivery of `event`; that nobody was to get it is not a failure."""
    pending, unwanted = event.ended_at is None, event.given_up is not None and not event.in_vain
    return Delivered(
        id=event.id,
        type=event.type,
        status=NOT_SENT if unwanted else DELIVERY[event.status],
        bad=event.given_up is not None and not unwanted,
        given_up=GIVEN_UP[event.given_up] if event.given_up else None,
        next_at=moment(event.next_at) if pending else None,
        attempts=tuple(_attempt(delivery) for delivery in event.deliveries),
    )


def wallet_of(session: Session) -> str | None:
    """Return the customer's wallet address, or a word if it was erased."""
    if session.erased:
        return ERASED
    return session.customer.id if session.customer else None


def order_of(session: Session) -> str | None:
    """Return the merchant's number of the order: their reference, else the first metadata value."""
    if session.client_reference_id is not None:
        return session.client_reference_id
    value = next(iter(session.metadata.values()), None)
    return None if value is None else plain(value)


def plain(value: object) -> str:
    """Return a value of the metadata as text."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def moment(at: datetime) -> Moment:
    """Return `at` as the dashboard writes it."""
    return Moment(timestamp(at), f"{at.day} {at:%b %Y, %H:%M:%S}")


def minor(value: int, session: Session) -> str:
    """Return `value` minor units of the session's currency as `readable` writes them."""
    scale = session.receive.asset_scale
    return readable(from_minor_units(value, currency=session.currency, wallet_scale=scale))


def readable(amount: Amount) -> str:
    """Return the amount for people, for example "1,234.50 USD".

    It has all significant digits, and at least as many decimals as the currency has.
    """
    whole, _, fraction = amount.decimal().partition(".")
    digits = minor_unit_digits(amount.asset_code, wallet_scale=amount.asset_scale)
    fraction = fraction[:digits] + fraction[digits:].rstrip("0")
    return f"{int(whole):,}" + (f".{fraction}" if fraction else "") + f" {amount.asset_code}"


def _attempt(delivery: Delivery) -> Attempt:
    if delivery.status is not None:
        outcome = f"Response {delivery.status}"
    elif delivery.duration_ms is None:
        outcome = "Started; the result is unknown"
    else:
        place, _, name = (delivery.error or "").rpartition(": ")
        said = CONNECTION.get(name, name)
        outcome = f"No response: {place}: {said}" if place else f"No response: {said}"
    return Attempt(
        at=moment(delivery.at),
        outcome=outcome,
        took=f"{delivery.duration_ms} ms" if delivery.duration_ms is not None else None,
        answer=delivery.answer or None,
        bad=not delivery.succeeded,
    )
