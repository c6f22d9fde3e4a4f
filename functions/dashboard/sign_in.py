"""Sign in with a passkey or an API key, sign out, and sign up with a new shop.

The first page of a sign-up asks for the wallet address. The second page shows the wallet, and asks
for the shop's name and a passkey. If the person was invited, both forms contain the invitation's
token.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from fastapi import Response

from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.providers import Provider, name_of
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right, SignUp
from checkout.domain.merchant.record import NAME_MAX
from checkout.flows.people import sign_in
from checkout.flows.people.sign_in import SignedIn
from checkout.pages import callback_of
from dashboard.dependencies import (
    Form,
    OpenForm,
    OpenPage,
    OpenRequest,
    Page,
    posted_fields,
    verify_token,
)
from dashboard.forms import OR_NONE, Fields
from dashboard.rendering import FIRST, page, safe_next, see, set_cookie, show_again, wait_page
from dashboard.routing import OPEN, PageRouter
from open_payments.urls import MAX_URL, authority

router = PageRouter()


class SignInForm(Fields):
    """An API key or the answer of a passkey, and the page to open after the sign-in."""

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
    """Sign in with an API key. After an error, show the sign-in page, wherever the form was."""
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
async def sign_out(request: Form) -> Response:
    visit = request.visit
    sign_in.sign_out(request.services, request.signed_in)
    response = see(visit, "/sign-in")
    response.delete_cookie(visit.cookie, secure=visit.secure, httponly=True, samesite="lax")
    return response


def _entered(request: OpenRequest, signed_in: SignedIn) -> Response:
    """Return the redirect to the requested page, with the new cookie."""
    response = see(request.visit, safe_next(request.read(SignInForm).next) or FIRST)
    set_cookie(response, request.visit, signed_in.token)
    return response


class SignUpForm(Fields):
    """A new shop: wallet, name, the answer of the owner's passkey, and an invitation."""

    wallet_address: str
    name: str
    credential: str
    invitation: Annotated[str | None, OR_NONE]


def _page(
    request: OpenRequest,
    *,
    token: str | None = None,
    looks: bool = False,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """Return the page. With `looks`, look up and show the typed wallet.

    Raise as `sign_up.admitted` and `sign_up.look_up` do.
    """
    from checkout.flows.people import sign_up

    services, form, client = request.services, request.read(SignUpForm), request.client
    token = token or form.invitation
    sign_up.admitted(services, token, client=client)
    found = None
    if looks:
        found = sign_up.look_up(services, typed=form.wallet_address, name=form.name, client=client)
    return page(
        request.http,
        "sign_up.html",
        status=status,
        alert=alert,
        invitation=token,
        typed=form.wallet_address[:MAX_URL],
        found=found,
        provider=_provider(services.providers, found.wallet.id) if found else None,
        name_max=NAME_MAX,
        open=services.sign_up is SignUp.OPEN,
    )


def _wallet(
    request: OpenRequest,
    *,
    link: str | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """Return the page with the `link` to the wallet, or with the reason why there is no link."""
    return page(request.http, "wallet.html", status=status, section="", link=link, alert=alert)


@router.page("/sign-up", OPEN)
async def sign_up_form(request: OpenPage) -> Response:
    return _page(request)


@router.page("/sign-up/{token}", OPEN)
async def invited_form(request: OpenPage, token: str) -> Response:
    return _page(request, token=token)


@router.form("/sign-up", OPEN, again=_page)
async def look_up(request: OpenForm) -> Response:
    """Show the wallet, and ask for the name and a passkey."""
    return _page(request, looks=True)


@router.form("/sign-up/options", OPEN)
async def options(request: OpenForm) -> Response:
    """Return the options for a new passkey, with a challenge for this browser."""
    from checkout.flows.people import sign_up

    form = request.read(SignUpForm)
    made = sign_up.begin(
        request.services,
        token=form.invitation,
        name=form.name,
        browser=request.visit.token,
        client=request.client,
    )
    return Response(made, media_type="application/json")


@router.form("/sign-up/passkey", OPEN, again=_page)
async def finish(request: OpenForm) -> Response:
    """Create the shop, sign its owner in, and show the first steps."""
    from checkout.flows.people import sign_up

    form = request.read(SignUpForm)
    signed_in = sign_up.finish(
        request.services,
        token=form.invitation,
        typed=form.wallet_address,
        name=form.name,
        browser=request.visit.token,
        answer=form.credential,
        client=request.client,
    )
    response = see(request.visit)
    set_cookie(response, request.visit, signed_in.token)
    return response


@router.form(
    "/wallet/confirm", Door(Right.MANAGE, "asks the shop's wallet for a proof"), again=_wallet
)
async def confirm(request: Form) -> Response:
    """Request the approval that proves who owns the wallet, and redirect to the wallet."""
    from checkout.flows.people import ownership

    asked = ownership.begin(
        request.services, request.key, browser=request.visit.token, client=request.client
    )
    return _wallet(request, link=asked.page)


@router.page("/wallet/callback", Door(Right.MANAGE, "lets the shop sell"))
async def confirmed(request: Page) -> Response:
    """Continue the approval with the parameters of the redirect from the wallet."""
    from checkout.flows.people import ownership

    returned = callback_of(request.http)
    if returned.result is not None:  # unsigned, so anybody may have sent it
        return _wallet(request, alert="You did not confirm that this wallet is yours.")
    try:
        seconds = ownership.finish(
            request.services,
            request.key,
            browser=request.visit.token,
            interact_ref=returned.interact_ref,
            presented_hash=returned.hash,
        )
    except CheckoutError as error:
        return show_again(error, _wallet, request=request)
    return wait_page(request.http, seconds) if seconds else see(request.visit)


def _provider(known: tuple[Provider, ...], wallet: str) -> str:
    """Return the provider's name if it is known, otherwise the wallet's host."""
    return name_of(wallet, known) or authority(wallet)
