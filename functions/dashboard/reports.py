"""The statement, with the money received and refunded on each day, and the export.

The export is a page with links to its parts. Each part consists of four CSV files. The first file
has a row for each session, and the second for each line item. The third has a row for each payment
attempt, and the fourth for each sum that was received or sent back. Amounts are given both in minor
units, as in the API, and as decimals.

A text that a spreadsheet would run as a formula is prefixed with an apostrophe. Exception: an
Amount is not prefixed, because its text is always a number, even if it begins with a minus.
"""

from __future__ import annotations

import csv
import io
import json
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from fastapi import Depends, Response

from checkout.domain.ground.addresses import Address, Part
from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.json_values import timestamp
from checkout.domain.ground.money import from_minor_units
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Actor, Right
from checkout.domain.refund.record import Refund
from checkout.domain.reports.statement import StatementDay, money_of, total
from checkout.domain.session.collect import Place
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.public import last_payment_error, public_attempts
from checkout.domain.session.record import Session, order_number
from checkout.flows import reports
from checkout.flows.reports import STATEMENT_DAYS_MAX
from checkout.flows.session import details
from dashboard.dependencies import Page
from dashboard.rendering import page
from dashboard.routing import PageRouter
from dashboard.transactions import Understood, day_of
from dashboard.view import readable
from open_payments.models import Amount

if TYPE_CHECKING:
    from checkout import answers

statements = PageRouter(prefix="/statement")
TITLES: Final = (
    *("day", "currency", "payments", "paid_decimal", "difference_decimal", "received_decimal"),
    *("refunds", "refunded_decimal", "net_decimal", "refund_cost_decimal"),
)


@dataclass(frozen=True, slots=True)
class Days:
    """The days of a statement, both inclusive."""

    first: date
    last: date


async def chosen(request: Page) -> Days:
    """Return the days in the query string, or by default this month. Raise ParameterInvalid."""
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


@statements.page("", Door(Right.READ, "sums"))
async def statement_page(request: Page, days: Chosen) -> Response:
    """Show a row for each day, the sums below, and a link to the files for accounting."""
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


@statements.page(".csv", Door(Right.READ, "sums"))
async def statement_file(request: Page, days: Chosen) -> Response:
    """Return the statement as CSV. Raise ParameterInvalid if it needs too many records."""
    key = request.key
    found = reports.read_statement(request.services, key, first=days.first, last=days.last)
    if not found.whole:
        raise ParameterInvalid("So many sessions are too many for a statement. Use the export.")
    return csv_file(
        "statement.csv", lines([TITLES, *(_statement_line(each, key) for each in found.days)])
    )


def _row(name: str, days: tuple[StatementDay, ...], key: Actor) -> dict[str, Any]:
    """Return the row of a day or of all days. On phones, rows without `moved` are folded."""
    paid, refunded = sum(each.paid for each in days), sum(each.refunded for each in days)
    nothing = Amount(0, key.asset_code, key.asset_scale)
    return {
        "name": name,
        "moved": any(each.payments or each.refunds or each.received.value for each in days),
        "payments": sum(each.payments for each in days),
        "paid": _number(_minor(paid, key)),
        "difference": _number(total((each.difference for each in days), nothing)),
        "received": _number(total((each.received for each in days), nothing)),
        "refunds": sum(each.refunds for each in days),
        "refunded": _number(_minor(refunded, key)),
        "cost": _number(total((each.cost for each in days), nothing)),
        "net": _number(total((each.net for each in days), nothing)),
    }


def _number(amount: Amount) -> str:
    """Return the amount for people, without the currency: the table's caption has the currency."""
    return readable(amount).partition("\N{NO-BREAK SPACE}")[0]


def _minor(value: int, key: Actor) -> Amount:
    return from_minor_units(value, currency=key.asset_code, wallet_scale=key.asset_scale)


def _statement_line(each: StatementDay, key: Actor) -> tuple[str | int | Amount, ...]:
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


exports = PageRouter(prefix="/export")
# Bytes of JSON. Once the file exceeds this size, no further session is added. Lambda allows 6 MB,
# so the file still fits with the session that has exceeded this size.
ANSWER_MAX: Final = 4_000_000
_WITH_REFUNDS: Final = ("transactions", "accounting")
_FORMULA: Final = ("=", "+", "-", "@")

Row = Sequence[str | int | Amount]
Opened = Callable[[Session], CustomerDetails]
Refunds = Mapping[str, Refund]  # the refunds of the part's sessions, by refund id


@dataclass(frozen=True, slots=True)
class Source:
    """The records from which the rows of a session are made, in addition to the session itself."""

    now: datetime
    opened: Opened
    refunds: Refunds


Rows = Callable[[Session, Source], Iterable[Row]]


@exports.page("", Door(Right.READ, "the files"))
async def export_page(request: Page, filters: Understood) -> Response:
    found = reports.export_part(request.services, request.key, filters.text, filters.query)
    return page(request.http, "export.html", section="", filters=filters, part=found)


@exports.page("/{file}.csv", Door(Right.READ, "customers' details"))
async def export_file(
    request: Page,
    file: Literal["transactions", "items", "attempts", "accounting"],
    filters: Understood,
    append: str = "",
) -> Response:
    """Return as many sessions as fit. The header `Export-Next` has the cursor for the others."""
    services, key = request.services, request.key
    name, now = f"{file}.csv", services.clock.now()
    whole = reports.export_part(services, key, filters.text, filters.query)
    if filters.query.cursor is None:  # only the first part of an export is logged
        request.note(Action.EXPORTED, name)
    merchant = services.merchants.get(key.merchant)
    opened = partial(details.opened, services.vault, merchant)
    refunds = reports.refunds_of_part(services, whole) if file in _WITH_REFUNDS else {}
    source = Source(now, opened, refunds)
    text, count = _written(file, whole.sessions, source, titles=not append)
    part = whole.cut(key, count)
    headers = {"Export-Count": str(count)}
    if part.next_cursor is not None:
        headers["Export-Next"] = part.next_cursor
    return csv_file(name, text, headers)


def csv_file(name: str, text: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response that browsers save under this name."""
    saved = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(text, media_type="text/csv", headers={**saved, **(headers or {})})


def _transactions(session: Session, source: Source) -> Iterable[Row]:
    given, now = source.opened(session), source.now
    received = replace(session.receive, value=session.received or 0)
    refunds = [each for each in _ended(session, source) if not each.noted]
    yield (
        session.id,
        session.status_at(now).value,
        timestamp(session.created_at),
        timestamp(session.expires_at),
        timestamp(session.completed_at) if session.completed_at else "",
        session.currency,
        session.amount_total,
        _decimal(session.amount_total, session),
        received if session.received is not None else "",
        session.customer.id if session.customer else "",
        session.incoming_payment.id if session.incoming_payment else "",
        session.outgoing_payment or "",
        session.attention.value if session.attention else "",
        session.metadata_json,
        "" if session.amount_received is None else session.amount_received,
        session.client_reference_id or "",
        error["code"] if (error := last_payment_error(session)) else "",
        order_number(session) or "",
        given.email or "",
        given.name or "",
        given.phone or "",
        *_address(given.shipping),
        *_address(given.billing),
        json.dumps({each.label: each.shown for each in given.answers}, ensure_ascii=False)
        if given.answers
        else "",
        _decimal(sum(each.sent for each in refunds), session),
        total((each.spent for each in refunds if each.spent), replace(session.receive, value=0)),
    )


def _ended(session: Session, source: Source) -> list[Refund]:
    """Return the ended refunds of the session that sent money, and notes of other refunds."""
    found = (source.refunds.get(each.id) for each in session.refunds or ())
    return [each for each in found if each and each.ended_at and (each.sent or each.noted)]


def _address(address: Address | None) -> Row:
    """Return the parts of an address, one for each column."""
    return [(getattr(address, part) or "") if address else "" for part in _ADDRESS]


def _items(session: Session, source: Source) -> Iterable[Row]:
    for number, item in enumerate(session.line_items, 1):
        total = item.unit_amount * item.quantity
        yield (
            session.id,
            session.status_at(source.now).value,
            timestamp(session.created_at),
            number,
            item.name,
            item.description or "",
            item.currency,
            item.unit_amount,
            _decimal(item.unit_amount, session),
            item.quantity,
            total,
            _decimal(total, session),
        )


def _attempts(session: Session, source: Source) -> Iterable[Row]:
    """Yield a row for each attempt, with the same fields as in the API.

    Each part of an object or a list has a column of its own.
    """
    for attempt in public_attempts(session):
        debit, error = attempt["customer_debit"], attempt["error"]
        row_values: dict[str, Any] = {
            **attempt,
            "customer_debit": str(_debit(debit)) if debit else "",
            "error": error["code"] if error else "",
        }
        price = (_debit(debit), debit["asset_code"].lower()) if debit else ("", "")
        row = ["" if row_values[name] is None else row_values[name] for name in _ATTEMPT_FIELDS]
        yield (
            session.id,
            session.status_at(source.now).value,
            timestamp(session.created_at),
            *row,
            *price,
        )


def _accounting(session: Session, source: Source) -> Iterable[Row]:
    """Yield the money received for the session, then each refund that sent money.

    A note that the customer was paid back by other means has a row and a column of its own.
    """
    about = (session.id, order_number(session) or "", session.client_reference_id or "")
    currency = session.currency
    money = money_of(session)
    if money is not None:
        kind = "payment" if money.completed else "without_payment"
        sums = (_decimal(money.paid, session), money.difference, money.received)
        yield (timestamp(money.at), kind, *about, "", currency, *sums, *[""] * 4)
    for refund in _ended(session, source):
        assert refund.ended_at is not None
        kind = "paid_elsewhere" if refund.noted else "refund"
        sent = "" if refund.noted else _decimal(refund.sent, session)
        noted = _decimal(refund.amount, session) if refund.noted else ""
        at = timestamp(refund.ended_at)
        paid = refund.spent
        cost = (paid, paid.asset_code.lower()) if paid else ("", "")
        yield (at, kind, *about, refund.id, currency, "", "", "", sent, noted, *cost)


def _debit(debit: answers.Amount) -> Amount:
    return Amount(int(debit["value"]), debit["asset_code"], debit["asset_scale"])


_ADDRESS: Final = (*(each.value for each in Part), "country")
_TRANSACTION_TITLES: Final = (
    "id",
    "status",
    "created_at",
    "expires_at",
    "completed_at",
    "currency",
    "amount_total",
    "amount_total_decimal",
    "received_decimal",
    "customer_wallet",
    "incoming_payment",
    "outgoing_payment",
    "attention",
    "metadata",
    "amount_received",
    "client_reference_id",
    "last_payment_error",
    "order_number",
    "customer_email",
    "customer_name",
    "customer_phone",
    *(f"{place}_{part}" for place in Place for part in _ADDRESS),
    "answers",
    "refunded_decimal",
    "refund_cost_decimal",
)
_ITEM_TITLES: Final = (
    "session",
    "session_status",
    "session_created_at",
    "line",
    "name",
    "description",
    "currency",
    "unit_amount",
    "unit_amount_decimal",
    "quantity",
    "total",
    "total_decimal",
)
_ATTEMPT_FIELDS: Final = (
    "number",
    "outcome",
    "ended_by",
    "error",
    "reported_by_browser",
    "wallet_typed",
    "customer_wallet",
    "incoming_payment",
    "quote",
    "customer_debit",
    "outgoing_payment",
    "amount_received",
    "submitted_at",
    "sent_at",
    "ended_at",
)
_ACCOUNTING_TITLES: Final = (
    "at",
    "kind",
    "session",
    "order_number",
    "client_reference_id",
    "refund",
    "currency",
    "paid_decimal",
    "difference_decimal",
    "received_decimal",
    "refunded_decimal",
    "paid_elsewhere_decimal",
    "refund_cost_decimal",
    "refund_cost_currency",
)
_FILES: Final[dict[str, tuple[Sequence[str], Rows]]] = {
    "transactions": (_TRANSACTION_TITLES, _transactions),
    "items": (_ITEM_TITLES, _items),
    "attempts": (
        (
            *("session", "session_status", "session_created_at", *_ATTEMPT_FIELDS),
            *("customer_debit_decimal", "customer_debit_currency"),
        ),
        _attempts,
    ),
    "accounting": (_ACCOUNTING_TITLES, _accounting),
}


def _written(
    file: str, sessions: Sequence[Session], source: Source, *, titles: bool
) -> tuple[str, int]:
    """Return as much of `file` as fits into a response, and the number of sessions in it."""
    columns, rows = _FILES[file]
    parts = [lines([columns])] if titles else []
    size = 0
    for number, session in enumerate(sessions):
        if size > ANSWER_MAX:
            return "".join(parts), number
        parts.append(lines(rows(session, source)))
        size += len(json.dumps(parts[-1]))
    return "".join(parts), len(sessions)


def lines(rows: Iterable[Row]) -> str:
    """Return the rows as CSV (RFC 4180)."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([_safe(value) for value in row] for row in rows)
    return text.getvalue()


def _safe(value: str | int | Amount) -> str | int:
    """Return an Amount in digits, and a text in a form that spreadsheets do not run as a formula.

    Some spreadsheets ignore blanks and invisible characters before a formula. Some also accept
    full-width forms of the signs with which formulas begin. So texts of these kinds are changed,
    too.
    """
    if isinstance(value, Amount):
        return value.decimal()
    if not isinstance(value, str):
        return value
    shown = (each for each in value if unicodedata.category(each)[0] not in "CZ")
    first = unicodedata.normalize("NFKC", next(shown, ""))
    return f"'{value}" if first.startswith(_FORMULA) or value[:1] in ("\t", "\r", "\n") else value


def _decimal(value: int, session: Session) -> Amount:
    scale = session.receive.asset_scale
    return from_minor_units(value, currency=session.currency, wallet_scale=scale)
