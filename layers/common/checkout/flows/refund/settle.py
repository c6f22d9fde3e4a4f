"""End a refund, or an attempt to pay one, and release what another record reserves for it (R3).

One transaction writes both records. Until a refund ends, its session reserves the refund's amount.
Until an attempt to pay from the budget ends, the budget's record (mandate) reserves the debit.
"""

from __future__ import annotations

from typing import Any

from checkout.domain.ground.ids import mandate_id
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change
from checkout.domain.payment.mandate import Mandate, MandateEvent
from checkout.domain.refund.record import Refund, RefundEvent, RefundProblem, RefundRef
from checkout.domain.session.record import Session
from checkout.flows.idempotency import Reserve
from checkout.flows.payment import writes
from checkout.flows.retry_on_conflict import TRIES
from checkout.ports import StaleRecord
from checkout.services import Services


def settle(
    services: Services,
    refund: Refund,
    event: RefundEvent,
    *,
    kept: int,
    reserve: Reserve[Refund] | None = None,
    **changes: Any,
) -> Refund:
    """Write that the refund has ended. `kept` minor units of its amount remain refunded.

    Returns the refund as written. Raises IllegalTransition, KeyHeld, and StaleRecord if another
    process has changed the refund since it was read, or if the session is changed too often.
    """
    for _ in range(TRIES):
        change = writes.change(services, refund, event, **changes)
        try:
            return writes.commit(services, change, reserve, also=_released(services, refund, kept))
        except StaleRecord as stale:
            if stale.current.version != refund.version:
                raise
    raise StaleRecord(refund)


def nothing_sent(
    services: Services, refund: Refund, problem: RefundProblem, *, note: str | None = None
) -> Refund:
    """Write that nothing was sent, so that the refund needs an approval again.

    If the refund was to be paid from the budget, its debit is given back to the budget. Returns the
    refund as written. Raises IllegalTransition, and StaleRecord if another process has changed the
    refund since it was read, or if the mandate is changed too often.
    """
    for _ in range(TRIES):
        named = {} if note is None else {"note": note}
        change = writes.change(services, refund, RefundEvent.NOTHING_SENT, problem=problem, **named)
        try:
            return writes.commit(services, change, also=_given_back(services, refund))
        except StaleRecord as stale:
            if stale.current.version != refund.version:
                raise
    raise StaleRecord(refund)


def _given_back(services: Services, refund: Refund) -> Change[Mandate] | None:
    """Return the change that gives the refund's debit back to the mandate.

    Returns None if the mandate reserves no debit for the refund, or if the debit's month is over,
    because the debit is then no longer counted.
    """
    if refund.counted is None:
        return None
    mandate = services.mandates.get(mandate_id(refund.merchant))
    if mandate is None or mandate.period != refund.period:
        return None
    spent = max(0, mandate.spent - refund.counted)
    return writes.change(services, mandate, MandateEvent.GIVEN_BACK, spent=spent)


def _released(services: Services, refund: Refund, kept: int) -> Change[Session] | None:
    """Return the change of the session that releases the unsent part, or None if all is kept.

    A session that was deleted after its retention has nothing left to release.
    """
    session = services.sessions.get(refund.session) if kept < refund.amount else None
    if session is None:
        return None
    refunds = tuple(
        _of(each, kept) if each.id == refund.id else each for each in session.refunds or ()
    )
    return writes.change(services, session, Event.REFUND_SETTLED, refunds=refunds)


def _of(ref: RefundRef, kept: int) -> RefundRef:
    """Return the session's entry of the refund, with only the part that was sent, rounded up."""
    give = -(-ref.give * kept // ref.amount) if ref.amount else 0
    return RefundRef(ref.id, kept, give)
