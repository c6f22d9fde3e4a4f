"""Render the responses of the hosted page, except errors: pages, redirects and JSON.

There is one template for each stage. A template receives a `view.Shown`, never a session.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from checkout.domain.errors import ResourceMissing, WalletInvalid
from checkout.domain.merchant import Merchant
from checkout.domain.public import timestamp
from checkout.domain.session import Problem, Session
from checkout.flows.payment import receipts
from checkout.flows.payment.approve import Finish
from checkout.open_payments.models import Amount
from checkout.open_payments.slips import Slip
from checkout.open_payments.urls import origin
from checkout.pages import allow_pictures, see_other
from checkout.ports.mail import Letter
from checkout.ports.services import PayServices
from pay import letters, render
from pay.language import Reader, reader
from pay.texts import Texts
from pay.view import Shown, Stage, paths_of, price_change, shown, stage_of

_MAILED: Final = "mailed"  # in the query after the receipt was sent
COUNTDOWN: Final = 20  # seconds on the confirmation before the shop is opened (WCAG 2.2.1)
# The text for the `result` of a callback without approval (Rafiki; RFC 9635 has none).
_NOTICES: Final = {"grant_rejected": "declined", "invalid_interaction": "timed_out"}
# After these, the typed wallet address is not offered again.
_WALLET_UNKNOWN: Final = frozenset({Problem.WALLET_INVALID.value, Problem.WALLET_UNREACHABLE.value})
# After these, the button asks for a price, not to try the same wallet again.
_ADDRESS_WANTED: Final = frozenset(
    {
        Problem.WALLET_INVALID.value,
        Problem.WALLET_UNAVAILABLE.value,
        Problem.AMOUNT_TOO_SMALL_FOR_WALLET.value,
    }
)


_TYPED: Final = "typed."  # begins the names of mistakes in what was typed
_OWN_ADVICE: Final = frozenset({Slip.CARD, Slip.SECRET, Slip.NAME})


@dataclass(frozen=True, slots=True)
class Alert:
    """A problem: its texts are `fault.NAME` and `fault.ADVICE.next`; `advice` is `name` by default.

    `at_field` says that it is about the typed wallet address, `character` is one that it must not
    have.
    """

    name: str
    at_field: bool = False
    advice: str = ""
    character: str = ""

    def said(self, texts: Texts) -> str:
        """Return the sentence that says what is wrong."""
        values = {"character": self.character} if self.character else {}
        return texts.text(f"fault.{self.name}", **values)

    def next(self, texts: Texts) -> str:
        """Return the sentence that says what to do."""
        return texts[f"fault.{self.advice or self.name}.next"]

    @property
    def button(self) -> str:
        """Return the name of the button's text."""
        if self.name == Problem.PRICE_CHANGED:
            return "wallet.new_price"
        asks = self.name in _ADDRESS_WANTED or self.name.startswith(_TYPED)
        return "wallet.submit" if asks else "wallet.again"


def typing_alert(error: WalletInvalid) -> Alert:
    """Return the alert about a typed text, or about an address without a wallet."""
    if not error.slip:
        return Alert(error.code, at_field=True)
    name = f"{_TYPED}{error.slip}"
    advice = name if error.slip in _OWN_ADVICE else "typed"
    return Alert(name, at_field=True, advice=advice, character=error.character)


def session_page(
    services: PayServices, request: Request, session: Session, *, was: str
) -> Response:
    """Return the page of the session's stage; `was` is the price before, as the browser says."""
    now_shown = seen(services, request, session)
    alert = None
    if now_shown.stage is Stage.OPEN and now_shown.problem is not None:
        alert = Alert(now_shown.problem)
    change = price_change(session, now_shown.reader, was)
    return stage_page(request, now_shown, alert=alert, change=change)


def confirmation(services: PayServices, request: Request, session: Session) -> Response:
    """Return the page after paying, or a redirect to the page of any other stage.

    Only a script counts down to the shop: without one, "Stay on this page" could not stop the
    countdown (WCAG 2.2.1), and there is only the link.
    """
    now_shown = seen(services, request, session)
    if now_shown.stage not in (Stage.CONFIRMING, Stage.COMPLETED):
        return see_other(now_shown.paths.page)
    mailed = _MAILED in request.query_params
    return stage_page(request, now_shown, countdown=None if mailed else COUNTDOWN, mailed=mailed)


def letter(services: PayServices, request: Request, session: Session, to: str) -> Letter:
    """Return the receipt as an e-mail in the reader's language. Raise ResourceMissing."""
    merchant = _merchant(services, session)
    return letters.receipt(seen(services, request, session), to, contact=merchant.contact)


def receipt_sent(services: PayServices, session: Session) -> Response:
    """Return the redirect to the page that says so: reloading it sends nothing again."""
    return see_other(f"{paths_of(session, services.base_url).success}?{_MAILED}=1")


def prepared(services: PayServices, request: Request, session: Session, *, was: str) -> Response:
    """Return the page with the price; `was` is the price before, or "".

    A browser is redirected to it, so that reloading sends nothing again. The page's script puts it
    into the page that it is on, and prefers it at once (RFC 7240 section 4.2): a round trip less.
    A session that was paid meanwhile leads to its confirmation.
    """
    paths = paths_of(session, services.base_url)
    if paths.home != paths.page:
        return see_other(paths.home)
    if request.headers.get("prefer") == "return=representation":
        return session_page(services, request, session, was=was)
    return see_other(f"{paths.page}?was={was}" if was else paths.page)


def quote_json(session: Session) -> Response:
    """Return the price of a prepared session as JSON; null if money has arrived meanwhile.

    Amounts are written as in Open Payments: `value` is a string of digits, because it may exceed
    what JSON numbers keep exactly.
    """
    quote = None
    if session.quote is not None:
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
    """Return the status as JSON, with the URL of the page after paying once a payment is made.

    Until then `next` is null.
    """
    after = stage_of(session) in (Stage.CONFIRMING, Stage.COMPLETED)
    success = f"{services.base_url}/pay/{session.id}/success"
    return JSONResponse({"status": session.status.value, "next": success if after else None})


def returned(services: PayServices, request: Request, finish: Finish) -> Response:
    """Return the response to a grant callback.

    If the wallet needs time, the browser repeats it; another browser's customer is asked first.
    """
    if finish.asks:
        # It was approved: nobody needs to know where it will be.
        asked = replace(seen(services, request, finish.session), interact_host=None)
        return _page(request, asked, "asked.html", alert=None)
    if not finish.wait_seconds:
        return see_other(paths_of(finish.session, services.base_url).home)
    # Without a URL in the header, the browser requests this one again, and it is logged nowhere.
    headers = {"Refresh": str(finish.wait_seconds)}
    reads = reader_of(request, session=finish.session)
    return render.page(request, reads, "wait.html", headers=headers, seconds=finish.wait_seconds)


def not_approved(
    services: PayServices, request: Request, session: Session, result: str
) -> Response:
    """Return the page after a callback without an approval; its `result` is unsigned."""
    now_shown = seen(services, request, session)
    if now_shown.stage not in (Stage.OPEN, Stage.AWAITING_APPROVAL):
        return see_other(now_shown.paths.home)
    alert = Alert(_NOTICES.get(result, "not_approved"))
    return stage_page(request, now_shown, alert=alert, returned=True, over=result in _NOTICES)


def seen(services: PayServices, request: Request, session: Session) -> Shown:
    """Return the view of `session` for this request. Raise ResourceMissing."""
    merchant = _merchant(services, session)
    reads = reader_of(request, session=session, default=merchant.locale)
    return shown(
        session,
        merchant,
        reads,
        base_url=services.base_url,
        now=services.clock.now(),
        providers=services.providers,
        mails=receipts.offered(services, session),
    )


def _merchant(services: PayServices, session: Session) -> Merchant:
    merchant = services.merchants.get(session.merchant)
    if merchant is None:
        raise ResourceMissing("No such checkout session.")
    return merchant


def reader_of(
    request: Request, *, session: Session | None = None, default: str | None = None
) -> Reader:
    """Return the formats and texts for this request."""
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
    """Return the page of a stage.

    Its values are `alert`, the `change` of a price, the `typed` wallet address, the
    provider that it was typed `at` (the form of its addresses), the typed `email` address,
    `mailed` once the receipt was sent, a `countdown`, and `returned` for a customer who came back
    from the wallet without an approval; `over` if the wallet is done with that approval, so that
    nobody is led back to it.
    """
    again = now_shown.wallet if now_shown.problem not in _WALLET_UNKNOWN else None
    context = {
        "alert": None,
        "change": None,
        "countdown": None,
        "returned": False,
        "over": False,
        "typed": again or "",
        "at": "",
        "email": "",
        "mailed": False,
        **values,
    }
    name = f"{now_shown.stage.value}.html"
    return _page(request, now_shown, name, status=status, headers=headers, **context)


def _page(request: Request, now_shown: Shown, template: str, **values: Any) -> Response:
    allow_pictures(request, (origin(each.picture) for each in now_shown.lines if each.picture))
    return render.page(request, now_shown.reader, template, s=now_shown, **values)


def _wire(amount: Amount) -> dict[str, str | int]:
    return {
        "value": str(amount.value),
        "asset_code": amount.asset_code,
        "asset_scale": amount.asset_scale,
    }
