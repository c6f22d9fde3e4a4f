"""A session outside of its payment: created, read, listed, expired, canceled, and settled by the
clock.

Every write is conditional on the session being as it was read; a loser reads again and decides
anew. No wallet is called here: what an end leaves behind there is handed to the task queue.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from checkout.domain.errors import (
    CheckoutError,
    IdempotencyKeyInvalid,
    IdempotencyKeyReused,
    PaymentInProgress,
    ResourceMissing,
    SessionBusy,
    SessionUnexpectedState,
)
from checkout.domain.ids import new_event_id, new_nonce, new_session_id
from checkout.domain.merchant import ApiKey
from checkout.domain.new_session import NewSession
from checkout.domain.public import public_session
from checkout.domain.session import Phase, Problem, Session, Status
from checkout.domain.transitions import Change, Event, IllegalTransition, advance
from checkout.domain.webhooks import OPTIONAL, WebhookEvent, event_body
from checkout.flows.cursors import cursor, position_of
from checkout.ports.services import Services
from checkout.ports.sessions import Reservation, StaleSession
from checkout.ports.wallets import Cleanup
from checkout.ports.webhooks import QueuedEvent

IDEMPOTENCY_LIFETIME: Final = timedelta(hours=24)
PAGE_MAX: Final = 100
FILTER_ROUNDS: Final = 5  # index pages that one filtered list request looks at
GIVE_WAY: Final = 5  # how often a loser of a write decides anew

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SESSION_ID: Final = re.compile(r"cs_[0-9A-Za-z]{22}")
_IDEMPOTENCY_KEY: Final = re.compile(r"[\x20-\x7e]{1,255}")
POSITION: Final = re.compile(r"[0-9]{13}#cs_[0-9A-Za-z]{22}")
_VERB: Final = {Event.EXPIRE_REQUESTED: "expired", Event.CANCEL_REQUESTED: "canceled"}


@dataclass(frozen=True, slots=True)
class Created:
    """The answer to a creation; `body` is the same JSON text each time an idempotency key is used
    again.
    """

    status: int
    body: str
    replayed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """What to list. The times bound `created_at` (from inclusive, before exclusive), the amounts
    `amount_total` in minor units (both inclusive); `search` is a wallet, or a value of the
    metadata. `rounds` bounds the index pages that are looked at for one answer.
    """

    limit: int = 10
    cursor: str | None = None
    status: Status | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    amount_from: int | None = None
    amount_to: int | None = None
    search: str | None = None
    rounds: int = FILTER_ROUNDS

    @property
    def filters(self) -> bool:
        """What no index knows is found by looking."""
        return (self.status, self.amount_from, self.amount_to) != (None, None, None)

    def matches(self, session: Session, now: datetime) -> bool:
        amount = session.amount_total
        return (
            self.status in (None, session.status_at(now))
            and (self.amount_from is None or self.amount_from <= amount)
            and (self.amount_to is None or amount <= self.amount_to)
        )


@dataclass(frozen=True, slots=True)
class Listed:
    """With a filter there may be more to come even when few or no sessions are here: all down to
    `looked_to` were looked at.
    """

    sessions: tuple[Session, ...]
    next_cursor: str | None
    looked_to: datetime | None = None


def create(
    services: Services, key: ApiKey, new: NewSession, idempotency_key: str | None
) -> Created:
    """Store an open session, and with an idempotency key the answer, in one transaction.

    Raises IdempotencyKeyInvalid, IdempotencyKeyReused, and what `NewSession.opened` raises.
    """
    if idempotency_key is not None and not _IDEMPOTENCY_KEY.fullmatch(idempotency_key):
        raise IdempotencyKeyInvalid(
            "Idempotency-Key must be 1 to 255 printable ASCII characters.", param="Idempotency-Key"
        )
    now = services.clock.now()
    session = new.opened(
        key,
        session_id=new_session_id(services.random_bytes),
        writer=new_nonce(services.random_bytes),
        now=now,
        base_is_http=services.base_url.lower().startswith("http:"),
    )
    body = json_text(public_session(session, base_url=services.base_url, now=now))
    if idempotency_key is None:
        services.sessions.create(session, None)
        return Created(201, body, replayed=False)
    reservation = Reservation(
        key=_reservation_key(key.merchant, idempotency_key),
        fingerprint=new.fingerprint(),
        status=201,
        body=body,
        writer=session.writer,
        created_at=now,
        expires_at=now + IDEMPOTENCY_LIFETIME,
    )
    held = services.sessions.create(session, reservation)
    if held is None:
        return Created(201, body, replayed=False)
    if held.fingerprint != reservation.fingerprint:
        raise IdempotencyKeyReused(
            "This Idempotency-Key was used with other parameters; use a new key.",
            param="Idempotency-Key",
        )
    return Created(held.status, held.body, replayed=True)


def load(services: Services, session_id: str) -> Session:
    """The session as stored. Raises ResourceMissing, also for what cannot be an id (not looked
    up).
    """
    session = services.sessions.get(session_id) if _SESSION_ID.fullmatch(session_id) else None
    if session is None:
        raise ResourceMissing("No such checkout session.")
    return session


def get(services: Services, key: ApiKey, session_id: str) -> Session:
    """The merchant's session, settled. Raises ResourceMissing, for another merchant's too."""
    return settle(services, _own(services, key, session_id))


def expire(services: Services, key: ApiKey, session_id: str) -> Session:
    """End an open or awaiting session as expired. Raises ResourceMissing, SessionUnexpectedState,
    PaymentInProgress, SessionBusy.
    """
    return _end(services, _own(services, key, session_id), Event.EXPIRE_REQUESTED)


def cancel(services: Services, key: ApiKey, session_id: str) -> Session:
    """End an open or awaiting session as canceled. Raises as `expire` does."""
    return _end(services, _own(services, key, session_id), Event.CANCEL_REQUESTED)


def settle(services: Services, session: Session) -> Session:
    """Write down what the clock has decided already; returns the session as it is now.

    Past its expiry it is expired; a preparation or continuation whose lease lapsed died, and no
    money can come of it: open again.
    """
    for _ in range(GIVE_WAY):
        change = _decided(services, session)
        if change is None:
            return session
        try:
            session = commit(services, change)
        except StaleSession as stale:
            session = stale.current
    return session


def commit(services: Services, change: Change) -> Session:
    """Write `change`, and in the same transaction the event that it owes the merchant; afterwards,
    best effort, have the event sent and the rest tidied up. Raises StaleSession.
    """
    event = _event(services, change)
    if event is not None:
        change = replace(change, after=replace(change.after, event=event.id))
    saved = services.sessions.save(change, event)
    if event is not None:
        services.queue.enqueue([QueuedEvent(event.id, event.merchant)])
    clean_up(services, change)
    return saved


def clean_up(services: Services, change: Change) -> None:
    """After `change` was written: have what it ended at the wallets cancelled and closed there.

    Best effort, since the session's record no longer depends on it: an approval that was given up
    cannot be redeemed here, and neither a grant nor an incoming payment outlives its expiry.
    """
    before, after = change.before, change.after
    grant = before.grant if after.grant is None else None
    unpaid = after.status in (Status.EXPIRED, Status.CANCELED)
    payment = before.incoming_payment if unpaid else None
    if grant is None and payment is None:
        return
    services.tasks.clean_up(
        Cleanup(
            session=before.id,
            merchant=before.merchant,
            auth_server=before.customer.auth_server if before.customer else None,
            grant=grant,
            incoming_payment=payment.id if payment else None,
        )
    )


def list_page(services: Services, key: ApiKey, query: ListQuery) -> Listed:
    """A page of the merchant's sessions, newest first by (created_at, id).

    At most `rounds` index pages are read, then a cursor is handed back, so that a filter for what
    is rare cannot make one request read without end. Raises CursorInvalid.
    """
    after = position_of(key.merchant, query.cursor, POSITION) if query.cursor is not None else None
    now = services.clock.now()
    found: list[Session] = []
    looked_to: datetime | None = None
    for _ in range(query.rounds):
        page = services.sessions.page(
            key.merchant,
            limit=PAGE_MAX if query.filters else min(PAGE_MAX, query.limit - len(found)),
            after=after,
            created_from=query.created_from,
            created_before=query.created_before,
            search=query.search,
        )
        after = page.next_key
        for session in page.sessions:
            if query.matches(session, now):
                if len(found) == query.limit:  # one more than asked: stop behind the last asked
                    return Listed(tuple(found), cursor_behind(key, found[-1]), found[-1].created_at)
                found.append(session)
            looked_to = session.created_at
        if after is None or (len(found) == query.limit and not query.filters):
            break
    more = None if after is None else cursor(key.merchant, after)
    return Listed(tuple(found), more, looked_to)


def cursor_behind(key: ApiKey, session: Session) -> str:
    """Where a list goes on behind `session`."""
    return cursor(key.merchant, _position(session))


def json_text(value: Any) -> str:
    """Compact JSON: what is answered, and what a replay answers again byte for byte."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _own(services: Services, key: ApiKey, session_id: str) -> Session:
    session = load(services, session_id)
    if session.merchant != key.merchant:
        raise ResourceMissing("No such checkout session.")
    return session


def _decided(services: Services, session: Session) -> Change | None:
    """The change that the clock has decided for `session`, or None."""
    now = services.clock.now()
    changes: dict[str, Any] = {}
    if session.overdue(now):
        event = Event.EXPIRY_PASSED
    elif session.lease_live(now):
        return None
    elif session.status is Status.PREPARING:
        event = Event.PREPARATION_FAILED
        changes = {"problem": Problem.PREPARATION_INTERRUPTED, "note": "lease lapsed"}
    elif session.phase is Phase.CONTINUING:
        event = Event.APPROVAL_LOST
        changes = {"problem": Problem.APPROVAL_UNUSABLE, "note": "lease lapsed"}
    else:
        return None
    return advance(session, event, now=now, writer=new_nonce(services.random_bytes), **changes)


def _event(services: Services, change: Change) -> WebhookEvent | None:
    """What the merchant is to be told of `change`: of a payment always, of the other ends if they
    ask for it.
    """
    if change.webhook is None:
        return None
    if change.webhook in OPTIONAL:
        merchant = services.merchants.get(change.after.merchant)
        if merchant is None or merchant.endpoint is None:
            return None
        if not merchant.endpoint.wants(change.webhook):
            return None
    return WebhookEvent(
        id=new_event_id(services.random_bytes),
        merchant=change.after.merchant,
        session=change.after.id,
        type=change.webhook,
        body=event_body(change.after),
        created_at=change.after.updated_at,
        next_at=change.after.updated_at,
    )


def _end(services: Services, session: Session, event: Event) -> Session:
    for _ in range(GIVE_WAY):
        now = services.clock.now()
        writer = new_nonce(services.random_bytes)
        try:
            change = advance(session, event, now=now, writer=writer)
            return commit(services, change)
        except StaleSession as stale:
            session = stale.current
        except IllegalTransition:
            settled = settle(services, session)
            if settled.version == session.version:
                raise _refusal(session, event) from None
            session = settled
    raise SessionBusy("This session is being changed by other requests; try again shortly.")


def _refusal(session: Session, event: Event) -> CheckoutError:
    if session.payment_in_flight or session.phase is not None:
        return PaymentInProgress(
            "A payment for this session is under way; it can be neither expired nor canceled now."
        )
    return SessionUnexpectedState(
        f"This session is {session.status}; it can be {_VERB[event]} only while it is "
        f"{Status.OPEN} or {Status.AWAITING_APPROVAL}."
    )


def _reservation_key(merchant: str, idempotency_key: str) -> str:
    # Neither part can hold a line break, so no two pairs hash the same text.
    return hashlib.sha256(f"{merchant}\n{idempotency_key}".encode()).hexdigest()


def _position(session: Session) -> str:
    """Where the session stands in the order of `Sessions.page`: its `next_key`, were it the last of
    a page.
    """
    milliseconds = (session.created_at - _EPOCH) // timedelta(milliseconds=1)
    return f"{milliseconds:013d}#{session.id}"
