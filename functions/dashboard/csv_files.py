"""The two files of the export: a row a session, and a row a line item.

Amounts are in minor units (as the API has them) and as decimals. Refuses to hand a spreadsheet a
formula: text that begins like one gets an apostrophe before it.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Final

from checkout.domain.money import from_minor_units
from checkout.domain.public import timestamp
from checkout.domain.session import Session
from checkout.open_payments.models import Amount

ANSWER_MAX: Final = 4_000_000  # bytes as JSON, of Lambda's 6 MB; one more session always fits
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")

Row = Sequence[str | int]
Rows = Callable[[Session, datetime], Iterable[Row]]


def transactions(session: Session, now: datetime) -> Iterable[Row]:
    received = ""
    if session.received is not None:
        scale = session.receive.asset_scale
        received = Amount(session.received, session.receive.asset_code, scale).decimal()
    yield (
        session.id,
        session.status_at(now).value,
        timestamp(session.created_at),
        timestamp(session.expires_at),
        timestamp(session.completed_at) if session.completed_at else "",
        session.currency,
        session.amount_total,
        _decimal(session.amount_total, session),
        received,
        session.customer.id if session.customer else "",
        session.incoming_payment.id if session.incoming_payment else "",
        session.outgoing_payment or "",
        session.attention.value if session.attention else "",
        session.metadata_json,
    )


def items(session: Session, now: datetime) -> Iterable[Row]:
    for number, item in enumerate(session.line_items, 1):
        total = item.unit_amount * item.quantity
        yield (
            session.id,
            session.status_at(now).value,
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


_TRANSACTIONS: Final = (
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
)
_ITEMS: Final = (
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
FILES: Final[dict[str, tuple[Sequence[str], Rows]]] = {
    "transactions": (_TRANSACTIONS, transactions),
    "items": (_ITEMS, items),
}


def written(
    file: str, sessions: Sequence[Session], *, now: datetime, titles: bool
) -> tuple[str, int]:
    """As much of `file` as fits into an answer, and how many of the sessions that is."""
    columns, rows = FILES[file]
    parts = [_lines([columns])] if titles else []
    size = 0
    for number, session in enumerate(sessions):
        if size > ANSWER_MAX:
            return "".join(parts), number
        parts.append(_lines(rows(session, now)))
        size += len(json.dumps(parts[-1]))
    return "".join(parts), len(sessions)


def _lines(rows: Iterable[Row]) -> str:
    """RFC 4180."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows([_safe(value) for value in row] for row in rows)
    return text.getvalue()


def _safe(value: str | int) -> str | int:
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def _decimal(value: int, session: Session) -> str:
    scale = session.receive.asset_scale
    return from_minor_units(value, currency=session.currency, wallet_scale=scale).decimal()
