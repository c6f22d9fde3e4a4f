"""Every state that a customer can see, by name, ready to be looked at: for screenshots, for
axe-core and for the eye.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Page

from checkout.domain.ground.providers import Provider
from checkout.domain.merchant.record import Footer
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Phase, Problem
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.session.collect import Collect, Detail, Question, QuestionKind
from checkout.domain.session.record import Session, Status
from tests.browser.served import PICTURES, Served
from tests.support.basics import NOW
from tests.support.flows import CEDAR
from tests.support.hosted_pages import AWAITING, PAID, QUOTE, WALLET, line


@dataclass(frozen=True)
class State:
    """One state of the hosted page, and the way to it.

    `typed`: a wallet address that is sent first; `silent`: and nothing has answered yet. `waits`:
    its wallet wants time after the approval. `elsewhere`: another browser began it. `offers`: the
    merchant has wallet providers. `gone`: no session is at the address. `email`: receipts are sent,
    and one is asked for at this address, unless it is "".
    """

    status: Status = Status.OPEN
    fields: dict[str, Any] = field(default_factory=dict)
    rest: str = ""
    typed: str | None = None
    silent: bool = False
    waits: bool = False
    elsewhere: bool = False
    offers: bool = False
    gone: bool = False
    email: str | None = None


def _failed(problem: Problem, **fields: Any) -> State:
    return State(Status.OPEN, {"problem": problem, "customer": WALLET, **fields})


_AWAITING = Status.AWAITING_APPROVAL
_ITEMS: Final = (
    line(
        "House beans", description="One kilogram, roasted this week.", unit_amount=775, quantity=2
    ),
    line("Filter papers", unit_amount=450),
)
PICTURED: Final = (
    replace(_ITEMS[0], image=f"{PICTURES}/sienna.svg"),
    replace(_ITEMS[1], image=f"{PICTURES}/teal.svg", description="A hundred, unbleached."),
    line("Gift wrapping", unit_amount=0),
)
_MANY: Final = (
    *(
        line(f"Item {number} of a long list", unit_amount=number * 99, quantity=number % 4 + 1)
        for number in range(1, 96)
    ),
    line("قهوة عربية محمصة", description="كيلوغرام واحد"),
    line("Donaudampfschifffahrtsgesellschaftskapitänsmützenhersteller" * 3),
    line("A very expensive thing", unit_amount=999_999_999_999, quantity=999),
    line("<script>alert(1)</script>", description="\u202etxt.exe"),
    line("x" * 200, description="y" * 1000),
)
_LOGOS: Final = Path(__file__).parent.parent.parent / "sandbox" / "logos"
_PROVIDERS: Final = (
    Provider(
        "Cedar Bank",
        "https://cedar.example/{name}",
        "https://cedar.example/join",
        logo=b64encode((_LOGOS / "cedar.svg").read_bytes().strip()).decode(),
    ),
    Provider("Harbor Wallet", "https://harbor.example/{name}", "https://harbor.example/join"),
    Provider(
        "Meridian",
        "https://meridian.example/{Wallet number: 123456789}/{Currency: USD}",
        "https://meridian.example/join",
    ),
)
_FOOTER: Final = Footer(
    company="Harbor Coffee Ltd, 1 Quay Street, Dublin, VAT IE1234567",
    terms="https://shop.example/terms",
    refunds="https://shop.example/refunds",
    privacy="https://shop.example/privacy",
)
_DISPROVED: Final = (HistoryEntry(NOW, Event.PAYMENT_DISPROVED.value),)
_LONG: Final = timedelta(days=1)
PRICED: Final = {**AWAITING, "quote": replace(QUOTE, expires_at=NOW + timedelta(seconds=298))}
_SENDING: Final = {**AWAITING, "history": (HistoryEntry(NOW, Event.APPROVAL_CLAIMED.value),)}
_SENT: Final = {
    **AWAITING,
    "history": (*_SENDING["history"], HistoryEntry(NOW, Event.PAYMENT_CREATED.value)),
}
_PAID: Final = {**PAID, "received": 2000, "completed_at": NOW}
_ASKED: Final = {"collect_json": '{"asked":["email","name"],"required":["email"]}'}
# The longest texts of a shop's questions, with and without a place to break them.
_LONG_TEXTS: Final = (
    "W" * 100,
    "Which name may we engrave on the lid? " * 2 + "Write it as on the box.",
)
_QUESTIONS: Final = Collect(
    asked=frozenset({Detail.EMAIL}),
    email_known=True,
    questions=(
        Question("long", _LONG_TEXTS[0], QuestionKind.TEXT, required=False),
        Question("sentence", _LONG_TEXTS[1], QuestionKind.NUMERIC),
        Question(
            "choice", "C" * 100, QuestionKind.DROPDOWN, options=(("a", "O" * 100), ("b", "B"))
        ),
    ),
)
STATES: Final[dict[str, State]] = {
    "details": State(fields=_ASKED),
    "details-long-labels": State(fields={"collect_json": _QUESTIONS.to_json()}),
    "details-given": State(fields={**_ASKED, "details_at": NOW}, offers=True),
    "open": State(),
    "open-providers": State(offers=True),
    "open-pictures": State(fields={"line_items": PICTURED}, offers=True),
    "open-picture-missing": State(
        fields={"line_items": (replace(_ITEMS[0], image=f"{PICTURES}/missing.svg"), _ITEMS[1])}
    ),
    "price-pictures": State(_AWAITING, {**PRICED, "line_items": PICTURED}),
    "open-many-items": State(fields={"line_items": _MANY, "amount_total": 999_999_999_999_999}),
    "asking": State(typed=f"{CEDAR}/alice", silent=True),
    "unreadable": State(typed="alice@wallet.example"),
    "unreachable": State(typed="https://localhost:9/alice"),
    "not-connected": State(typed=f"{CEDAR}/unpeered"),
    "too-small": State(typed=f"{CEDAR}/too-small"),
    "unreadable-providers": State(typed="alice@wallet.example", offers=True),
    "not-connected-providers": State(typed=f"{CEDAR}/unpeered", offers=True),
    "preparing": State(Status.PREPARING, {"customer": WALLET, "lease_until": NOW + _LONG}),
    "price": State(_AWAITING, PRICED),
    "price-providers": State(_AWAITING, PRICED, offers=True),
    "price-without-link": State(_AWAITING, {**PRICED, "interact_url": None}),
    "price-rose": State(_AWAITING, PRICED, "?was=1801"),
    "price-ran-out": State(_AWAITING, {**AWAITING, "quote": replace(QUOTE, expires_at=NOW)}),
    "declined": State(_AWAITING, PRICED, "/grant/callback?result=grant_rejected"),
    "timed-out": State(_AWAITING, PRICED, "/grant/callback?result=invalid_interaction"),
    "price-changed": _failed(Problem.PRICE_CHANGED),
    "approval-unusable": _failed(Problem.APPROVAL_UNUSABLE),
    "no-money": _failed(Problem.PAYMENT_REFUSED),
    "failed": _failed(Problem.PAYMENT_FAILED, history=_DISPROVED),
    "failed-providers": State(
        fields={
            "problem": Problem.PAYMENT_FAILED,
            "customer": replace(WALLET, id="https://cedar.example/alice"),
            "history": _DISPROVED,
        },
        offers=True,
    ),
    "shop-unreachable": _failed(Problem.MERCHANT_WALLET_ERROR),
    "interrupted": _failed(Problem.PREPARATION_INTERRUPTED),
    "asked-to-wait": State(waits=True),
    "begun-elsewhere": State(elsewhere=True),
    "sending": State(_AWAITING, {**_SENDING, "phase": Phase.PAYING}, "/success"),
    "confirming": State(Status.PROCESSING, _SENT, "/success"),
    "closing": State(Status.PROCESSING, {**_SENT, "closing_at": NOW, "closed_at": NOW}, "/success"),
    "confirming-long": State(
        Status.PROCESSING, {**AWAITING, "attention": Attention.UNDECIDED}, "/success"
    ),
    "partial": State(
        Status.PROCESSING,
        {**AWAITING, "received": 999, "attention": Attention.PARTIAL_PAYMENT},
        "/success",
    ),
    "completed": State(Status.COMPLETED, _PAID),
    "confirmation": State(Status.COMPLETED, _PAID, "/success"),
    "receipt-offered": State(Status.COMPLETED, _PAID, email=""),
    "receipt-sent": State(Status.COMPLETED, _PAID, email="eva@customer.example"),
    "receipt-address": State(Status.COMPLETED, _PAID, email="eva@customer"),
    "receipt-refused": State(Status.COMPLETED, _PAID, email="refused@customer.example"),
    "expired": State(Status.EXPIRED),
    "given-up": State(Status.EXPIRED, {**AWAITING, "received": 999}),
    "paid-late": State(Status.EXPIRED, {"received": 2000, "attention": Attention.LATE_PAYMENT}),
    "canceled": State(Status.CANCELED),
    "no-such-checkout": State(gone=True),
    "foreign-callback": State(rest="/grant/callback?interact_ref=a&hash=b&hash=c"),
}


def with_pictures(name: str) -> dict[str, Any]:
    """Return the change that gives the items of a state as many pictures as a page shows."""
    items = STATES[name].fields.get("line_items", _ITEMS)
    return {
        "line_items": tuple(
            replace(each, image=f"{PICTURES}/teal.svg?{number}" if number < 2 else None)
            for number, each in enumerate(items)
        )
    }


def show(name: str, page: Page, served: Served, **changes: Any) -> Session:
    """Make a session that is in the state `name`, and open what its customer sees."""
    state = STATES[name]
    if state.waits:
        session, back = served.asked_to_wait()
        page.goto(served.hand_over(session))
        page.goto(back)
        return session
    if state.elsewhere:
        session = served.world.submit(served.world.create())
        page.goto(served.world.network.approve(str(session.interact_url)))
        return session
    fields = {"line_items": _ITEMS, "amount_total": 2000}
    session = served.customer.put(state.status, **{**fields, **state.fields, **changes})
    served.customer.give(providers=_PROVIDERS if state.offers else (), footer=_FOOTER)
    page.goto(served.address(session, "0" if state.gone else state.rest))
    if state.email is not None:
        with served.mail():
            page.reload()
            page.locator("#mail summary").click()
            if state.email:
                page.locator("#email").fill(state.email)
                page.locator("#mail button").click()
                page.locator(".notice[role=status], [role=alert]").wait_for()
    if state.typed is not None:
        page.evaluate("performance.clearResourceTimings()")  # what follows is this state's
        if state.silent:
            page.evaluate("void (window.fetch = () => new Promise(() => {}))")
        if state.offers:
            page.locator("#typed summary").first.click()
        page.locator("#wallet_address").fill(state.typed)
        page.locator("#wallet_address").press("Enter")
        page.locator(".status:not(:empty)" if state.silent else "[role=alert]").wait_for()
    return session
