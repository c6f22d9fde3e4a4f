"""The sign-in page, by a passkey or an API key, and signing out."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from checkout.clients import client_of
from checkout.domain.errors import CheckoutError
from checkout.domain.people import SignUp
from checkout.flows.merchant import passkeys, sign_in
from checkout.flows.merchant.sign_in import SignedIn
from checkout.ports.services import DashboardServices
from dashboard.dependencies import (
    Form,
    Injected,
    SignIn,
    Visit,
    Visited,
    posted_fields,
    verify_token,
)
from dashboard.rendering import FIRST, page, refused, safe_next, see, set_cookie, wait_of

router = APIRouter()


@router.get("/sign-in")
async def sign_in_form(services: Injected, request: Request) -> Response:
    return _form(services, request, request.query_params.get("next", ""))


@router.post("/sign-in")
async def sign_in_with_key(services: Injected, visit: Visited, request: Request) -> Response:
    fields: dict[str, str] = {}
    try:
        fields = await posted_fields(services, request)
        verify_token(visit, fields)
        client = client_of(request, services.edge_secret)
        signed_in = sign_in.sign_in(services, fields.get("api_key", ""), client=client)
    except CheckoutError as error:
        return refused(
            error, _form, services, request, fields.get("next", ""), headers=wait_of(error)
        )
    return _entered(visit, signed_in, fields.get("next", ""))


@router.post("/sign-in/options")
async def passkey_options(
    services: Injected, visit: Visited, request: Request, _: Form
) -> Response:
    """Return the options for signing in with a passkey, with a challenge for this browser."""
    client = client_of(request, services.edge_secret)
    made = passkeys.begin_sign_in(services, browser=visit.token, client=client)
    return Response(made, media_type="application/json")


@router.post("/sign-in/passkey")
async def sign_in_with_passkey(
    services: Injected, visit: Visited, request: Request, form: Form
) -> Response:
    """Sign in the member whose passkey signed this browser's challenge."""
    next_page, answer = form.get("next", ""), form.get("credential", "")
    client = client_of(request, services.edge_secret)
    try:
        signed_in = passkeys.sign_in_with(
            services, browser=visit.token, answer=answer, client=client
        )
    except CheckoutError as error:
        return refused(error, _form, services, request, next_page, headers=wait_of(error))
    return _entered(visit, signed_in, next_page)


@router.post("/sign-out")
async def sign_out(services: Injected, visit: Visited, signed_in: SignIn, _: Form) -> Response:
    sign_in.sign_out(services, signed_in)
    response = see(visit, "/sign-in")
    response.delete_cookie(visit.cookie, secure=visit.secure, httponly=True, samesite="lax")
    return response


def _entered(visit: Visit, signed_in: SignedIn, next_page: str) -> Response:
    """Return the redirect to the requested page, with the new cookie."""
    response = see(visit, safe_next(next_page) or FIRST)
    set_cookie(response, visit, signed_in.token)
    return response


def _form(
    services: DashboardServices,
    request: Request,
    next_page: str,
    *,
    alert: str | None = None,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    return page(
        request,
        "sign_in.html",
        status=status,
        headers=headers,
        next=next_page,
        alert=alert,
        sign_up=services.sign_up is SignUp.OPEN,
    )
