"""Make one attempt to deliver a webhook event: take the lease, send, record the outcome.

A merchant can have several endpoints. The event itself is for the first endpoint. The first process
that looks at the event stores a copy of it for each further endpoint. Each copy is then delivered
as a separate event, so no endpoint has to wait for another endpoint.

The event's record decides whether an attempt is due; a queue message is only a hint. A process
takes the lease, the exclusive right to make the attempt until the lease ends. If this process dies,
the result of its attempt is lost. The event is then sent again, even if the lost attempt had
reached the receiver (at-least-once delivery). Source: decisions.md "Webhooks".
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Final

from checkout.domain.ground.errors import Conflict, ResourceMissing
from checkout.domain.ground.ids import new_nonce
from checkout.domain.merchant.reach import Effect, allows
from checkout.domain.merchant.record import Merchant
from checkout.domain.record_kinds import with_details
from checkout.domain.webhooks.record import (
    ATTEMPTS_MAX,
    LEASE,
    TIMEOUT,
    Delivery,
    Endpoint,
    EventStatus,
    Format,
    GivenUp,
    WebhookEvent,
    copies,
    ended,
    given_up,
    leased,
    may_attempt,
    noted_late,
)
from checkout.domain.webhooks.signature import signed_headers, stripe_header
from checkout.flows import merchants
from checkout.flows.retry_on_conflict import retry_on_conflict
from checkout.flows.session import details
from checkout.ports import (
    WHOLE,
    Clock,
    Concurrency,
    DueEvent,
    EventQueue,
    QueuedEvent,
    Receivers,
    SecretUnreadable,
    ShardRange,
    StaleEvent,
)
from checkout.services import Services

if TYPE_CHECKING:
    from checkout.adapters.dynamo import DynamoEvents
    from checkout.adapters.vault import AesVault

# The longest delay of the queue. Attempts that are due later are enqueued by the scheduled sweep.
DELAY_MAX: Final = timedelta(minutes=15)
# Clocks differ a little. A message that arrives too early, by at most this much, is enqueued again.
EARLY: Final = timedelta(seconds=5)
GONE: Final = 410
# The sweep also enqueues events that are due within its next rounds, so that a few lost rounds
# cause no delay. If an enqueued event is still due after ENQUEUED_FOR, it is enqueued again.
AHEAD: Final = timedelta(minutes=5)
ENQUEUED_FOR: Final = timedelta(minutes=5)
# A round of the sweep reads at most this many due events of each shard (part of the index). The
# number is high, so that all merchants are among them.
DUE_MAX: Final = 10_000
BATCH: Final = 10  # the most messages that the queue takes in one request


class MessageResult(StrEnum):
    """The result of handling a queue message."""

    DELIVERED = "delivered"
    FAILED = "failed"
    GIVEN_UP = "given_up"
    NOTHING = "nothing"  # no such event, not due, no longer due, or leased by another process


def deliver(
    services: Services, vault: AesVault, receivers: Receivers, event_id: str
) -> MessageResult:
    """Make the event's next attempt if it is due.

    Raises Unavailable if the store or the vault does not answer. In that case, no attempt was made,
    and the message should be handled again.
    """
    event = services.events.get(event_id)
    now = services.clock.now()
    if event is None or event.status is not EventStatus.PENDING:
        return MessageResult.NOTHING
    if not may_attempt(event, now):
        if event.next_at - now <= EARLY:
            _enqueue(services.queue, event, now)
        return MessageResult.NOTHING
    merchant = services.merchants.get(event.merchant)
    new = event.version == 1 and event.endpoint is None
    if new and merchant is not None:
        _fan_out(services, event, merchant)
    endpoint = receiver(merchant, event) if merchant is not None else None
    try:
        if merchant is None or endpoint is None:
            return _give_up(services, event, GivenUp.NO_ENDPOINT)
        if new and not endpoint.wants(event.type):
            _give_up(services, event, GivenUp.NOT_WANTED)
            return MessageResult.NOTHING
        if endpoint.disabled_at is not None or not allows(merchant, Effect.EVENT):
            return _give_up(services, event, GivenUp.DISABLED)
        if event.attempts >= ATTEMPTS_MAX:  # the process that made the final attempt died
            return _give_up(services, event, GivenUp.ATTEMPTS)
        secrets = _secrets(vault, merchant, endpoint, now)
        body = _body(services, vault, merchant, event, endpoint)
        event = leased(event, now, writer=new_nonce(services.random_bytes))
        services.events.save(event)
    except StaleEvent:
        return MessageResult.NOTHING
    return _attempt(services, receivers, event, endpoint, secrets, body)


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The number of events that a round enqueued, and how long the oldest of them has been due."""

    enqueued: int
    longest: timedelta


def due_events(
    events: DynamoEvents, now: datetime, run_concurrently: Concurrency, part: ShardRange = WHOLE
) -> Sequence[DueEvent]:
    """Return the events that are due now or within the time AHEAD.

    An enqueued event is returned again only if it is still due after the time ENQUEUED_FOR.
    """
    return events.due(now + AHEAD, limit=DUE_MAX, run_concurrently=run_concurrently, part=part)


def enqueue_due(
    events: DynamoEvents,
    queue: EventQueue,
    clock: Clock,
    run_concurrently: Concurrency,
    found: Sequence[DueEvent],
    *,
    until: datetime,
) -> Enqueued:
    """Enqueue the `found` events, the merchants in turn. Begin no batch after the time `until`."""
    now = clock.now()

    def enqueue(batch: Sequence[DueEvent]) -> int:
        if clock.now() >= until:
            return 0
        # The events are enqueued before `put_off` sets when they are due again. If the process dies
        # in between, the next round enqueues them once more, which costs one read for each. In the
        # other order, they would wait until they are due again.
        queue.enqueue([QueuedEvent(due.id, due.merchant, _seconds(due.at - now)) for due in batch])
        for due in batch:
            events.put_off(due, max(due.at, now) + ENQUEUED_FOR)
        return len(batch)

    fair = iter(_in_turn(found))
    batches = iter(lambda: tuple(islice(fair, BATCH)), ())
    enqueued = sum(run_concurrently(enqueue, batches))
    return Enqueued(enqueued, max([timedelta(0), *(now - due.since for due in found)]))


def _in_turn(found: Iterable[DueEvent]) -> Iterator[DueEvent]:
    """Yield each merchant's most overdue event, then each merchant's next event, and so on."""
    by_merchant: dict[str, list[DueEvent]] = defaultdict(list)
    for due in found:
        by_merchant[due.merchant].append(due)
    for turn in zip_longest(*by_merchant.values()):
        yield from (due for due in turn if due is not None)


def receiver(merchant: Merchant, event: WebhookEvent) -> Endpoint | None:
    """Return the endpoint that the event is for, or None if the endpoint was removed.

    Also return None if the first endpoint was set after the event was created.
    """
    endpoint = merchant.endpoint_of(event.endpoint)
    if endpoint is None or (event.endpoint is None and not endpoint.was_there(event.created_at)):
        return None
    return endpoint


def _fan_out(services: Services, event: WebhookEvent, merchant: Merchant) -> None:
    """Store copies of the event for the merchant's further endpoints, and enqueue the copies.

    The copies are stored before the event itself is first changed. If the process dies here, the
    event is unchanged, so the next attempt stores and enqueues the copies again.
    """
    made = copies(event, merchant.further_endpoints)
    for each in made:
        services.events.add_copy(each)
    if made:
        services.queue.enqueue([QueuedEvent(each.id, each.merchant) for each in made])


def _secrets(vault: AesVault, merchant: Merchant, endpoint: Endpoint, now: datetime) -> list[str]:
    place = merchant.secret_place(endpoint)
    return [vault.open(s.sealed, place=place) for s in endpoint.signing(now)]


def _body(
    services: Services, vault: AesVault, merchant: Merchant, event: WebhookEvent, endpoint: Endpoint
) -> str:
    """Return the body to send. An event in Stripe's form also contains the customer's details.

    The details are not stored with the event, so after an erasure no attempt sends them. If the
    details cannot be decrypted, the event is sent without them, and the operator gets an alarm.
    The details are also left out if the endpoint's address was set by an API key that has no right
    to read.
    """
    session, shown = None, endpoint.format is Format.STRIPE and not endpoint.withheld
    if event.details_of is not None and shown:
        session = services.sessions.get(event.details_of)
    if session is not None:
        with suppress(SecretUnreadable):
            given = details.opened(vault, merchant, session)
            event = with_details(event, session, given, base_url=services.base_url)
    return event.body_for(endpoint)


def _attempt(
    services: Services,
    receivers: Receivers,
    event: WebhookEvent,
    endpoint: Endpoint,
    secrets: list[str],
    body: str,
) -> MessageResult:
    """Send the leased event and record the outcome.

    If the lease could end before the response arrives, nothing is sent. Another process sends the
    event later.
    """
    leased_at, began = event.deliveries[-1].at, services.clock.now()
    if began > leased_at + LEASE - TIMEOUT:
        return MessageResult.NOTHING
    headers = signed_headers(event.event, event.type, body, secrets=secrets, now=began)
    if endpoint.format is Format.STRIPE:
        headers |= stripe_header(body, secrets=secrets, now=began)
    receipt = receivers.post(endpoint.url, headers, body.encode(), now=began)
    now = services.clock.now()
    delivery = Delivery(
        at=leased_at,
        duration_ms=(now - began) // timedelta(milliseconds=1),
        status=receipt.status,
        error=receipt.error,
        answer=receipt.answer,
    )
    if receipt.status == GONE:
        _disable(services, event.merchant, endpoint)
    after = ended(
        event,
        delivery,
        now=now,
        spread=int.from_bytes(services.random_bytes(4), "big") / 2**31 - 1,
        retry_after=receipt.retry_after,
        gone=receipt.status == GONE,
    )
    try:
        services.events.save(after)
    except StaleEvent as stale:
        _note_late(services, stale.current, delivery)
    else:
        if after.status is EventStatus.PENDING and after.next_at - now <= DELAY_MAX:
            _enqueue(services.queue, after, now)
    if delivery.succeeded:
        return MessageResult.DELIVERED
    return MessageResult.FAILED if after.status is EventStatus.PENDING else MessageResult.GIVEN_UP


def _note_late(services: Services, current: WebhookEvent, delivery: Delivery) -> None:
    """Record the result of an attempt whose lease ended before the attempt did.

    Meanwhile another attempt may have begun, or the merchant may have resent the event. The result
    of the late attempt is still valid. If the late attempt succeeded, no further attempt is made.
    """
    with suppress(Conflict):  # after a Conflict, only a line in the delivery log is missing
        retry_on_conflict(
            current,
            lambda event: noted_late(event, delivery, now=services.clock.now()),
            services.events.save,
        )


def _give_up(services: Services, event: WebhookEvent, reason: GivenUp) -> MessageResult:
    services.events.save(given_up(event, reason, now=services.clock.now()))
    return MessageResult.GIVEN_UP


def _disable(services: Services, merchant_id: str, asked: Endpoint) -> None:
    """Disable an endpoint that answered 410, unless the merchant has changed it meanwhile."""

    def disabled(merchant: Merchant) -> Merchant:
        endpoint = merchant.endpoint_of(asked.id)
        if endpoint is None or endpoint.url != asked.url or endpoint.disabled_at is not None:
            return merchant
        return merchant.disabled(services.clock.now(), endpoint)

    with suppress(Conflict, ResourceMissing):
        merchants.change(services.merchants, merchant_id, disabled)


def _enqueue(queue: EventQueue, event: WebhookEvent, now: datetime) -> None:
    queue.enqueue([QueuedEvent(event.id, event.merchant, _seconds(event.next_at - now))])


def _seconds(ahead: timedelta) -> int:
    """Return whole seconds, rounded up so that a message is never early."""
    return max(0, math.ceil(ahead.total_seconds()))
