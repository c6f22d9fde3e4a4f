"""The customer's view of a session: the fields that a page may show.

The view has no fields for grants, tokens, nonces, merchant ids and servers, so that no page can
reveal them. Amounts and times are formatted in the reader's language, without floats. A price has
the currency's number of decimals. If the wallet's amount has more decimals, the exact amount is
shown beside the price.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import ROUND_DOWN
from enum import StrEnum
from typing import Any, Final

from checkout.domain.ground.errors import UrlInvalid
from checkout.domain.ground.grammar import is_http, link_host, picture_url
from checkout.domain.ground.json_values import timestamp
from checkout.domain.ground.money import from_minor_units
from checkout.domain.ground.names import shown as can_be_shown
from checkout.domain.ground.providers import Provider, name_of
from checkout.domain.merchant.record import Footer, Merchant
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import FENCE, Attention
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import LineItem, Session, Status, named_order_number
from checkout.flows.payment.schedule import certain_by
from checkout.pages import Moment
from open_payments.models import Amount, Quote
from open_payments.urls import last_segment, split
from pay.language import Reader
from pay.looks import Accent, accent, logo_mark
from pay.progress import Progress, ProgressStep, course_of

_UNITS: Final = re.compile(r"[0-9]{1,20}")
ORDER_NUMBER_MAX: Final = 64  # characters
_PAYEE_MAX: Final = 60  # characters of a wallet's name, which a provider may not limit
PICTURES_MAX: Final = 2  # pictures of items on a page; with logo and HTML, that makes 4 requests


class Stage(StrEnum):
    """The stage of a purchase. Each stage has a template with the same name."""

    OPEN = "open"
    PREPARING = "preparing"
    AWAITING_APPROVAL = "awaiting_approval"
    CONFIRMING = "confirming"
    COMPLETED = "completed"
    EXPIRED = "expired"
    CANCELED = "canceled"


# The number of the current step (1 to 4) in each stage. The other stages show no step.
STEPS: Final = {
    Stage.OPEN: 1,
    Stage.PREPARING: 2,
    Stage.AWAITING_APPROVAL: 2,  # the price is shown; step 3 is at the wallet
    Stage.CONFIRMING: 4,
}


@dataclass(frozen=True, slots=True)
class Paths:
    """The paths of a session's pages. `home` is the page for the session's current stage."""

    page: str
    wallet: str
    status: str
    watch: str
    success: str
    receipt: str
    home: str
    logo: str | None
    qr: str
    withdrawal: str
    details: str


@dataclass(frozen=True, slots=True)
class Line:
    """A line item.

    A line item for a single piece has only a `total`, and no `price`. If any item has a `picture`,
    each item without a picture shows an `initial` in its place. Otherwise `initial` is None.
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
    """A link, on a page or in an e-mail, and its text."""

    href: str
    text: str


@dataclass(frozen=True, slots=True)
class Way:
    """A provider, and the text in the provider's own field on the page (Provider.typed)."""

    offer: Provider
    typed: str


@dataclass(frozen=True, slots=True)
class Foot:
    """The foot of a page: the seller, and links to the seller's terms as (name of a text, URL)."""

    company: str | None
    rules: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Price:
    """The price that the wallet has quoted.

    `debit` is the amount that the customer pays. `debit_value` is the same amount in the wallet's
    smallest unit. `exact` is the same amount with all decimals, or None if `debit` already shows
    them. `receive` is the amount that the shop gets. `left` is the number of seconds for which the
    quote is still valid: 0 if it has expired, None if the wallet gives no expiry.
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

    `not_charged` is true only if it is proven that the customer has not been charged. This is so if
    no payment is in flight, no money has arrived, and no payment failed that a wallet had accepted.
    (A failure of an accepted payment only proves that the shop got nothing.) `arrived` is the
    amount that an ended, unpaid session has received, and `late` is true if this money came after
    the end. `refunded` is the amount that the shop has sent back, and `refunding` the amount of the
    pending refunds. Both are first in the customer's currency, if the customer's amount is known.
    `elsewhere` is the amount that the shop noted as paid back by other means. A completed session
    has a `price`, a `wallet` and the `payment` of that wallet only if this wallet is known to have
    paid, because anybody can pay.

    `home` is the shop's website, and `payee` the name of the wallet that is paid. `provider` is the
    name or the host of the customer's wallet provider. `offers` are the providers to choose from.
    If there are `offers`, `expires_at` is the time until which the session waits for a customer who
    has no wallet yet. `progress`, `part` and `seconds_left` come from the functions of this module,
    and `course` from progress.py. `certain_by` is the latest time at which the outcome of a payment
    is known, if its wallets answer. `gave` is true if the customer has given the details that the
    shop asks for, and can still correct them. The details themselves are not in the view, because
    anybody who has the link sees the page. `mails` is the name of the form that requests the
    receipt by e-mail, or None if the page does not offer the receipt.
    """

    reader: Reader
    stage: Stage
    status: str
    step: int | None
    reference: str
    order_number: str | None
    shop: str
    initial: str
    payee: str | None
    website: str | None
    contact: Contact | None
    home: Contact | None
    foot: Foot | None
    accent: Accent | None
    lines: tuple[Line, ...]
    total: str
    price: Price | None
    received: str | None
    received_units: int | None
    missing: str | None
    progress: Progress | None
    part: int | None
    asked: int
    seconds_left: int | None
    course: tuple[ProgressStep, ...]
    certain_by: Moment | None
    arrived: str | None
    late: bool
    refunded: str | None
    refunding: str | None
    elsewhere: str | None
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
    mails: str | None
    gave: bool
    paths: Paths

    @property
    def quotes(self) -> bool:
        """Return whether the customer must ask the shop about money that is not the full price."""
        ended = self.stage in (Stage.EXPIRED, Stage.CANCELED)
        return self.progress is Progress.PART or (ended and self.arrived is not None)

    @property
    def end_title(self) -> str:
        """Return the name of an ended session's title, which depends on the money that arrived."""
        if not self.arrived:
            return f"{self.stage}.title"
        return "late.title" if self.late else "confirming.part.title"

    def way(self, typed: str, at: str) -> Way | None:
        """Return the provider of the `typed` wallet with the text for its field, or None.

        `at` is the address pattern (`Provider.form`) of the provider in whose tile `typed` was
        typed. Without `at`, `typed` is a whole wallet address.
        """
        if at:
            return next((Way(each, typed) for each in self.offers if each.form == at), None)
        names = ((each, each.typed(typed)) for each in self.offers)
        return next((Way(each, name) for each, name in names if name), None)

    @property
    def state(self) -> str:
        """Return a text that changes with the state, so that an open page detects a change."""
        return f"{self.status},{self.progress or ''},{'' if self.part is None else self.part}"


def stage_of(session: Session) -> Stage:
    """Return the stage. It is CONFIRMING as soon as the approval is being redeemed."""
    if session.payment_in_flight or session.phase is not None:
        return Stage.CONFIRMING
    return Stage(session.status.value)


def progress_of(session: Session) -> Progress | None:
    """Return the known state of the payment in flight, or None if there is none."""
    if stage_of(session) is not Stage.CONFIRMING:
        return None
    if session.attention is Attention.PARTIAL_PAYMENT:
        return Progress.PART
    if session.attention is Attention.UNDECIDED:
        return Progress.UNDECIDED
    if session.closing_at is not None:
        return Progress.CLOSING
    return Progress.WAITING if session.status is Status.PROCESSING else Progress.SENDING


def part_of(session: Session) -> int | None:
    """Return the part of the price that has arrived, in the wallet's units, or None."""
    return session.received if progress_of(session) is Progress.PART else None


def seconds_left(session: Session, now: datetime) -> int | None:
    """Return the seconds until the fence ends, or None if there is no fence.

    The fence is the wait of 35 s after the closing of the incoming payment, after which it is
    certain how much has arrived.
    """
    if progress_of(session) is not Progress.CLOSING or session.closed_at is None:
        return None
    return max(0, math.ceil((session.closed_at + FENCE - now).total_seconds()))


def paths_of(session: Session, base_url: str, *, logo: str | None = None) -> Paths:
    """Return the session's paths. `base_url` can contain a path; `logo` is from `logo_mark`."""
    page = f"{split(base_url).path}/pay/{session.id}"
    success = f"{page}/success"
    after = stage_of(session) in (Stage.CONFIRMING, Stage.COMPLETED)
    return Paths(
        page=page,
        wallet=f"{page}/wallet",
        status=f"{page}/status",
        watch=f"{page}/watch",
        success=success,
        receipt=f"{page}/receipt",
        home=success if after else page,
        logo=f"{page}/logo?v={logo}" if logo else None,
        qr=f"{page}/qr",
        withdrawal=f"{page}/withdrawal",
        details=f"{page}/details",
    )


def shown(
    session: Session,
    merchant: Merchant,
    reader: Reader,
    *,
    base_url: str,
    now: datetime,
    providers: tuple[Provider, ...] = (),
    refunds: Sequence[Refund] = (),
    mails: str | None = None,
) -> Shown:
    """Return the view of `session` at `now`.

    If the session's time is over by `now`, its status must already be expired. `providers` are the
    operator's wallet providers, and `refunds` are the refunds of the session. With `mails`, the
    page offers the receipt by e-mail.
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
        **shop_of(merchant, success_url),
        lines=_lines(session, reader, base_url),
        total=_minor(session.amount_total, session, reader),
        price=_price(quote, reader, now) if quote else None,
        received=_received(session, reader),
        received_units=session.received,
        missing=_missing(session, reader),
        progress=progress_of(session),
        part=part_of(session),
        asked=session.receive.value,
        seconds_left=seconds_left(session, now),
        course=course_of(session, progress_of(session)),
        certain_by=_certain_by(session, reader),
        arrived=_received(session, reader) if session.received else None,
        late=session.attention is Attention.LATE_PAYMENT,
        refunded=_paid_back([each for each in refunds if each.sent], session, reader),
        refunding=_paid_back([each for each in refunds if not each.terminal], session, reader),
        elsewhere=_sum((each.amount for each in refunds if each.noted), session, reader),
        wallet=wallet,
        provider=_provider(wallet, offers),
        offers=offers,
        expires_at=moment(session.expires_at, reader) if offers else None,
        payment=last_segment(session.outgoing_payment) if session.outgoing_payment else None,
        interact_url=interact_url,
        interact_host=_host(interact_url),
        success_url=success_url,
        cancel_url=_link(session.cancel_url, base_url),
        completed_at=moment(session.completed_at, reader) if session.completed_at else None,
        problem=session.problem.value if session.problem else None,
        not_charged=not (after or failed_before or session.received),
        mails=mails,
        gave=session.details_at is not None and not session.wallet_given,
        paths=paths_of(session, base_url, logo=logo_mark(merchant.logo)),
    )


def shop_of(merchant: Merchant, success_url: str | None) -> dict[str, Any]:
    """Return the fields of shop.html. The shop's website can come from `success_url`."""
    return {
        "shop": merchant.name,
        "initial": initial_of(merchant.name),
        "payee": payee_of(merchant),
        "website": merchant.website,
        "contact": contact_of(merchant.contact),
        "home": home_of(merchant.website, success_url),
        "foot": foot_of(merchant.footer),
        "accent": accent(merchant.accent_color),
    }


def price_change(session: Session, reader: Reader, before: str) -> str | None:
    """Return the text about the change of the price since the earlier price `before`.

    `before` is in the wallet's units. Return None if one of the two prices is missing.
    """
    if session.quote is None or not _UNITS.fullmatch(before):
        return None
    now = session.quote.debit
    was = replace(now, value=int(before))
    difference = replace(now, value=abs(now.value - was.value))
    moved = "rose" if now.value > was.value else "fell" if now.value < was.value else "same"
    # Rounded prices could be equal although the price has changed a little.
    finer = any(_finer(each, reader) for each in (now, was))
    said = reader.amount if finer else reader.price
    return reader.texts.text(
        f"price.{moved}", now=said(now), before=said(was), difference=said(difference)
    )


def _provider(wallet: str | None, offers: tuple[Provider, ...]) -> str | None:
    """Return the name of the wallet's provider, or the wallet's host if the name is unknown."""
    return None if wallet is None else name_of(wallet, offers) or _host(wallet)


def order_number(session: Session) -> str | None:
    """Return the order number if customers may see it and it is short enough; otherwise None.

    Only a metadata field with a usual name for an order number is used, because other metadata may
    not be meant for customers.
    """
    text = named_order_number(session)
    return text if text and len(text) <= ORDER_NUMBER_MAX and can_be_shown(text) else None


def initial_of(name: str) -> str:
    """Return the first letter of a name, to show if a shop has no logo or an item no picture."""
    return next(filter(str.isalnum, name), "").upper()


def payee_of(merchant: Merchant) -> str | None:
    """Return the name of the wallet that is paid, to show beside the shop's name if the two differ.

    A shop that signed up by itself has chosen its own name. So if its wallet has no name, the
    wallet's address is shown. The address is also shown if a page cannot show the wallet's name.
    """
    shown = " ".join((merchant.wallet_name or "").split())
    if (not shown and merchant.ownership is not None) or not can_be_shown(shown):
        shown = merchant.wallet_address.partition("://")[2]
    same = shown.casefold() == " ".join(merchant.name.split()).casefold()
    if same or not shown:
        return None
    return shown if len(shown) <= _PAYEE_MAX else f"{shown[:_PAYEE_MAX]}…"


def contact_of(stored: str | None) -> Contact | None:
    """Return the link to the contact in the merchant's settings."""
    if stored is None:
        return None
    href = stored if stored.startswith("https://") else f"mailto:{stored}"
    return Contact(href, stored.removeprefix("https://"))


def home_of(website: str | None, success_url: str | None) -> Contact | None:
    """Return the link to the shop's website, or to the return URLs' host if no website is set."""
    if website is not None:
        return Contact(f"https://{website}/", website)
    if success_url is None:
        return None
    parts = split(success_url)
    return Contact(f"{parts.scheme}://{parts.authority}/", parts.authority or "")


def foot_of(stored: Footer | None) -> Foot | None:
    """Return the foot of the page, or None if the merchant has configured nothing for it."""
    if stored is None:
        return None
    given = (
        ("foot.terms", stored.terms),
        ("foot.refunds", stored.refunds),
        ("foot.privacy", stored.privacy),
    )
    return Foot(stored.company, tuple((words, url) for words, url in given if url))


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
    """Return the exact amount if rounding changes the shown price, otherwise None."""
    rounded = reader.price(amount, rounding=ROUND_DOWN) != reader.price(amount)
    return reader.amount(amount) if rounded else None


def _received(session: Session, reader: Reader) -> str | None:
    """Return the amount that has arrived. While this is unknown, return the quoted amount."""
    if session.received is not None:
        arrived = replace(session.receive, value=session.received)
        return reader.price(arrived, rounding=ROUND_DOWN)
    return reader.price(session.quote.receive, rounding=ROUND_DOWN) if session.quote else None


def _missing(session: Session, reader: Reader) -> str | None:
    """Return the missing amount if only a part has arrived, otherwise None."""
    missing = session.receive.value - (session.received or 0)
    if not session.received or missing <= 0:
        return None
    return reader.price(replace(session.receive, value=missing))


def _lines(session: Session, reader: Reader, base_url: str) -> tuple[Line, ...]:
    """Return the items. Only the first PICTURES_MAX items that have a picture show it."""
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
    """Return `url` if a page may show this picture. It was checked before, as in `_link`."""
    try:
        return picture_url(url, base_is_http=is_http(base_url), param="image")
    except UrlInvalid:
        return None


def _line(item: LineItem, session: Session, reader: Reader) -> Line:
    return Line(
        name=item.title,
        description=item.subtitle,
        quantity=item.quantity,
        price=None if item.quantity == 1 else _minor(item.unit_amount, session, reader),
        total=_minor(item.unit_amount * item.quantity, session, reader),
    )


def _minor(value: int, session: Session, reader: Reader) -> str:
    scale = session.receive.asset_scale
    return reader.price(from_minor_units(value, currency=session.currency, wallet_scale=scale))


def _sum(values: Iterable[int], session: Session, reader: Reader) -> str | None:
    """Return the sum of amounts in minor units, or None if it is 0."""
    found = sum(values)
    return _minor(found, session, reader) if found else None


def _paid_back(refunds: Sequence[Refund], session: Session, reader: Reader) -> str | None:
    """Return the sum of refunds in the customer's currency, and in brackets in the shop's.

    If the customer's amounts are unknown, or have several currencies, only the shop's sum is shown.
    """
    shops = _sum((each.sent or each.amount for each in refunds), session, reader)
    theirs = [_customers_amount(each) for each in refunds]
    known = [each for each in theirs if each is not None]
    if len({(each.asset_code, each.asset_scale) for each in known}) != 1 or None in theirs:
        return shops
    total = replace(known[0], value=sum(each.value for each in known))
    said = reader.price(total, rounding=ROUND_DOWN)
    return shops if said == shops else f"\u2068{said}\u2069 (\u2068{shops}\u2069)"


def _customers_amount(refund: Refund) -> Amount | None:
    """Return the amount of a refund that the customer's wallet gets, or None if it is uncertain."""
    if refund.terminal and refund.sent != refund.amount:
        return None
    quoted = refund.quote.receive if refund.terminal and refund.quote else None
    return refund.give or quoted


def _certain_by(session: Session, reader: Reader) -> Moment | None:
    """Return when the outcome is certain at the latest, or None if no payment is awaited."""
    waits = progress_of(session) in (Progress.SENDING, Progress.WAITING)
    if not waits or session.instruction is None or session.incoming_payment is None:
        return None
    at = certain_by(session)
    return Moment(timestamp(at), reader.time(at))


def moment(at: datetime, reader: Reader) -> Moment:
    """Return the time in the reader's format."""
    return Moment(timestamp(at), reader.date(at))


def _link(url: str, base_url: str) -> str | None:
    """Return `url` if a browser may follow it: https, or loopback while our own URL is http.

    The URL was already checked when it was stored. This function checks it again.
    """
    return url if link_host(url, base_is_http=is_http(base_url)) else None


def _host(url: str | None) -> str | None:
    return None if url is None else link_host(url, base_is_http=True)
