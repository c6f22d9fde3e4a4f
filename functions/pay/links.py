"""The page of a payment link, and the purchase that its form begins.

Opening the page writes nothing, because crawlers, link previews and prefetches also open it. Only
the form on the page creates a session, and only if our own page sent the form. The form contains a
visit, a random text by which a form that is sent twice is recognized (flows/links/purchase.py).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.domain.ground.addresses import Fault
from checkout.domain.ground.errors import Conflict, ParameterInvalid
from checkout.domain.links import AMOUNT, PaymentLink, quantity_of
from checkout.domain.session import customer_details
from checkout.domain.session.collect import Place
from checkout.flows import merchants
from checkout.flows.links import purchase
from checkout.pages import allow_pictures, form_fields, see_other
from checkout.services import PayServices
from open_payments.urls import origin, split
from pay import browser, forms, looks, pages, render, till
from pay.dependencies import Injected, counted
from pay.forms import BODY_MAX
from pay.headers import READ, CustomersOnly
from pay.offers import amount_group, path_of, shown_offer, wrong_amount

router = APIRouter(prefix="/buy/{link_id}", route_class=CustomersOnly)
REMEMBERED: Final = 86_400  # seconds for which a visit, used as idempotency key, is known
AGAIN: Final = "again"  # the URL parameter for a visitor whose last checkout here has ended


@router.api_route("", methods=READ)
async def offer(services: Injected, request: Request, link_id: str) -> Response:
    """Return the page of the item. This reads the link and writes nothing."""
    counted(services, request)
    return _page(services, request, purchase.shown_link(services, link_id))


@router.post("")
async def begin(services: Injected, request: Request, link_id: str) -> Response:
    """Begin the purchase and redirect to its checkout page, or show why it cannot begin.

    A till (till.py) sends its form here, too. API Gateway limits purchases at this one route, so
    its limit also counts a till's sales.
    """
    client = counted(services, request)
    link = purchase.shown_link(services, link_id)
    typed = await form_fields(request, most=BODY_MAX)
    if till.MARK in typed:
        return till.begin(services, request, link, typed, client)
    return _begin(services, request, link, typed, client)


def _begin(
    services: PayServices, request: Request, link: PaymentLink, typed: dict[str, str], client: str
) -> Response:
    path = path_of(services, link)
    if not browser.asked_here(services, request):
        return _page(services, request, link, unproven=True)
    collect = link.collect
    turned = forms.turned(typed, collect)
    if turned is not None and link.sells:
        return _page(services, request, link, typed=typed, turned=turned)
    details, wrong = customer_details.checked(typed, collect)
    quantity = quantity_of(typed.get(forms.QUANTITY, "1"), link.quantity_max)
    if quantity is None:
        wrong = {forms.QUANTITY: Fault.INVALID} | wrong
    amount = link.chosen(typed, merchants.get(services.merchants, link.merchant))
    if link.open_amount and amount is None:
        wrong = wrong | wrong_amount(typed)
    if quantity is None or (wrong and link.sells):
        return _page(services, request, link, typed=typed, wrong=wrong)
    visit = typed.get("visit", "")
    try:
        begun = purchase.begin(services, link, visit, client, details, quantity, amount)
    except ParameterInvalid:  # the page's own nonce is missing
        return _page(services, request, link, typed=typed, unproven=True)
    except Conflict:
        now = purchase.load_link(services, link.id)
        if now.limited and now.sells and quantity > 1:  # fewer items are left than chosen
            few = {forms.QUANTITY: Fault.INVALID}
            return _page(services, request, now, typed=typed, wrong=few, status=409)
        gone = link if link.stopped_at else replace(link, left=0)
        return _page(services, request, gone, refused=True)
    if begun.ended:
        return _remember(
            services, see_other(f"{path}?{AGAIN}=1"), link, purchase.new_visit(services)
        )
    to = f"{split(services.base_url).path}/pay/{begun.session_id}"
    return _remember(services, see_other(to), link, begun.visit)


@router.api_route("/logo", methods=READ)
async def logo(services: Injected, request: Request, link_id: str) -> Response:
    counted(services, request)
    link = purchase.shown_link(services, link_id)
    return looks.logo(request, services.merchants.get(link.merchant))


def _page(
    services: PayServices,
    request: Request,
    link: PaymentLink,
    *,
    refused: bool = False,
    typed: dict[str, str] | None = None,
    wrong: dict[str, Fault] | None = None,
    turned: Place | None = None,
    unproven: bool = False,
    status: int = 400,
) -> Response:
    """Return the link's page, with what was `typed` if its form is shown again.

    `turned` is the address whose country the customer has just changed. `status` is the HTTP status
    if something is `wrong`. `unproven` means that a page of another site may have sent the form.
    """
    merchant = merchants.get(services.merchants, link.merchant)
    reads = pages.reader_of(request, default=merchant.locale)
    known = request.cookies.get(_cookie(services, link), "")
    offered = shown_offer(services, link, merchant, reads)
    if not refused and not link.sells and purchase.continues(services, link, known):
        # This customer already holds one of the last items, so they can continue.
        offered["sells"] = True
    allow_pictures(request, [origin(link.image)] if link.image else [])
    if unproven:
        status = 403
    groups = forms.groups(
        link.collect,
        reads,
        forms.usual_country(reads, request.headers.get("accept-language", "")),
        typed or {},
        wrong or {},
        most=link.offered if link.quantity_max > 1 else None,
        left=status == 409,
    )
    if link.open_amount:
        wished = request.query_params.get(AMOUNT, "")
        groups.append(amount_group(link, merchant, reads, typed or {}, wrong or {}, wished))
    return render.page(
        request,
        reads,
        "link.html",
        status=409 if refused else status if wrong or unproven else 200,
        s=offered,
        visit=known if purchase.is_visit(known) else purchase.new_visit(services),
        again=AGAIN in request.query_params,
        refused=refused,
        unproven=unproven,
        groups=groups,
        asks=bool(link.collect),
        turned=turned,
        wrong=wrong,
    )


def _remember(services: PayServices, response: Response, link: PaymentLink, visit: str) -> Response:
    """Keep the visit in a cookie, so that going back and buying again creates no second session.

    Only the response to the form sets the cookie, so a visitor who does not buy gets no cookie.
    """
    browser.keep(services, response, _cookie(services, link), visit, seconds=REMEMBERED)
    return response


def _cookie(services: PayServices, link: PaymentLink) -> str:
    return browser.cookie_name(services, f"buy-{link.id}")
