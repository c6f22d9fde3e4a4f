"""What the pages show of a merchant's records: what is not a field here cannot get onto a page.

Grants, tokens, nonces and interact addresses have no field. Amounts and times are ready to be read,
exact, and never went through a float. Times are UTC.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from checkout.domain.audit import AuditEntry
from checkout.domain.money import from_minor_units, minor_unit_digits
from checkout.domain.public import timestamp
from checkout.domain.session import Session
from checkout.flows.merchant.export import Part
from checkout.open_payments.models import Amount
from dashboard.texts import ACTION, STATUS

# Where records have pages, by how their ids begin.
_PAGES: Final = {"cs": "transactions", "evt": "webhooks"}


@dataclass(frozen=True, slots=True)
class Moment:
    """`iso` for machines."""

    iso: str
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the list of transactions."""

    id: str
    created_at: Moment
    status: str
    status_text: str
    attention: bool
    amount: str
    wallet: str | None
    what: str


def row(session: Session, *, now: datetime) -> Row:
    status = session.status_at(now)
    more = len(session.line_items) - 1
    return Row(
        id=session.id,
        created_at=moment(session.created_at),
        status=status.value,
        status_text=STATUS[status],
        attention=session.attention is not None,
        amount=minor(session.amount_total, session),
        wallet=session.customer.id if session.customer else None,
        what=session.line_items[0].name + (f" and {more} more" if more else ""),
    )


@dataclass(frozen=True, slots=True)
class AuditRow:
    at: Moment
    what: str
    target: str | None
    page: str | None
    who: str


def audit_row(entry: AuditEntry) -> AuditRow:
    """`page` is the path of the target's own, if it has one."""
    target = entry.target or ""
    folder = _PAGES.get(target.partition("_")[0])
    return AuditRow(
        at=moment(entry.at),
        what=ACTION[entry.action],
        target=entry.target,
        page=f"/{folder}/{target}" if folder else None,
        who=f"{entry.key_name} (…{entry.key_last_four})",
    )


@dataclass(frozen=True, slots=True)
class ExportPart:
    """`first` is the newest, since the newest come first."""

    count: int
    first: Moment | None
    last: Moment | None
    next_cursor: str | None


def part(found: Part) -> ExportPart:
    times = [session.created_at for session in found.sessions]
    return ExportPart(
        count=len(times),
        first=moment(times[0]) if times else None,
        last=moment(times[-1]) if times else None,
        next_cursor=found.next_cursor,
    )


def moment(at: datetime) -> Moment:
    return Moment(timestamp(at), f"{at.day} {at:%b %Y, %H:%M:%S}")


def minor(value: int, session: Session) -> str:
    scale = session.receive.asset_scale
    return readable(from_minor_units(value, currency=session.currency, wallet_scale=scale))


def readable(amount: Amount) -> str:
    """For example "1,234.50 USD": all digits that are not needless zeros, at least the currency's
    own number of them.
    """
    whole, _, fraction = amount.decimal().partition(".")
    digits = minor_unit_digits(amount.asset_code, wallet_scale=amount.asset_scale)
    fraction = fraction[:digits] + fraction[digits:].rstrip("0")
    return f"{int(whole):,}" + (f".{fraction}" if fraction else "") + f" {amount.asset_code}"
