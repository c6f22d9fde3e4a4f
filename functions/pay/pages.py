"""Every answer of the hosted page but errors: HTML from one template per stage, redirects, and the
two JSON answers.

A template sees `view.Shown`, never a session.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import JSONResponse, RedirectResponse

from checkout.domain.errors import ResourceMissing
from checkout.domain.public import timestamp
from checkout.domain.session import Problem, Session
from checkout.flows.payment.approve import Finish
from checkout.open_payments.models import Amount
from checkout.ports.services import PayServices
from pay import render
from pay.inputs import Submission
from pay.language import Reader, reader
from pay.view import Shown, Stage, paths_of, price_change, shown, stage_of

COUNTDOWN: Final = 5  # seconds on the confirmation before the shop is opened
# The `result` of a callback without approval (Rafiki; RFC 9635 has none): what the customer reads.
_NOTICES: Final = {"grant_rejected": "declined", "invalid_interaction": "timed_out"}
# A wallet that could not even be found is not offered again.
_WALLET_UNKNOWN: Final = frozenset({Problem.WALLET_INVALID.value, Problem.WALLET_UNREACHABLE.value})
# After these another address is wanted, not the same once more.
_ADDRESS_WANTED: Final = frozenset(
    {
        Problem.WALLET_INVALID.value,
        Problem.WALLET_UNAVAILABLE.value,
        Problem.AMOUNT_TOO_SMALL_FOR_WALLET.value,
    }
)


@dataclass(frozen=True, slots=True)
class Alert:
    """What went wrong: the texts `fault.NAME` and `fault.NAME.next`, and the one button that goes
    with them. `at_field`: it is about the typed wallet address.
    """

    name: str
    at_field: bool = False

    @property
    def button(self) -> str:
        if self.name == Problem.PRICE_CHANGED:
            return "wallet.new_price"
        return "wallet.submit" if self.name in _ADDRESS_WANTED else "wallet.again"


def session_page(services: PayServices, request: Request, session: Session) -> Response:
    """The page of the session's stage."""
    now_shown = seen(services, request, session)
    alert = None
    if now_shown.stage is Stage.OPEN and now_shown.problem is not None:
        alert = Alert(now_shown.problem)
    change = price_change(session, now_shown.reader, request.query_params.get("was", ""))
    return stage_page(request, now_shown, alert=alert, change=change)


def confirmation(services: PayServices, request: Request, session: Session) -> Response:
    """The page after paying; a session that is not there yet, or any more, has another.

    The way on to the shop is counted down by script only: without it nothing could stop the clock
    ("Stay on this page", WCAG 2.2.1), so there is the link alone.
    """
    now_shown = seen(services, request, session)
    if now_shown.stage not in (Stage.CONFIRMING, Stage.COMPLETED):
        return _see(now_shown.paths.page)
    return stage_page(request, now_shown, countdown=COUNTDOWN)


def prepared(services: PayServices, session: Session, submitted: Submission) -> Response:
    """After a wallet submission: JSON, or for a form the way to the page with the price.

    Amounts are written as Open Payments writes them: `value` is a string of digits, because it may
    exceed what JSON numbers keep exactly.
    """
    if submitted.by_form:
        page = paths_of(session, services.base_url).page
        return _see(f"{page}?was={submitted.was}" if submitted.was else page)
    assert session.quote is not None
    expires_at = session.quote.expires_at
    quote = {
        "debit_amount": _wire(session.quote.debit),
        "receive_amount": _wire(session.quote.receive),
        "expires_at": timestamp(expires_at) if expires_at else None,
    }
    return JSONResponse(
        {"status": session.status.value, "interact_url": session.interact_url, "quote": quote}
    )


def status_json(services: PayServices, session: Session) -> Response:
    """`next` is the confirmation's URL once a payment is under way or done, else null: the
    session's own page shows it.
    """
    after = stage_of(session) in (Stage.CONFIRMING, Stage.COMPLETED)
    success = f"{services.base_url}/pay/{session.id}/success"
    return JSONResponse({"status": session.status.value, "next": success if after else None})


def returned(services: PayServices, request: Request, finish: Finish) -> Response:
    """After a grant callback. Where the wallet wants more time, the browser brings it back."""
    if not finish.wait_seconds:
        return _see(paths_of(finish.session, services.base_url).home)
    # No address in the header: the browser asks for this one again, and it is written nowhere.
    headers = {"Refresh": str(finish.wait_seconds)}
    reads = reader_of(request, session=finish.session)
    return render.page(request, reads, "wait.html", headers=headers, seconds=finish.wait_seconds)


def not_approved(
    services: PayServices, request: Request, session: Session, result: str
) -> Response:
    """Back from the wallet without an approval, by the wallet's unsigned word `result`."""
    now_shown = seen(services, request, session)
    if now_shown.stage not in (Stage.OPEN, Stage.AWAITING_APPROVAL):
        return _see(now_shown.paths.home)
    alert = Alert(_NOTICES.get(result, "not_approved"))
    return stage_page(request, now_shown, alert=alert, returned=True)


def seen(services: PayServices, request: Request, session: Session) -> Shown:
    """`session` for whoever asks for it. Raises ResourceMissing."""
    merchant = services.merchants.get(session.merchant)
    if merchant is None:
        raise ResourceMissing("No such checkout session.")
    reads = reader_of(request, session=session, default=merchant.locale)
    return shown(session, merchant, reads, base_url=services.base_url, now=services.clock.now())


def reader_of(
    request: Request, *, session: Session | None = None, default: str | None = None
) -> Reader:
    return reader(
        wished=session.locale if session else None,
        accepted=request.headers.get("accept-language", ""),
        default=default,
    )


def stage_page(
    request: Request,
    now_shown: Shown,
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
    **values: Any,
) -> Response:
    """The page of a stage: with an `alert`, a price's `change`, what was `typed`, a `countdown`;
    `returned`: from the wallet, without an approval.
    """
    again = now_shown.wallet if now_shown.problem not in _WALLET_UNKNOWN else None
    context = {
        "alert": None,
        "change": None,
        "countdown": None,
        "returned": False,
        "typed": again or "",
        **values,
    }
    name = f"{now_shown.stage.value}.html"
    return render.page(
        request, now_shown.reader, name, status=status, headers=headers, s=now_shown, **context
    )


def _see(path: str) -> Response:
    """303: the browser asks with GET, whatever it asked with before."""
    return RedirectResponse(path, 303)


def _wire(amount: Amount) -> dict[str, str | int]:
    return {
        "value": str(amount.value),
        "asset_code": amount.asset_code,
        "asset_scale": amount.asset_scale,
    }
