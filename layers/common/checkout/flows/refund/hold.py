"""Hold the refunds of restored tables, for the operator (H of domain/refund/transitions.py).

Restored tables lack what was written after the moment that they were restored to. A refund that has
not ended in them may have been paid since then. Nobody but the merchant can find this out, because
the quote of such a payment is not in the tables. So each refund waits until a person approves it
again.
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
    """The numbers of refunds: held now or before, changed by other requests, and not readable."""

    held: int = 0
    busy: int = 0
    unreadable: int = 0

    @property
    def complete(self) -> bool:
        return not self.busy and not self.unreadable


def hold_all(services: Services, records: DynamoRecords) -> Report:
    """Hold each refund that has not ended. It can be run again, and beside other requests.

    Raises `errors.Unavailable`; then the next run continues.
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

    Raises StaleRecord after too many lost races, and while an approval is being redeemed.
    """

    def held(current: Refund) -> Change[Refund] | None:
        # What a person has approved after it was held may be in a later copy, as a plan.
        if current.terminal or (current.held_at is not None and current.budget_at is None):
            return None
        return change(services, current, RefundEvent.HELD, held_at=services.clock.now())

    try:
        return write_decided(services, refund, held)
    except IllegalTransition as illegal:
        raise StaleRecord(illegal.record) from None
