"""The sign-in page, by a passkey or an API key, and signing out."""

from __future__ import annotations

from dataclasses import replace

from fastapi import Response

from checkout.domain.ground.errors import CheckoutError
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right, SignUp
from checkout.flows.people import sign_in
from checkout.flows.people.sign_in import SignedIn
from dashboard.dependencies import (
    Form,
    OpenForm,
    OpenPage,
    OpenRequest,
    SignIn,
    posted_fields,
    verify_token,
)
from dashboard.forms import Fields
from dashboard.rendering import FIRST, page, safe_next, see, set_cookie, show_again
from dashboard.routing import OPEN, PageRouter

router = PageRouter()


class SignInForm(Fields):
    """An API key or the answer of a passkey, and the page that the browser has asked for."""

    api_key: str
    credential: str
    next: str


def _form(
    request: OpenRequest,
    *,
    next_page: str | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    return page(
        request.http,
        "sign_in.html",
        status=status,
        next=request.read(SignInForm).next if next_page is None else next_page,
        alert=alert,
        sign_up=request.services.sign_up is SignUp.OPEN,
    )


@router.page("/sign-in", OPEN)
async def sign_in_form(request: OpenPage) -> Response:
    return _form(request, next_page=request.http.query_params.get("next", ""))


@router.form("/sign-in", OPEN)
async def sign_in_with_key(request: OpenPage) -> Response:
    """Sign in with an API key. The form is shown again also if it was not of this page."""
    try:
        request = replace(request, form=await posted_fields(request))
        verify_token(request.visit, request.form)
        typed = request.read(SignInForm)
        signed_in = sign_in.sign_in(request.services, typed.api_key, client=request.client)
    except CheckoutError as error:
        return show_again(error, _form, request=request)
    return _entered(request, signed_in)


@router.form("/sign-in/options", OPEN)
async def passkey_options(request: OpenForm) -> Response:
    """Return the options for signing in with a passkey, with a challenge for this browser."""
    browser = request.visit.token
    made = sign_in.begin_sign_in(request.services, browser=browser, client=request.client)
    return Response(made, media_type="application/json")


@router.form("/sign-in/passkey", OPEN, again=_form)
async def sign_in_with_passkey(request: OpenForm) -> Response:
    """Sign in the member whose passkey signed this browser's challenge."""
    signed_in = sign_in.sign_in_with(
        request.services,
        browser=request.visit.token,
        answer=request.read(SignInForm).credential,
        client=request.client,
    )
    return _entered(request, signed_in)


@router.form("/sign-out", Door(Right.READ, "ends one's own sign-in"))
async def sign_out(request: Form, signed_in: SignIn) -> Response:
    visit = request.visit
    sign_in.sign_out(request.services, signed_in)
    response = see(visit, "/sign-in")
    response.delete_cookie(visit.cookie, secure=visit.secure, httponly=True, samesite="lax")
    return response


def _entered(request: OpenRequest, signed_in: SignedIn) -> Response:
    """Return the redirect to the requested page, with the new cookie."""
    response = see(request.visit, safe_next(request.read(SignInForm).next) or FIRST)
    set_cookie(response, request.visit, signed_in.token)
    return response
