"""Render the pages, redirects and JSON of the hosted page. Errors are rendered in problems.py.

There is one template for each stage. A template receives a `view.Shown`, never a session.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from fastapi import Request, Response
from fastapi.responses import JSONResponse

from checkout.domain.ground.addresses import label
from checkout.domain.ground.errors import (
    CheckoutError,
    ResourceMissing,
    WalletInvalid,
    WalletUnreachable,
)
from checkout.domain.ground.ids import new_nonce
from checkout.domain.ground.json_values import timestamp
from checkout.domain.ground.typed_address import AddressMistake
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.in_flight import Problem
from checkout.domain.session.customer_details import NONE_GIVEN
from checkout.domain.session.record import Session
from checkout.flows.payment.approval import CallbackResult
from checkout.flows.session import details, receipt_mail, withdrawals
from checkout.pages import allow_pictures, see_other, use_policy
from checkout.ports import Email
from checkout.services import PayServices
from open_payments.models import Amount
from open_payments.urls import origin
from pay import browser, emails, render
from pay.headers import LINE_POLICY
from pay.language import Reader, Texts, reader
from pay.view import (
    Shown,
    Stage,
    moment,
    part_of,
    paths_of,
    price_change,
    progress_of,
    seconds_left,
    shown,
    stage_of,
)

_MAILED: Final = "mailed"  # the query parameter that is set after the receipt was sent
WATCHED_EVERY: Final = 3  # seconds between two polls of a page without script
COUNTDOWN: Final = 20  # seconds that the confirmation is shown before the shop opens (WCAG 2.2.1)
# The alert for each `result` of a callback without an approval. Rafiki sends these values, because
# RFC 9635 defines none.
_NOTICES: Final = {"grant_rejected": "declined", "invalid_interaction": "timed_out"}
# After these errors, the form is shown without the wallet address that was typed.
_WALLET_UNKNOWN: Final = frozenset({Problem.WALLET_INVALID.value, Problem.WALLET_UNREACHABLE.value})
# After these errors, the button is for a price, and not for another try with the same wallet.
_ADDRESS_WANTED: Final = frozenset(
    {
        Problem.WALLET_INVALID.value,
        Problem.WALLET_UNAVAILABLE.value,
        Problem.AMOUNT_TOO_SMALL_FOR_WALLET.value,
    }
)
# After these errors, the same wallet would fail again.
_ANOTHER_WANTED: Final = frozenset(
    {Problem.WALLET_UNAVAILABLE.value, Problem.AMOUNT_TOO_SMALL_FOR_WALLET.value}
)

_TYPED: Final = "typed."  # the prefix of the names of alerts about typing mistakes
_OWN_ADVICE: Final = frozenset({AddressMistake.CARD, AddressMistake.SECRET, AddressMistake.NAME})
AT_PROVIDER: Final = "at_provider"
_TYPED_MAX: Final = 60  # characters of a typed text that are repeated in a sentence
# On the page, each provider has a tile with its own field. For these typing mistakes, the alert is
# the same in a tile as in the field for a whole wallet address.
_NOT_OF_TILES: Final = frozenset(
    {
        AddressMistake.NOTHING,
        AddressMistake.CARD,
        AddressMistake.SECRET,
        AddressMistake.IBAN,
        AddressMistake.EMAIL,
        AddressMistake.CRYPTO,
    }
)


@dataclass(frozen=True, slots=True)
class Alert:
    """A problem that a page reports.

    The catalog has two texts for it: `fault.NAME`, with `name`, and `fault.ADVICE.next`, with
    `advice`, which is `name` by default. With `at_field` the problem is in the text that the
    customer typed. `character` is a character that a wallet address must not contain. `provider` is
    the name of the provider that has no wallet with the name `typed`.
    """

    name: str
    at_field: bool = False
    advice: str = ""
    character: str = ""
    provider: str = ""
    typed: str = ""

    def said(self, texts: Texts) -> str:
        """Return the sentence that states the problem."""
        values = {"character": self.character, "provider": self.provider, "typed": self.typed}
        return texts.text(f"fault.{self.name}", **values)

    def next(self, texts: Texts) -> str:
        """Return the sentence that tells the customer what to do next."""
        return texts[f"fault.{self.advice or self.name}.next"]

    @property
    def elsewhere(self) -> bool:
        """Return whether the customer can pay only with another wallet."""
        return self.name in _ANOTHER_WANTED

    @property
    def button(self) -> str:
        """Return the name of the button's text."""
        if self.name == Problem.PRICE_CHANGED:
            return "wallet.new_price"
        asks = self.name in (*_ADDRESS_WANTED, AT_PROVIDER) or self.name.startswith(_TYPED)
        return "wallet.submit" if asks else "wallet.again"


# The alert for a form that a page of another site may have sent (browser.asked_here).
UNPROVEN: Final = Alert("unproven")


def typing_alert(error: WalletInvalid, provider: str = "", typed: str = "") -> Alert:
    """Return the alert about a mistyped wallet address, or about an address without a wallet.

    `provider` is the name of the provider in whose tile `typed` was typed, or "".
    """
    if provider and error.mistake not in _NOT_OF_TILES:
        shown_typed = typed.strip()[:_TYPED_MAX]
        return Alert(AT_PROVIDER, at_field=True, provider=provider, typed=shown_typed)
    if not error.mistake:
        return Alert(error.code, at_field=True)
    name = f"{_TYPED}{error.mistake}"
    advice = name if error.mistake in _OWN_ADVICE else "typed"
    return Alert(name, at_field=True, advice=advice, character=error.character)


def refusal_alert(error: CheckoutError, texts: Texts) -> Alert:
    """Return the alert about a form that was refused, but not because of a typed text."""
    name = error.code if f"fault.{error.code}" in texts else "other"
    if isinstance(error, WalletUnreachable) and error.refused:
        name = "wallet_refused"
    return Alert(name, at_field=error.param in ("wallet_address", "email"))


def session_page(
    services: PayServices, request: Request, session: Session, *, was: str
) -> Response:
    """Return the page of the session's stage. `was` is the price that the browser showed before."""
    now_shown = seen(services, request, session)
    alert = None
    if now_shown.stage is Stage.OPEN and now_shown.problem is not None:
        alert = Alert(now_shown.problem)
    change = price_change(session, now_shown.reader, was)
    return stage_page(request, now_shown, alert=alert, change=change)


def confirmation(services: PayServices, request: Request, session: Session) -> Response:
    """Return the page after paying, or a redirect to the page of any other stage.

    The page's script counts down and then opens the shop's page; "Stay on this page" stops the
    countdown (WCAG 2.2.1). Without a script, a countdown could not be stopped, so the page has only
    a link to the shop.
    """
    now_shown = seen(services, request, session)
    if now_shown.stage not in (Stage.CONFIRMING, Stage.COMPLETED):
        return see_other(now_shown.paths.page)
    mailed = _MAILED in request.query_params
    return stage_page(
        request,
        now_shown,
        countdown=None if mailed else COUNTDOWN,
        mailed=mailed,
        **receipt_values(services, request, session, now_shown),
    )


def receipt_values(
    services: PayServices, request: Request, session: Session, now_shown: Shown
) -> dict[str, Any]:
    """Return the receipt's values for `stage_page`. Hide details that this browser must not see."""
    merchant = _merchant(services, session)
    given = details.opened(services.vault, merchant, session)
    theirs = browser.has_paid(services, request, session, merchant)
    known = given if theirs else NONE_GIVEN
    filed = withdrawals.find(services, merchant, session)
    withdraws = filed is not None or withdrawals.is_open(services, merchant, session)
    return {
        "email": known.email or "",
        "email_stored": given.email is not None,
        "buyer": known.name,
        "ship_to": label(known.shipping) if known.shipping else None,
        "masked": None if known == given else given.masked,
        "withdrawal": now_shown.paths.withdrawal if withdraws else None,
        "withdrawn": moment(filed.at, now_shown.reader) if filed else None,
    }


def letter(services: PayServices, request: Request, session: Session, to: str) -> Email:
    """Return the e-mail with the receipt, in the reader's language. Raise ResourceMissing."""
    merchant = _merchant(services, session)
    of_order = details.opened(services.vault, merchant, session).email or ""
    return emails.receipt(
        seen(services, request, session),
        to,
        stored=to.casefold() == of_order.casefold(),
        contact=merchant.contact,
    )


def receipt_sent(services: PayServices, session: Session) -> Response:
    """Return the redirect to the page that confirms that the receipt was sent.

    Because of the redirect, reloading the page does not send the receipt again.
    """
    return see_other(f"{paths_of(session, services.base_url).success}?{_MAILED}=1")


def prepared(services: PayServices, request: Request, session: Session, *, was: str) -> Response:
    """Return the page with the price, or a redirect to this page.

    `was` is the previous price, or "". A browser without a script is redirected, so that reloading
    the page does not send the form again. The page's script instead gets the new page in this
    response (RFC 7240 section 4.2), which saves a round trip, and shows it in place of the old
    page. If the session was paid meanwhile, the response redirects to the session's confirmation.
    """
    paths = paths_of(session, services.base_url)
    if paths.home != paths.page:
        return see_other(paths.home)
    if request.headers.get("prefer") == "return=representation":
        return session_page(services, request, session, was=was)
    return see_other(f"{paths.page}?was={was}" if was else paths.page)


def quote_json(session: Session) -> Response:
    """Return the price of a prepared session as JSON, or null if money has arrived meanwhile.

    Amounts have the form of Open Payments: `value` is a string of digits, because JSON numbers
    cannot represent every amount exactly.
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
    """Return the state that the open page polls, as JSON.

    `next` is the URL of the page after paying, once a payment has been made. `progress` is the
    known state of the payment in flight, `part` the amount that has arrived if this is less than
    the price. After the incoming payment was closed, it takes 35 seconds until it is certain how
    much has arrived; `seconds_left` is the rest of this time. Fields that do not apply are null.
    """
    after = stage_of(session) in (Stage.CONFIRMING, Stage.COMPLETED)
    success = f"{services.base_url}/pay/{session.id}/success"
    return JSONResponse(
        {
            "status": session.status.value,
            "next": success if after else None,
            "progress": progress_of(session),
            "part": part_of(session),
            "seconds_left": seconds_left(session, services.clock.now()),
        }
    )


def watched(services: PayServices, request: Request, session: Session, *, saw: str) -> Response:
    """Return the status line that a page without script shows in a frame.

    The line is empty as long as the state is the one that the page showed (`saw`).
    """
    now_shown = seen(services, request, session)
    changed = now_shown.state != saw
    return _line(
        request,
        now_shown.reader,
        news=_title(now_shown) if changed else None,
        home=now_shown.paths.home,
        pause=WATCHED_EVERY,
    )


def unwatched(request: Request, wait: int) -> Response:
    """Return an empty status line that reloads after `wait` seconds, for a rate-limited client."""
    headers = {"Retry-After": str(wait)}
    values = {"news": None, "home": "", "pause": wait}
    return _line(request, reader_of(request), status=429, headers=headers, **values)


def _line(request: Request, reads: Reader, **values: Any) -> Response:
    use_policy(request, LINE_POLICY)
    return render.page(request, reads, "watch.html", **values)


def _title(now_shown: Shown) -> str:
    stage = now_shown.stage
    if stage is Stage.CONFIRMING:
        return now_shown.reader.texts[f"confirming.{now_shown.progress}.title"]
    if stage is Stage.COMPLETED:
        return now_shown.reader.texts["completed.title"]
    if stage in (Stage.EXPIRED, Stage.CANCELED):
        return now_shown.reader.texts[now_shown.end_title]
    return now_shown.reader.texts["watch.changed"]


def returned(
    services: PayServices,
    request: Request,
    finish: CallbackResult[Session],
    *,
    unproven: bool = False,
) -> Response:
    """Return the response to a grant callback.

    In a grant callback, the wallet redirects the browser to us after the approval. If the wallet
    needs time, the response makes the browser repeat the callback. A customer whose browser did not
    begin the approval must confirm first. `unproven` means that a page of another site may have
    sent this confirmation, so the customer must confirm again.
    """
    if finish.asks:
        # The payment is approved, so the page need not name the host of the approval page.
        asked = replace(seen(services, request, finish.record), interact_host=None)
        status, alert = (403, UNPROVEN) if unproven else (200, None)
        return page(request, asked, "asked.html", status=status, alert=alert)
    if not finish.wait_seconds:
        return see_other(paths_of(finish.record, services.base_url).home)
    # A Refresh header without a URL makes the browser repeat this request. The header has no URL so
    # that no log shows the URL.
    headers = {"Refresh": str(finish.wait_seconds)}
    waiting = seen(services, request, finish.record)
    return page(
        request, waiting, "wait.html", headers=headers, alert=None, seconds=finish.wait_seconds
    )


def not_approved(
    services: PayServices, request: Request, session: Session, result: str
) -> Response:
    """Return the page after a callback without an approval.

    The wallet does not sign `result`, so anybody can forge it. The page shows it, but it decides
    nothing.
    """
    now_shown = seen(services, request, session)
    if now_shown.stage not in (Stage.OPEN, Stage.AWAITING_APPROVAL):
        return see_other(now_shown.paths.home)
    alert = Alert(_NOTICES.get(result, "not_approved"))
    return stage_page(request, now_shown, alert=alert, returned=True, over=result in _NOTICES)


def seen(services: PayServices, request: Request, session: Session) -> Shown:
    """Return the view of `session` for this request. Raise ResourceMissing."""
    merchant = _merchant(services, session)
    reads = reader_of(request, session=session, default=merchant.locale)
    refunds = tuple(each.id for each in session.refunds or ())
    return shown(
        session,
        merchant,
        reads,
        base_url=services.base_url,
        now=services.clock.now(),
        providers=services.providers,
        refunds=services.refunds.of(refunds) if refunds else (),
        mails=new_nonce(services.random_bytes) if receipt_mail.offered(services, session) else None,
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

    The template's values are:
    - `alert`, a problem to report, and `change`, the text about a price that has changed.
    - `typed`, the typed wallet address. `at`, the address pattern (`Provider.form`) of the provider
      in whose tile it was typed. `refused`, the pattern of a provider whose wallet cannot pay.
    - `email`, the e-mail address in the form for the receipt. `email_stored`, true if the order has
      an address. `mailed`, true once the receipt was sent.
    - `buyer` (a name) and `ship_to` (the lines of an address), if the shop has asked for them. If
      the browser must not see them in full, `masked` has their masked form instead.
    - `withdrawal`, the path of the page on which the customer can withdraw; `withdrawn`, the time
      at which the customer has withdrawn.
    - `countdown`, the number of seconds until the shop's page opens.
    - `returned`, true for a customer who came back from the wallet without an approval. `over`,
      true if the wallet has ended the approval; then the page does not link to the wallet.
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
        "refused": "",
        "email": "",
        "email_stored": False,
        "buyer": None,
        "ship_to": None,
        "masked": None,
        "mailed": False,
        "withdrawal": None,
        "withdrawn": None,
        **values,
    }
    alert: Alert | None = context["alert"]
    if alert and alert.elsewhere:
        way = now_shown.way(context["typed"], context["at"])
        context |= {"typed": "", "at": "", "refused": way.offer.form if way else ""}
    name = f"{now_shown.stage.value}.html"
    return page(request, now_shown, name, status=status, headers=headers, **context)


def page(request: Request, now_shown: Shown, template: str, **values: Any) -> Response:
    """Return `template` with the view and these values."""
    allow_pictures(request, (origin(each.picture) for each in now_shown.lines if each.picture))
    return render.page(request, now_shown.reader, template, s=now_shown, **values)


def _wire(amount: Amount) -> dict[str, str | int]:
    return {
        "value": str(amount.value),
        "asset_code": amount.asset_code,
        "asset_scale": amount.asset_scale,
    }
