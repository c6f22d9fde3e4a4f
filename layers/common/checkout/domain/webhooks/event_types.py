"""The types of webhook events: one table for deliveries, the dashboard, the APIs and the docs.

A stored event or endpoint may have a type that the table lacks, if another release wrote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

COMPLETED: Final = "checkout.session.completed"
EXPIRED: Final = "checkout.session.expired"
CANCELED: Final = "checkout.session.canceled"
LATE_PAYMENT: Final = "checkout.session.late_payment"
PAYMENT_FAILED: Final = "checkout.session.payment_failed"
PARTIALLY_PAID: Final = "checkout.session.partially_paid"
REFUND_CREATED: Final = "refund.created"
REFUND_UPDATED: Final = "refund.updated"
REFUND_FAILED: Final = "refund.failed"
PAYMENT_SUCCEEDED: Final = "payment_intent.succeeded"
CHARGE_REFUNDED: Final = "charge.refunded"
PING: Final = "ping"


@dataclass(frozen=True, slots=True)
class EventType:
    """A type of event. `sentence` describes what happened, without a full stop.

    An `optional` type is sent only to the endpoints that request it, the other types to all. If
    `amount` is true, the body also contains the amount received. `stripe` is the name of the type
    in Stripe's form, if that name is different. `beside` is a type that reports the same change
    for another of Stripe's objects. Only endpoints in Stripe's form get both events, because in the
    native form both would have the same body.
    """

    sentence: str
    optional: bool = False
    amount: bool = False
    stripe: str | None = None
    beside: str | None = None


EVENTS: Final[Mapping[str, EventType]] = {
    COMPLETED: EventType("A session was paid"),
    EXPIRED: EventType("A session expired", optional=True),
    CANCELED: EventType("A session was canceled", optional=True, stripe=EXPIRED),
    PAYMENT_FAILED: EventType(
        "A payment failed, and the session is open again",
        optional=True,
        stripe="payment_intent.payment_failed",
    ),
    PARTIALLY_PAID: EventType("Part of a payment arrived", optional=True, amount=True),
    LATE_PAYMENT: EventType("Money arrived after a session had ended", amount=True),
    REFUND_CREATED: EventType("A refund was requested", optional=True),
    REFUND_UPDATED: EventType("A refund was paid or canceled, or could not be sent", optional=True),
    REFUND_FAILED: EventType("A refund failed after a part was sent", optional=True),
    PAYMENT_SUCCEEDED: EventType(
        "A payment was made (only in Stripe’s form)", optional=True, beside=COMPLETED
    ),
    CHARGE_REFUNDED: EventType(
        "A refund was made (only in Stripe’s form)", optional=True, beside=REFUND_UPDATED
    ),
    PING: EventType("Test event"),
}
OPTIONAL: Final = tuple(name for name, each in EVENTS.items() if each.optional)
BESIDE: Final = tuple(name for name, each in EVENTS.items() if each.beside)
WITH_AMOUNT: Final = tuple(name for name, each in EVENTS.items() if each.amount)
ALWAYS: Final = tuple(name for name in EVENTS if name not in (*OPTIONAL, PING))


def choices() -> dict[str, str]:
    """Return the optional types by the short names with which merchants choose them.

    The short name is the last part of the type. If an earlier type has the same last part, the
    short name is the whole type with underscores in place of the dots.
    """
    found: dict[str, str] = {}
    for name in OPTIONAL:
        last = name.rpartition(".")[2]
        found[name.replace(".", "_") if last in found else last] = name
    return found


def sentence_of(name: str) -> str:
    """Return the sentence of an event type, or the type itself if it is unknown."""
    return EVENTS[name].sentence if name in EVENTS else name


def stripe_name(name: str) -> str:
    """Return the type's name in Stripe's form, which differs only for some of the known types."""
    return EVENTS[name].stripe or name if name in EVENTS else name
