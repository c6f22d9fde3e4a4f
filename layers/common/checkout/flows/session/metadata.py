"""Change only the metadata of a session. No wallet is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from checkout.domain.ground.errors import PaymentInProgress, SessionBusy
from checkout.domain.ground.json_values import compact
from checkout.domain.merchant.people import Actor
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change, IllegalTransition
from checkout.domain.session.record import Session, Status
from checkout.flows.idempotency import Reserve
from checkout.flows.payment import writes
from checkout.flows.retry_on_conflict import TRIES
from checkout.flows.session import lookup
from checkout.flows.session.lookup import apply_clock
from checkout.ports import StaleRecord
from checkout.services import Services

Merge = Callable[[Mapping[str, Any]], Mapping[str, Any]]
_BUSY = "This session is being changed by other requests; try again shortly."


def update(
    services: Services,
    key: Actor,
    session_id: str,
    merge: Merge,
    reserve: Reserve[Session] | None = None,
) -> Session:
    """Write the metadata that `merge` returns, and with it the stored answer that `reserve` makes.

    Raises ResourceMissing, SessionBusy, KeyHeld, PaymentInProgress while a payment may be under
    way, and the errors of `merge`.
    """
    for _ in range(TRIES):
        session = lookup.own(services, key, session_id)
        text = compact(dict(merge(session.metadata)))
        try:
            return writes.commit(services, _changed(services, session, text), reserve)
        except IllegalTransition:
            if session.status is Status.PREPARING:
                raise SessionBusy(_BUSY) from None
            raise PaymentInProgress(
                "A payment may be in progress. Change the metadata in about a minute, when its "
                "result is known."
            ) from None
        except StaleRecord:
            continue
    raise SessionBusy(_BUSY)


def _changed(services: Services, session: Session, text: str) -> Change[Session]:
    """Return the change. If it is refused, try again after `apply_clock`.

    Raises IllegalTransition.
    """
    try:
        return writes.change(services, session, Event.METADATA_CHANGED, metadata_json=text)
    except IllegalTransition:
        current = apply_clock(services, session)
        return writes.change(services, current, Event.METADATA_CHANGED, metadata_json=text)
