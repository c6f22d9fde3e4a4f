"""A merchant's statement: the money that the wallet received and the refunds, by day.

A payment belongs to the UTC day on which its session ended, as in daily_totals.py. Exception: the
money of an unpaid session (too late or too little) belongs to the day on which the money arrived. A
refund belongs to the day on which the refund ended.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Final

from checkout.domain.ground.money import minor_unit_digits
from checkout.domain.payment.events import Event
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import Session, Status
from open_payments.models import Amount

_ARRIVED: Final = (Event.PART_ARRIVED, Event.MONEY_FOUND, Event.LATE_PAYMENT)


@dataclass(frozen=True, slots=True)
class Money:
    """The money of one session. `paid` is in minor units, as in the daily totals.

    `received` is what the wallet received, in the wallet's scale. If `completed` is false, money
    arrived (too late or too little), but the session is not paid.
    """

    at: datetime
    completed: bool
    paid: int
    received: Amount

    @property
    def difference(self) -> Amount:
        """Return by how much `received` is more or less than `paid`."""
        return less(self.received, self.paid)


@dataclass(frozen=True, slots=True)
class StatementDay:
    """The sums of a day. `paid` and `refunded` are in minor units.

    `cost` is what the wallet paid for the refunds, including fees, in the scale of `received`.
    """

    day: date
    payments: int
    paid: int
    received: Amount
    refunds: int
    refunded: int
    cost: Amount

    @property
    def difference(self) -> Amount:
        """Return by how much `received` is more or less than `paid`."""
        return less(self.received, self.paid)

    @property
    def net(self) -> Amount:
        """Return by how much the wallet's balance has changed: what was received, less the cost."""
        return replace(self.received, value=self.received.value - self.cost.value)


def less(amount: Amount, minor: int) -> Amount:
    """Return `amount` less `minor` minor units, in the finer of the two scales."""
    digits = minor_unit_digits(amount.asset_code, wallet_scale=amount.asset_scale)
    scale = max(digits, amount.asset_scale)
    value = _units(amount, scale) - minor * 10 ** (scale - digits)
    return Amount(value, amount.asset_code, scale)


def total(amounts: Iterable[Amount], nothing: Amount) -> Amount:
    """Return the sum of the amounts in the asset of `nothing`, in the finest of their scales."""
    found = [each for each in amounts if each.asset_code == nothing.asset_code]
    scale = max([nothing.asset_scale, *(each.asset_scale for each in found)])
    return Amount(sum(_units(each, scale) for each in found), nothing.asset_code, scale)


def _units(amount: Amount, scale: int) -> int:
    """Return the amount's value in a scale that is not coarser than its own."""
    power: int = 10 ** (scale - amount.asset_scale)
    return amount.value * power


def money_of(session: Session) -> Money | None:
    """Return the money of a session, or None if it is not paid and nothing has arrived."""
    received = Amount(
        session.received or 0, session.receive.asset_code, session.receive.asset_scale
    )
    if session.status is Status.COMPLETED:
        shown = session.amount_received
        paid = session.amount_total if shown is None or session.overpaid else shown
        return Money(session.updated_at, True, paid, received)
    if not session.received:
        return None
    arrived = [each.at for each in session.history if each.event in _ARRIVED]
    return Money(max(arrived, default=session.updated_at), False, 0, received)


def statement(
    sessions: Iterable[Session],
    refunds: Iterable[Refund],
    nothing: Amount,
    *,
    first: date,
    last: date,
) -> tuple[StatementDay, ...]:
    """Return the days from `first` to `last`. `nothing` is zero in the wallet's asset and scale.

    Sessions and refunds in another asset are left out; they are from before the merchant changed
    the wallet. All sums have the finest scale among the amounts.
    """
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    found: dict[date, list[Money]] = {day: [] for day in days}
    back: dict[date, list[tuple[int, Amount]]] = {day: [] for day in days}
    scale = nothing.asset_scale
    for session in sessions:
        money = money_of(session)
        if money is None or money.received.asset_code != nothing.asset_code:
            continue
        if (day := _day(money.at)) in found:
            found[day].append(money)
            scale = max(scale, money.received.asset_scale)
    for refund in refunds:
        spent, ended_at = refund.spent, refund.ended_at
        if spent is None or ended_at is None or spent.asset_code != nothing.asset_code:
            continue
        if (day := _day(ended_at)) in back:
            # A refund's session may have another currency than the wallet that paid the refund.
            same = refund.currency.upper() == nothing.asset_code
            back[day].append((refund.sent if same else 0, spent))
            scale = max(scale, spent.asset_scale)
    nothing = replace(nothing, asset_scale=scale)
    return tuple(
        StatementDay(
            day=day,
            payments=sum(each.completed for each in found[day]),
            paid=sum(each.paid for each in found[day]),
            received=total((each.received for each in found[day]), nothing),
            refunds=len(back[day]),
            refunded=sum(sent for sent, _ in back[day]),
            cost=total((spent for _, spent in back[day]), nothing),
        )
        for day in days
    )


def _day(at: datetime) -> date:
    return at.astimezone(UTC).date()
