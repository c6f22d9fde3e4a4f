"""The page on which a customer names another wallet for their refund.

If a refund cannot be paid to the customer's wallet, the shop sends the customer a link to this
page. Opening the link writes nothing. The page needs no script.
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response

from checkout.domain.ground.errors import CheckoutError, WalletInvalid
from checkout.domain.ground.money import from_minor_units
from checkout.domain.ground.typed_address import AddressMistake
from checkout.domain.refund.record import Refund
from checkout.flows.refund import alternative_wallet
from checkout.flows.session import lookup
from checkout.pages import form_fields, see_other
from checkout.services import PayServices
from checkout.web import problem_of, request_id
from pay import pages, render
from pay.dependencies import Injected, counted
from pay.forms import BODY_MAX, wallet_of
from pay.headers import READ, CustomersOnly
from pay.pages import Alert
from pay.problems import SHOWN_AGAIN, TYPED_SHOWN

router = APIRouter(prefix="/pay/{session_id}/claim/{token}", route_class=CustomersOnly)
_OTHER_CURRENCY: Final = "claim_currency"  # the name of the texts for this case


@router.api_route("", methods=READ)
async def claimed(services: Injected, request: Request, session_id: str, token: str) -> Response:
    """Show the refund's amount, and ask for a wallet as long as the link is valid."""
    counted(services, request)
    return _page(services, request, alternative_wallet.find(services, session_id, token))


@router.post("")
async def name_wallet(
    services: Injected, request: Request, session_id: str, token: str
) -> Response:
    """Store the wallet that the customer names. No money is sent yet."""
    client = counted(services, request)
    typed = ""
    try:
        fields = await form_fields(request, most=BODY_MAX)
        typed = fields.get("wallet_address", "")
        alternative_wallet.take(services, session_id, token, wallet_of(fields), client=client)
    except CheckoutError as error:
        return _again(services, request, session_id, token, error, typed)
    return see_other(request.url.path)


def _again(
    services: PayServices,
    request: Request,
    session_id: str,
    token: str,
    error: CheckoutError,
    typed: str,
) -> Response:
    """Return the page with the reason why the wallet was refused, or raise the error itself."""
    problem = problem_of(error, request_id(request))
    if problem.status not in SHOWN_AGAIN:
        raise error
    if isinstance(error, WalletInvalid):
        if error.mistake == alternative_wallet.CURRENCY:
            alert = Alert(_OTHER_CURRENCY, at_field=True)
        else:
            alert = pages.typing_alert(error)
            if error.mistake and AddressMistake(error.mistake).confidential:
                typed = ""
    else:
        alert = pages.refusal_alert(error, pages.reader_of(request).texts)
    refund = alternative_wallet.find(services, session_id, token)
    headers = dict(problem.headers)
    shown = typed[:TYPED_SHOWN]
    return _page(
        services, request, refund, alert, typed=shown, status=problem.status, headers=headers
    )


def _page(
    services: PayServices,
    request: Request,
    refund: Refund,
    alert: Alert | None = None,
    **values: Any,
) -> Response:
    session = lookup.load(services, refund.session)
    now_shown = pages.seen(services, request, session)
    scale = session.receive.asset_scale
    nominal = from_minor_units(refund.amount, currency=refund.currency, wallet_scale=scale)
    return render.page(
        request,
        now_shown.reader,
        "claim.html",
        s=now_shown,
        amount=now_shown.reader.price(refund.give or nominal),
        asks=alternative_wallet.is_open(services, refund),
        wallet=refund.wallet if refund.claimed and not refund.terminal else None,
        path=request.url.path,
        alert=alert,
        **{"typed": "", **values},
    )
