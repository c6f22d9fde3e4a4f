"""The page of a payment link, and the purchase that its form begins.

Opening the page writes nothing: crawlers, link previews and prefetches open it too. Only its form
makes a session, and only when it is sent from here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.domain.errors import Conflict, ParameterInvalid
from checkout.domain.grammar import is_http
from checkout.domain.links import PaymentLink
from checkout.domain.merchant import Merchant
from checkout.domain.money import from_minor_units
from checkout.flows import merchants
from checkout.flows.payment import buy
from checkout.open_payments.urls import split
from checkout.pages import form_fields, see_other
from checkout.ports.services import PayServices
from pay import browser, pages, pictures, render
from pay.colors import Accent, accent
from pay.dependencies import Injected, counted
from pay.headers import CustomersOnly
from pay.language import Reader
from pay.view import Contact, contact_of, home_of, initial_of

router = APIRouter(prefix="/buy/{link_id}", route_class=CustomersOnly)
READ: Final = ["GET", "HEAD"]
REMEMBERED: Final = 86_400  # seconds, as long as the visit's idempotency key
AGAIN: Final = "again"  # the parameter of a visitor whose last checkout here has ended


@dataclass(frozen=True, slots=True)
class Paths:
    """Paths on this origin, by the names that shop.html uses."""

    logo: str | None


@dataclass(frozen=True, slots=True)
class Offer:
    """A payment link as its page shows it."""

    name: str
    price: str
    sells: bool
    limited: bool
    stopped: bool
    path: str
    shop: str
    initial: str
    website: str | None
    contact: Contact | None
    home: Contact | None
    accent: Accent | None
    paths: Paths


@router.api_route("", methods=READ)
async def offer(services: Injected, request: Request, link_id: str) -> Response:
    """Return the page with the price; it reads the link and writes nothing."""
    counted(services, request)
    return _page(services, request, buy.load_link(services, link_id))


@router.post("")
async def begin(services: Injected, request: Request, link_id: str) -> Response:
    """Begin the purchase, and lead to its checkout page; or show why there is none."""
    client = counted(services, request)
    link = buy.load_link(services, link_id)
    visit = (await form_fields(request)).get("visit", "")
    path = _path(services, link)
    if not browser.asked_here(request):
        return see_other(path)
    try:
        begun = buy.begin(services, link, visit, client)
    except ParameterInvalid:
        return see_other(path)
    except Conflict:
        gone = link if link.stopped_at else replace(link, left=0)
        return _page(services, request, gone, refused=True)
    if begun.ended:
        return _remember(services, see_other(f"{path}?{AGAIN}=1"), link, buy.new_visit(services))
    to = f"{split(services.base_url).path}/pay/{begun.session_id}"
    return _remember(services, see_other(to), link, visit)


@router.api_route("/logo", methods=READ)
async def logo(services: Injected, request: Request, link_id: str) -> Response:
    counted(services, request)
    link = buy.load_link(services, link_id)
    return pictures.logo(request, services.merchants.get(link.merchant))


def _page(
    services: PayServices, request: Request, link: PaymentLink, *, refused: bool = False
) -> Response:
    merchant = merchants.get(services.merchants, link.merchant)
    reads = pages.reader_of(request, default=merchant.locale)
    known = request.cookies.get(_cookie(services, link), "")
    offered = _offer(services, link, merchant, reads)
    if not refused and not link.sells and buy.continues(services, link, known):
        offered = replace(offered, sells=True)  # to who holds one of the last items
    return render.page(
        request,
        reads,
        "link.html",
        status=409 if refused else 200,
        s=offered,
        visit=known if buy.is_visit(known) else buy.new_visit(services),
        again=AGAIN in request.query_params,
        refused=refused,
    )


def _offer(services: PayServices, link: PaymentLink, merchant: Merchant, reads: Reader) -> Offer:
    path = _path(services, link)
    mark = pictures.logo_mark(merchant.logo)
    price = from_minor_units(
        link.unit_amount, currency=link.currency, wallet_scale=merchant.asset_scale
    )
    return Offer(
        name=link.name,
        price=reads.price(price),
        sells=link.sells,
        limited=link.limited,
        stopped=link.stopped_at is not None,
        path=path,
        shop=merchant.name,
        initial=initial_of(merchant.name),
        website=merchant.website,
        contact=contact_of(merchant.contact),
        home=home_of(merchant.website, None),
        accent=accent(merchant.accent_color),
        paths=Paths(logo=f"{path}/logo?v={mark}" if mark else None),
    )


def _path(services: PayServices, link: PaymentLink) -> str:
    return f"{split(services.base_url).path}/buy/{link.id}"


def _remember(services: PayServices, response: Response, link: PaymentLink, visit: str) -> Response:
    """Keep the visit in the browser, so that going back and buying again makes no second session.

    The cookie is set by the form's answer only: who just looks at a page gets none.
    """
    response.set_cookie(
        _cookie(services, link),
        visit,
        max_age=REMEMBERED,
        secure=not is_http(services.base_url),
        httponly=True,
        samesite="lax",
    )
    return response


def _cookie(services: PayServices, link: PaymentLink) -> str:
    return ("" if is_http(services.base_url) else "__Host-") + f"buy-{link.id}"
