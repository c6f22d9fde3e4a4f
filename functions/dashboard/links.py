"""The payment links: create, stop and start them, set their stock; button, QR code and poster."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from html import escape
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.domain.collect import LABEL_MAX, QUESTIONS_MAX, Collect, Detail, Kind, Place, Question
from checkout.domain.errors import CheckoutError
from checkout.domain.links import METADATA_NAME, NAME_MAX, STOCK_MAX, PaymentLink
from checkout.domain.money import from_minor_units
from checkout.domain.people import Actor
from checkout.flows import merchants
from checkout.flows.merchant import links
from checkout.flows.merchant.links import DESCRIPTION_MAX, REQUIRED, TypedQuestion
from checkout.open_payments.urls import origin
from checkout.pages import Moment, allow_pictures
from checkout.ports.services import DashboardServices
from dashboard import texts
from dashboard.dependencies import Form, Injected, Key, Visited, once
from dashboard.rendering import page, refused, saved, see
from dashboard.view import USUAL_COLOR, moment, readable
from pay.colors import accent

router = APIRouter(prefix="/links")
# Self-contained, so that it looks the same on any page and loads nothing.
BUTTON: Final = (
    '<a href="{url}" style="display:inline-block;padding:.75rem 1.5rem;border-radius:.5rem;'
    "background:{brand};color:{ink};font:600 1rem/1.25 system-ui,sans-serif;"
    'text-decoration:none">{text}</a>'
)
_NUMBERS: Final = tuple(range(1, QUESTIONS_MAX + 1))
USUAL: Final = (USUAL_COLOR, "#ffffff")


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A payment link. `left` is None if it has no stock limit."""

    id: str
    name: str
    price: str
    url: str
    left: int | None
    stopped: bool
    status: str
    created_at: Moment
    success_url: str | None
    asks: str
    ships_to: str
    questions: tuple[str, ...]
    description: str | None
    image: str | None
    at_once: int


@router.get("")
async def list_links(services: Injected, request: Request, key: Key) -> Response:
    return _list(services, request, key)


@router.post("")
async def create(
    services: Injected, visit: Visited, request: Request, key: Key, form: Form
) -> Response:
    try:
        done = once(
            services,
            request,
            key,
            form,
            lambda reserve: links.create(
                services,
                key,
                name=form.get("name", ""),
                amount=form.get("amount", ""),
                stock=form.get("stock", ""),
                success_url=form.get("success_url", ""),
                asks={each: form.get(_field(each), "") for each in texts.ASKED},
                ships_to=form.get("ships_to", ""),
                questions=[_question(form, number) for number in _NUMBERS],
                description=form.get("description", ""),
                image=form.get("image", ""),
                at_once=form.get("at_once", ""),
                reserve=reserve,
            ),
            lambda link: f"/links/{link.id}",
        )
    except CheckoutError as error:
        return refused(error, _list, services, request, key, typed=form)
    return see(visit, done.place)


@router.get("/{link_id}")
async def one_link(services: Injected, request: Request, key: Key, link_id: str) -> Response:
    return _one(services, request, key, link_id)


@router.post("/{link_id}/stop")
async def stop(services: Injected, visit: Visited, key: Key, link_id: str, _: Form) -> Response:
    links.stop(services, key, link_id)
    return see(visit, f"/links/{link_id}")


@router.post("/{link_id}/start")
async def start(services: Injected, visit: Visited, key: Key, link_id: str, _: Form) -> Response:
    links.start(services, key, link_id)
    return see(visit, f"/links/{link_id}")


@router.post("/{link_id}/stock")
async def set_stock(
    services: Injected, visit: Visited, request: Request, key: Key, link_id: str, form: Form
) -> Response:
    """Set the number of items left, unless it is no longer what the merchant saw."""
    read, left = form.get("read", ""), form.get("left", "")

    def save() -> None:
        links.set_stock(services, key, link_id, read=read, left=left)

    return saved(save, visit, f"/links/{link_id}", _one, services, request, key, link_id)


@router.get("/{link_id}/qr")
async def qr_code(services: Injected, key: Key, link_id: str) -> Response:
    from pay.pictures import qr_code as drawn  # it loads segno, which few merchants need

    return drawn(_url(services, links.get(services, key, link_id)))


@router.get("/{link_id}/poster")
async def poster(services: Injected, request: Request, key: Key, link_id: str) -> Response:
    """Return the poster, a page to print."""
    link = links.get(services, key, link_id)
    merchant = merchants.get(services.merchants, key.merchant)
    row = _row(services, key, link)
    allow_pictures(request, [origin(link.image)] if link.image else [])
    return page(request, "poster.html", section="/links", link=row, shop=merchant.name)


def _list(
    services: DashboardServices,
    request: Request,
    key: Actor,
    *,
    typed: dict[str, str] | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    listed = links.list_page(services, key, request.query_params.get("cursor") or None)
    return page(
        request,
        "links.html",
        status=status,
        section="/links",
        rows=[_row(services, key, each) for each in listed.links],
        next_cursor=listed.next_cursor,
        typed=defaultdict(str, typed or {}),
        details=[(_field(each), text) for each, text in texts.ASKED.items()],
        numbers=_NUMBERS,
        kinds=list(texts.ANSWER.items()),
        label_max=LABEL_MAX,
        description_max=DESCRIPTION_MAX,
        alert=alert,
        currency=key.asset_code,
        name_max=NAME_MAX,
        stock_max=STOCK_MAX,
    )


def _one(
    services: DashboardServices,
    request: Request,
    key: Actor,
    link_id: str,
    *,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    row = _row(services, key, links.get(services, key, link_id))
    return page(
        request,
        "link.html",
        status=status,
        section="/links",
        link=row,
        button=_button(services, key, row),
        metadata_name=METADATA_NAME,
        stock_max=STOCK_MAX,
        alert=alert,
    )


def _button(services: DashboardServices, key: Actor, row: LinkRow) -> str:
    """Return the HTML of a button in the merchant's color, for any page."""
    chosen = accent(merchants.get(services.merchants, key.merchant).accent_color)
    brand, ink = (chosen.brand, chosen.ink) if chosen else USUAL
    text = escape(f"{row.name} – {row.price}")
    return BUTTON.format(url=row.url, brand=brand, ink=ink, text=text)


def _row(services: DashboardServices, key: Actor, link: PaymentLink) -> LinkRow:
    price = from_minor_units(link.unit_amount, currency=link.currency, wallet_scale=key.asset_scale)
    return LinkRow(
        id=link.id,
        name=link.name,
        price=readable(price),
        url=_url(services, link),
        left=link.left,
        stopped=link.stopped_at is not None,
        status=_status(link),
        created_at=moment(link.created_at),
        success_url=link.success_url,
        asks=_asks(link.collect),
        ships_to=", ".join(link.collect.ships_to),
        questions=tuple(_asked(each) for each in link.collect.questions),
        description=link.description,
        image=link.image,
        at_once=link.quantity_max,
    )


def _field(asked: Detail | Place) -> str:
    """Return the name of the form's field that says whether something is asked."""
    return f"ask_{asked.value}"


def _question(form: dict[str, str], number: int) -> TypedQuestion:
    return TypedQuestion(
        label=form.get(f"question_{number}", ""),
        kind=form.get(f"kind_{number}", Kind.TEXT.value),
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
    """Return a question with what its answer is."""
    choices = ": " + ", ".join(label for _, label in question.options) if question.options else ""
    optional = "" if question.required else ", optional"
    return f"{question.label} ({texts.ANSWER[question.kind].lower()}{choices}{optional})"


def _url(services: DashboardServices, link: PaymentLink) -> str:
    return f"{services.base_url}/buy/{link.id}"


def _status(link: PaymentLink) -> str:
    if link.stopped_at is not None:
        return "Stopped"
    return "Active" if link.sells else "Sold out"
