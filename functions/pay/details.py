"""The page on which the customer of a session gives the details that the shop asks for.

The customer sees this page before the page that asks for the wallet. Before the payment, no page
shows the details again, because anybody who has the link can open the session's pages. The page
needs no script.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from checkout.domain.ground.addresses import Fault
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.session import customer_details
from checkout.domain.session.collect import Place
from checkout.domain.session.record import Session
from checkout.flows.session import details, reconcile
from checkout.pages import form_fields, see_other
from checkout.services import PayServices
from pay import browser, forms, pages
from pay.dependencies import Injected, counted
from pay.forms import BODY_MAX
from pay.headers import READ, CustomersOnly
from pay.problems import form_again
from pay.view import paths_of

router = APIRouter(prefix="/pay/{session_id}/details", route_class=CustomersOnly)


@router.api_route("", methods=READ)
async def ask(services: Injected, request: Request, session_id: str) -> Response:
    """Show the form, also for corrections, or redirect to the page of the session's stage."""
    counted(services, request)
    session = reconcile.view(services, session_id)
    if not details.may_give(services, session):
        return see_other(paths_of(session, services.base_url).home)
    return form(services, request, session)


@router.post("")
async def give(services: Injected, request: Request, session_id: str) -> Response:
    """Store the details and redirect to the wallet form, or show this form with its errors."""
    counted(services, request)
    session = reconcile.view(services, session_id)
    typed = await form_fields(request, most=BODY_MAX)
    here = browser.asked_here(services, request)
    if not session.collect or not (here or details.may_give(services, session)):
        return see_other(paths_of(session, services.base_url).home)
    if not here:
        return form(services, request, session, unproven=True)
    turned = forms.turned(typed, session.collect)
    if turned is not None:
        return form(services, request, session, typed=typed, turned=turned)
    given, wrong = customer_details.checked(typed, session.collect)
    if wrong:
        return form(services, request, session, typed=typed, wrong=wrong)
    try:
        stored = details.give(services, session, given)
    except CheckoutError as error:
        return form_again(error, services, request, session_id)
    return see_other(paths_of(stored, services.base_url).home)


def form(
    services: PayServices,
    request: Request,
    session: Session,
    *,
    typed: dict[str, str] | None = None,
    wrong: dict[str, Fault] | None = None,
    turned: Place | None = None,
    unproven: bool = False,
) -> Response:
    """Return the page with the form, and with the `typed` texts if the form is shown again.

    `wrong` has the faults of the texts. `turned` is the address (shipping or billing) whose country
    the customer has just changed. `unproven` means that a page of another site may have sent the
    form.
    """
    now_shown = pages.seen(services, request, session)
    reads = now_shown.reader
    usual = forms.usual_country(reads, request.headers.get("accept-language", ""))
    return pages.page(
        request,
        now_shown,
        "details.html",
        status=403 if unproven else 400 if wrong else 200,
        alert=pages.UNPROVEN if unproven else None,
        groups=forms.groups(session.collect, reads, usual, typed or {}, wrong or {}),
        turned=turned,
        wrong=wrong,
    )
