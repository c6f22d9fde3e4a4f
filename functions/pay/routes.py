"""The routes of the hosted page. Each route parses, calls one flow, and renders.

If a session has a payment in flight, every visit to its page also checks this payment at the
wallets. So the payment is confirmed even if no script polls. The checks are rate-limited for each
session and for each client (network address).
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from checkout.domain.ground.errors import CheckoutError, RateLimited
from checkout.domain.ground.limits import POLL
from checkout.flows.session import approve, prepare, receipt_mail, reconcile
from checkout.flows.session.details import may_give
from checkout.pages import GrantCallback, callback_of, form_fields
from checkout.services import PayServices
from checkout.web import json_object
from pay import browser, details, looks, pages
from pay.dependencies import Injected, counted
from pay.forms import (
    BODY_MAX,
    address_of,
    email_of,
    name_of,
    price_of,
    provider_of,
    wallet_of,
)
from pay.headers import READ, CustomersOnly
from pay.problems import form_again, sent_by_form

router = APIRouter(prefix="/pay/{session_id}", route_class=CustomersOnly)


@router.api_route("", methods=READ)
async def checkout(services: Injected, request: Request, session_id: str) -> Response:
    """Show the session's page, or let a device that scanned the QR code take over the approval."""
    session = reconcile.advance_pending(services, session_id, counted(services, request))
    query = request.query_params
    if browser.DEVICE in query:
        return browser.taken_over(services, request, session, query[browser.DEVICE])
    if session.asks_first and may_give(services, session):
        return details.form(services, request, session)
    return pages.session_page(services, request, session, was=query.get("was", ""))


@router.post("/wallet")
async def wallet(services: Injected, request: Request, session_id: str) -> Response:
    """Prepare the payment. Answer a JSON body with JSON, and a form with a page."""
    client = counted(services, request)
    if not sent_by_form(request):
        address = wallet_of(await json_object(request, most=BODY_MAX))
        session = prepare.submit_wallet(services, session_id, address, client=client)
        return browser.bind(services, pages.quote_json(session), session)
    fields: dict[str, str] = {}
    at = ""
    try:
        fields = await form_fields(request, most=BODY_MAX)
        was, at, typed = price_of(fields), provider_of(fields), wallet_of(fields)
        session = prepare.submit_wallet(services, session_id, address_of(at, typed), client=client)
    except CheckoutError as error:
        typed = fields.get("wallet_address", "")
        return form_again(error, services, request, session_id, typed=typed, at=at)
    return browser.bind(services, pages.prepared(services, request, session, was=was), session)


@router.post("/receipt")
async def receipt(services: Injected, request: Request, session_id: str) -> Response:
    """Send the receipt by e-mail. The address is not stored."""
    client = counted(services, request)
    fields: dict[str, str] = {}
    try:
        fields = await form_fields(request, most=BODY_MAX)
        form, to = name_of(fields), email_of(fields)
        session = reconcile.view(services, session_id)
        letter = pages.letter(services, request, session, to)
        receipt_mail.send(services, session, letter, client=client, form=form)
    except CheckoutError as error:
        typed = fields.get("email", "")
        return form_again(error, services, request, session_id, email=typed)
    return pages.receipt_sent(services, session)


@router.api_route("/status", methods=READ)
async def status(services: Injected, request: Request, session_id: str) -> Response:
    """Return the state of the payment to a page that stays open."""
    session = reconcile.advance_pending(services, session_id, counted(services, request, POLL))
    return pages.status_json(services, session)


@router.api_route("/watch", methods=READ)
async def watch(services: Injected, request: Request, session_id: str) -> Response:
    """Return the state for a page without script: a line in a frame, which reloads itself."""
    try:
        client = counted(services, request, POLL)
    except RateLimited as limited:
        return pages.unwatched(request, limited.retry_after)
    session = reconcile.advance_pending(services, session_id, client)
    return pages.watched(services, request, session, saw=request.query_params.get("saw", ""))


@router.api_route("/grant/callback", methods=READ)
async def callback(services: Injected, request: Request, session_id: str) -> Response:
    """Continue the approval with the parameters of the wallet's redirect."""
    client = counted(services, request)
    return _callback(services, request, session_id, client, callback_of(request))


@router.post("/grant/callback")
async def callback_confirmed(services: Injected, request: Request, session_id: str) -> Response:
    """Continue an approval that was begun in another browser, after the customer has confirmed."""
    client, returned = counted(services, request), callback_of(request)
    here = browser.asked_here(services, request)
    if returned.result is not None or not here:
        return _callback(services, request, session_id, client, returned, unproven=not here)
    finish = approve.finish(
        services,
        session_id,
        interact_ref=returned.interact_ref,
        presented_hash=returned.hash,
        client=client,
    )
    # If the wallet asks us to wait, the browser needs the cookie when it repeats the callback.
    response = pages.returned(services, request, finish)
    return browser.bind(services, response, finish.record, verified=finish.verified)


@router.api_route("/success", methods=READ)
async def success(services: Injected, request: Request, session_id: str) -> Response:
    session = reconcile.advance_pending(services, session_id, counted(services, request))
    return pages.confirmation(services, request, session)


@router.api_route("/qr", methods=READ)
async def qr_code(services: Injected, request: Request, session_id: str) -> Response:
    counted(services, request)
    session = reconcile.view(services, session_id)
    return looks.qr_code(browser.link(services, request, session))


@router.api_route("/logo", methods=READ)
async def logo(services: Injected, request: Request, session_id: str) -> Response:
    counted(services, request)
    session = reconcile.view(services, session_id)
    return looks.logo(request, services.merchants.get(session.merchant))


def _callback(
    services: PayServices,
    request: Request,
    session_id: str,
    client: str,
    returned: GrantCallback,
    *,
    unproven: bool = False,
) -> Response:
    """Return the response to a browser that comes back from the wallet.

    `unproven` means that a page of another site may have sent the form.
    """
    if returned.result is not None:  # unsigned, so it is only recorded and shown
        session = reconcile.advance_pending(services, session_id, client)
        proof = browser.presented(services, request, session_id)
        session = approve.note_reported(services, session, returned.result, browser=proof)
        return pages.not_approved(services, request, session, returned.result)
    finish = approve.finish(
        services,
        session_id,
        interact_ref=returned.interact_ref,
        presented_hash=returned.hash,
        browser=browser.presented(services, request, session_id),
        client=client,
    )
    return pages.returned(services, request, finish, unproven=unproven)
