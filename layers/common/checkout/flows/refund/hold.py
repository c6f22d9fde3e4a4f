"""Hold the refunds of restored tables, for the operator (H of domain/refund/transitions.py).

Tables that were restored to an earlier moment lack everything that was written after this moment. A
refund that has not ended in these tables may have been paid since then. The service cannot find
that payment, because its quote is not in the tables; only the merchant can. So each of these
refunds is held: it waits until a person approves it again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from checkout.domain.payment.machine import Change, IllegalTransition
from checkout.domain.refund.record import Refund, RefundEvent
from checkout.flows.payment.writes import change, write_decided
from checkout.ports import StaleRecord
from checkout.services import Services

if TYPE_CHECKING:
    from checkout.adapters.dynamo.erasure import DynamoRecords


@dataclass(slots=True)
class Report:
    """The numbers of refunds: held by this run or before, busy with other requests, unreadable."""

    held: int = 0
    busy: int = 0
    unreadable: int = 0

    @property
    def complete(self) -> bool:
        return not self.busy and not self.unreadable


def hold_all(services: Services, records: DynamoRecords) -> Report:
    """Hold each refund that has not ended.

    The function can run again, and at the same time as other requests. After it raises
    `errors.Unavailable`, another run holds the rest.
    """
    report = Report()
    for refund in records.refunds():
        if refund is None:
            report.unreadable += 1
            continue
        try:
            refund = hold(services, refund)
        except StaleRecord:
            report.busy += 1
        else:
            report.held += refund.held_at is not None and not refund.terminal
    return report


def hold(services: Services, refund: Refund) -> Refund:
    """Hold the refund, unless it has ended or is held already. Return it as stored.

    Raises StaleRecord if other processes change the refund too often meanwhile, or if an approval
    is being redeemed now.
    """

    def held(current: Refund) -> Change[Refund] | None:
        # A held refund with a plan to pay from the budget is held again. A person made this plan
        # after the first hold, so if the tables were restored again, the refund may have been paid.
        if current.terminal or (current.held_at is not None and current.budget_at is None):
            return None
        return change(services, current, RefundEvent.HELD, held_at=services.clock.now())

    try:
        return write_decided(services, refund, held)
    except IllegalTransition as illegal:
        raise StaleRecord(illegal.record) from None
