"""The pages for payment links.

On these pages the merchant creates, stops and starts links, sets their stock, and gets a button, a
QR code or a poster for a link.
"""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from html import escape
from typing import Final

from fastapi import Response

from checkout.domain.ground.money import from_minor_units
from checkout.domain.links import (
    METADATA_NAME,
    NAME_MAX,
    STOCK_MAX,
    SUGGESTIONS_MAX,
    PaymentLink,
)
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Actor, Right
from checkout.domain.session.collect import (
    LABEL_MAX,
    QUESTIONS_MAX,
    Collect,
    Detail,
    Place,
    Question,
    QuestionKind,
)
from checkout.flows import merchants
from checkout.flows.idempotency import Reserve
from checkout.flows.links import manage
from checkout.flows.links.manage import DESCRIPTION_MAX, REQUIRED, TypedQuestion
from checkout.pages import allow_pictures
from checkout.services import DashboardServices
from dashboard import texts
from dashboard.dependencies import Form, Page, PageRequest
from dashboard.forms import Fields
from dashboard.rendering import page, see
from dashboard.routing import PageRouter
from dashboard.view import USUAL_COLOR, readable
from open_payments.urls import origin
from pay.looks import accent

router = PageRouter(prefix="/links", section=("/links", "Payment links"))
# The style is inline, so that the button looks the same on every page and loads no other file.
BUTTON: Final = (
    '<a href="{url}" style="display:inline-block;padding:.75rem 1.5rem;border-radius:.5rem;'
    "background:{brand};color:{ink};font:600 1rem/1.25 system-ui,sans-serif;"
    'text-decoration:none">{text}</a>'
)
_NUMBERS: Final = tuple(range(1, QUESTIONS_MAX + 1))
_SUGGESTIONS: Final = tuple(f"suggestion_{number}" for number in range(1, SUGGESTIONS_MAX + 1))
USUAL: Final = (USUAL_COLOR, "#ffffff")


class LinkForm(Fields):
    """A new link. Each requested detail and each question is a separate field of the form."""

    name: str
    amount: str
    stock: str
    success_url: str
    ships_to: str
    description: str
    image: str
    at_once: str
    smallest: str
    largest: str


class StockForm(Fields):
    """The new number of items left (`left`), and the number that the page showed (`read`)."""

    read: str
    left: str


def _list(request: PageRequest, *, alert: str | None = None, status: int = 200) -> Response:
    services, key = request.services, request.key
    listed = manage.list_page(services, key, request.http.query_params.get("cursor") or None)
    return page(
        request.http,
        "links.html",
        status=status,
        section="/links",
        rows=listed.records,
        price=partial(_price, key),
        status_of=_status,
        next_cursor=listed.next_cursor,
        typed=defaultdict(str, request.form),
        details=[(_field(each), text) for each, text in texts.ASKED.items()],
        numbers=_NUMBERS,
        suggestions=_SUGGESTIONS,
        kinds=list(texts.ANSWER.items()),
        label_max=LABEL_MAX,
        description_max=DESCRIPTION_MAX,
        alert=alert,
        currency=key.asset_code,
        name_max=NAME_MAX,
        stock_max=STOCK_MAX,
    )


def _one(
    request: PageRequest, link_id: str, *, alert: str | None = None, status: int = 200
) -> Response:
    services, key = request.services, request.key
    link = manage.get(services, key, link_id)
    return page(
        request.http,
        "link.html",
        status=status,
        section="/links",
        link=link,
        price=_price(key, link),
        sum_of=partial(_sum, key, link),
        url=_url(services, link),
        status_of=_status,
        asks=_asks(link.collect),
        asked=_asked,
        button=_button(services, key, link),
        metadata_name=METADATA_NAME,
        stock_max=STOCK_MAX,
        alert=alert,
    )


@router.page("", Door(Right.READ, "payment links"))
async def list_links(request: Page) -> Response:
    return _list(request)


@router.form("", Door(Right.MANAGE, "creates a page that asks customers for money"), again=_list)
async def create(request: Form) -> Response:
    def act(reserve: Reserve[PaymentLink] | None) -> PaymentLink:
        return manage.create(
            request.services,
            request.key,
            **request.read(LinkForm).model_dump(),
            asks={each: request.form.get(_field(each), "") for each in texts.ASKED},
            suggestions=[request.form.get(each, "") for each in _SUGGESTIONS],
            questions=[_question(request.form, number) for number in _NUMBERS],
            reserve=reserve,
        )

    return see(request.visit, request.once(act, lambda link: f"/links/{link.id}").place)


@router.page("/{link_id}", Door(Right.READ, "a payment link"))
async def one_link(request: Page, link_id: str) -> Response:
    return _one(request, link_id)


@router.form("/{link_id}/stop", Door(Right.MANAGE, "a payment link"))
async def stop(request: Form, link_id: str) -> Response:
    manage.stop(request.services, request.key, link_id)
    return see(request.visit, f"/links/{link_id}")


@router.form("/{link_id}/start", Door(Right.MANAGE, "a payment link"))
async def start(request: Form, link_id: str) -> Response:
    manage.start(request.services, request.key, link_id)
    return see(request.visit, f"/links/{link_id}")


@router.form("/{link_id}/stock", Door(Right.MANAGE, "how many are sold"), again=_one)
async def set_stock(request: Form, link_id: str) -> Response:
    """Set the number of items left, unless that number has changed since the page was shown."""
    typed = request.read(StockForm)
    manage.set_stock(request.services, request.key, link_id, read=typed.read, left=typed.left)
    return see(request.visit, f"/links/{link_id}")


@router.page("/{link_id}/qr", Door(Right.READ, "a payment link"))
async def qr_code(request: Page, link_id: str) -> Response:
    from pay.looks import qr_code as drawn  # this import loads segno, which few requests need

    return drawn(_url(request.services, manage.get(request.services, request.key, link_id)))


@router.page("/{link_id}/poster", Door(Right.READ, "a payment link"))
async def poster(request: Page, link_id: str) -> Response:
    """Return the poster, which is a page to print."""
    services, key = request.services, request.key
    link = manage.get(services, key, link_id)
    merchant = merchants.get(services.merchants, key.merchant)
    allow_pictures(request.http, [origin(link.image)] if link.image else [])
    return page(
        request.http,
        "poster.html",
        section="/links",
        link=link,
        price=_price(key, link),
        url=_url(services, link),
        shop=merchant.name,
    )


def _button(services: DashboardServices, key: Actor, link: PaymentLink) -> str:
    """Return the HTML of a button in the merchant's color, which can be put on any page."""
    chosen = accent(merchants.get(services.merchants, key.merchant).accent_color)
    brand, ink = (chosen.brand, chosen.ink) if chosen else USUAL
    text = escape(link.name if link.open_amount else f"{link.name} – {_price(key, link)}")
    return BUTTON.format(url=_url(services, link), brand=brand, ink=ink, text=text)


def _price(key: Actor, link: PaymentLink) -> str:
    if link.open_amount:
        return f"From {_sum(key, link, link.open_amount.smallest)}"
    return _sum(key, link, link.unit_amount)


def _sum(key: Actor, link: PaymentLink, value: int) -> str:
    """Return minor units of the link's currency, formatted like `readable`."""
    scale = key.asset_scale
    return readable(from_minor_units(value, currency=link.currency, wallet_scale=scale))


def _field(asked: Detail | Place) -> str:
    """Return the name of the form's field about whether to ask for the detail `asked`."""
    return f"ask_{asked.value}"


def _question(form: dict[str, str], number: int) -> TypedQuestion:
    return TypedQuestion(
        label=form.get(f"question_{number}", ""),
        kind=form.get(f"kind_{number}", QuestionKind.TEXT.value),
        required=form.get(f"answer_{number}", REQUIRED) == REQUIRED,
        options=form.get(f"options_{number}", ""),
    )


def _asks(collect: Collect) -> str:
    return ", ".join(
        text + ("" if each in collect.required else " (optional)")
        for each, text in texts.ASKED.items()
        if each in collect.asked
    )


def _asked(question: Question) -> str:
    """Return the text of a question and the kind of answer it expects."""
    choices = ": " + ", ".join(label for _, label in question.options) if question.options else ""
    optional = "" if question.required else ", optional"
    return f"{question.label} ({texts.ANSWER[question.kind].lower()}{choices}{optional})"


def _url(services: DashboardServices, link: PaymentLink) -> str:
    return f"{services.base_url}/buy/{link.id}"


def _status(link: PaymentLink) -> str:
    if link.stopped_at is not None:
        return "Stopped"
    return "Active" if link.sells else "Sold out"
