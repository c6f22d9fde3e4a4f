"""Write every change of a record. Only this module calls the store's `save`.

A change applies one row of the record's transition table (domain/record_kinds.py). The change is
written only if the record is still as it was read. The same transaction writes the webhook events
that the row names. Afterwards, two kinds of tasks are enqueued: to deliver the events, and to
cancel a grant that the change abandons. If enqueuing fails, the change stays written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import cache
from typing import Any, TypeVar, cast

from checkout.domain.ground.ids import new_event_id, new_nonce
from checkout.domain.payment.in_flight import InFlight, Phase
from checkout.domain.payment.machine import Change, Record
from checkout.domain.record_kinds import charge_event, refund_event, subject_of
from checkout.domain.refund.record import Refund
from checkout.domain.webhooks.event_types import OPTIONAL, REFUND_CREATED
from checkout.domain.webhooks.record import Endpoint, WebhookEvent
from checkout.flows.idempotency import Reserve
from checkout.flows.retry_on_conflict import TRIES
from checkout.ports import Allowance, Cleanup, QueuedEvent, StaleRecord, Transaction
from checkout.services import Services

R = TypeVar("R", bound=Record)
Listeners = Callable[[str], int]


def move(services: Services, record: R, event: StrEnum, **changes: Any) -> R:
    """Apply `event` to the record as it was read, and write the result.

    `changes` are the fields that the event sets, and a `note` for the record's history. Returns the
    record as written. Raises IllegalTransition if the table has no row for this event and state or
    the row's condition does not hold. Raises StaleRecord if another process has written the record
    first. After an error, nothing was written.
    """
    return commit(services, change(services, record, event, **changes))


def change(services: Services, record: R, event: StrEnum, **changes: Any) -> Change[R]:
    """Return the change that `event` makes now, for `commit`. Raises IllegalTransition."""
    now = services.clock.now()
    writer = new_nonce(services.random_bytes)
    changed: Change[R] = subject_of(record.id).advance(
        record, event, now=now, writer=writer, **changes
    )
    return changed


def write_decided(
    services: Services,
    record: R,
    decide: Callable[[R], Change[R] | None],
    reserve: Reserve[R] | None = None,
) -> R:
    """Write the change that `decide` returns.

    If another process has written the record first, `decide` is called again with the stored
    record, up to TRIES times in all. Returns the record as written, or unchanged if `decide`
    returns None. Raises StaleRecord after the last try, the KeyHeld of `commit`, and the errors of
    `decide`.
    """
    for _ in range(TRIES):
        decided = decide(record)
        if decided is None:
            return record
        try:
            return commit(services, decided, reserve)
        except StaleRecord as stale:
            record = stale.current
    raise StaleRecord(record)


def commit(
    services: Services,
    change: Change[R],
    reserve: Reserve[R] | None = None,
    *,
    refund: Refund | None = None,
    also: Change[Any] | None = None,
    allowance: Allowance | None = None,
) -> R:
    """Write `change` and its webhook events in one transaction; enqueue delivery and clean-up.

    The same transaction writes these, if given: a new `refund` with its event, a change of another
    record (`also`), and the increase of an `allowance`. It also writes the stored answer to an
    idempotency key, which `reserve` makes of the result. Raises StaleRecord, AllowanceUsed, and
    KeyHeld if this key is taken.
    """
    listeners = _listeners(services, change.after.merchant)
    event = _webhook_event(services, change, listeners)
    if event is None and refund is not None:
        event = _created(services, refund, listeners)
    second = _beside(services, change, refund, listeners)
    event, second = (each and each.for_endpoints(listeners(each.type)) for each in (event, second))
    ends = change.after.terminal and not change.before.terminal
    if event is not None and ends and isinstance(change.after, InFlight):
        change = replace(change, after=replace(change.after, event=event.id))
    reservation = reserve(change.after, change.after.writer) if reserve else None
    events = tuple(each for each in (event, second) if each is not None)
    transaction = Transaction(
        change, events, refund=refund, reservation=reservation, allowance=allowance, also=also
    )
    saved = services.sessions.save(transaction)
    if events:
        services.queue.enqueue([QueuedEvent(each.id, each.merchant) for each in events])
    cleanup = _left_behind(change)
    if cleanup is not None:
        services.tasks.clean_up(cleanup)
    return saved


def _webhook_event(
    services: Services, change: Change[R], listeners: Listeners
) -> WebhookEvent | None:
    """Return the event that the table names for this change, or None if it is not `_wanted`."""
    if change.webhook is None or not _wanted(change.webhook, listeners):
        return None
    event_id = new_event_id(services.random_bytes)
    describe = subject_of(change.after.id).event
    assert describe is not None
    return describe(change, change.webhook, event_id=event_id, base_url=services.base_url)


def _beside(
    services: Services, change: Change[R], new: Refund | None, listeners: Listeners
) -> WebhookEvent | None:
    """Return the second event of this change, or of the `new` refund, if it is `_wanted`.

    The second event of a refund is about the charge of the refunded session, because this charge
    includes the refund's amount as soon as the refund is requested. There is no second event if the
    session was deleted at the end of its retention.
    """
    name, after = change.beside, change.after
    if name is None or not _wanted(name, listeners):
        return None
    named: dict[str, Any] = {
        "event_id": new_event_id(services.random_bytes),
        "base_url": services.base_url,
    }
    if new is not None:
        return charge_event(new, cast(Any, after), name, at=change.at, **named)
    if not isinstance(after, Refund):
        describe = subject_of(after.id).event
        assert describe is not None
        return describe(change, name, **named)
    session = services.sessions.get(after.session)
    if session is None:
        return None
    return charge_event(after, session, name, at=change.at, **named)


def _created(services: Services, refund: Refund, listeners: Listeners) -> WebhookEvent | None:
    """Return the event of a new refund, if an endpoint has requested it."""
    if not _wanted(REFUND_CREATED, listeners):
        return None
    event_id = new_event_id(services.random_bytes)
    at, base_url = refund.created_at, services.base_url
    return refund_event(refund, REFUND_CREATED, event_id=event_id, base_url=base_url, at=at)


def _wanted(event_type: str, listeners: Listeners) -> bool:
    """Return whether to make an event of this type. Optional types are made only on request."""
    return event_type not in OPTIONAL or listeners(event_type) > 0


def _listeners(services: Services, merchant_id: str) -> Listeners:
    """Return a function that counts the endpoints that an event type is sent to.

    The function reads the merchant only at its first call.
    """

    @cache
    def endpoints() -> tuple[Endpoint, ...]:
        merchant = services.merchants.get(merchant_id)
        return merchant.endpoints if merchant is not None else ()

    return lambda event_type: sum(each.wants(event_type) for each in endpoints())


def _left_behind(change: Change[R]) -> Cleanup | None:
    """Return the task to cancel the grant that this change abandons, or None.

    Safety does not depend on the task: nobody can redeem a grant here without its nonces, and
    grants expire on their own.
    """
    before, after = change.before, change.after
    if not isinstance(before, InFlight) or not isinstance(after, InFlight):
        return None  # a refund's approval allows only the refund, and expires
    # The holder of the continuation's lease redeems the grant or cancels it itself.
    held = before.phase is Phase.CONTINUING and before.lease_live(change.at)
    if before.grant is None or before.customer is None or after.grant is not None or held:
        return None
    return Cleanup(
        session=before.id,
        merchant=before.merchant,
        auth_server=before.customer.auth_server,
        grant=before.grant,
        identity=before.identity,
    )
