"""The kinds of records that take part in payments, each with its table, transitions and event.

An id begins with the kind of its record: `cs_…` is a checkout session. The payment engine and the
sweep (the scheduled job) look up kinds here, so their code does not depend on a particular kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from checkout.domain.ground.ids import MANDATE, REFUND, SESSION, kind_of
from checkout.domain.ground.json_values import compact
from checkout.domain.payment import mandate_transitions
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change
from checkout.domain.payment.mandate import MandateEvent
from checkout.domain.refund import transitions as refund_transitions
from checkout.domain.refund.public import public_refund
from checkout.domain.refund.record import Refund, RefundEvent
from checkout.domain.session import transitions
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.public import event_body
from checkout.domain.session.record import Session
from checkout.domain.webhooks.record import WebhookEvent


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of record. Encrypted fields can be decrypted only in `table`, its database table.

    `events` are the events that can happen to such a record. `advance` applies the transitions of
    this kind. `event` makes the webhook event of a change; None if no transition has such an event.
    """

    table: str
    events: Any
    advance: Callable[..., Change[Any]]
    event: Callable[..., WebhookEvent] | None = None


def _session_event(
    change: Change[Session], event_type: str, *, event_id: str, base_url: str
) -> WebhookEvent:
    # Imported here, because most requests make no event.
    from checkout.domain.stripe.objects import event_json

    session = change.after
    return WebhookEvent(
        id=event_id,
        merchant=session.merchant,
        subject=session.id,
        type=event_type,
        body=event_body(session, event_type),
        created_at=change.at,
        next_at=change.at,
        part=session.part,
        stripe_body=event_json(
            session, event_id=event_id, event_type=event_type, base_url=base_url, at=change.at
        ),
        details_of=_details_of(session),
    )


def charge_event(
    refund: Refund,
    session: Session,
    event_type: str,
    *,
    event_id: str,
    base_url: str,
    at: datetime,
) -> WebhookEvent:
    """Return the event about the charge of `session`, which the refund changed at the time `at`."""
    from checkout.domain.stripe.objects import charge, envelope

    event = refund_event(refund, event_type, event_id=event_id, base_url=base_url, at=at)
    shown = charge(session, base_url=base_url)
    stripe = envelope(shown, event_id=event_id, event_type=event_type, base_url=base_url, at=at)
    return replace(event, stripe_body=stripe, details_of=_details_of(session))


def with_details(
    event: WebhookEvent, session: Session, details: CustomerDetails, *, base_url: str
) -> WebhookEvent:
    """Return the event with the details of its session's customer, in Stripe's form."""
    from checkout.domain.stripe.objects import filled

    if details == NONE_GIVEN:
        return event
    body = filled(event.stripe_body, session, details, base_url=base_url, at=event.created_at)
    return replace(event, stripe_body=body)


def _details_of(session: Session) -> str | None:
    return session.id if session.customer_details is not None else None


def _refund_event(
    change: Change[Refund], event_type: str, *, event_id: str, base_url: str
) -> WebhookEvent:
    return refund_event(
        change.after, event_type, event_id=event_id, base_url=base_url, at=change.at
    )


def refund_event(
    refund: Refund, event_type: str, *, event_id: str, base_url: str, at: datetime
) -> WebhookEvent:
    """Return the event about a refund. The list of the session's events contains this event."""
    from checkout.domain.stripe.refunds import refund_event_json

    return WebhookEvent(
        id=event_id,
        merchant=refund.merchant,
        subject=refund.session,
        type=event_type,
        body=compact(public_refund(refund, base_url=base_url)),
        created_at=at,
        next_at=at,
        part=refund.part,
        stripe_body=refund_event_json(
            refund, event_id=event_id, event_type=event_type, base_url=base_url, at=at
        ),
    )


_SUBJECTS: Final[Mapping[str, Subject]] = {
    SESSION: Subject("checkout_sessions", Event, transitions.advance, _session_event),
    REFUND: Subject("checkout_sessions", RefundEvent, refund_transitions.advance, _refund_event),
    MANDATE: Subject("checkout_sessions", MandateEvent, mandate_transitions.advance),
}


def subject_of(record_id: str) -> Subject:
    """Return the kind of the record with this id. Raise KeyError for an unknown kind."""
    return _SUBJECTS[kind_of(record_id)]
