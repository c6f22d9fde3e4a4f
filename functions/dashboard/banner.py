"""The texts of the cases that need a person, for the banner and for the page that lists them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from checkout.domain.session.record import Session
from checkout.flows.notices import ActionItem, ActionItems, Case
from dashboard.texts import NEED_NOW
from dashboard.view import minor, readable

FLAGGED: Final = (Case.PARTIAL_PAYMENT, Case.UNDECIDED, Case.LATE_PAYMENT, Case.OVERPAID)
PAYMENTS: Final = (*FLAGGED, Case.WITHDRAWAL)
_PAGES: Final = {
    Case.WALLET_KEY: "",
    Case.ENDPOINT_SET: "/webhooks?endpoint={}",
    Case.ENDPOINT_DISABLED: "/webhooks?endpoint={}",
    Case.ENDPOINT_FAILING: "/webhooks?endpoint={}",
    Case.BUDGET_OVER: "/budget",
    Case.KEY_ENDS: "/keys",
}
_NAME_MAX: Final = 60  # characters of an order number or an address, so that a line is short

SHOWN: Final = 3  # cases that an unfolded banner lists at most; each payment among them is read

Read = Callable[[str], Session | None]


@dataclass(frozen=True, slots=True)
class Banner:
    """The banner: the number of cases that need a person. Unfolded, it also lists the first cases.

    Each of the `things` is a case: a sentence, the text of a link, and the path of the page that
    the link opens. `payments` is how many of the cases are payments (the list "Needs you").
    """

    count: int
    payments: int
    things: tuple[tuple[str, str, str], ...]


def banner_of(needs: ActionItems, read: Read) -> Banner | None:
    """Return the banner, or None if no case needs a person. `read` returns a payment's session."""
    if not needs.found:
        return None
    return Banner(
        count=len(needs.found),
        payments=len({each.target for each in needs.found if each.case in FLAGGED}),
        things=tuple(_banner_item(each, read) for each in needs.found[:SHOWN]),
    )


def _banner_item(need: ActionItem, read: Read) -> tuple[str, str, str]:
    sentence, verb = NEED_NOW[need.case]
    # No page of the dashboard can repair a key, but the page /needs explains what to do.
    place = "/needs" if need.case is Case.WALLET_KEY else page_of(need)
    return sentence.format(named(need, read)), verb, place


def named(need: ActionItem, read: Read) -> str:
    """Return the name by which the pages refer to the case.

    The name of a payment contains the sum, the order number, if any, and, if only a part has
    arrived, the amount of this part.
    """
    name = need.name if len(need.name) <= _NAME_MAX else f"{need.name[:_NAME_MAX]}…"
    name = f"\N{FIRST STRONG ISOLATE}{name}\N{POP DIRECTIONAL ISOLATE}"
    if need.case not in PAYMENTS:
        return name
    session = read(need.target)
    total = minor(session.amount_total, session) if session else "a payment"
    if need.case is Case.PARTIAL_PAYMENT:
        part = _received(session) if session else "a part"
        total = f"{part} of {total}"
    if need.case is Case.WITHDRAWAL:
        return f"order {name} ({total})" if need.name != need.target else f"a purchase of {total}"
    return f"{total} of order {name}" if need.name != need.target else total


def _received(session: Session) -> str:
    """Return the received amount without its currency, for a text such as "3.00 of 5.00 USD"."""
    received = readable(replace(session.receive, value=session.received or 0))
    return received.removesuffix(f"\N{NO-BREAK SPACE}{session.receive.asset_code}")


def page_of(need: ActionItem) -> str:
    """Return the path, under the dashboard, of the page on which a person solves the case."""
    return _PAGES.get(need.case, "/transactions/{}").format(need.target)
