"""The pages of the webhooks: addresses, signing secrets, delivery logs and events.

Only the response to the request that creates a secret contains the secret in plain text.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any, Final

from fastapi import Response

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.grammar import DELIVERY_ID, URL_MAX
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Actor, Right
from checkout.domain.merchant.record import Merchant
from checkout.domain.webhooks.event_types import ALWAYS, choices, sentence_of
from checkout.domain.webhooks.record import (
    ENDPOINTS_MAX,
    Endpoint,
    EventStatus,
    Format,
    WebhookEvent,
    waiting,
)
from checkout.flows import merchants
from checkout.flows.idempotency import Reserve
from checkout.flows.notices import health
from checkout.flows.webhooks import endpoints, event_log
from checkout.flows.webhooks.endpoints import Configured, Failed, Resent
from checkout.services import DashboardServices
from dashboard.dependencies import Form, Page, PageRequest
from dashboard.forms import Day, Fields, RollForm, message
from dashboard.rendering import page, see
from dashboard.routing import PageRouter
from dashboard.texts import DELIVERY, FORM_SAMPLES, FORMAT, OVERLAPS, SENT_TWICE
from dashboard.view import Attempt, Delivered, attempt, delivered

router = PageRouter(prefix="/webhooks", section=("/webhooks", "Webhooks"))
# The optional events: the field in the form, the event's type, and its text.
_OPTIONAL: Final = tuple((short, name, sentence_of(name)) for short, name in choices().items())
NEW: Final = "new"  # in place of the id of an endpoint that does not exist yet
_WHICH: Final = "endpoint"  # the form field and the URL parameter with the endpoint's id
_SINCE: Final = timedelta(days=3)  # the default for "failed since"


class ResendForm(Fields):
    """The failed events to send again: those since the day `since`, beginning after `after`."""

    since: Annotated[Day, message("“Failed since” must be a day, like 2026-03-31.")]
    after: str


def _page(
    request: PageRequest,
    *,
    chosen: str | None = None,
    secret: str | None = None,
    typed: dict[str, str] | None = None,
    failed: Failed | None = None,
    resent: Resent | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """Return the page of the `chosen` endpoint. Raise ResourceMissing if this does not exist.

    `typed` has the fields of a form that is shown again, and `secret` is a new signing secret.
    `failed` is how many events would be sent again, and `resent` is how many were sent again.
    """
    services, key, http = request.services, request.key, request.http
    merchant = merchants.get(services.merchants, key.merchant)
    query, now = http.query_params, services.clock.now()
    endpoint = _endpoint_of(merchant, chosen)
    identity = endpoint.id if endpoint else None
    wanted = query.get("status", "")
    state = EventStatus(wanted) if wanted in tuple(EventStatus) else None
    after = query.get("cursor") or None if http.method == "GET" else None
    found = event_log.page(
        services,
        key,
        status=state,
        after=after,
        endpoint=endpoints.log_of(merchant, identity) if identity else None,
    )
    since = (typed or {}).get("since") or (now - _SINCE).date().isoformat()
    return page(
        http,
        "webhooks.html",
        status=status,
        section="/webhooks",
        setting=_setting(endpoint, typed, now),
        samples=FORM_SAMPLES,
        always=[sentence_of(name) for name in ALWAYS],
        chosen=NEW if chosen == NEW else identity or "",
        several=len(merchant.endpoints) + (chosen == NEW) > 1,
        choices=_choices(services, key, merchant),
        title_of=sentence_of,
        can_add=0 < len(merchant.endpoints) < ENDPOINTS_MAX and chosen != NEW,
        secret=secret,
        alert=alert,
        failed=failed,
        set_at=endpoint.created_at if endpoint else None,
        resent=resent,
        since=since,
        url_max=URL_MAX,
        overlaps=OVERLAPS.items(),
        rows=[(event, delivered(event)) for event in found.records] if chosen != NEW else [],
        next_cursor=found.next_cursor,
        wanted=wanted if state else "",
        statuses=[(each.value, words) for each, words in DELIVERY.items()],
    )


def _again(request: PageRequest, **shown: Any) -> Response:
    """Return the page of the endpoint that the form is about, with the form as typed."""
    return _page(request, chosen=_which(request), typed=request.form, **shown)


def _event_page(
    request: PageRequest, event_id: str, *, alert: str | None = None, status: int = 200
) -> Response:
    services, key = request.services, request.key
    event = event_log.get(services, key.merchant, event_id, DELIVERY_ID)
    known = services.merchants if event.is_copy else services.known_merchants
    merchant = known.get(key.merchant)
    to = merchant.endpoint_of(event.endpoint) if merchant and event.is_copy else None
    return page(
        request.http,
        "webhook_event.html",
        status=status,
        section="/webhooks",
        event=event,
        title=sentence_of(event.type),
        log_of=event.endpoint if event.is_copy else None,
        to=to.url if to else None,
        waits=waiting(event, services.clock.now()),
        delivery=delivered(event),
        elsewhere=elsewhere(services, merchant, event),
        alert=alert,
    )


@router.page("", Door(Right.READ, "addresses and deliveries of webhooks"))
async def log(request: Page) -> Response:
    return _page(request, chosen=request.http.query_params.get(_WHICH))


@router.form("", Door(Right.INTEGRATE, "later events, with details, to an address"), again=_again)
async def configure(request: Form) -> Response:
    """Change or add an endpoint. Only this response shows its new signing secret, if any."""
    key, chosen = request.key, _which(request)

    def act(reserve: Reserve[Configured] | None) -> Configured:
        return endpoints.configure(
            request.services,
            key.merchant,
            url=request.form.get("url", "").strip(),
            events=_events_of(request.form),
            endpoint=None if chosen == NEW else chosen,
            add=chosen == NEW,
            more={"format": _format_of(request.form)},
            by=key,
            reserve=reserve,
        )

    done = request.once(act, lambda made: made.endpoint.id)
    if done.made is None:
        return _page(request, chosen=done.place, alert=SENT_TWICE, status=409)
    return _page(request, chosen=done.place, secret=done.made.secret)


@router.form("/remove", Door(Right.INTEGRATE, "ends later events"))
async def remove(request: Form) -> Response:
    key = request.key
    endpoints.remove(request.services, key.merchant, endpoint=_which(request), by=key)
    return see(request.visit, "/webhooks")


@router.form("/enable", Door(Right.INTEGRATE, "later events to a known address"), again=_again)
async def enable(request: Form) -> Response:
    chosen = _which(request)
    merchant = endpoints.enable(request.services, request.key.merchant, endpoint=chosen)
    request.note(Action.WEBHOOK_ENABLED, endpoints.address_of(merchant.endpoint_of(chosen)))
    return see(request.visit, f"/webhooks?{_WHICH}={chosen}" if chosen else "/webhooks")


@router.form("/roll", Door(Right.INTEGRATE, "a signing secret"), again=_again)
async def roll(request: Form) -> Response:
    """Replace the signing secret. Only this response shows the new secret."""
    key, chosen, overlap = request.key, _which(request), request.read(RollForm).overlap

    def act(reserve: Reserve[Configured] | None) -> Configured:
        made = endpoints.roll_secret(
            request.services, key.merchant, overlap=overlap, endpoint=chosen, reserve=reserve
        )
        request.note(Action.WEBHOOK_SECRET_ROLLED, endpoints.address_of(made.endpoint))
        return made

    done = request.once(act, lambda made: made.endpoint.id)
    if done.made is None:
        return _page(request, chosen=chosen, alert=SENT_TWICE, status=409)
    return _page(request, chosen=chosen, secret=done.made.secret)


@router.form("/test", Door(Right.INTEGRATE, "an event to a known address"), again=_again)
async def send_test(request: Form) -> Response:
    """Send a test event, and show how its delivery went."""

    def act(reserve: Reserve[WebhookEvent] | None) -> WebhookEvent:
        merchant, chosen = request.key.merchant, _which(request)
        event = endpoints.ping(request.services, merchant, endpoint=chosen, reserve=reserve)
        request.note(Action.TEST_EVENT_SENT, event.id)
        return event

    return see(request.visit, request.once(act, lambda event: f"/webhooks/{event.id}").place)


@router.form("/resend-failed", Door(Right.INTEGRATE, "events to a known address"), again=_again)
async def resend_failed(request: Form) -> Response:
    """Show how many failed events would be sent, or send them if the merchant has confirmed."""
    services, key, chosen = request.services, request.key, _which(request)
    typed = request.read(ResendForm)
    if "sure" not in request.form:
        found = endpoints.count_failed(services, key.merchant, since=typed.since, endpoint=chosen)
        return _again(request, failed=found)
    done = event_log.resend_failed(
        services, key, since=typed.since, after=typed.after or None, endpoint=chosen
    )
    request.note(Action.EVENTS_RESENT, f"{done.count}, since {typed.since.date()}")
    return _again(request, resent=done)


@router.page("/{event_id}", Door(Right.READ, "an event, with the customer's wallet"))
async def event(request: Page, event_id: str) -> Response:
    return _event_page(request, event_id)


@router.form(
    "/{event_id}/resend",
    Door(Right.INTEGRATE, "an event to a known address"),
    again=_event_page,
)
async def resend(request: Form, event_id: str) -> Response:
    again = endpoints.resend(request.services, request.key.merchant, event_id)
    request.note(Action.EVENT_RESENT, again.id)
    return see(request.visit, f"/webhooks/{again.id}")


def elsewhere(
    services: DashboardServices, merchant: Merchant | None, event: WebhookEvent
) -> list[tuple[str, Delivered]]:
    """Return the deliveries of an event to the merchant's other endpoints, each with its URL."""
    if merchant is None or event.is_copy:
        return []
    urls: dict[str | None, str] = {each.id: each.url for each in merchant.further_endpoints}
    others = event_log.of_others(services, merchant, event)
    return [(urls[each.endpoint], delivered(each)) for each in others]


def _which(request: PageRequest) -> str | None:
    """Return the id of the form's endpoint, or None for the first one."""
    return request.form.get(_WHICH) or None


def _endpoint_of(merchant: Merchant, chosen: str | None) -> Endpoint | None:
    """Return the chosen endpoint, or the first one; None for a new one. Raise ResourceMissing."""
    if chosen == NEW:
        return None
    if not chosen:
        return next(iter(merchant.endpoints), None)
    found = merchant.endpoint_of(chosen)
    if found is None:
        raise ResourceMissing("No such webhook endpoint.")
    return found


def _choices(
    services: DashboardServices, key: Actor, merchant: Merchant
) -> list[tuple[Endpoint, Attempt | None, datetime | None]]:
    """Return the endpoints, each with its newest attempt and since when all attempts failed."""
    found = [(each, health(services, key, merchant, each)) for each in merchant.endpoints]
    return [
        (each, attempt(now.last) if now.last else None, now.failing_since) for each, now in found
    ]


def _events_of(form: dict[str, str]) -> tuple[str, ...]:
    return tuple(event for name, event, _ in _OPTIONAL if name in form)


def _format_of(form: dict[str, str]) -> Format:
    """Return the chosen format, or the native format for an unknown value."""
    return Format.STRIPE if form.get("format") == Format.STRIPE else Format.NATIVE


def _setting(
    endpoint: Endpoint | None, typed: dict[str, str] | None, now: datetime
) -> dict[str, Any]:
    """Return the endpoint, as stored or as typed.

    Until `old_until`, events are also signed with the previous secret. `withheld` means that an API
    key without the right to read has set the address, so the events sent there contain no details
    of customers.
    """
    if typed is not None and "url" in typed:
        url, events, form = typed["url"], _events_of(typed), _format_of(typed)
    elif endpoint:
        url, events, form = endpoint.url, endpoint.events, endpoint.format
    else:
        url, events, form = "", (), Format.NATIVE
    newest, *older = endpoint.signing(now) if endpoint else (None,)
    return {
        "url": url,
        "events": [(name, words, event in events) for name, event, words in _OPTIONAL],
        "formats": [(each, words, each is form) for each, words in FORMAT.items()],
        "stored": endpoint is not None,
        "disabled_at": endpoint.disabled_at if endpoint else None,
        "secret_at": newest.created_at if newest else None,
        "old_until": older[0].expires_at if older and older[0] else None,
        "asked": (endpoint.asked or ()) if endpoint else (),
        "withheld": endpoint is not None and endpoint.withheld,
    }
