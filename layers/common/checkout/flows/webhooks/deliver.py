"""One attempt to deliver a webhook event, from the lease to the record of its outcome.

The event's record is the truth, a message of the queue only a hint: whoever holds the lease makes
the attempt, and everybody else leaves. What a process dies of costs at most the attempt it had
leased; the receiver may then have got it, and gets it again (at least once). Source: decisions.md
"Webhooks".
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from checkout.domain.ids import new_nonce
from checkout.domain.merchant import Merchant
from checkout.domain.webhook_signature import signed_headers
from checkout.domain.webhooks import (
    ATTEMPTS_MAX,
    LEASE,
    TIMEOUT,
    Delivery,
    Endpoint,
    EventStatus,
    GivenUp,
    WebhookEvent,
    ended,
    given_up,
    leased,
    may_attempt,
    noted_late,
    secret_place,
)
from checkout.ports.merchants import StaleMerchant
from checkout.ports.runtime import Vault
from checkout.ports.services import Services
from checkout.ports.webhooks import EventQueue, Events, QueuedEvent, Receipt, Receivers, StaleEvent

# The longest delay that the queue keeps a hint for; later attempts are hinted at by the sweep.
DELAY_MAX: Final = timedelta(minutes=15)
# Clocks differ a little; a hint that comes by so much too early is sent again.
EARLY: Final = timedelta(seconds=5)
GONE: Final = 410
GIVE_WAY: Final = 5  # how often a loser of a write decides anew
# The sweep hints at what falls due within its next rounds, so that a few of them may die and make
# nothing late, and again if nothing came of it.
AHEAD: Final = timedelta(minutes=5)
ENQUEUED_FOR: Final = timedelta(minutes=5)


class Outcome(StrEnum):
    """What came of a hint."""

    DELIVERED = "delivered"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    NOTHING = "nothing"  # no such event, not yet, no longer, or somebody else is at it


def deliver(services: Services, vault: Vault, receivers: Receivers, event_id: str) -> Outcome:
    """Make the attempt that the event is owed now, if it is. Raises Unavailable where the store or
    the vault does not answer: then no attempt was made, and the hint is worth another try.
    """
    event = services.events.get(event_id)
    now = services.clock.now()
    if event is None or event.status is not EventStatus.PENDING:
        return Outcome.NOTHING
    if not may_attempt(event, now):
        if event.next_at - now <= EARLY:
            _enqueue(services.queue, event, now)
        return Outcome.NOTHING
    merchant = services.merchants.get(event.merchant)
    endpoint = merchant.endpoint if merchant is not None else None
    try:
        if merchant is None or endpoint is None:
            return _give_up(services, event, GivenUp.NO_ENDPOINT)
        if endpoint.disabled_at is not None:
            return _give_up(services, event, GivenUp.DISABLED)
        if event.attempts >= ATTEMPTS_MAX:  # the last one's process died
            return _give_up(services, event, GivenUp.ATTEMPTS)
        secrets = _secrets(vault, merchant, endpoint, now)
        event = leased(event, now, writer=new_nonce(services.random_bytes))
        services.events.save(event)
    except StaleEvent:
        return Outcome.NOTHING
    return _attempt(services, receivers, event, endpoint, secrets)


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What one round hinted at, and for how long the oldest of it has been owed an attempt."""

    enqueued: int
    longest: timedelta


def enqueue_due(events: Events, queue: EventQueue, *, now: datetime, limit: int) -> Enqueued:
    """Hint at events that are owed an attempt within AHEAD. What was hinted at is named
    again only if nothing has come of it for a while.
    """
    found = events.due(now + AHEAD, limit=limit)
    # Hints first: who dies in between has them sent once more, which costs a read each, and not
    # held back until they are due again.
    queue.enqueue([QueuedEvent(due.id, due.merchant, _seconds(due.at - now)) for due in found])
    for due in found:
        events.put_off(due, max(due.at, now) + ENQUEUED_FOR)
    return Enqueued(len(found), max([timedelta(0), *(now - due.since for due in found)]))


def _secrets(vault: Vault, merchant: Merchant, endpoint: Endpoint, now: datetime) -> list[str]:
    place = secret_place(merchant.id)
    return [vault.open(s.sealed, place=place) for s in endpoint.signing(now)]


def _attempt(
    services: Services,
    receivers: Receivers,
    event: WebhookEvent,
    endpoint: Endpoint,
    secrets: list[str],
) -> Outcome:
    """`event` is leased. Who wakes up so late that the lease might be over before the answer is
    there sends nothing: somebody else will have.
    """
    leased_at, began = event.deliveries[-1].at, services.clock.now()
    if began > leased_at + LEASE - TIMEOUT:
        return Outcome.NOTHING
    headers = signed_headers(event.id, event.type, event.body, secrets=secrets, now=began)
    receipt = receivers.post(endpoint.url, headers, event.body.encode(), now=began)
    now = services.clock.now()
    delivery = Delivery(
        at=leased_at,
        duration_ms=(now - began) // timedelta(milliseconds=1),
        status=receipt.status,
        error=receipt.error,
        answer=receipt.answer,
    )
    if receipt.status == GONE:
        _disable(services, event.merchant, endpoint.url)
    after = _after(services, event, delivery, receipt, now)
    try:
        services.events.save(after)
    except StaleEvent as stale:
        _note_late(services, stale.current, delivery)
    else:
        if after.status is EventStatus.PENDING and after.next_at - now <= DELAY_MAX:
            _enqueue(services.queue, after, now)
    if delivery.succeeded:
        return Outcome.DELIVERED
    return Outcome.FAILED if after.status is EventStatus.PENDING else Outcome.GIVEN_UP


def _after(
    services: Services,
    event: WebhookEvent,
    delivery: Delivery,
    receipt: Receipt,
    now: datetime,
) -> WebhookEvent:
    spread = int.from_bytes(services.random_bytes(4), "big") / 2**31 - 1
    return ended(
        event,
        delivery,
        now=now,
        spread=spread,
        retry_after=receipt.retry_after,
        gone=receipt.status == GONE,
    )


def _note_late(services: Services, current: WebhookEvent, delivery: Delivery) -> None:
    """The lease was over before we were: another attempt may be under way, or the merchant has it
    sent again. What we know is still true, and a success ends the event.
    """
    for _ in range(GIVE_WAY):
        after = noted_late(current, delivery, now=services.clock.now())
        try:
            services.events.save(after)
        except StaleEvent as stale:
            current = stale.current
        else:
            return


def _give_up(services: Services, event: WebhookEvent, reason: GivenUp) -> Outcome:
    services.events.save(given_up(event, reason, now=services.clock.now()))
    return Outcome.GIVEN_UP


def _disable(services: Services, merchant_id: str, url: str) -> None:
    """410: the endpoint asks to be left alone. Unless the merchant has set another meanwhile."""
    for _ in range(GIVE_WAY):
        merchant = services.merchants.get(merchant_id)
        if merchant is None or merchant.endpoint is None:
            return
        if merchant.endpoint.url != url or merchant.endpoint.disabled_at is not None:
            return
        try:
            services.merchants.replace(merchant.disabled(services.clock.now()))
        except StaleMerchant:
            continue
        return


def _enqueue(queue: EventQueue, event: WebhookEvent, now: datetime) -> None:
    queue.enqueue([QueuedEvent(event.id, event.merchant, _seconds(event.next_at - now))])


def _seconds(ahead: timedelta) -> int:
    """Rounded up: never early."""
    return max(0, math.ceil(ahead.total_seconds()))
