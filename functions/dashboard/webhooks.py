"""The pages of the merchant's webhooks: address, secret, delivery log, one event. A secret in the
clear is on the answer that made it, and on no other.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from fastapi import Request, Response

from checkout.domain.errors import ParameterInvalid, ResourceMissing
from checkout.domain.grammar import URL_MAX
from checkout.domain.webhooks import (
    CANCELED,
    EXPIRED,
    Endpoint,
    EventStatus,
    WebhookEvent,
    waiting,
)
from checkout.flows.merchant.sign_in import SignedIn
from checkout.flows.webhooks import delivery_log
from checkout.flows.webhooks.endpoints import Resent
from checkout.ports.services import DashboardServices
from dashboard.keys import OVERLAPS
from dashboard.pages import page
from dashboard.texts import DELIVERY, EVENT
from dashboard.transaction import Delivered, delivered
from dashboard.view import Moment, moment

# The optional events: their field in the form, and its words.
_OPTIONAL: Final = (
    ("expired", EXPIRED, "A session expired"),
    ("canceled", CANCELED, "A session was canceled"),
)
_SINCE: Final = timedelta(days=3)  # what "failed since" begins with
_DAY: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Setting:
    """The endpoint, or what was typed for it. `old_until`: the secret before signs as well."""

    url: str
    events: tuple[tuple[str, str, bool], ...]
    stored: bool
    disabled_at: Moment | None
    secret_at: Moment | None
    old_until: Moment | None


@dataclass(frozen=True, slots=True)
class Row:
    id: str
    what: str
    session: str | None
    created_at: Moment
    status: str
    state: EventStatus
    bad: bool
    tries: int
    last: str | None


def webhooks(
    services: DashboardServices,
    request: Request,
    who: SignedIn,
    *,
    secret: str | None = None,
    typed: dict[str, str] | None = None,
    resent: Resent | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """`typed` is a form that was refused; `secret` was made just now."""
    merchant = services.merchants.get(who.merchant)
    if merchant is None:
        raise ResourceMissing("No such merchant.")
    query, now = request.query_params, services.clock.now()
    wanted = query.get("status", "")
    state = EventStatus(wanted) if wanted in tuple(EventStatus) else None
    after = query.get("cursor") if request.method == "GET" else None
    found = delivery_log.page(services, who.merchant, status=state, after=after)
    since = (typed or {}).get("since") or (now - _SINCE).date().isoformat()
    return page(
        request,
        "webhooks.html",
        status=status,
        section="/webhooks",
        setting=_setting(merchant.endpoint, typed, now),
        secret=secret,
        alert=alert,
        resent=resent,
        since=since,
        url_max=URL_MAX,
        overlaps=OVERLAPS,
        rows=[_row(event) for event in found.events],
        next_cursor=found.next_cursor,
        wanted=wanted if state else "",
        statuses=[(each.value, words) for each, words in DELIVERY.items()],
    )


def webhooks_again(
    services: DashboardServices,
    request: Request,
    who: SignedIn,
    typed: dict[str, str],
    *,
    alert: str,
    status: int,
) -> Response:
    """After a form that was refused."""
    return webhooks(services, request, who, typed=typed, alert=alert, status=status)


def event_page(
    services: DashboardServices,
    request: Request,
    who: SignedIn,
    event_id: str,
    *,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    event = delivery_log.get(services, who.merchant, event_id)
    return page(
        request,
        "webhook_event.html",
        status=status,
        section="/webhooks",
        row=_row(event),
        waits=waiting(event, services.clock.now()),
        told=_whole(event),
        body=event.body,
        alert=alert,
    )


def events_of(form: dict[str, str]) -> tuple[str, ...]:
    """The optional events that a form has ticked."""
    return tuple(event for name, event, _ in _OPTIONAL if name in form)


def since_of(form: dict[str, str]) -> datetime:
    """Raises ParameterInvalid."""
    typed = form.get("since", "").strip()
    if _DAY.fullmatch(typed):
        with suppress(ValueError):
            return datetime.combine(date.fromisoformat(typed), time(), UTC)
    raise ParameterInvalid("“Failed since” must be a day, like 2026-03-31.", param="since")


def _setting(endpoint: Endpoint | None, typed: dict[str, str] | None, now: datetime) -> Setting:
    if typed is not None and "url" in typed:
        url, events = typed["url"], events_of(typed)
    else:
        url, events = (endpoint.url, endpoint.events) if endpoint else ("", ())
    newest, *older = endpoint.signing(now) if endpoint else (None,)
    until = older[0].expires_at if older and older[0] else None
    return Setting(
        url=url,
        events=tuple((name, words, event in events) for name, event, words in _OPTIONAL),
        stored=endpoint is not None,
        disabled_at=moment(endpoint.disabled_at) if endpoint and endpoint.disabled_at else None,
        secret_at=moment(newest.created_at) if newest else None,
        old_until=moment(until) if until else None,
    )


def _row(event: WebhookEvent) -> Row:
    told = delivered(event)
    return Row(
        id=event.id,
        what=EVENT[event.type],
        session=event.session,
        created_at=moment(event.created_at),
        status=told.status,
        state=event.status,
        bad=told.bad,
        tries=len(event.deliveries),
        last=told.attempts[-1].outcome if told.attempts else None,
    )


def _whole(event: WebhookEvent) -> Delivered:
    """With all that is kept of each answer."""
    told = delivered(event)
    pairs = zip(told.attempts, event.deliveries, strict=True)
    attempts = tuple(replace(shown, answer=kept.answer or None) for shown, kept in pairs)
    return replace(told, attempts=attempts)
