"""Records and texts that several pages of the dashboard show.

Amounts are exact, because no float is used. Times are in UTC.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from checkout.domain.ground.money import from_minor_units, minor_unit_digits
from checkout.domain.merchant.people import Actor
from checkout.domain.payment.mandate import Terms
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import TIMEOUT, Delivery, EventStatus, WebhookEvent
from dashboard.texts import (
    CONNECTION,
    DELIVERY,
    ERASED,
    GIVEN_UP,
    MAKING_CERTAIN,
    NOT_SENT,
    PART_PAID,
    PARTLY_REFUNDED,
    REFUNDED,
    STATUS,
)
from open_payments.models import Amount

NOT_REACHED, NOT_ANSWERED = "not sent", "no answer"  # how the webhook sender's errors begin
USUAL_COLOR: Final = "#0b5cad"  # the same color as in the customers' page.css


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to deliver an event. `answer` is the beginning of the response's body."""

    at: datetime
    outcome: str
    took: str | None
    answer: str | None
    bad: bool


@dataclass(frozen=True, slots=True)
class Delivered:
    """The delivery of an event to the merchant's server. `look` is the CSS class of its badge."""

    id: str
    type: str
    status: str
    look: str
    given_up: str | None
    next_at: datetime | None
    attempts: tuple[Attempt, ...]


def delivered(event: WebhookEvent) -> Delivered:
    """Return the delivery of `event`. If no endpoint requested the event, this is not a failure."""
    pending, unwanted = event.ended_at is None, event.given_up is not None and not event.in_vain
    return Delivered(
        id=event.id,
        type=event.type,
        status=NOT_SENT if unwanted else DELIVERY[event.status],
        look="" if unwanted else _look_of(event),
        given_up=GIVEN_UP[event.given_up] if event.given_up else None,
        next_at=event.next_at if pending else None,
        attempts=tuple(attempt(delivery) for delivery in event.deliveries),
    )


def _look_of(event: WebhookEvent) -> str:
    """Return the CSS class of the badge, which is "warn" for a failed event that is sent again."""
    if event.status is EventStatus.PENDING:
        made = [each for each in event.deliveries if each.duration_ms is not None]
        return "warn" if made and not made[-1].succeeded else "processing"
    return "completed" if event.status is EventStatus.DELIVERED else "bad"


def status_of(session: Session, now: datetime) -> str:
    """Return the text of the status, which is more exact while a payment is being confirmed."""
    if session.partly_paid:
        return PART_PAID
    if session.payment_in_flight and session.closing_at is not None:
        return MAKING_CERTAIN
    return STATUS[session.status_at(now)]


def look_of(session: Session, now: datetime) -> str:
    """Return the CSS class of the status. A partly paid session is marked as needing a person."""
    return "warn" if session.partly_paid else session.status_at(now).value


def refunded_of(session: Session, refunds: Iterable[Refund]) -> str | None:
    """Return the text of how much of the session's money was sent back, or None for nothing.

    The `refunds` are needed, because the sum of refunds in the session includes those that are
    still waiting.
    """
    back = sum(each.amount if each.noted else each.sent for each in refunds)
    if not back:
        return None
    paid = session.amount_paid or session.amount_total
    return REFUNDED if back >= paid else PARTLY_REFUNDED


def wallet_of(session: Session) -> str | None:
    """Return the customer's wallet address, or a word in its place if it was erased."""
    if session.erased:
        return ERASED
    return session.customer.id if session.customer else None


def margin_of(terms: Terms) -> str:
    """Return the refund budget's margin as text: "2 %", "2 % and 0.50 USD"."""
    units = replace(terms.limit, value=terms.margin.units)
    parts = [f"{terms.margin.percent} %"] if terms.margin.percent or not units.value else []
    return " and ".join([*parts, readable(units)] if units.value else parts)


def short(wallet: str | None) -> str | None:
    """Return a wallet address without its scheme, as people read it."""
    return wallet.removeprefix("https://") if wallet else None


def plain(value: object) -> str:
    """Return a value of the metadata as text."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def minor(value: int, session: Session) -> str:
    """Return `value` minor units of the session's currency, formatted like `readable`."""
    scale = session.receive.asset_scale
    return readable(from_minor_units(value, currency=session.currency, wallet_scale=scale))


def sum_of(key: Actor, value: int) -> str:
    """Return minor units of the signed-in merchant's currency, formatted like `readable`."""
    scale = key.asset_scale
    return readable(from_minor_units(value, currency=key.asset_code, wallet_scale=scale))


def readable(amount: Amount) -> str:
    """Return the amount for people, for example "1,234.50 USD".

    The text has all significant digits, and at least the currency's number of decimals. A
    non-breaking blank keeps the amount on one line.
    """
    whole, _, fraction = amount.decimal().removeprefix("-").partition(".")
    sign = "-" if amount.value < 0 else ""
    digits = minor_unit_digits(amount.asset_code, wallet_scale=amount.asset_scale)
    fraction = fraction[:digits] + fraction[digits:].rstrip("0")
    number = f"{sign}{int(whole):,}" + (f".{fraction}" if fraction else "")
    return f"{number}\N{NO-BREAK SPACE}{amount.asset_code}"


def attempt(delivery: Delivery) -> Attempt:
    """Return one attempt to deliver an event, with the text of the attempt's outcome."""
    if delivery.status is not None:
        outcome = f"Response {delivery.status}"
        if 300 <= delivery.status < 400:
            leads = f". It leads to {delivery.error}: set this URL" if delivery.error else ""
            outcome += f": redirects are not followed{leads}"
    elif delivery.duration_ms is None:
        outcome = "Started; the result is unknown"
    else:
        outcome = _without_answer(delivery.error or "")
    return Attempt(
        at=delivery.at,
        outcome=outcome,
        took=f"{delivery.duration_ms} ms" if delivery.duration_ms is not None else None,
        answer=delivery.answer or None,
        bad=not delivery.succeeded,
    )


def _without_answer(error: str) -> str:
    """Return why there was no response: the server was not reached, or did not answer."""
    kind, _, rest = error.partition(": ")
    host, _, name = rest.rpartition(": ")
    said = CONNECTION.get(name, name)
    if not host or kind not in (NOT_REACHED, NOT_ANSWERED):
        return f"No response: {error}"
    if kind == NOT_REACHED:
        return f"Your server was not reached: {said} ({host})"
    if name == "TimeoutError":
        seconds = int(TIMEOUT.total_seconds())
        return (
            f"Your server received the request but did not answer within {seconds} seconds ({host})"
        )
    return f"Your server received the request but gave no answer: {said} ({host})"


def limits_of(key: Actor) -> str | None:
    """Return the text of the actor's refund limits, or None if there are none."""
    cap = key.refund_cap
    if cap is None:
        return None
    once = f"{sum_of(key, cap.once)} each" if cap.once is not None else None
    day = f"{sum_of(key, cap.day)} a day" if cap.day is not None else None
    return "refunds at most " + " and ".join(each for each in (once, day) if each)
