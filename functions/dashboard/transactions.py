"""The list of transactions, and the filters that the export shares.

If a filter cannot be parsed, the page shows an error beside the form and lists nothing. If the page
ignored this filter, it would list transactions that the merchant did not ask for.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import Depends, Response

from checkout.domain.ground.errors import ParameterInvalid, Unavailable
from checkout.domain.ground.providers import Provider, name_of
from checkout.domain.ground.typed_amount import said_amounts, typed_amount
from checkout.domain.links import began_at_link
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.notices import Topic
from checkout.domain.merchant.people import Actor, Member, Right
from checkout.domain.merchant.reach import Effect, allows
from checkout.domain.merchant.record import Merchant, Ownership
from checkout.domain.refund.record import Refund
from checkout.domain.session.attempts import Concern, failure_of
from checkout.domain.session.customer_details import NONE_GIVEN, CustomerDetails
from checkout.domain.session.note import case_of
from checkout.domain.session.record import Session, Status, order_number
from checkout.flows import merchants, notices, reports
from checkout.flows.session import details
from checkout.flows.session.lists import ListQuery, SessionList, cursor_behind
from checkout.ports import SecretUnreadable
from checkout.services import DashboardServices
from dashboard.dependencies import Page
from dashboard.rendering import page
from dashboard.routing import PageRouter
from dashboard.texts import (
    CONCERN,
    EVERYTHING,
    FAILURE,
    KEY_STATE,
    SERVICE_KEY_STATE,
    STATUS,
    TABS,
    WALLET_STATE,
)
from dashboard.view import look_of, minor, refunded_of, status_of, wallet_of

PAGE: Final = 25
TEXT_MAX: Final = 2048  # characters of the search text
_NAMES: Final = ("q", "status", "from", "to", "min", "max")
_EARLIEST, _LATEST = date(2000, 1, 1), date(2200, 1, 1)


@dataclass(frozen=True, slots=True)
class Filters:
    """The filters, as typed and as a query. `wrong` has a sentence for each filter in error."""

    typed: dict[str, str]
    text: str
    query: ListQuery
    wrong: tuple[str, ...]

    @property
    def active(self) -> bool:
        return any(self.typed.values())

    @property
    def folded(self) -> int:
        """The number of filters that are set, not counting the search text and the status."""
        return sum(bool(value) for name, value in self.typed.items() if name not in ("q", "status"))

    def address(self, **more: str | None) -> str:
        """Return the query string for these filters and for `more`."""
        fields = {**self.typed, **more}
        return urlencode({name: value for name, value in fields.items() if value})


async def filters(request: Page) -> Filters:
    """Return the filters in the query string."""
    query = request.http.query_params
    typed = {name: query.get(name, "").strip()[:TEXT_MAX] for name in _NAMES}
    wrong: list[str] = []
    today = request.services.clock.now().date()
    since, until = (day_of(typed[name], name, wrong) for name in ("from", "to"))
    lowest, highest = (_amount(typed[name], request.key, wrong) for name in ("min", "max"))
    if since is not None and until is not None and since > until:
        wrong.append("The first day is after the last day.")
        since = None
    if since is not None and since > today:
        wrong.append("The first day is in the future.")
        since = None
    if typed["status"] not in ("", EVERYTHING, *Status, *Concern):
        wrong.append("There is no such status.")
    return Filters(
        typed=typed,
        text=typed["q"],
        query=ListQuery(
            limit=PAGE,
            cursor=query.get("newer") or query.get("cursor") or None,
            upward=bool(query.get("newer")),
            status=Status(typed["status"]) if typed["status"] in tuple(Status) else None,
            concern=Concern(typed["status"]) if typed["status"] in tuple(Concern) else None,
            created_from=_midnight(since) if since is not None else None,
            created_before=_midnight(until + timedelta(days=1)) if until is not None else None,
            amount_from=lowest,
            amount_to=highest,
        ),
        wrong=tuple(wrong),
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def day_of(typed: str, name: str, wrong: list[str]) -> date | None:
    """Return the typed day. If the text is not a day, add a sentence to `wrong`."""
    if not typed:
        return None
    with suppress(ValueError):
        day = date.fromisoformat(typed)
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", typed) and _EARLIEST <= day <= _LATEST:
            return day
    wrong.append(f"“{name}” must be a day, like 2026-03-31.")
    return None


def _amount(typed: str, key: Actor, wrong: list[str]) -> int | None:
    """Return the typed decimal amount in minor units, exactly."""
    if not typed:
        return None
    try:
        return typed_amount(
            typed, currency=key.asset_code, wallet_scale=key.asset_scale, param="amount"
        )
    except ParameterInvalid as error:
        wrong.append(error.message)
        return None


async def understood(found: Annotated[Filters, Depends(filters)]) -> Filters:
    """Return the filters. Raise ParameterInvalid if a filter cannot be parsed."""
    if found.wrong:
        raise ParameterInvalid(found.wrong[0])
    return found


Filtered = Annotated[Filters, Depends(filters)]
Understood = Annotated[Filters, Depends(understood)]


router = PageRouter(section=("", "Transactions"))


@router.page("", Door(Right.READ, "customers' details"))
async def transactions(request: Page, filters: Filtered) -> Response:
    """List the transactions that match the filters.

    Without a filter, only sessions whose customer gave a wallet are listed. If a filter is wrong,
    the list is empty and the HTTP status is 400. If all sessions of a merchant fit on one page, the
    page shows all of them, and the first steps.
    """
    services, key = request.services, request.key
    query, now = filters.query, services.clock.now()
    found = (
        reports.NOTHING
        if filters.wrong
        else reports.find_transactions(services, key, filters.text, query)
    )
    whole = not filters.active and query.cursor is None and found.next_cursor is None
    if not filters.active and not whole:
        query = replace(query, concern=Concern.PAYMENT)
        found = reports.find_transactions(services, key, "", query)
    usual = Concern.PAYMENT.value if query.concern is Concern.PAYMENT else EVERYTHING
    filtered = query.filters or said_amounts(filters.text)
    stopped = filtered and found.next_cursor is not None
    tab = filters.typed["status"] or ("" if filters.active else usual)
    older, newer = _around(key, query, found)
    return page(
        request.http,
        "transactions.html",
        status=400 if filters.wrong else 200,
        section="",
        first_steps=_first_steps(services, key, found.sessions) if whole else None,
        filters=filters,
        tab=tab,
        heading=dict(TABS).get(tab, "Results"),
        statuses=[(status.value, words) for status, words in (*STATUS.items(), *CONCERN.items())],
        tabs=TABS,
        rows=_rows(services, key, found.sessions, now),
        next_cursor=older,
        newer=newer,
        unreadable=found.unreadable,
        looked_to=found.looked_to if stopped and found.looked_to else None,
        currency=key.asset_code,
    )


def _around(key: Actor, query: ListQuery, found: SessionList) -> tuple[str | None, str | None]:
    """Return the cursors of the pages with older and with newer sessions, each None without any."""
    if not found.sessions or query.cursor is None:
        return found.next_cursor, None
    first, last = (cursor_behind(key, each) for each in (found.sessions[0], found.sessions[-1]))
    return (last, found.next_cursor) if query.upward else (found.next_cursor, first)


def _first_steps(
    services: DashboardServices, key: Actor, sessions: Sequence[Session]
) -> dict[str, Any] | None:
    """Return which first steps of a new shop are done, or None if the shop needs no more steps.

    A shop needs no more steps once it has made a sale and has set up one of two ways to sell. One
    is by payment links, with notices by e-mail. The other is by a server that creates sessions,
    with webhooks. In the result, `done` has for each step whether it is done. `page` is a page on
    which the merchant can pay. `confirm` is true if the merchant has not yet proven that the wallet
    is theirs. `notices` is None if the visitor cannot get notices by e-mail.
    """
    merchant = services.known_merchants.get(key.merchant)
    if merchant is None or not merchant.endpoints:
        merchant = merchants.get(services.merchants, key.merchant)
    links = services.links.page(key.merchant, limit=1, after=None).records
    told = _notices(services, key, merchant)
    done = {
        "link": bool(links),
        "sale": any(session.status is Status.COMPLETED for session in sessions),
        "notices": told is None or told["done"],
        "session": any(not began_at_link(session) for session in sessions),
        "webhook": bool(merchant.endpoints),
    }
    by_link, by_server = done["link"] and done["notices"], done["session"] and done["webhook"]
    if done["sale"] and (by_link or by_server):
        return None
    # Imported here, because other pages do not read wallets.
    from checkout.flows.merchant import first_steps

    connected = first_steps.check(services, merchant)
    payable = [f"/pay/{each.id}" for each in sessions if each.status is Status.OPEN]
    places = [*(f"/buy/{each.id}" for each in links if each.sells), *payable]
    return {
        "wallet": merchant.wallet_address,
        "currency": merchant.asset_code,
        "wallet_state": connected.wallet.value,
        "wallet_text": WALLET_STATE[connected.wallet.value],
        "key_id": merchant.key_id,
        "key_state": connected.key.value,
        "key_text": (SERVICE_KEY_STATE if merchant.client else KEY_STATE)[connected.key.value],
        "done": done,
        "notices": told,
        "base_url": services.base_url,
        "page": f"{services.base_url}{places[0]}" if places else None,
        "confirm": merchant.ownership is Ownership.UNPROVEN,
    }


def _notices(services: DashboardServices, key: Actor, merchant: Merchant) -> dict[str, Any] | None:
    """Return whether the member gets notices, and the address that is not confirmed yet.

    Return None if the visitor is not a member, or if the operator has set up no e-mail.
    """
    if services.mail is None or not isinstance(key, Member):
        return None
    stored = notices.of(services, key)
    waits = stored is not None and stored.waits_at(services.clock.now())
    return {
        "done": stored is not None and stored.address is not None,
        "asked": stored.asked if stored and waits else None,
        "now": allows(merchant, Effect.CONFIRMATION),
        "topics": tuple(Topic),
    }


def _rows(
    services: DashboardServices, key: Actor, sessions: Sequence[Session], now: datetime
) -> list[dict[str, Any]]:
    """Return the rows. Refunds and customers' details are read for all rows at once."""
    ids = tuple(each.id for session in sessions for each in session.refunds or ())
    refunds: dict[str, list[Refund]] = {}
    for refund in services.refunds.of(ids) if ids else ():
        refunds.setdefault(refund.session, []).append(refund)
    merchant = services.known_merchants.get(key.merchant)
    offered = (merchant.providers if merchant else ()) or services.providers
    given = _given(services, key, sessions)
    return [
        _row(
            session,
            refunds.get(session.id, ()),
            given.get(session.id, NONE_GIVEN),
            offered,
            now=now,
        )
        for session in sessions
    ]


def _given(
    services: DashboardServices, key: Actor, sessions: Sequence[Session]
) -> dict[str, CustomerDetails]:
    """Return the customers' details, by session.

    The merchant's record is read once, and only if there are details. If the details cannot be
    read, the list is shown without them, and the page of each transaction shows the reason.
    """
    found: dict[str, CustomerDetails] = {}
    sealed = [each for each in sessions if each.customer_details is not None]
    if not sealed:
        return found
    with suppress(Unavailable):
        merchant = services.merchants.get(key.merchant)
        for each in sealed:
            with suppress(SecretUnreadable):
                found[each.id] = details.opened(services.vault, merchant, each)
    return found


def _row(
    session: Session,
    refunds: Sequence[Refund],
    given: CustomerDetails,
    offered: Sequence[Provider],
    *,
    now: datetime,
) -> dict[str, Any]:
    """Return the row of a session.

    `look` is the CSS class of the status, `failure` how the last attempt failed, and `refunded` the
    text of the amount sent back. `customer` and `email` come from the customer's details. `wallet`
    is the name of the wallet's provider, or the wallet's address.
    """
    failure = failure_of(session)
    more = len(session.line_items) - 1
    return {
        "id": session.id,
        "created_at": session.created_at,
        "look": look_of(session, now),
        "status_text": status_of(session, now),
        "failure": FAILURE[failure] if failure else None,
        "refunded": refunded_of(session, refunds),
        "attention": case_of(session) is not None,
        "order": order_number(session),
        "amount": minor(session.amount_total, session),
        "customer": given.name,
        "email": given.email,
        "wallet": _wallet(session, offered),
        "goods": session.line_items[0].title + (f" and {more} more" if more else ""),
    }


def _wallet(session: Session, offered: Sequence[Provider]) -> str | None:
    """Return the name of the wallet's provider, or the address if we do not offer the provider."""
    address = wallet_of(session)
    if address is None:
        return None
    return name_of(address, offered) or address.removeprefix("https://")
