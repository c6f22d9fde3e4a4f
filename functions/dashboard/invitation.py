"""The page of an invitation, where a person creates their passkey and becomes a member."""

from __future__ import annotations

from fastapi import Response

from checkout.flows import merchants
from checkout.flows.people import sign_in
from dashboard.dependencies import OpenForm, OpenPage, OpenRequest
from dashboard.rendering import FIRST, page, see, set_cookie
from dashboard.routing import OPEN, PageRouter
from dashboard.texts import ROLE

router = PageRouter(prefix="/invitation/{token}")


def _page(
    request: OpenRequest, token: str, *, alert: str | None = None, status: int = 200
) -> Response:
    services = request.services
    found = sign_in.invitation_of(services, token, client=request.client)
    merchant = merchants.get(services.merchants, found.merchant)
    return page(
        request.http,
        "invitation.html",
        status=status,
        shop=merchant.name,
        name=found.name,
        role=ROLE[found.role],
        token=token,
        alert=alert,
    )


@router.page("", OPEN)
async def invitation(request: OpenPage, token: str) -> Response:
    return _page(request, token)


@router.form("/options", OPEN)
async def options(request: OpenForm, token: str) -> Response:
    """Return the options for a new passkey, with a challenge for this browser."""
    browser = request.visit.token
    made = sign_in.begin_joining(request.services, token, browser=browser, client=request.client)
    return Response(made, media_type="application/json")


@router.form("", OPEN, again=_page)
async def accept(request: OpenForm, token: str) -> Response:
    """Make the invited person a member with the new passkey, and sign them in."""
    signed_in = sign_in.join(
        request.services,
        token,
        browser=request.visit.token,
        answer=request.form.get("credential", ""),
        client=request.client,
    )
    response = see(request.visit, FIRST)
    set_cookie(response, request.visit, signed_in.token)
    return response
