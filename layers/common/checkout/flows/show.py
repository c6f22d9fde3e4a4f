"""Read a stored record for the operator, and find the session of a log line by its reference.

Records are stored compressed, so the table itself shows little of them. A field with `repr=False`
is a secret, such as a sealed token, and is not shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, TypeVar

from checkout.domain.ground.errors import Conflict, ResourceMissing
from checkout.domain.ground.ids import session_ref
from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Session
from checkout.services import DashboardServices
from open_payments.urls import authority

if TYPE_CHECKING:
    from checkout.adapters.dynamo.erasure import DynamoRecords

HIDDEN: Final = "(not shown)"
AHEAD: Final = timedelta(days=30)  # the next check of a session is at most this far ahead
DUE_MAX: Final = 100_000  # sessions read of each shard
_BY_HAND: Final = {
    Attention.PARTIAL_PAYMENT: "A part of the money arrived. The merchant has to accept it as "
    "paid, or give the session up.",
    Attention.UNDECIDED: "A provider does not answer. The sweep goes on asking, once an hour.",
    Attention.LATE_PAYMENT: "Money arrived after the session had ended. The merchant has to "
    "deliver, or pay it back.",
}

R = TypeVar("R")
T = TypeVar("T")


def record(services: DashboardServices, record_id: str) -> dict[str, Any]:
    """Return those fields of a record that have a value, as JSON.

    Raise ResourceMissing, and Conflict if the record cannot be read.

    `record_id` is the id of a session, a refund, a webhook event or an event's copy, a merchant or
    a payment link. For an API key or the answer to an idempotency key, `record_id` is the hash
    under which the record is stored.
    """
    reads: Mapping[str, Callable[[str], Any]] = {
        "cs": services.sessions.get,
        "re": services.refunds.get,
        "evt": services.events.get,
        "mer": services.merchants.get,
        "plink": services.links.get,
    }
    kind, mark, _ = record_id.partition("_")
    if mark and kind in reads:
        try:
            found = reads[kind](record_id)
        except (KeyError, TypeError, ValueError) as error:
            why = f"{type(error).__name__}: {error}"
            raise Conflict(f"The record cannot be read ({why}). See docs/operating.md.") from None
    elif not record_id:
        found = None
    else:
        found = services.api_keys.find(record_id) or services.sessions.reservation(record_id)
    if found is None:
        raise ResourceMissing("No such record.")
    shown: dict[str, Any] = _shown(found)
    return shown


@dataclass(frozen=True, slots=True)
class Found:
    """The session of a log line. `session` is None if the session's record cannot be read."""

    id: str
    merchant: str | None
    session: Session | None


def find(services: DashboardServices, records: DynamoRecords, ref: str) -> Found:
    """Return the session whose reference in log lines is `ref`. Raise ResourceMissing.

    The sessions in the sweep's index are searched first, then the whole table.
    """
    everything = chain(_due(services), records.session_ids())
    session_id = next((each for each in everything if session_ref(each) == ref), None)
    if session_id is None:
        raise ResourceMissing("No session has this reference.")
    try:
        session = services.sessions.get(session_id)
    except (KeyError, TypeError, ValueError):  # damaged, or written by a newer release
        session = None
    return Found(session_id, records.merchant_of(session_id), session)


def next_step(session: Session) -> str:
    """Return the next step for a session, as a sentence for the operator."""
    if session.attention is not None:
        return _BY_HAND[session.attention]
    if session.needed_at is None:
        return "Nothing: the session has ended, or ends when its time runs out."
    at = session.needed_at.isoformat(timespec="seconds")
    if not session.payment_in_flight:
        return f"The sweep checks it at {at}."
    payee, payer = session.incoming_payment, session.customer
    asked = [*([payee.id] if payee else []), *([payer.resource_server] if payer else [])]
    hosts = dict.fromkeys(authority(each) for each in asked)
    return f"The payment is in doubt. The sweep asks {' and '.join(hosts)} at {at}."


def _due(services: DashboardServices) -> Iterator[str]:
    for urgent in (True, False):
        yield from services.sessions.due(
            services.clock.now() + AHEAD, urgent=urgent, limit=DUE_MAX, run_concurrently=_one_by_one
        ).ids


def _one_by_one(do: Callable[[T], R], items: Iterable[T]) -> list[R]:
    return [do(each) for each in items]


def _shown(value: Any) -> Any:
    if is_dataclass(value):
        present = ((each, getattr(value, each.name)) for each in fields(value))
        return {
            each.name: _shown(found) if each.repr else HIDDEN
            for each, found in present
            if found is not None
        }
    if isinstance(value, tuple):
        return [_shown(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat(timespec="milliseconds")
    return value
