"""Manage a merchant's webhooks: endpoints, secrets, test events, and resending of events.

Each function changes one endpoint by its id, or the merchant's first endpoint if no id is given.
The audit log records a change that is made `by` an API key or a member, but none by the operator.

The plain text of a secret is returned only by the call that generates it. This module sends no
events; it stores and enqueues them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.ground.errors import (
    ParameterInvalid,
    ResourceMissing,
    UrlInvalid,
    WebhookUnexpectedState,
)
from checkout.domain.ground.grammar import webhook_url
from checkout.domain.ground.ids import new_endpoint_id, new_event_id, new_nonce
from checkout.domain.ground.parts import Lists
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import Actor, Scope
from checkout.domain.merchant.reach import Effect, require
from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.domain.stripe.objects import envelope
from checkout.domain.webhooks.event_types import OPTIONAL, PING
from checkout.domain.webhooks.record import (
    ENDPOINTS_MAX,
    Endpoint,
    EventStatus,
    WebhookEvent,
    WebhookSecret,
    copy_id,
    ping_body,
    secret_place,
    sent_again,
    waiting,
)
from checkout.domain.webhooks.signature import new_webhook_secret
from checkout.flows import audit, merchants
from checkout.flows.idempotency import Reserve
from checkout.flows.retry_on_conflict import retry_on_conflict
from checkout.ports import QueuedEvent
from checkout.services import DashboardServices

OVERLAP_MAX: Final = timedelta(days=7)
RESEND_PAGE: Final = 100  # events of the log that one call of `resend_failed` reads: a page
COUNTED_PAGES: Final = 10  # pages in which failed events are counted, before the merchant confirms
# The fields of an address that the operator sets. The shop gets no notice of such an address.
_BY_NOBODY: Final = {"set_by": None, "set_at": None, "withheld": None}


@dataclass(frozen=True, slots=True)
class Configured:
    """The endpoint after a change. A new `secret` is shown once."""

    merchant: Merchant
    endpoint: Endpoint
    secret: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Resent:
    """The number of events resent. The next page begins at `next_key`, which is None at the end."""

    count: int
    next_key: str | None


@dataclass(frozen=True, slots=True)
class Failed:
    """The number of events that would be resent, and whether there may be more."""

    count: int
    more: bool


def configure(
    services: DashboardServices,
    merchant_id: str,
    *,
    url: str,
    events: tuple[str, ...],
    endpoint: str | None = None,
    add: bool = False,
    more: Mapping[str, Any] | None = None,
    by: Actor | None = None,
    reserve: Reserve[Configured] | None = None,
) -> Configured:
    """From now on, send the merchant's events to `url`, including these optional `events`.

    A new endpoint gets an id and a secret. An existing endpoint keeps its id and secret, and is
    enabled again. `add` adds a further endpoint, up to ENDPOINTS_MAX. `more` are other fields of
    the endpoint. The event types that the endpoint had requested before (`asked`) are replaced.
    `reserve` makes the stored answer to the request's idempotency key, which is written together
    with the endpoint. Raises UrlInvalid, ParameterInvalid, ResourceMissing, WebhookUnexpectedState,
    Conflict, Unavailable, and KeyHeld with `reserve`.
    """
    given = {**(more or {}), **(_set_by(services, by) if by else {})}
    _check(services, url, events)
    now = services.clock.now()
    secret = new_webhook_secret(services.random_bytes)
    begun = Endpoint(url=url, id=new_endpoint_id(services.random_bytes), created_at=now)
    identity, newest = begun.id, begun.secrets

    def changed(merchant: Merchant) -> Merchant:
        nonlocal identity, newest
        if add and len(merchant.endpoints) >= ENDPOINTS_MAX:
            raise WebhookUnexpectedState(
                f"You can have {ENDPOINTS_MAX} webhook endpoints. Delete one first."
            )
        old = None if add else merchant.endpoint_of(endpoint)
        if old is None and endpoint is not None:
            raise ResourceMissing("No such webhook endpoint.")
        set_up = replace(
            old or begun,
            url=url,
            **{**_BY_NOBODY, "asked": None, **_told(old, url, given)},
            events=tuple(event for event in OPTIONAL if event in events),
            disabled_at=None,
        )
        identity, newest = set_up.id, ()
        if not set_up.secrets:
            further = merchant.endpoint not in (None, old)
            place = secret_place(merchant_id, identity if further else None)
            newest = (_sealed(services, secret, place, now),)
            set_up = replace(set_up, secrets=newest)
        return merchant.with_endpoint(old, set_up)

    def configured(merchant: Merchant) -> Configured:
        return Configured(merchant, _endpoint(merchant, identity), secret if newest else None)

    return _noted(services, by, _written(services, merchant_id, changed, configured, reserve))


def update(
    services: DashboardServices,
    merchant_id: str,
    fields: Mapping[str, Any],
    *,
    endpoint: str | None = None,
    by: Actor | None = None,
    reserve: Reserve[Configured] | None = None,
) -> Configured:
    """Change only these fields of the endpoint. Raises as `configure` does."""
    if by and "url" in fields:
        fields = {**fields, **_set_by(services, by)}
    if "url" in fields or "events" in fields:
        found = _endpoint(merchants.get(services.merchants, merchant_id), endpoint)
        _check(services, fields.get("url", found.url), fields.get("events", ()))

    def changed(merchant: Merchant) -> Merchant:
        found = _endpoint(merchant, endpoint)
        return _with(merchant, endpoint, **_told(found, fields.get("url"), fields))

    def configured(merchant: Merchant) -> Configured:
        return Configured(merchant, _endpoint(merchant, endpoint))

    return _noted(services, by, _written(services, merchant_id, changed, configured, reserve))


def remove(
    services: DashboardServices,
    merchant_id: str,
    *,
    endpoint: str | None = None,
    by: Actor | None = None,
) -> Merchant:
    """Remove an endpoint, so that no events are sent to it. Raises ResourceMissing, Conflict."""
    found: Endpoint | None = None

    def removed(merchant: Merchant) -> Merchant:
        nonlocal found
        found = merchant.endpoint_of(endpoint)
        return merchant if found is None else merchant.with_endpoint(found, None)

    merchant = merchants.change(services.merchants, merchant_id, removed)
    if by:
        audit.note(services, by, Action.WEBHOOK_REMOVED, address_of(found))
    return merchant


def enable(
    services: DashboardServices, merchant_id: str, *, endpoint: str | None = None
) -> Merchant:
    """Enable an endpoint that was disabled because it answered 410. Raises as `roll_secret`."""
    return merchants.change(
        services.merchants, merchant_id, lambda each: _with(each, endpoint, disabled_at=None)
    )


def roll_secret(
    services: DashboardServices,
    merchant_id: str,
    *,
    overlap: timedelta,
    endpoint: str | None = None,
    reserve: Reserve[Configured] | None = None,
) -> Configured:
    """Make a new secret. Until `overlap` (0 to 7 days) is over, the previous secret also signs.

    Raises ParameterInvalid, ResourceMissing, WebhookUnexpectedState (no endpoint), Conflict, and
    KeyHeld with `reserve`.
    """
    if not timedelta(0) <= overlap <= OVERLAP_MAX:
        raise ParameterInvalid("The overlap must be 0 to 7 days.", param="overlap")
    now = services.clock.now()
    secret = new_webhook_secret(services.random_bytes)

    def changed(merchant: Merchant) -> Merchant:
        found = _endpoint(merchant, endpoint)
        newest = _sealed(services, secret, merchant.secret_place(found), now)
        before = [replace(each, expires_at=now + overlap) for each in found.secrets[:1]]
        kept = (newest, *(each for each in before if overlap))
        return merchant.with_endpoint(found, replace(found, secrets=kept))

    def configured(merchant: Merchant) -> Configured:
        return Configured(merchant, _endpoint(merchant, endpoint), secret)

    return _written(services, merchant_id, changed, configured, reserve)


def ping(
    services: DashboardServices,
    merchant_id: str,
    *,
    endpoint: str | None = None,
    reserve: Reserve[WebhookEvent] | None = None,
) -> WebhookEvent:
    """Send a test event to the endpoint.

    Raises ResourceMissing, WebhookUnexpectedState, MerchantUnproven, MerchantSuspended, and KeyHeld
    with `reserve`.
    """
    merchant = merchants.get(services.merchants, merchant_id)
    found = _endpoint(merchant, endpoint)
    require(merchant, Effect.TEST_EVENT)
    if found.disabled_at is not None:
        raise WebhookUnexpectedState("The webhook endpoint is disabled; enable it first.")
    event_id, now = new_event_id(services.random_bytes), services.clock.now()
    identity = found.id
    event = WebhookEvent(
        id=event_id if found == merchant.endpoint else copy_id(event_id, identity),
        endpoint=identity,
        merchant=merchant_id,
        subject=None,
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
    writer = new_nonce(services.random_bytes)
    services.events.add(event, reserve(event, writer) if reserve else None)
    services.queue.enqueue([QueuedEvent(event.id, merchant_id)])
    return event


def resend(services: DashboardServices, merchant_id: str, event_id: str) -> WebhookEvent:
    """Start a new round of attempts for an event that was delivered or given up, or is waiting.

    Raises ResourceMissing (also for another merchant's event), Conflict, and WebhookUnexpectedState
    if an attempt is due or being made.
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
    endpoint: str | None = None,
) -> Resent:
    """Resend the endpoint's failed events in one page of the log. Only events since `since` count.

    Events that were created before the endpoint, or that the endpoint did not request, are left
    out. Raises Conflict.
    """
    failed, next_key = _failed(services, merchant_id, since, after, endpoint)
    for event in failed:
        _send_again(services, event)
    return Resent(len(failed), next_key)


def count_failed(
    services: DashboardServices,
    merchant_id: str,
    *,
    since: datetime,
    endpoint: str | None = None,
) -> Failed:
    """Count the events that `resend_failed` would resend, in at most COUNTED_PAGES pages."""
    count, after = 0, None
    for _ in range(COUNTED_PAGES):
        failed, after = _failed(services, merchant_id, since, after, endpoint)
        count += len(failed)
        if after is None:
            break
    return Failed(count, after is not None)


def _failed(
    services: DashboardServices,
    merchant_id: str,
    since: datetime,
    after: str | None,
    endpoint: str | None,
) -> tuple[list[WebhookEvent], str | None]:
    """Return the failed events in a page of the log, and the position after which to continue."""
    merchant = services.merchants.get(merchant_id)
    found = merchant.endpoint_of(endpoint) if merchant is not None else None
    if merchant is None or found is None:
        return [], None
    page = services.events.page(
        Lists(merchant.id, merchant.parts),
        limit=RESEND_PAGE,
        after=after,
        created_from=max(since, found.created_at),
        endpoint=log_of(merchant, endpoint),
    )
    return [event for event in page.records if event.in_vain], page.next_key


def log_of(merchant: Merchant, endpoint: str | None) -> str | None:
    """Return the id of an endpoint's log. None is the merchant's log, for the first endpoint."""
    first = merchant.endpoint
    return None if first and first.id == endpoint else endpoint


def _send_again(services: DashboardServices, event: WebhookEvent) -> WebhookEvent:
    to = event.endpoint
    if not event.is_copy:
        merchant = merchants.get(services.merchants, event.merchant)
        to = merchant.endpoint.id if merchant.endpoint else None

    def again(current: WebhookEvent) -> WebhookEvent:
        if current is not event and current.status is EventStatus.PENDING:
            return current  # another request has just resent the event
        return sent_again(current, services.clock.now(), endpoint=to)

    after = retry_on_conflict(event, again, services.events.save)
    services.queue.enqueue([QueuedEvent(after.id, after.merchant)])
    return after


def address_of(endpoint: Endpoint | None) -> str | None:
    """Return the address for the audit log, without its query, which may contain a secret."""
    return None if endpoint is None else endpoint.url.partition("?")[0]


def _set_by(services: DashboardServices, key: Actor) -> dict[str, Any]:
    """Return an endpoint's fields about the actor who sets its address.

    If an API key without the right to read sets the address, no customers' details are sent there.
    """
    blind = isinstance(key, ApiKey) and Scope.READ not in key.scopes
    return {"set_by": key.id, "set_at": services.clock.now(), "withheld": 1 if blind else None}


def _noted(services: DashboardServices, by: Actor | None, done: Configured) -> Configured:
    if by:
        audit.note(services, by, Action.WEBHOOK_SET, address_of(done.endpoint))
    return done


def _told(old: Endpoint | None, url: str | None, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields, with `set_by` and `set_at` of `old` if the address does not change."""
    if old is None or old.set_by is None or old.url != url:
        return dict(fields)
    return {**fields, "set_by": old.set_by, "set_at": old.set_at}


def _check(services: DashboardServices, url: str, events: tuple[str, ...]) -> None:
    """Raise UrlInvalid or ParameterInvalid for an address or events that cannot be set."""
    host = webhook_url(url, allow_loopback=services.allow_loopback, param="url")
    if not services.hosts.permitted(host):
        raise UrlInvalid(f"The host {host} does not resolve to a public address.", param="url")
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


def _endpoint(merchant: Merchant, identity: str | None) -> Endpoint:
    found = merchant.endpoint_of(identity)
    if found is None and identity is not None:
        raise ResourceMissing("No such webhook endpoint.")
    if found is None:
        raise WebhookUnexpectedState("No webhook endpoint is set.")
    return found


def _with(merchant: Merchant, identity: str | None, **fields: Any) -> Merchant:
    """Return the merchant after changing these fields of the endpoint."""
    found = _endpoint(merchant, identity)
    return merchant.with_endpoint(found, replace(found, **fields))


def _sealed(
    services: DashboardServices, secret: str, place: tuple[str, str, str], now: datetime
) -> WebhookSecret:
    return WebhookSecret(sealed=services.vault.seal(secret, place=place), created_at=now)
