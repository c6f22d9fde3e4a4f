"""The page of an invitation, where a person creates their passkey and becomes a member."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from checkout.clients import client_of
from checkout.domain.errors import CheckoutError
from checkout.flows import merchants
from checkout.flows.merchant import passkeys
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Form, Injected, Visited
from dashboard.rendering import FIRST, page, refused, see, set_cookie
from dashboard.texts import ROLE

router = APIRouter(prefix="/invitation/{token}")


@router.get("")
async def invitation(services: Injected, request: Request, token: str) -> Response:
    return _page(services, request, token)


@router.post("/options")
async def options(
    services: Injected, visit: Visited, request: Request, token: str, _: Form
) -> Response:
    """Return the options for a new passkey, with a challenge for this browser."""
    client = client_of(request, services.edge_secret)
    made = passkeys.begin_joining(services, token, browser=visit.token, client=client)
    return Response(made, media_type="application/json")


@router.post("")
async def accept(
    services: Injected, visit: Visited, request: Request, token: str, form: Form
) -> Response:
    """Make the invited person a member with the new passkey, and sign them in."""
    client = client_of(request, services.edge_secret)
    try:
        signed_in = passkeys.join(
            services,
            token,
            browser=visit.token,
            answer=form.get("credential", ""),
            client=client,
        )
    except CheckoutError as error:
        return refused(error, _page, services, request, token)
    response = see(visit, FIRST)
    set_cookie(response, visit, signed_in.token)
    return response


def _page(
    services: DashboardServices,
    request: Request,
    token: str,
    *,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    client = client_of(request, services.edge_secret)
    found = passkeys.invitation_of(services, token, client=client)
    merchant = merchants.get(services.merchants, found.merchant)
    return page(
        request,
        "invitation.html",
        status=status,
        shop=merchant.name,
        name=found.name,
        role=ROLE[found.role],
        token=token,
        alert=alert,
    )
