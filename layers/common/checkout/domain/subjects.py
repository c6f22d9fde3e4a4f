"""The kinds of records that are paid with: the table, the transitions and the event of each.

An id begins with its kind: `cs_…` is a checkout session. The payment engine and the sweep look a
kind up here, and know none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from checkout.domain import transitions
from checkout.domain.ids import SESSION, kind_of
from checkout.domain.machine import Change
from checkout.domain.session import Session
from checkout.domain.webhooks import WebhookEvent, event_body


@dataclass(frozen=True, slots=True)
class Subject:
    """A kind of records. `table` is where they are stored, which sealed fields are bound to.

    `advance` applies the kind's own transitions; `event` makes the webhook event of a change.
    """

    table: str
    advance: Callable[..., Change[Any]]
    event: Callable[..., WebhookEvent]


def _session_event(
    change: Change[Session], event_type: str, *, event_id: str, base_url: str
) -> WebhookEvent:
    # Imported here, because most requests make no event.
    from checkout.domain.stripe_objects import event_json

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
    )


_SUBJECTS: Final[Mapping[str, Subject]] = {
    SESSION: Subject(table="checkout_sessions", advance=transitions.advance, event=_session_event),
}


def subject_of(record_id: str) -> Subject:
    """Return the kind of the record with this id. Raises KeyError for an unknown kind."""
    return _SUBJECTS[kind_of(record_id)]
