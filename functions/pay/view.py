"""A session as its customer may see it: what is not a field here cannot get onto a page.

Grants, tokens, nonces, merchant ids and servers have no field. Amounts and times are ready to be
read, exact, and never went through a float.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final
from urllib.parse import urlsplit

from checkout.domain.money import Amount, from_minor_units, minor_unit_digits
from checkout.domain.public import timestamp
from checkout.domain.session import Attention, LineItem, QuoteRef, Session
from checkout.domain.transitions import Event

_LINK: Final = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?(?:[/?#]\S*)?"
)
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "[::1]"})


class Stage(StrEnum):
    """What the customer is in the middle of; each has a template of its name."""

    OPEN = "open"
    PREPARING = "preparing"
    AWAITING_APPROVAL = "awaiting_approval"
    CONFIRMING = "confirming"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELED = "canceled"


@dataclass(frozen=True, slots=True)
class Paths:
    """On this origin, whatever name the customer reached it by. `home` shows the stage."""

    page: str
    wallet: str
    status: str
    success: str
    home: str


@dataclass(frozen=True, slots=True)
class Moment:
    """`iso` for machines; `text` in UTC."""

    iso: str
    text: str


@dataclass(frozen=True, slots=True)
class Line:
    name: str
    description: str | None
    quantity: int
    price: str
    total: str


@dataclass(frozen=True, slots=True)
class Price:
    """`receive` is what the shop gets. `run_out`: the wallet no longer stands by it."""

    debit: str
    receive: str
    until: Moment | None
    run_out: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Links are None where the address is none that a browser should be sent to.

    `not_charged` only where it is proven: no payment is in flight, and none was ever accepted by a
    wallet and then failed (the shop got nothing then, which is all that we know).
    """

    stage: Stage
    status: str
    reference: str
    shop: str
    lines: tuple[Line, ...]
    total: str
    price: Price | None
    received: str | None
    partial: bool
    undecided: bool
    wallet: str | None
    interact_url: str | None
    interact_host: str | None
    success_url: str | None
    cancel_url: str | None
    completed_at: Moment | None
    problem: str | None
    not_charged: bool
    paths: Paths


def stage_of(session: Session) -> Stage:
    """From the moment that an approval is being redeemed, the customer waits for the outcome."""
    if session.payment_in_flight or session.phase is not None:
        return Stage.CONFIRMING
    return Stage(session.status.value)


def paths_of(session: Session, base_url: str) -> Paths:
    """`base_url` may have a path before ours."""
    page = f"{urlsplit(base_url).path}/pay/{session.id}"
    success = f"{page}/success"
    after = stage_of(session) in (Stage.CONFIRMING, Stage.COMPLETED)
    return Paths(
        page=page,
        wallet=f"{page}/wallet",
        status=f"{page}/status",
        success=success,
        home=success if after else page,
    )


def shown(session: Session, *, shop: str, base_url: str, now: datetime) -> Shown:
    """`session`, settled, as it stands at `now`. `shop` is the merchant's name."""
    stage = stage_of(session)
    interact_url = None
    if stage is Stage.AWAITING_APPROVAL and session.interact_url is not None:
        interact_url = _link(session.interact_url, base_url)
    failed_before = any(entry.event == Event.PAYMENT_DISPROVED for entry in session.history)
    return Shown(
        stage=stage,
        status=session.status.value,
        reference=session.id,
        shop=shop,
        lines=tuple(_line(item, session) for item in session.line_items),
        total=_minor(session.amount_total, session),
        price=_price(session.quote, now) if session.quote else None,
        received=_received(session),
        partial=session.attention is Attention.PARTIAL_PAYMENT,
        undecided=session.attention is Attention.UNDECIDED,
        wallet=session.customer.id if session.customer else None,
        interact_url=interact_url,
        interact_host=_host(interact_url),
        success_url=_link(session.success_url, base_url),
        cancel_url=_link(session.cancel_url, base_url),
        completed_at=_date(session.completed_at),
        problem=session.problem.value if session.problem else None,
        not_charged=stage not in (Stage.CONFIRMING, Stage.COMPLETED) and not failed_before,
        paths=paths_of(session, base_url),
    )


def readable(amount: Amount) -> str:
    """For example "1,234.50 USD": all digits that are not needless zeros, at least the currency's
    own number of them.
    """
    whole, _, fraction = amount.decimal().partition(".")
    digits = minor_unit_digits(amount.asset_code, wallet_scale=amount.asset_scale)
    fraction = fraction[:digits] + fraction[digits:].rstrip("0")
    number = f"{int(whole):,}"
    return (
        f"{number}.{fraction} {amount.asset_code}"
        if fraction
        else (f"{number} {amount.asset_code}")
    )


def _price(quote: QuoteRef, now: datetime) -> Price:
    return Price(
        debit=readable(quote.debit),
        receive=readable(quote.receive),
        until=_time(quote.expires_at),
        run_out=quote.expires_at is not None and quote.expires_at <= now,
    )


def _received(session: Session) -> str | None:
    """What is known to have arrived, else what the quote promises."""
    if session.received is not None:
        code, scale = session.receive.asset_code, session.receive.asset_scale
        return readable(Amount(session.received, code, scale))
    return readable(session.quote.receive) if session.quote else None


def _line(item: LineItem, session: Session) -> Line:
    return Line(
        name=item.name,
        description=item.description,
        quantity=item.quantity,
        price=_minor(item.unit_amount, session),
        total=_minor(item.unit_amount * item.quantity, session),
    )


def _minor(value: int, session: Session) -> str:
    scale = session.receive.asset_scale
    return readable(from_minor_units(value, currency=session.currency, wallet_scale=scale))


def _time(at: datetime | None) -> Moment | None:
    return Moment(timestamp(at), f"{at:%H:%M}") if at is not None else None


def _date(at: datetime | None) -> Moment | None:
    return Moment(timestamp(at), f"{at.day} {at:%B %Y, %H:%M}") if at is not None else None


def _link(url: str, base_url: str) -> str | None:
    """`url` if a browser may follow it: https, or of this machine while our own address is http.

    It was checked when it was stored; this holds even if it was not.
    """
    found = _LINK.fullmatch(url)
    if found is None or "\\" in url or not url.isprintable():
        return None
    local = base_url.startswith("http:") and found["host"] in _LOOPBACK
    return url if found["scheme"] == "https" or local else None


def _host(url: str | None) -> str | None:
    found = _LINK.fullmatch(url or "")
    return found["host"] if found else None
