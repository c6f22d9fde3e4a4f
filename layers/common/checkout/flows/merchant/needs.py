"""Find what needs a person of the merchant: payments, webhook endpoints and keys.

Each case is read anew from the records, so it is gone as soon as it is solved.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.ids import mandate_id
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Problem
from checkout.domain.payment.mandate import Mandate
from checkout.domain.reports.search_terms import NEEDS_SOMEBODY
from checkout.domain.session.note import needs_somebody
from checkout.domain.session.record import Session, Status, order_number
from checkout.domain.session.withdrawal import waits
from checkout.domain.webhooks.record import Delivery, Endpoint, WebhookEvent, endpoint_id
from checkout.open_payments.errors import Reason
from checkout.ports.services import DashboardServices, PayServices

SESSIONS_MAX: Final = 100  # sessions of a page of the index
ROUNDS: Final = 3  # pages of flagged sessions that are read
NEWEST: Final = 10  # sessions, or events of an endpoint, that tell how it is now
FAILS: Final = 3  # attempts one after the other, until an endpoint counts as failing
SOON: Final = timedelta(days=7)  # a key in use that ends within this time
NEW_FOR: Final = timedelta(days=3)  # an address of webhooks that somebody else has set
BUDGET: Final = "Refund budget"
AnyServices = DashboardServices | PayServices
_REFUSED: Final = (Reason.CLIENT_UNKNOWN, Reason.BAD_SIGNATURE)


class Case(StrEnum):
    """The cases that need somebody, the most urgent first."""

    PARTIAL_PAYMENT = "partial_payment"
    UNDECIDED = "undecided"
    LATE_PAYMENT = "late_payment"
    OVERPAID = "overpaid"
    WITHDRAWAL = "withdrawal"
    WALLET_KEY = "wallet_key"
    ENDPOINT_SET = "endpoint_set"
    ENDPOINT_DISABLED = "endpoint_disabled"
    ENDPOINT_FAILING = "endpoint_failing"
    BUDGET_OVER = "budget_over"
    BUDGET_REQUESTED = "budget_requested"
    KEY_ENDS = "key_ends"


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that needs somebody.

    `target` is the id of the session, endpoint or key, `name` what people call it. `at` is when it
    began, or when a key ends.
    """

    case: Case
    target: str
    name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Needs:
    """All that needs somebody, in the order of `Case`. With `more`, not all sessions were read."""

    found: tuple[Need, ...]
    more: bool


@dataclass(frozen=True, slots=True)
class Health:
    """The last attempt of an endpoint, if there is one, and since when its attempts fail."""

    last: Delivery | None
    failing_since: datetime | None


def of(services: AnyServices, key: Actor) -> Needs:
    """Return what needs a person of the actor's merchant now.

    Raise Unavailable, and ResourceMissing for a merchant that is no more.
    """
    merchant, now = services.merchants.latest(key.merchant), services.clock.now()
    if merchant is None:
        raise ResourceMissing("No such merchant.")
    sessions, more = _sessions(services, key)
    found = [
        *sessions,
        *_wallet_key(services, key, merchant),
        *_endpoints(services, key, merchant),
        *_budget(services.mandates.get(mandate_id(merchant.id)), now),
        *_keys(services.api_keys.of(merchant.id), now),
    ]
    order = list(Case)
    return Needs(tuple(sorted(found, key=lambda need: (order.index(need.case), need.at))), more)


def _sessions(services: AnyServices, key: Actor) -> tuple[list[Need], bool]:
    found: list[Need] = []
    after = None
    for _ in range(ROUNDS):
        page = services.sessions.page(
            key.lists,
            limit=SESSIONS_MAX,
            after=after,
            created_from=None,
            created_before=None,
            search=NEEDS_SOMEBODY,
        )
        flagged = [each for each in page.sessions if each.needs_attention]
        notes = services.notes.of(each.id for each in flagged) if flagged else {}
        found += [_need(each) for each in flagged if needs_somebody(each, notes.get(each.id))]
        found += _withdrawals(services, page.sessions)
        after = page.next_key
        if after is None:
            break
    return found, after is not None


def _need(session: Session) -> Need:
    case = Case(session.attention) if session.attention else Case.OVERPAID
    return Need(case, session.id, order_number(session) or session.id, session.updated_at)


def _withdrawals(services: AnyServices, sessions: tuple[Session, ...]) -> Iterator[Need]:
    """Yield the withdrawals that wait for the shop."""
    paid = {each.id: each for each in sessions if each.status is Status.COMPLETED}
    filed = services.withdrawals.of(paid) if paid else {}
    for session_id, withdrawal in filed.items():
        session = paid[session_id]
        if waits(session, withdrawal):
            named = order_number(session) or session_id
            yield Need(Case.WITHDRAWAL, session_id, named, withdrawal.at)


def _wallet_key(services: AnyServices, key: Actor, merchant: Merchant) -> Iterator[Need]:
    """Yield the case that a provider refused the merchant's key, and none has taken it since."""
    page = services.sessions.page(
        key.lists, limit=NEWEST, after=None, created_from=None, created_before=None
    )
    steps = [each for session in page.sessions for each in session.history]
    for step in sorted(steps, key=lambda each: each.at, reverse=True):
        if step.event in (Event.PREPARED, Event.PAYMENT_INTENDED):  # a provider took the key
            return
        name, _, kind = (step.note or "").partition(": ")
        if name == Problem.MERCHANT_WALLET_ERROR and kind.partition(" ")[0] in _REFUSED:
            yield Need(Case.WALLET_KEY, merchant.key_id, merchant.key_id, step.at)
            return


def _endpoints(services: AnyServices, key: Actor, merchant: Merchant) -> Iterator[Need]:
    now = services.clock.now()
    for endpoint in merchant.endpoints:
        identity = endpoint_id(merchant.id, endpoint)
        at, by = endpoint.set_at, endpoint.set_by
        if at is not None and by not in (None, key.id) and now < at + NEW_FOR:
            yield Need(Case.ENDPOINT_SET, identity, endpoint.url.partition("?")[0], at)
        if endpoint.disabled_at is not None:
            yield Need(Case.ENDPOINT_DISABLED, identity, endpoint.url, endpoint.disabled_at)
            continue
        since = health(services, key, merchant, endpoint).failing_since
        if since is not None:
            yield Need(Case.ENDPOINT_FAILING, identity, endpoint.url, since)


def health(services: AnyServices, key: Actor, merchant: Merchant, endpoint: Endpoint) -> Health:
    """Return how an endpoint of the merchant is now, by its newest events."""
    further = endpoint in merchant.further_endpoints
    page = services.events.page(key.lists, limit=NEWEST, endpoint=endpoint.id if further else None)
    made = _made(page.events, endpoint)
    return Health(made[-1] if made else None, failing_since(page.events, endpoint))


def failing_since(events: tuple[WebhookEvent, ...], endpoint: Endpoint) -> datetime | None:
    """Return when the endpoint began to fail, if its last attempts failed; None if not."""
    made = _made(events, endpoint)
    good = [number for number, each in enumerate(made) if each.succeeded]
    failed = made[good[-1] + 1 :] if good else made
    return failed[0].at if len(failed) >= FAILS else None


def _made(events: tuple[WebhookEvent, ...], endpoint: Endpoint) -> list[Delivery]:
    """Return the finished attempts to deliver these events, oldest first."""
    made = [
        each
        for event in events
        if endpoint.was_there(event.created_at)
        for each in event.deliveries
        if each.duration_ms is not None
    ]
    return sorted(made, key=lambda each: each.at)


def _budget(mandate: Mandate | None, now: datetime) -> Iterator[Need]:
    """Yield the cases that the refund budget is over, or silent for a day, or is wanted."""
    if mandate is None:
        return
    if mandate.gone:
        yield Need(Case.BUDGET_OVER, mandate.id, BUDGET, mandate.over_at or mandate.updated_at)
    elif mandate.rotating is not None and mandate.silent(now):
        yield Need(Case.BUDGET_OVER, mandate.id, BUDGET, mandate.rotating)
    if mandate.wanted is not None:
        yield Need(
            Case.BUDGET_REQUESTED, mandate.id, f"{mandate.wanted} a month", mandate.updated_at
        )


def _keys(keys: tuple[ApiKey, ...], now: datetime) -> Iterator[Need]:
    """Yield the keys that were used lately and end soon."""
    for each in keys:
        ends, used = each.lasts_until, each.last_used_at
        if ends is None or used is None or not each.active_at(now):
            continue
        if ends <= now + SOON and used > now - SOON:
            yield Need(Case.KEY_ENDS, each.id, each.label, ends)
