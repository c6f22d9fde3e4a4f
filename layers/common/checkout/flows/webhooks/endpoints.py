"""Manage a merchant's webhooks: the endpoint, its secrets, test events, resending.

A secret is in the response of the call that made it, and nowhere else in the clear. Nothing is sent
from here: events are stored and enqueued.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.errors import (
    ParameterInvalid,
    ResourceMissing,
    UrlInvalid,
    WebhookUnexpectedState,
)
from checkout.domain.grammar import webhook_url
from checkout.domain.ids import new_endpoint_id, new_event_id, new_nonce
from checkout.domain.merchant import Merchant
from checkout.domain.stripe_objects import envelope
from checkout.domain.webhook_signature import new_webhook_secret
from checkout.domain.webhooks import (
    OPTIONAL,
    PING,
    Endpoint,
    EventStatus,
    WebhookEvent,
    WebhookSecret,
    endpoint_id,
    ping_body,
    secret_place,
    sent_again,
    waiting,
)
from checkout.flows import merchants
from checkout.flows.give_way import give_way
from checkout.flows.idempotency import Reserve
from checkout.ports.services import DashboardServices
from checkout.ports.webhooks import QueuedEvent

OVERLAP_MAX: Final = timedelta(days=7)
RESEND_PAGE: Final = 100  # events that one call of `resend_failed` looks at


@dataclass(frozen=True, slots=True)
class Configured:
    """The merchant with its endpoint; a new `secret` is shown once."""

    merchant: Merchant
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Resent:
    """The number of events resent; `next_key` continues, or is None at the end."""

    count: int
    next_key: str | None


def configure(
    services: DashboardServices,
    merchant_id: str,
    *,
    url: str,
    events: tuple[str, ...],
    first: bool = False,
    more: Mapping[str, Any] | None = None,
    reserve: Reserve[Configured] | None = None,
) -> Configured:
    """Send the merchant's events to `url` from now on, including these optional ones.

    The first address gets an id and a secret; a later one keeps them, and is enabled again. `more`
    are other fields of the endpoint. `first`: there must be none yet. What `reserve` makes is
    written with it. Raises UrlInvalid, ParameterInvalid, ResourceMissing, WebhookUnexpectedState,
    Conflict, Unavailable, and KeyHeld with `reserve`.
    """
    _check(services, url, events)
    now = services.clock.now()
    secret = new_webhook_secret(services.random_bytes)
    newest = _sealed(services, merchant_id, secret, now)
    begun = Endpoint(url=url, id=new_endpoint_id(services.random_bytes), created_at=now)

    def changed(merchant: Merchant) -> Merchant:
        before = merchant.endpoint or begun
        if first and merchant.endpoint is not None:
            raise WebhookUnexpectedState(
                "There is one webhook endpoint for each merchant, and it is set already: update or "
                f"delete {endpoint_id(merchant.id, before)}."
            )
        endpoint = replace(
            before,
            url=url,
            events=tuple(event for event in OPTIONAL if event in events),
            secrets=before.secrets or (newest,),
            disabled_at=None,
            **(more or {}),
        )
        return merchant.changed(endpoint=endpoint)

    def configured(merchant: Merchant) -> Configured:
        assert merchant.endpoint is not None
        made = merchant.endpoint.secrets[0] == newest
        return Configured(merchant, secret if made else None)

    return _written(services, merchant_id, changed, configured, reserve)


def update(
    services: DashboardServices,
    merchant_id: str,
    fields: Mapping[str, Any],
    *,
    reserve: Reserve[Configured] | None = None,
) -> Configured:
    """Change these fields of the endpoint and no others. Raises as `configure` does."""
    if "url" in fields or "events" in fields:
        endpoint = _endpoint(merchants.get(services.merchants, merchant_id))
        _check(services, fields.get("url", endpoint.url), fields.get("events", endpoint.events))

    def changed(merchant: Merchant) -> Merchant:
        return merchant.changed(endpoint=replace(_endpoint(merchant), **fields))

    return _written(services, merchant_id, changed, Configured, reserve)


def remove(services: DashboardServices, merchant_id: str) -> Merchant:
    """Stop sending events. Raises ResourceMissing, Conflict."""
    return merchants.change(
        services.merchants, merchant_id, lambda merchant: merchant.changed(endpoint=None)
    )


def enable(services: DashboardServices, merchant_id: str) -> Merchant:
    """Enable an endpoint that a 410 has disabled. Raises as `roll_secret` does."""

    def changed(merchant: Merchant) -> Merchant:
        return merchant.changed(endpoint=replace(_endpoint(merchant), disabled_at=None))

    return merchants.change(services.merchants, merchant_id, changed)


def roll_secret(services: DashboardServices, merchant_id: str, *, overlap: timedelta) -> Configured:
    """Make a new secret; the previous one also signs until `overlap` (0 to 7 days) is over.

    Raises ParameterInvalid, ResourceMissing, WebhookUnexpectedState (no endpoint), Conflict.
    """
    if not timedelta(0) <= overlap <= OVERLAP_MAX:
        raise ParameterInvalid("The overlap must be 0 to 7 days.", param="overlap")
    now = services.clock.now()
    secret = new_webhook_secret(services.random_bytes)
    newest = _sealed(services, merchant_id, secret, now)

    def changed(merchant: Merchant) -> Merchant:
        endpoint = _endpoint(merchant)
        before = [replace(each, expires_at=now + overlap) for each in endpoint.secrets[:1]]
        kept = (newest, *(each for each in before if overlap))
        return merchant.changed(endpoint=replace(endpoint, secrets=kept))

    return Configured(merchants.change(services.merchants, merchant_id, changed), secret)


def ping(services: DashboardServices, merchant_id: str) -> WebhookEvent:
    """Send a test event. Raises ResourceMissing, WebhookUnexpectedState."""
    merchant = merchants.get(services.merchants, merchant_id)
    if _endpoint(merchant).disabled_at is not None:
        raise WebhookUnexpectedState("The webhook endpoint is disabled; enable it first.")
    event_id, now = new_event_id(services.random_bytes), services.clock.now()
    event = WebhookEvent(
        id=event_id,
        merchant=merchant_id,
        session=None,
        type=PING,
        body=ping_body(event_id, currency=merchant.asset_code),
        created_at=now,
        next_at=now,
        stripe_body=envelope(
            {"id": event_id, "object": PING},
            event_id=event_id,
            event_type=PING,
            base_url=services.base_url,
            at=now,
        ),
    )
    services.events.add(event)
    services.queue.enqueue([QueuedEvent(event.id, merchant_id)])
    return event


def resend(services: DashboardServices, merchant_id: str, event_id: str) -> WebhookEvent:
    """Start a new round of attempts for an event that was delivered, given up, or is waiting.

    Raises ResourceMissing (also for another merchant's), Conflict, WebhookUnexpectedState (an
    attempt is being made, or is due).
    """
    event = services.events.get(event_id)
    if event is None or event.merchant != merchant_id:
        raise ResourceMissing("No such event.")
    if event.status is EventStatus.PENDING and not waiting(event, services.clock.now()):
        raise WebhookUnexpectedState("This event is still being delivered.")
    return _send_again(services, event)


def resend_failed(
    services: DashboardServices,
    merchant_id: str,
    *,
    since: datetime,
    after: str | None = None,
    shards: int = 1,
) -> Resent:
    """Resend the given-up events created since then, a page of the log at a time."""
    page = services.events.page(
        merchant_id, limit=RESEND_PAGE, after=after, created_from=since, shards=shards
    )
    failed = [event for event in page.events if event.status is EventStatus.EXHAUSTED]
    for event in failed:
        _send_again(services, event)
    return Resent(len(failed), page.next_key)


def _send_again(services: DashboardServices, event: WebhookEvent) -> WebhookEvent:
    def again(current: WebhookEvent) -> WebhookEvent:
        if current is not event and current.status is EventStatus.PENDING:
            return current  # another request has just resent it
        return sent_again(current, services.clock.now())

    after = give_way(event, again, services.events.save)
    services.queue.enqueue([QueuedEvent(after.id, after.merchant)])
    return after


def _check(services: DashboardServices, url: str, events: tuple[str, ...]) -> None:
    """Raise UrlInvalid, ParameterInvalid for an address or events that cannot be set."""
    host = webhook_url(url, allow_loopback=services.allow_loopback, param="url")
    if not services.hosts.permitted(host):
        raise UrlInvalid(
            "The URL's host name must lead to a public address, and now does not.", param="url"
        )
    if unknown := [event for event in events if event not in OPTIONAL]:
        raise ParameterInvalid(f"There is no optional event {unknown[0]}.", param="events")


def _written(
    services: DashboardServices,
    merchant_id: str,
    changed: Callable[[Merchant], Merchant],
    configured: Callable[[Merchant], Configured],
    reserve: Reserve[Configured] | None,
) -> Configured:
    writer = new_nonce(services.random_bytes)

    def write(merchant: Merchant) -> None:
        reservation = reserve(configured(merchant), writer) if reserve else None
        services.merchants.replace(merchant, reservation)

    return configured(merchants.change(services.merchants, merchant_id, changed, write))


def _endpoint(merchant: Merchant) -> Endpoint:
    if merchant.endpoint is None:
        raise WebhookUnexpectedState("No webhook endpoint is set.")
    return merchant.endpoint


def _sealed(
    services: DashboardServices, merchant_id: str, secret: str, now: datetime
) -> WebhookSecret:
    sealed = services.vault.seal(secret, place=secret_place(merchant_id))
    return WebhookSecret(sealed=sealed, created_at=now)
