"""Sign up with a shop of one's own, and confirm its wallet: pages without a key, a file or a shell.

The first page takes the wallet address, the second one shows whose it is and takes name and
passkey. An invitation's token goes along in the form.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from checkout.clients import client_of
from checkout.domain.errors import CheckoutError
from checkout.domain.merchant import NAME_MAX
from checkout.domain.people import SignUp
from checkout.domain.providers import Provider, name_of
from checkout.flows.merchant.sign_in import SignedIn
from checkout.grant_callback import callback_of
from checkout.open_payments.urls import MAX_URL, authority
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Form, Injected, Key, Visit, Visited
from dashboard.rendering import page, refused, see, set_cookie, wait_of
from dashboard.routing import NamesFirst

router = APIRouter(route_class=NamesFirst)


@router.get("/sign-up")
async def sign_up_form(services: Injected, request: Request) -> Response:
    return _page(services, request, {})


@router.get("/sign-up/{token}")
async def invited_form(services: Injected, request: Request, token: str) -> Response:
    return _page(services, request, {"invitation": token})


@router.post("/sign-up")
async def look_up(services: Injected, request: Request, form: Form) -> Response:
    """Show whose wallet it is, and ask for the rest."""
    try:
        return _page(services, request, form, looks=True)
    except CheckoutError as error:
        headers = wait_of(error)
        return refused(error, _page, services, request, form, headers=headers)


@router.post("/sign-up/options")
async def options(services: Injected, visit: Visited, request: Request, form: Form) -> Response:
    """Return the options for a new passkey, with a challenge for this browser."""
    from checkout.flows.merchant import sign_up

    made = sign_up.begin(
        services,
        token=form.get("invitation") or None,
        name=form.get("name", ""),
        browser=visit.token,
        client=client_of(request, services.edge_secret),
    )
    return Response(made, media_type="application/json")


@router.post("/sign-up/passkey")
async def finish(services: Injected, visit: Visited, request: Request, form: Form) -> Response:
    """Make the shop, sign its owner in, and show the first steps."""
    try:
        signed_in = _signed_up(services, visit, request, form)
    except CheckoutError as error:
        headers = wait_of(error)
        return refused(error, _page, services, request, form, headers=headers)
    response = see(visit)
    set_cookie(response, visit, signed_in.token)
    return response


@router.post("/wallet/confirm")
async def confirm(
    services: Injected, visit: Visited, request: Request, key: Key, _: Form
) -> Response:
    """Ask the wallet for the approval that proves whose it is, and lead there."""
    from checkout.flows.merchant import ownership

    client = client_of(request, services.edge_secret)
    try:
        asked = ownership.begin(services, key, browser=visit.token, client=client)
    except CheckoutError as error:
        return refused(error, _wallet, request, headers=wait_of(error))
    return _wallet(request, link=asked.page)


@router.get("/wallet/callback")
async def confirmed(services: Injected, visit: Visited, request: Request, key: Key) -> Response:
    """Continue with what the wallet appended to the address of its return."""
    from checkout.flows.merchant import ownership

    returned = callback_of(request)
    if returned.result is not None:  # it is unsigned, so it decides nothing
        return _wallet(request, alert="You did not confirm that this wallet is yours.")
    try:
        seconds = ownership.finish(
            services,
            key,
            browser=visit.token,
            interact_ref=returned.interact_ref,
            presented_hash=returned.hash,
        )
    except CheckoutError as error:
        return refused(error, _wallet, request)
    if seconds:
        again = f"{request.url.path}?{request.url.query}"
        return page(request, "refund_wait.html", section="", seconds=seconds, again=again)
    return see(visit)


def _signed_up(
    services: DashboardServices, visit: Visit, request: Request, form: dict[str, str]
) -> SignedIn:
    from checkout.flows.merchant import sign_up

    return sign_up.finish(
        services,
        token=form.get("invitation") or None,
        typed=form.get("wallet_address", ""),
        name=form.get("name", ""),
        browser=visit.token,
        answer=form.get("credential", ""),
        client=client_of(request, services.edge_secret),
    )


def _page(
    services: DashboardServices,
    request: Request,
    form: dict[str, str],
    *,
    looks: bool = False,
    alert: str | None = None,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return the page; with `looks`, of the wallet that was typed. Raise as the flow does."""
    from checkout.flows.merchant import sign_up

    client = client_of(request, services.edge_secret)
    token, typed = form.get("invitation") or None, form.get("wallet_address", "")
    sign_up.admitted(services, token, client=client)
    found = None
    if looks:
        name = form.get("name", "")
        found = sign_up.look_up(services, typed=typed, name=name, client=client)
    return page(
        request,
        "sign_up.html",
        status=status,
        headers=headers,
        alert=alert,
        invitation=token,
        typed=typed[:MAX_URL],
        found=found,
        provider=_provider(services.providers, found.wallet.id) if found else None,
        name_max=NAME_MAX,
        open=services.sign_up is SignUp.OPEN,
    )


def _provider(known: tuple[Provider, ...], wallet: str) -> str:
    """Return the provider's name where it is known, else its host."""
    return name_of(wallet, known) or authority(wallet)


def _wallet(
    request: Request,
    *,
    link: str | None = None,
    alert: str | None = None,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """Return the page that leads to the wallet, or says why not."""
    return page(
        request,
        "wallet.html",
        status=status,
        headers=headers,
        section="",
        link=link,
        alert=alert,
    )
