"""Every state that a customer can see, by name, ready to be looked at: for screenshots, for
axe-core and for the eye.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from playwright.sync_api import Page

from checkout.domain.providers import Provider
from checkout.domain.session import Attention, HistoryEntry, Phase, Problem, Session, Status
from checkout.domain.transitions import Event
from tests.browser.served import Served
from tests.hosted_pages import AWAITING, PAID, QUOTE, WALLET, line
from tests.product import CEDAR
from tests.support import NOW


@dataclass(frozen=True)
class State:
    """One state of the hosted page, and the way to it.

    `typed`: a wallet address that is sent first; `silent`: and nothing has answered yet. `waits`:
    its wallet wants time after the approval. `elsewhere`: another browser began it. `offers`: the
    merchant has wallet providers. `gone`: no session is at the address.
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


def _failed(problem: Problem, **fields: Any) -> State:
    return State(Status.OPEN, {"problem": problem, "customer": WALLET, **fields})


_AWAITING = Status.AWAITING_APPROVAL
_ITEMS: Final = (
    line(
        "House beans", description="One kilogram, roasted this week.", unit_amount=775, quantity=2
    ),
    line("Filter papers", unit_amount=450),
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
_PROVIDERS: Final = tuple(
    Provider(name, f"https://{host}/{{name}}", f"https://{host}/join")
    for name, host in (("Cedar Bank", "cedar.example"), ("Harbor Wallet", "harbor.example"))
)
_DISPROVED: Final = (HistoryEntry(NOW, Event.PAYMENT_DISPROVED.value),)
_LONG: Final = timedelta(days=1)
PRICED: Final = {**AWAITING, "quote": replace(QUOTE, expires_at=NOW + timedelta(seconds=298))}
_PAID: Final = {**PAID, "received": 2000, "completed_at": NOW}
STATES: Final[dict[str, State]] = {
    "open": State(),
    "open-providers": State(offers=True),
    "open-many-items": State(fields={"line_items": _MANY, "amount_total": 999_999_999_999_999}),
    "asking": State(typed=f"{CEDAR}/alice", silent=True),
    "unreadable": State(typed="alice@wallet.example"),
    "unreachable": State(typed="https://localhost:9/alice"),
    "not-connected": State(typed=f"{CEDAR}/unpeered"),
    "too-small": State(typed=f"{CEDAR}/too-small"),
    "preparing": State(Status.PREPARING, {"customer": WALLET, "lease_until": NOW + _LONG}),
    "price": State(_AWAITING, PRICED),
    "price-without-link": State(_AWAITING, {**PRICED, "interact_url": None}),
    "price-rose": State(_AWAITING, PRICED, "?was=1801"),
    "price-ran-out": State(_AWAITING, {**AWAITING, "quote": replace(QUOTE, expires_at=NOW)}),
    "declined": State(_AWAITING, PRICED, "/grant/callback?result=grant_rejected"),
    "timed-out": State(_AWAITING, PRICED, "/grant/callback?result=invalid_interaction"),
    "price-changed": _failed(Problem.PRICE_CHANGED),
    "approval-unusable": _failed(Problem.APPROVAL_UNUSABLE),
    "no-money": _failed(Problem.PAYMENT_REFUSED),
    "failed": _failed(Problem.PAYMENT_FAILED, history=_DISPROVED),
    "shop-unreachable": _failed(Problem.MERCHANT_WALLET_ERROR),
    "interrupted": _failed(Problem.PREPARATION_INTERRUPTED),
    "asked-to-wait": State(waits=True),
    "begun-elsewhere": State(elsewhere=True),
    "confirming": State(_AWAITING, {**AWAITING, "phase": Phase.PAYING}, "/success"),
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
    "expired": State(Status.EXPIRED),
    "given-up": State(Status.EXPIRED, {**AWAITING, "received": 999}),
    "paid-late": State(Status.EXPIRED, {"received": 2000, "attention": Attention.LATE_PAYMENT}),
    "canceled": State(Status.CANCELED),
    "no-such-checkout": State(gone=True),
    "foreign-callback": State(rest="/grant/callback?interact_ref=a&hash=b&hash=c"),
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
    with served.merchant(providers=_PROVIDERS if state.offers else ()):
        page.goto(served.address(session, "0" if state.gone else state.rest))
    if state.typed is not None:
        if state.silent:
            page.evaluate("void (window.fetch = () => new Promise(() => {}))")
        page.locator("#wallet_address").fill(state.typed)
        page.locator("#wallet_address").press("Enter")
        page.locator(".status:not(:empty)" if state.silent else "[role=alert]").wait_for()
    return session
