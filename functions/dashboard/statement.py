"""The statement: a row a day of what the wallet received and what was sent back."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, timedelta
from typing import Annotated, Final

from fastapi import Depends, Response

from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.money import from_minor_units
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Actor, Right
from checkout.domain.reports.statement import StatementDay, total
from checkout.flows import reports
from checkout.flows.reports import STATEMENT_DAYS_MAX
from checkout.open_payments.models import Amount
from dashboard.dependencies import Page
from dashboard.export import csv_file, lines
from dashboard.filters import day_of
from dashboard.rendering import page
from dashboard.routing import PageRouter
from dashboard.view import readable

router = PageRouter(prefix="/statement")
TITLES: Final = (
    *("day", "currency", "payments", "paid_decimal", "difference_decimal", "received_decimal"),
    *("refunds", "refunded_decimal", "net_decimal", "refund_cost_decimal"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """A day of the statement, or the sum of all. On phones, only days that `moved` are unfolded."""

    name: str
    moved: bool
    payments: int
    paid: str
    difference: str
    received: str
    refunds: int
    refunded: str
    cost: str
    net: str


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a statement, both inclusive."""

    first: date
    last: date


async def chosen(request: Page) -> Days:
    """Return the days of the query string, at first those of this month. Raise ParameterInvalid."""
    today = request.services.clock.now().astimezone(UTC).date()
    wrong: list[str] = []
    typed = [request.http.query_params.get(name, "").strip()[:40] for name in ("from", "to")]
    first, last = (day_of(*each, wrong) for each in zip(typed, ("from", "to"), strict=True))
    last = min(last or today, today)
    first = first or (last.replace(day=1))
    if first > last:
        wrong.append("The first day is after the last day.")
    elif (last - first).days >= STATEMENT_DAYS_MAX:
        wrong.append(f"A statement has at most {STATEMENT_DAYS_MAX} days.")
    if wrong:
        raise ParameterInvalid(wrong[0])
    return Days(first, last)


Chosen = Annotated[Days, Depends(chosen)]


@router.page("", Door(Right.READ, "sums"))
async def statement_page(request: Page, days: Chosen) -> Response:
    """Show a row a day, the sums below, and the way to the files for accounting."""
    key = request.key
    found = reports.read_statement(request.services, key, first=days.first, last=days.last)
    before = days.first - timedelta(days=1)
    return page(
        request.http,
        "statement.html",
        section="/overview",
        days=days,
        before=Days(before.replace(day=1), before),
        currency=key.asset_code,
        rows=[_row(each.day.isoformat(), (each,), key) for each in found.days],
        sums=_row("All", found.days, key),
        whole=found.whole,
    )


@router.page(".csv", Door(Right.READ, "sums"))
async def statement_file(request: Page, days: Chosen) -> Response:
    """Return the days as CSV. Raise ParameterInvalid if there was too much to read."""
    key = request.key
    found = reports.read_statement(request.services, key, first=days.first, last=days.last)
    if not found.whole:
        raise ParameterInvalid("So many sessions are too many for a statement. Use the export.")
    return csv_file("statement.csv", lines([TITLES, *(_line(each, key) for each in found.days)]))


def _row(name: str, days: tuple[StatementDay, ...], key: Actor) -> Row:
    paid, refunded = sum(each.paid for each in days), sum(each.refunded for each in days)
    nothing = Amount(0, key.asset_code, key.asset_scale)
    return Row(
        name=name,
        moved=any(each.payments or each.refunds or each.received.value for each in days),
        payments=sum(each.payments for each in days),
        paid=_number(_minor(paid, key)),
        difference=_number(total((each.difference for each in days), nothing)),
        received=_number(total((each.received for each in days), nothing)),
        refunds=sum(each.refunds for each in days),
        refunded=_number(_minor(refunded, key)),
        cost=_number(total((each.cost for each in days), nothing)),
        net=_number(total((each.net for each in days), nothing)),
    )


def _number(amount: Amount) -> str:
    """Return the amount for people, without the currency, which the table's caption has."""
    return readable(amount).partition("\N{NO-BREAK SPACE}")[0]


def _minor(value: int, key: Actor) -> Amount:
    return from_minor_units(value, currency=key.asset_code, wallet_scale=key.asset_scale)


def _line(each: StatementDay, key: Actor) -> tuple[str | int | Amount, ...]:
    return (
        each.day.isoformat(),
        key.asset_code.lower(),
        each.payments,
        _minor(each.paid, key),
        each.difference,
        each.received,
        each.refunds,
        _minor(each.refunded, key),
        each.net,
        each.cost,
    )
