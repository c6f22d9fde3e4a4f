"""The customer's view of a session: the fields that a page may show.

There is no field for grants, tokens, nonces, merchant ids and servers. Amounts and times are
formatted in the reader's language; amounts are exact (no float is used).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import Final

from checkout.domain.grammar import is_http, link_host
from checkout.domain.merchant import Merchant
from checkout.domain.money import from_minor_units
from checkout.domain.public import timestamp
from checkout.domain.session import Attention, LineItem, Session
from checkout.domain.transitions import Event
from checkout.open_payments.models import Quote
from checkout.open_payments.urls import split
from checkout.pages import Moment
from pay.colors import Accent, accent
from pay.language import Reader
from pay.pictures import logo_mark

_UNITS: Final = re.compile(r"[0-9]{1,20}")


class Stage(StrEnum):
    """The stage of a purchase; each has a template of its name."""

    OPEN = "open"
    PREPARING = "preparing"
    AWAITING_APPROVAL = "awaiting_approval"
    CONFIRMING = "confirming"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELED = "canceled"


# The number of the current step in each stage, of four; other stages have none.
STEPS: Final = {
    Stage.OPEN: 1,
    Stage.PREPARING: 2,
    Stage.AWAITING_APPROVAL: 3,
    Stage.CONFIRMING: 4,
    Stage.COMPLETED: 5,
}


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths on this origin; `home` is the page of the current stage."""

    page: str
    wallet: str
    status: str
    success: str
    home: str
    logo: str | None
    qr: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line item."""

    name: str
    description: str | None
    quantity: int
    price: str
    total: str


@dataclass(frozen=True, slots=True)
class Price:
    """The price that the wallet has quoted.

    `receive` is the amount that the shop gets, `debit_value` the debit in the wallet's units.
    `left` is for how many seconds the quote is valid: 0 if it has expired, None if the wallet does
    not say.
    """

    debit: str
    debit_value: int
    receive: str
    rate: str | None
    until: Moment | None
    left: int | None

    @property
    def run_out(self) -> bool:
        return self.left == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A session as a page shows it. A URL that a browser should not follow is None.

    `not_charged` is true only where it is proven: no payment is in flight, no money has arrived,
    and no payment failed after a wallet had accepted it (then we only know that the shop got
    nothing). `arrived` is what an ended, unpaid session has received, and `late` whether that was
    after its end. A completed session has a `price` and a `wallet` only if that wallet is known to
    have paid: anybody can pay.
    """

    reader: Reader
    stage: Stage
    status: str
    step: int | None
    reference: str
    shop: str
    accent: Accent | None
    lines: tuple[Line, ...]
    total: str
    price: Price | None
    received: str | None
    partial: bool
    undecided: bool
    arrived: str | None
    late: bool
    wallet: str | None
    wallet_host: str | None
    interact_url: str | None
    interact_host: str | None
    success_url: str | None
    cancel_url: str | None
    completed_at: Moment | None
    problem: str | None
    not_charged: bool
    paths: Paths


def stage_of(session: Session) -> Stage:
    """Return the stage; it is CONFIRMING as soon as an approval is being redeemed."""
    if session.payment_in_flight or session.phase is not None:
        return Stage.CONFIRMING
    return Stage(session.status.value)


def paths_of(session: Session, base_url: str, *, logo: str | None = None) -> Paths:
    """Return the session's paths; `base_url` may have a path itself, `logo` is `logo_mark`."""
    page = f"{split(base_url).path}/pay/{session.id}"
    success = f"{page}/success"
    after = stage_of(session) in (Stage.CONFIRMING, Stage.COMPLETED)
    return Paths(
        page=page,
        wallet=f"{page}/wallet",
        status=f"{page}/status",
        success=success,
        home=success if after else page,
        logo=f"{page}/logo?v={logo}" if logo else None,
        qr=f"{page}/qr",
    )


def shown(
    session: Session, merchant: Merchant, reader: Reader, *, base_url: str, now: datetime
) -> Shown:
    """Return the view of a settled `session` at `now`."""
    stage = stage_of(session)
    interact_url = None
    if stage is Stage.AWAITING_APPROVAL and session.interact_url is not None:
        interact_url = _link(session.interact_url, base_url)
    after = stage in (Stage.CONFIRMING, Stage.COMPLETED)
    outside = stage is Stage.COMPLETED and session.outgoing_payment is None
    wallet = session.customer.id if session.customer and not outside else None
    quote = None if outside else session.quote
    failed_before = session.happened(Event.PAYMENT_DISPROVED)
    return Shown(
        reader=reader,
        stage=stage,
        status=session.status.value,
        step=STEPS.get(stage),
        reference=session.id,
        shop=merchant.name,
        accent=accent(merchant.accent_color),
        lines=tuple(_line(item, session, reader) for item in session.line_items),
        total=_minor(session.amount_total, session, reader),
        price=_price(quote, reader, now) if quote else None,
        received=_received(session, reader),
        partial=session.attention is Attention.PARTIAL_PAYMENT,
        undecided=session.attention is Attention.UNDECIDED,
        arrived=_received(session, reader) if session.received else None,
        late=session.attention is Attention.LATE_PAYMENT,
        wallet=wallet,
        wallet_host=_host(wallet),
        interact_url=interact_url,
        interact_host=_host(interact_url),
        success_url=_link(session.success_url, base_url),
        cancel_url=_link(session.cancel_url, base_url),
        completed_at=_date(session.completed_at, reader),
        problem=session.problem.value if session.problem else None,
        not_charged=not (after or failed_before or session.received),
        paths=paths_of(session, base_url, logo=logo_mark(merchant.logo)),
    )


def price_change(session: Session, reader: Reader, before: str) -> str | None:
    """Return how the price has changed since `before`, in the wallet's units; None without one."""
    if session.quote is None or not _UNITS.fullmatch(before):
        return None
    now = session.quote.debit
    difference = now.value - int(before)
    moved = "rose" if difference > 0 else "fell" if difference else "same"
    return reader.texts.text(
        f"price.{moved}",
        now=reader.amount(now),
        before=reader.amount(replace(now, value=int(before))),
        difference=reader.amount(replace(now, value=abs(difference))),
    )


def _price(quote: Quote, reader: Reader, now: datetime) -> Price:
    ends = quote.expires_at
    return Price(
        debit=reader.amount(quote.debit),
        debit_value=quote.debit.value,
        receive=reader.amount(quote.receive),
        rate=reader.rate(quote.debit, quote.receive),
        until=Moment(timestamp(ends), reader.time(ends)) if ends else None,
        left=max(0, math.ceil((ends - now).total_seconds())) if ends else None,
    )


def _received(session: Session, reader: Reader) -> str | None:
    """Return the amount that has arrived; while unknown, the amount that the quote promises."""
    if session.received is not None:
        return reader.amount(replace(session.receive, value=session.received))
    return reader.amount(session.quote.receive) if session.quote else None


def _line(item: LineItem, session: Session, reader: Reader) -> Line:
    return Line(
        name=item.name,
        description=item.description,
        quantity=item.quantity,
        price=_minor(item.unit_amount, session, reader),
        total=_minor(item.unit_amount * item.quantity, session, reader),
    )


def _minor(value: int, session: Session, reader: Reader) -> str:
    scale = session.receive.asset_scale
    return reader.amount(from_minor_units(value, currency=session.currency, wallet_scale=scale))


def _date(at: datetime | None, reader: Reader) -> Moment | None:
    return Moment(timestamp(at), reader.date(at)) if at is not None else None


def _link(url: str, base_url: str) -> str | None:
    """Return `url` if a browser may follow it: https, or loopback while our own URL is http.

    The URL was already checked when it was stored; this is a second check.
    """
    return url if link_host(url, base_is_http=is_http(base_url)) else None


def _host(url: str | None) -> str | None:
    return link_host(url or "", base_is_http=True)
