"""The paths of the hosted page: parse, call one flow, render.

Every visit of a page also moves a payment in flight forward (rate-limited by the session), so that
the payment is confirmed where no script polls.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from checkout.flows.payment import approve, prepare, reconcile
from pay import pages, pictures
from pay.dependencies import Injected
from pay.headers import CustomersOnly
from pay.inputs import Returned, Submitted

router = APIRouter(prefix="/pay/{session_id}", route_class=CustomersOnly)
LOOK = ["GET", "HEAD"]


@router.api_route("", methods=LOOK)
async def checkout(services: Injected, request: Request, session_id: str) -> Response:
    session = reconcile.advance_pending(services, session_id)
    return pages.session_page(services, request, session)


@router.post("/wallet")
async def wallet(services: Injected, session_id: str, submitted: Submitted) -> Response:
    session = prepare.submit_wallet(services, session_id, submitted.wallet_address)
    return pages.prepared(services, session, submitted)


@router.api_route("/status", methods=LOOK)
async def status(services: Injected, session_id: str) -> Response:
    return pages.status_json(services, reconcile.advance_pending(services, session_id))


@router.api_route("/grant/callback", methods=LOOK)
async def callback(
    services: Injected, request: Request, session_id: str, returned: Returned
) -> Response:
    if returned.result is not None:  # unsigned: it is told to the customer, and changes nothing
        session = reconcile.view(services, session_id)
        return pages.not_approved(services, request, session, returned.result)
    finish = approve.finish(
        services, session_id, interact_ref=returned.interact_ref, presented_hash=returned.hash
    )
    return pages.returned(services, request, finish)


@router.api_route("/success", methods=LOOK)
async def success(services: Injected, request: Request, session_id: str) -> Response:
    session = reconcile.advance_pending(services, session_id)
    return pages.confirmation(services, request, session)


@router.api_route("/qr", methods=LOOK)
async def qr_code(services: Injected, session_id: str) -> Response:
    return pictures.qr_code(reconcile.view(services, session_id), services.base_url)


@router.api_route("/logo", methods=LOOK)
async def logo(services: Injected, request: Request, session_id: str) -> Response:
    session = reconcile.view(services, session_id)
    return pictures.logo(request, services.merchants.get(session.merchant))
