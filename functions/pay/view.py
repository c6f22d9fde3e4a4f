"""The customer's view of a session: the fields that a page may show.

There is no field for grants, tokens, nonces, merchant ids and servers. Amounts and times are
formatted in the reader's language, and no float is used. A price has the currency's decimals; the
exact amount is beside it where a wallet counts more finely.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_DOWN
from enum import StrEnum
from typing import Final

from checkout.domain.errors import UrlInvalid
from checkout.domain.grammar import is_http, link_host, picture_url
from checkout.domain.merchant import Merchant
from checkout.domain.money import from_minor_units
from checkout.domain.providers import Provider
from checkout.domain.public import timestamp
from checkout.domain.session import Attention, LineItem, Session
from checkout.domain.transitions import Event
from checkout.open_payments.models import Amount, Quote
from checkout.open_payments.urls import last_segment, split
from checkout.pages import Moment
from pay.colors import Accent, accent
from pay.language import Reader
from pay.pictures import logo_mark

_UNITS: Final = re.compile(r"[0-9]{1,20}")
# Names in the metadata that hold the shop's own number of an order, without "-", "_" and case.
_ORDER_NAMES: Final = ("ordernumber", "orderno", "orderid", "order", "invoicenumber", "invoice")
ORDER_NUMBER_MAX: Final = 64  # characters
PICTURES_MAX: Final = 2  # of items on a page: with the logo, a page is four requests


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
    Stage.AWAITING_APPROVAL: 2,  # the price is shown; 3 is at the wallet
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
    receipt: str
    home: str
    logo: str | None
    qr: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line item; one alone has no `price` beside its `total`.

    Where any item has a `picture`, those without have their `initial` in its place; else that is
    None.
    """

    name: str
    description: str | None
    quantity: int
    price: str | None
    total: str
    initial: str | None = None
    picture: str | None = None


@dataclass(frozen=True, slots=True)
class Contact:
    """A place where customers may ask: a link and its text."""

    href: str
    text: str


@dataclass(frozen=True, slots=True)
class Price:
    """The price that the wallet has quoted.

    `receive` is the price that the shop gets, `debit_value` the debit in the wallet's units,
    `exact` the debit with all its decimals, None where `debit` has them.
    `left` is for how many seconds the quote is valid: 0 if it has expired, None if the wallet does
    not say.
    """

    debit: str
    exact: str | None
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
    after its end. A completed session has a `price`, a `wallet` and the `payment` of that wallet
    only if it is known to have paid: anybody can pay. `home` is the shop's website,
    `provider` the name of the wallet's provider or its host, `offers` the providers to choose from;
    with them, `expires_at` says how long the session waits for who has no wallet yet.
    """

    reader: Reader
    stage: Stage
    status: str
    step: int | None
    reference: str
    order_number: str | None
    shop: str
    initial: str
    website: str | None
    contact: Contact | None
    home: Contact | None
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
    provider: str | None
    offers: tuple[Provider, ...]
    expires_at: Moment | None
    payment: str | None
    interact_url: str | None
    interact_host: str | None
    success_url: str | None
    cancel_url: str | None
    completed_at: Moment | None
    problem: str | None
    not_charged: bool
    mails: bool
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
        receipt=f"{page}/receipt",
        home=success if after else page,
        logo=f"{page}/logo?v={logo}" if logo else None,
        qr=f"{page}/qr",
    )


def shown(
    session: Session,
    merchant: Merchant,
    reader: Reader,
    *,
    base_url: str,
    now: datetime,
    providers: tuple[Provider, ...] = (),
    mails: bool = False,
) -> Shown:
    """Return the view of a settled `session` at `now`; `providers` are the operator's.

    `mails`: the receipt can be had by e-mail.
    """
    offers = merchant.providers or providers
    stage = stage_of(session)
    interact_url = None
    if stage is Stage.AWAITING_APPROVAL and session.interact_url is not None:
        interact_url = _link(session.interact_url, base_url)
    after = stage in (Stage.CONFIRMING, Stage.COMPLETED)
    outside = stage is Stage.COMPLETED and session.outgoing_payment is None
    wallet = session.customer.id if session.customer and not outside else None
    quote = None if outside else session.quote
    own = session.success_url == f"{base_url}/pay/{session.id}/success"
    success_url = None if own else _link(session.success_url, base_url)
    failed_before = session.happened(Event.PAYMENT_DISPROVED)
    return Shown(
        reader=reader,
        stage=stage,
        status=session.status.value,
        step=STEPS.get(stage),
        reference=session.id,
        order_number=order_number(session),
        shop=merchant.name,
        initial=initial_of(merchant.name),
        website=merchant.website,
        contact=contact_of(merchant.contact),
        home=home_of(merchant.website, success_url),
        accent=accent(merchant.accent_color),
        lines=_lines(session, reader, base_url),
        total=_minor(session.amount_total, session, reader),
        price=_price(quote, reader, now) if quote else None,
        received=_received(session, reader),
        partial=session.attention is Attention.PARTIAL_PAYMENT,
        undecided=session.attention is Attention.UNDECIDED,
        arrived=_received(session, reader) if session.received else None,
        late=session.attention is Attention.LATE_PAYMENT,
        wallet=wallet,
        provider=_provider(wallet, offers),
        offers=offers,
        expires_at=_date(session.expires_at if offers else None, reader),
        payment=last_segment(session.outgoing_payment) if session.outgoing_payment else None,
        interact_url=interact_url,
        interact_host=_host(interact_url),
        success_url=success_url,
        cancel_url=_link(session.cancel_url, base_url),
        completed_at=_date(session.completed_at, reader),
        problem=session.problem.value if session.problem else None,
        not_charged=not (after or failed_before or session.received),
        mails=mails,
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


def _provider(wallet: str | None, offers: tuple[Provider, ...]) -> str | None:
    """Return the name of the wallet's provider, else its host."""
    named = (each.name for each in offers if wallet is not None and each.has(wallet))
    return next(named, _host(wallet))


def order_number(session: Session) -> str | None:
    """Return the shop's own number of the order, from the metadata; None without one.

    Only names that say so are read: other metadata may not be meant for customers.
    """
    named = {re.sub(r"[-_ ]", "", name).lower(): value for name, value in session.metadata.items()}
    for name in _ORDER_NAMES:
        value = named.get(name)
        if isinstance(value, (str, int)) and not isinstance(value, bool):
            text = str(value).strip()
            if 0 < len(text) <= ORDER_NUMBER_MAX and text.isprintable():
                return text
    return None


def initial_of(name: str) -> str:
    """Return the letter that stands for a shop without a logo."""
    return next(filter(str.isalnum, name), "").upper()


def contact_of(stored: str | None) -> Contact | None:
    """Return the link to the contact in the merchant's settings."""
    if stored is None:
        return None
    href = stored if stored.startswith("https://") else f"mailto:{stored}"
    return Contact(href, stored.removeprefix("https://"))


def home_of(website: str | None, success_url: str | None) -> Contact | None:
    """Return the link to the shop's website: as it is set, else where customers are sent."""
    if website is not None:
        return Contact(f"https://{website}/", website)
    if success_url is None:
        return None
    parts = split(success_url)
    return Contact(f"{parts.scheme}://{parts.authority}/", parts.authority or "")


def _price(quote: Quote, reader: Reader, now: datetime) -> Price:
    ends = quote.expires_at
    return Price(
        debit=reader.price(quote.debit),
        exact=_finer(quote.debit, reader),
        debit_value=quote.debit.value,
        receive=reader.price(quote.receive, rounding=ROUND_DOWN),
        rate=reader.rate(quote.debit, quote.receive),
        until=Moment(timestamp(ends), reader.time(ends)) if ends else None,
        left=max(0, math.ceil((ends - now).total_seconds())) if ends else None,
    )


def _finer(amount: Amount, reader: Reader) -> str | None:
    """Return the exact amount if its price is rounded."""
    rounded = reader.price(amount, rounding=ROUND_DOWN) != reader.price(amount)
    return reader.amount(amount) if rounded else None


def _received(session: Session, reader: Reader) -> str | None:
    """Return the amount that has arrived; while unknown, the amount that the quote promises."""
    if session.received is not None:
        arrived = replace(session.receive, value=session.received)
        return reader.price(arrived, rounding=ROUND_DOWN)
    return reader.price(session.quote.receive, rounding=ROUND_DOWN) if session.quote else None


def _lines(session: Session, reader: Reader, base_url: str) -> tuple[Line, ...]:
    """Return the items, the first ones that have a picture with it."""
    lines = [_line(item, session, reader) for item in session.line_items]
    pictured = [
        (number, url)
        for number, item in enumerate(session.line_items)
        if item.image is not None and (url := _picture(item.image, base_url))
    ]
    if pictured:
        lines = [replace(each, initial=initial_of(each.name)) for each in lines]
    for number, url in pictured[:PICTURES_MAX]:
        lines[number] = replace(lines[number], picture=url)
    return tuple(lines)


def _picture(url: str, base_url: str) -> str | None:
    """Return `url` if a page may show it: like `_link`, this is a second check."""
    try:
        return picture_url(url, base_is_http=is_http(base_url), param="image")
    except UrlInvalid:
        return None


def _line(item: LineItem, session: Session, reader: Reader) -> Line:
    return Line(
        name=item.name,
        description=item.description,
        quantity=item.quantity,
        price=None if item.quantity == 1 else _minor(item.unit_amount, session, reader),
        total=_minor(item.unit_amount * item.quantity, session, reader),
    )


def _minor(value: int, session: Session, reader: Reader) -> str:
    scale = session.receive.asset_scale
    return reader.price(from_minor_units(value, currency=session.currency, wallet_scale=scale))


def _date(at: datetime | None, reader: Reader) -> Moment | None:
    return Moment(timestamp(at), reader.date(at)) if at is not None else None


def _link(url: str, base_url: str) -> str | None:
    """Return `url` if a browser may follow it: https, or loopback while our own URL is http.

    The URL was already checked when it was stored; this is a second check.
    """
    return url if link_host(url, base_is_http=is_http(base_url)) else None


def _host(url: str | None) -> str | None:
    return None if url is None else link_host(url, base_is_http=True)
