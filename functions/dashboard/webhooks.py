"""The webhooks: address, signing secret, delivery log, and the page of one event.

A secret in clear text is only in the response that created it.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.domain.errors import CheckoutError, ParameterInvalid
from checkout.domain.grammar import URL_MAX
from checkout.domain.people import Actor
from checkout.domain.webhooks import (
    OPTIONAL,
    Endpoint,
    EventStatus,
    Format,
    WebhookEvent,
    waiting,
)
from checkout.flows import merchants
from checkout.flows.merchant import actions
from checkout.flows.webhooks import delivery_log
from checkout.flows.webhooks.endpoints import Resent
from checkout.pages import Moment
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Form, Injected, Key, Visited, overlap_of
from dashboard.rendering import page, refused, see
from dashboard.texts import DELIVERY, EVENT, FORMAT, OVERLAPS
from dashboard.view import delivered, moment

router = APIRouter(prefix="/webhooks")
# The optional events: field of the form, type, and text.
_OPTIONAL: Final = tuple((event.rpartition(".")[2], event, EVENT[event]) for event in OPTIONAL)
_SINCE: Final = timedelta(days=3)  # the default of "failed since"
_DAY: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Setting:
    """The endpoint, as stored or as typed; until `old_until` the previous secret signs as well."""

    url: str
    events: tuple[tuple[str, str, bool], ...]
    formats: tuple[tuple[str, str, bool], ...]
    stored: bool
    disabled_at: Moment | None
    secret_at: Moment | None
    old_until: Moment | None


@dataclass(frozen=True, slots=True)
class Row:
    """An event in the delivery log."""

    id: str
    title: str
    session: str | None
    created_at: Moment
    status: str
    state: EventStatus
    bad: bool
    tries: int
    last: str | None


@router.get("")
async def log(services: Injected, request: Request, key: Key) -> Response:
    return _page(services, request, key)


@router.post("")
async def configure(services: Injected, request: Request, key: Key, form: Form) -> Response:
    url, events = form.get("url", "").strip(), _events_of(form)
    try:
        done = actions.set_webhook(
            services, key, url=url, events=events, more={"format": _format_of(form)}
        )
    except CheckoutError as error:
        return refused(error, _page, services, request, key, typed=form)
    return _page(services, request, key, secret=done.secret)


@router.post("/remove")
async def remove(services: Injected, visit: Visited, key: Key, _: Form) -> Response:
    actions.remove_webhook(services, key)
    return see(visit, "/webhooks")


@router.post("/enable")
async def enable(
    services: Injected, visit: Visited, request: Request, key: Key, _: Form
) -> Response:
    try:
        actions.enable_webhook(services, key)
    except CheckoutError as error:
        return refused(error, _page, services, request, key)
    return see(visit, "/webhooks")


@router.post("/roll")
async def roll(services: Injected, request: Request, key: Key, form: Form) -> Response:
    try:
        done = actions.roll_webhook_secret(services, key, overlap=overlap_of(form))
    except CheckoutError as error:
        return refused(error, _page, services, request, key)
    return _page(services, request, key, secret=done.secret)


@router.post("/test")
async def send_test(
    services: Injected, visit: Visited, request: Request, key: Key, _: Form
) -> Response:
    try:
        event = actions.send_test_event(services, key)
    except CheckoutError as error:
        return refused(error, _page, services, request, key)
    return see(visit, f"/webhooks/{event.id}")


@router.post("/resend-failed")
async def resend_failed(services: Injected, request: Request, key: Key, form: Form) -> Response:
    try:
        since, after = _since_of(form), form.get("after") or None
        done = actions.resend_failed_events(services, key, since=since, after=after)
    except CheckoutError as error:
        return refused(error, _page, services, request, key, typed=form)
    return _page(services, request, key, typed=form, resent=done)


@router.get("/{event_id}")
async def event(services: Injected, request: Request, key: Key, event_id: str) -> Response:
    return _event_page(services, request, key, event_id)


@router.post("/{event_id}/resend")
async def resend(
    services: Injected, visit: Visited, request: Request, key: Key, event_id: str, _: Form
) -> Response:
    try:
        again = actions.resend_event(services, key, event_id)
    except CheckoutError as error:
        return refused(error, _event_page, services, request, key, event_id)
    return see(visit, f"/webhooks/{again.id}")


def _page(
    services: DashboardServices,
    request: Request,
    key: Actor,
    *,
    secret: str | None = None,
    typed: dict[str, str] | None = None,
    resent: Resent | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """Return the page: with a form as `typed`, and with a new `secret`."""
    merchant = merchants.get(services.merchants, key.merchant)
    query, now = request.query_params, services.clock.now()
    wanted = query.get("status", "")
    state = EventStatus(wanted) if wanted in tuple(EventStatus) else None
    after = query.get("cursor") if request.method == "GET" else None
    found = delivery_log.page(services, key, status=state, after=after)
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
        overlaps=OVERLAPS.items(),
        rows=[_row(event) for event in found.events],
        next_cursor=found.next_cursor,
        wanted=wanted if state else "",
        statuses=[(each.value, words) for each, words in DELIVERY.items()],
    )


def _event_page(
    services: DashboardServices,
    request: Request,
    key: Actor,
    event_id: str,
    *,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    event = delivery_log.get(services, key.merchant, event_id)
    return page(
        request,
        "webhook_event.html",
        status=status,
        section="/webhooks",
        row=_row(event),
        waits=waiting(event, services.clock.now()),
        delivery=delivered(event),
        body=event.body,
        stripe_body=event.stripe_body,
        alert=alert,
    )


def _events_of(form: dict[str, str]) -> tuple[str, ...]:
    return tuple(event for name, event, _ in _OPTIONAL if name in form)


def _format_of(form: dict[str, str]) -> Format:
    """Return the chosen format; the native one for anything else."""
    return Format.STRIPE if form.get("format") == Format.STRIPE else Format.NATIVE


def _since_of(form: dict[str, str]) -> datetime:
    typed = form.get("since", "").strip()
    if _DAY.fullmatch(typed):
        with suppress(ValueError):
            return datetime.combine(date.fromisoformat(typed), time(), UTC)
    raise ParameterInvalid("“Failed since” must be a day, like 2026-03-31.", param="since")


def _setting(endpoint: Endpoint | None, typed: dict[str, str] | None, now: datetime) -> Setting:
    if typed is not None and "url" in typed:
        url, events, form = typed["url"], _events_of(typed), _format_of(typed)
    elif endpoint:
        url, events, form = endpoint.url, endpoint.events, endpoint.format
    else:
        url, events, form = "", (), Format.NATIVE
    newest, *older = endpoint.signing(now) if endpoint else (None,)
    until = older[0].expires_at if older and older[0] else None
    return Setting(
        url=url,
        events=tuple((name, words, event in events) for name, event, words in _OPTIONAL),
        formats=tuple((each, words, each is form) for each, words in FORMAT.items()),
        stored=endpoint is not None,
        disabled_at=moment(endpoint.disabled_at) if endpoint and endpoint.disabled_at else None,
        secret_at=moment(newest.created_at) if newest else None,
        old_until=moment(until) if until else None,
    )


def _row(event: WebhookEvent) -> Row:
    delivery = delivered(event)
    return Row(
        id=event.id,
        title=EVENT.get(event.type, event.type),
        session=event.session,
        created_at=moment(event.created_at),
        status=delivery.status,
        state=event.status,
        bad=delivery.bad,
        tries=len(event.deliveries),
        last=delivery.attempts[-1].outcome if delivery.attempts else None,
    )
