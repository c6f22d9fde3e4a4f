"""Write every change of a session. Nothing else calls the session store's `save`.

A change is one row of the table in `domain/transitions.py`. It is written on condition that the
session is still as it was read, in one transaction with the webhook event that the row names.
Afterwards, best effort, delivery of the event is enqueued, and so is the clean-up of what the
change leaves behind at the wallets.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from checkout.domain.ids import new_event_id, new_nonce
from checkout.domain.session import Phase, Session
from checkout.domain.transitions import Change, Event, advance
from checkout.domain.webhooks import OPTIONAL, WebhookEvent, event_body
from checkout.flows.give_way import GIVE_WAY
from checkout.flows.idempotency import Reserve
from checkout.ports.services import Services
from checkout.ports.sessions import StaleSession
from checkout.ports.wallets import Cleanup
from checkout.ports.webhooks import QueuedEvent


def move(services: Services, session: Session, event: Event, **changes: Any) -> Session:
    """Apply `event` to the session as it was read, and write the result.

    `changes` are the fields that the event sets, and a `note` for the history. Returns the session
    as written. Raises IllegalTransition where the table has no such row or its condition does not
    hold, and StaleSession where another writer came first; then nothing was written.
    """
    return commit(services, change(services, session, event, **changes))


def change(services: Services, session: Session, event: Event, **changes: Any) -> Change:
    """Return what `event` makes of the session now, for `commit`. Raises IllegalTransition."""
    now = services.clock.now()
    return advance(session, event, now=now, writer=new_nonce(services.random_bytes), **changes)


def give_way(
    services: Services,
    session: Session,
    decide: Callable[[Session], Change | None],
    reserve: Reserve[Session] | None = None,
) -> Session:
    """Write what `decide` makes of the session; after a lost race, decide again from the winner.

    Returns the session as written, or as it is where `decide` returns None. Raises StaleSession
    when the race is lost GIVE_WAY times, KeyHeld as `commit` does, and what `decide` raises.
    """
    for _ in range(GIVE_WAY):
        decided = decide(session)
        if decided is None:
            return session
        try:
            return commit(services, decided, reserve)
        except StaleSession as stale:
            session = stale.current
    raise StaleSession(session)


def commit(services: Services, change: Change, reserve: Reserve[Session] | None = None) -> Session:
    """Write `change` and its webhook event in one transaction; enqueue delivery and clean-up.

    The record that `reserve` makes of the result is in the transaction too. Raises StaleSession,
    and KeyHeld if the place of that record is taken.
    """
    event = _webhook_event(services, change)
    if event is not None and change.after.terminal and not change.before.terminal:
        change = replace(change, after=replace(change.after, event=event.id))
    reservation = reserve(change.after, change.after.writer) if reserve else None
    saved = services.sessions.save(change, event, reservation)
    if event is not None:
        services.queue.enqueue([QueuedEvent(event.id, event.merchant)])
    cleanup = _left_behind(change)
    if cleanup is not None:
        services.tasks.clean_up(cleanup)
    return saved


def _webhook_event(services: Services, change: Change) -> WebhookEvent | None:
    """Return the event that the table names for this change, if an endpoint wants it."""
    if change.webhook is None:
        return None
    if change.webhook in OPTIONAL:
        merchant = services.merchants.get(change.after.merchant)
        endpoints = merchant.endpoints if merchant is not None else ()
        if not any(each.wants(change.webhook) for each in endpoints):
            return None
    # Imported here, because most requests make no event.
    from checkout.domain.stripe_objects import event_json

    event_id = new_event_id(services.random_bytes)
    return WebhookEvent(
        id=event_id,
        merchant=change.after.merchant,
        session=change.after.id,
        type=change.webhook,
        body=event_body(change.after, change.webhook),
        created_at=change.at,
        next_at=change.at,
        shard=change.after.shard,
        stripe_body=event_json(
            change.after,
            event_id=event_id,
            event_type=change.webhook,
            base_url=services.base_url,
            at=change.at,
        ),
    )


def _left_behind(change: Change) -> Cleanup | None:
    """Return the grant that this change abandons, or None.

    Nothing depends on the clean-up: without its nonces a grant cannot be redeemed here, and grants
    expire on their own.
    """
    before, after = change.before, change.after
    # The holder of the continuation's lease redeems the grant or cancels it itself.
    held = before.phase is Phase.CONTINUING and before.lease_live(change.at)
    if before.grant is None or before.customer is None or after.grant is not None or held:
        return None
    return Cleanup(
        session=before.id,
        merchant=before.merchant,
        auth_server=before.customer.auth_server,
        grant=before.grant,
    )
