"""The till of a payment link with an open amount: a keypad, the sale's QR code, and its outcome.

The merchant opens the till on a phone at the counter, without signing in. This is safe, because a
till can only ask for money for the shop. The screen of a sale has a secret address. Whoever has
this address can see the sale, but only the browser that began the sale can cancel it. Opening a
page writes nothing; only the till's forms write.
"""

from __future__ import annotations

from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.domain.ground.addresses import Fault
from checkout.domain.ground.errors import (
    Conflict,
    ParameterInvalid,
    PaymentInProgress,
    ResourceMissing,
    SessionBusy,
    SessionUnexpectedState,
)
from checkout.domain.ground.ids import session_ref
from checkout.domain.links import METADATA_NAME, PaymentLink
from checkout.domain.session.record import Session
from checkout.flows import merchants
from checkout.flows.links import purchase
from checkout.flows.session import reconcile
from checkout.pages import see_other
from checkout.services import PayServices
from pay import browser, offers, pages, render
from pay.dependencies import Injected, counted
from pay.headers import READ, CustomersOnly
from pay.progress import Progress
from pay.view import Shown, Stage

router = APIRouter(prefix="/buy/{link_id}/till", route_class=CustomersOnly)
MARK: Final = "till"  # the field that marks a form as sent by the keypad
REMEMBERED: Final = 3_600  # seconds for which the browser can cancel; a sale ends earlier
_DOUBTFUL: Final = frozenset({Progress.PART, Progress.UNDECIDED})


@router.api_route("", methods=READ)
async def keypad(services: Injected, request: Request, link_id: str) -> Response:
    """Return the keypad. This reads the link and writes nothing."""
    counted(services, request)
    return _keypad(services, request, _till(services, link_id))


def begin(
    services: PayServices, request: Request, link: PaymentLink, typed: dict[str, str], client: str
) -> Response:
    """Begin a sale and redirect to its screen, or show why it cannot begin. Raise ResourceMissing.

    `typed` has the fields of the keypad's form. The route for all purchases (links.py) receives
    this form.
    """
    _require(link)
    if not browser.asked_here(services, request):
        return _keypad(services, request, link, unproven=True)
    amount = link.chosen(typed, merchants.get(services.merchants, link.merchant))
    if amount is None:
        return _keypad(services, request, link, typed=typed, wrong=offers.wrong_amount(typed))
    visit = typed.get("visit", "")
    try:
        begun = purchase.begin(services, link, visit, client, amount=amount, at_till=True)
        if begun.ended:  # the browser shows an old keypad again, so this is another sale
            again = purchase.new_visit(services)
            begun = purchase.begin(services, link, again, client, amount=amount, at_till=True)
    except ParameterInvalid:  # the page's own nonce is missing
        return _keypad(services, request, link, typed=typed, unproven=True)
    except Conflict:
        return _keypad(services, request, link, typed=typed, refused=True)
    screen = _sale_path(services, link, begun.session_id)
    response = see_other(screen)
    name = _cookie(services, begun.session_id)
    browser.keep(services, response, name, begun.visit, seconds=REMEMBERED, path=screen)
    return response


@router.api_route("/{session_id}", methods=READ)
async def sale(services: Injected, request: Request, link_id: str, session_id: str) -> Response:
    """Return the screen of a sale."""
    client = counted(services, request)
    link = _till(services, link_id)
    session = reconcile.advance_pending(services, session_id, client)
    return _screen(services, request, link, session)


@router.post("/{session_id}/cancel")
async def cancel(services: Injected, request: Request, link_id: str, session_id: str) -> Response:
    """Cancel a sale that this browser began, and redirect to its screen.

    If the customer has approved, or if the sale has ended, it cannot be canceled, and the screen
    shows why.
    """
    counted(services, request)
    link = _till(services, link_id)
    visit = request.cookies.get(_cookie(services, session_id), "")
    try:
        if not browser.asked_here(services, request):
            raise ResourceMissing("A page of another site may have sent this form.")
        purchase.cancel(services, link, visit, session_id)
    except ResourceMissing:
        session = reconcile.view(services, session_id)
        return _screen(services, request, link, session, unproven=True)
    except (PaymentInProgress, SessionBusy, SessionUnexpectedState):
        pass
    return see_other(_sale_path(services, link, session_id))


def outcome_of(shown: Shown) -> str:
    """Return the outcome that the screen shows: the second part of the names of the texts.

    `paid` is only for a completed session. `doubt` means that goods must not be handed over,
    although money may have arrived. `failed` means that a try has failed, and that the sale can
    still be paid.
    """
    if shown.stage is Stage.COMPLETED:
        return "paid"
    if shown.arrived or shown.progress in _DOUBTFUL:
        return "doubt"
    if shown.stage is Stage.CONFIRMING:
        return "confirming"
    if shown.stage in (Stage.EXPIRED, Stage.CANCELED):
        return "ended"
    if shown.stage is Stage.OPEN:
        return "failed" if shown.problem else "waiting"
    return "approving"


def _till(services: PayServices, link_id: str) -> PaymentLink:
    """Read a link that has a till. Raise ResourceMissing."""
    return _require(purchase.shown_link(services, link_id))


def _require(link: PaymentLink) -> PaymentLink:
    if not link.has_till:
        raise ResourceMissing("This payment link has no till.")
    return link


def _keypad(
    services: PayServices,
    request: Request,
    link: PaymentLink,
    *,
    typed: dict[str, str] | None = None,
    wrong: dict[str, Fault] | None = None,
    unproven: bool = False,
    refused: bool = False,
) -> Response:
    """Return the keypad, with what was `typed` if its form is shown again.

    `unproven` means that a page of another site may have sent the form, `refused` that the link
    does not sell any more.
    """
    merchant = merchants.get(services.merchants, link.merchant)
    reads = pages.reader_of(request, default=merchant.locale)
    return render.page(
        request,
        reads,
        "till.html",
        status=409 if refused else 403 if unproven else 400 if wrong else 200,
        s=offers.shown_offer(services, link, merchant, reads),
        groups=[offers.amount_group(link, merchant, reads, typed or {}, wrong or {})],
        zero=offers.price_of(link, merchant, reads, 0),
        visit=purchase.new_visit(services),
        unproven=unproven,
        refused=refused,
    )


def _screen(
    services: PayServices,
    request: Request,
    link: PaymentLink,
    session: Session,
    *,
    unproven: bool = False,
) -> Response:
    """Return the screen of a sale. Raise ResourceMissing if the session is not of this link."""
    if session.merchant != link.merchant or session.metadata.get(METADATA_NAME) != link.id:
        raise ResourceMissing("No such sale at this till.")
    visit = request.cookies.get(_cookie(services, session.id), "")
    now_shown = pages.seen(services, request, session)
    ends = now_shown.stage in (Stage.OPEN, Stage.AWAITING_APPROVAL)
    return pages.page(
        request,
        now_shown,
        "sale.html",
        status=403 if unproven else 200,
        outcome=outcome_of(now_shown),
        till=f"{offers.path_of(services, link)}/till",
        cancels=ends and purchase.began(services, link, visit, session.id),
        unproven=unproven,
    )


def _sale_path(services: PayServices, link: PaymentLink, session_id: str) -> str:
    return f"{offers.path_of(services, link)}/till/{session_id}"


def _cookie(services: PayServices, session_id: str) -> str:
    # Only for the sale's screen, so that a till with many sales does not send all its cookies.
    return browser.cookie_name(services, f"till-{session_ref(session_id)}", one_page=True)
