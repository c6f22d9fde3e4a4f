"""Create, read, list, expire and cancel sessions, and settle what the clock has decided.

No wallet is called here: what an end leaves behind at the wallets goes to the task queue.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any, Final

from checkout.domain.attempts import Concern
from checkout.domain.errors import (
    CheckoutError,
    IdempotencyKeyReused,
    PaymentInProgress,
    ResourceMissing,
    SessionBusy,
    SessionUnexpectedState,
)
from checkout.domain.grammar import SESSION_ID, is_http, position, position_pattern
from checkout.domain.ids import new_nonce, new_session_id
from checkout.domain.merchant import ApiKey
from checkout.domain.new_session import NewSession
from checkout.domain.people import Actor
from checkout.domain.public import public_session
from checkout.domain.search import finds, last_part
from checkout.domain.session import CLOCK_IS_FINAL_AFTER, Phase, Problem, Session, Status
from checkout.domain.transitions import Change, Event, IllegalTransition, advance
from checkout.flows.cursors import cursor, position_of
from checkout.flows.idempotency import Answer, Posted, Reserve, answer
from checkout.flows.payment.writes import change, give_way
from checkout.ports.services import Services
from checkout.ports.sessions import KeyHeld, Reservation, StaleSession

PAGE_MAX: Final = 100
FILTER_ROUNDS: Final = 5  # index pages that one filtered list request reads

_COMPACT: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_POSITION: Final = position_pattern(SESSION_ID.pattern)
_VERB: Final = {
    Event.EXPIRE_REQUESTED: "expired",
    Event.CANCEL_REQUESTED: "canceled",
    Event.ACCEPTED_AS_PAID: "accepted as paid",
    Event.GIVEN_UP: "given up",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuery:
    """The filters of a list.

    The times bound `created_at` (from inclusive, before exclusive), the amounts `amount_total` in
    minor units (both inclusive). `search` is a text in full (domain/search.py). `statuses` are
    several to choose from. `rounds` bounds the index pages that are read for one response. `upward`
    asks for the sessions just newer than the cursor; the page is newest first all the same.
    """

    limit: int = 10
    cursor: str | None = None
    status: Status | None = None
    created_from: datetime | None = None
    created_before: datetime | None = None
    amount_from: int | None = None
    amount_to: int | None = None
    search: str | None = None
    statuses: tuple[Status, ...] = ()
    concern: Concern | None = None
    rounds: int = FILTER_ROUNDS
    upward: bool = False

    @property
    def filters(self) -> bool:
        """Tell whether sessions must be read to be filtered: no index has these fields."""
        by_field = (self.status, self.amount_from, self.amount_to, self.concern)
        return bool(self.statuses) or any(each is not None for each in by_field)

    def matches(self, session: Session, now: datetime) -> bool:
        amount = session.amount_total
        return (
            (self.status is None or self.status is session.status_at(now))
            and (not self.statuses or session.status_at(now) in self.statuses)
            and (self.amount_from is None or self.amount_from <= amount)
            and (self.amount_to is None or amount <= self.amount_to)
            and (self.concern is None or self.concern.holds(session))
            and (self.search is None or finds(session, self.search))
        )


@dataclass(frozen=True, slots=True)
class Listed:
    """A page of a list. All sessions created since `looked_to` were read.

    With a filter, more may follow even if this page holds few sessions or none.
    """

    sessions: tuple[Session, ...]
    next_cursor: str | None
    looked_to: datetime | None = None


def create(
    services: Services,
    key: ApiKey,
    new: NewSession,
    idempotency_key: str | None,
    request_id: str | None = None,
) -> Answer:
    """Store an open session and return the native answer, which is stored with it.

    `request_id` finds the session once it can be paid.

    Raises IdempotencyKeyInvalid, IdempotencyKeyReused, and what `NewSession.opened` raises.
    """
    posted = Posted(
        merchant=key.merchant,
        key=idempotency_key,
        fingerprint="" if idempotency_key is None else new.fingerprint(),
        render=partial(native_answer, services),
        status=201,
        lasting=True,
    )
    return answer(
        services, posted, lambda reserve: open_session(services, key, new, reserve, request_id)
    )


def open_session(
    services: Services,
    key: ApiKey,
    new: NewSession,
    reserve: Reserve[Session] | None,
    request_id: str | None = None,
) -> Session:
    """Store an open session, after the record that `reserve` makes of it.

    Raises KeyHeld, and what `NewSession.opened` raises.
    """
    opened = partial(
        new.opened, key, base_is_http=is_http(services.base_url), request_id=request_id
    )
    session = opened(
        session_id=new_session_id(services.random_bytes),
        writer=new_nonce(services.random_bytes),
        now=services.clock.now(),
    )
    reservation = None
    if reserve is not None:
        answered = reserve(session, session.writer)
        reservation = replace(answered, session=session.id, created_at=session.created_at)
    held = services.sessions.create(session, reservation)
    if held is not None:
        assert reservation is not None
        if held.fingerprint == reservation.fingerprint:
            _make_sure(services, opened, held)
        raise KeyHeld(held)
    return session


def _make_sure(services: Services, opened: Callable[..., Session], held: Reservation) -> None:
    """Store the session of a stored answer, if the first process did not get to it.

    It is the one that process would have stored, whose id and times the answer tells. Raises
    IdempotencyKeyReused if its time is over.
    """
    if held.session is None or services.sessions.get(held.session) is not None:
        return
    session = opened(session_id=held.session, writer=held.writer, now=held.created_at)
    if session.overdue(services.clock.now()):
        raise IdempotencyKeyReused(
            "The first request with this Idempotency-Key was cut off; use a new key.",
            param="Idempotency-Key",
        )
    services.sessions.create(session, None)


def native_answer(services: Services, session: Session) -> str:
    """Return the body of the native API's answers about one session."""
    now = services.clock.now()
    return json_text(public_session(session, base_url=services.base_url, now=now))


def load(services: Services, session_id: str) -> Session:
    """Read a session. Raises ResourceMissing; an id of the wrong form is not looked up."""
    session = services.sessions.get(session_id) if SESSION_ID.fullmatch(session_id) else None
    if session is None:
        raise ResourceMissing("No such checkout session.")
    return session


def get(services: Services, key: Actor, session_id: str) -> Session:
    """Return the merchant's session, settled. Raises ResourceMissing, also for another's."""
    return settle(services, _own(services, key, session_id))


def expire(
    services: Services, key: Actor, session_id: str, reserve: Reserve[Session] | None = None
) -> Session:
    """Expire an open or awaiting session, and write what `reserve` makes with it.

    Raises ResourceMissing, SessionUnexpectedState, PaymentInProgress, SessionBusy.
    """
    return _end(services, _own(services, key, session_id), Event.EXPIRE_REQUESTED, reserve)


def cancel(
    services: Services, key: Actor, session_id: str, reserve: Reserve[Session] | None = None
) -> Session:
    """Cancel an open or awaiting session. Raises as `expire` does."""
    return _end(services, _own(services, key, session_id), Event.CANCEL_REQUESTED, reserve)


def accept_as_paid(
    services: Services, key: Actor, session_id: str, reserve: Reserve[Session] | None = None
) -> Session:
    """Complete a session of which only a part has arrived, as its merchant decides.

    Raises as `expire` does.
    """
    now = services.clock.now()
    session = _own(services, key, session_id)
    return _end(services, session, Event.ACCEPTED_AS_PAID, reserve, note=_by(key), completed_at=now)


def give_up(
    services: Services, key: Actor, session_id: str, reserve: Reserve[Session] | None = None
) -> Session:
    """End a session of which only a part has arrived, once no more can arrive; it is expired.

    Raises as `expire` does. PaymentInProgress means that the incoming payment is being closed.
    """
    session = _own(services, key, session_id)
    return _end(services, session, Event.GIVEN_UP, reserve, note=_by(key))


def settle(services: Services, session: Session) -> Session:
    """Write what the clock has decided already; return the session as it is now.

    A session past its expiry is expired. A preparation or continuation whose lease has lapsed is
    dead, and no money can come of it, so the session is open again. A session that nobody gave a
    wallet, and that can change no more, is only shown as expired: nothing has to be written.
    """
    if session.left_to_clock and session.overdue(services.clock.now() - CLOCK_IS_FINAL_AFTER):
        ended_at = session.expires_at
        return advance(session, Event.EXPIRY_PASSED, now=ended_at, writer=session.writer).after
    return conclude(services, session)


def conclude(services: Services, session: Session) -> Session:
    """Write what the clock has decided, also where nobody needs it; return the session."""
    try:
        return give_way(services, session, lambda current: _decided(services, current))
    except StaleSession as stale:
        return stale.current


def list_page(services: Services, key: Actor, query: ListQuery) -> Listed:
    """Return a page of the merchant's sessions, newest first by (created_at, id).

    Its cursor continues in the direction of the query. Reads at most `rounds` index pages and then
    returns a cursor, so that a filter with few matches cannot make one request read without end.
    Raises CursorInvalid.
    """
    after = position_of(key.merchant, query.cursor, _POSITION) if query.cursor is not None else None
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
            search=last_part(query.search) if query.search else None,
            upward=query.upward,
            shards=key.shards,
        )
        after = page.next_key
        for session in page.sessions:
            if query.matches(session, now):
                if len(found) == query.limit:  # one more than asked: there is a next page
                    more, last = cursor_behind(key, found[-1]), found[-1].created_at
                    return Listed(_newest_first(found, query), more, last)
                found.append(session)
            looked_to = session.created_at
        if after is None or (len(found) == query.limit and not query.filters):
            break
    rest = None if after is None else cursor(key.merchant, after)
    return Listed(_newest_first(found, query), rest, looked_to)


def _newest_first(found: list[Session], query: ListQuery) -> tuple[Session, ...]:
    return tuple(reversed(found) if query.upward else found)


def cursor_behind(key: Actor, session: Session) -> str:
    """Return the cursor that continues a list after `session`."""
    return cursor(key.merchant, position(session.created_at, session.id))


def json_text(value: Any) -> str:
    """Return compact JSON: the response's body, which a replay repeats byte for byte."""
    return _COMPACT.encode(value)


def _own(services: Services, key: Actor, session_id: str) -> Session:
    session = load(services, session_id)
    if session.merchant != key.merchant:
        raise ResourceMissing("No such checkout session.")
    return session


def _decided(services: Services, session: Session) -> Change | None:
    """Return the change that the clock has decided for `session`, or None."""
    now = services.clock.now()
    if session.overdue(now):
        return change(services, session, Event.EXPIRY_PASSED)
    if session.lease_live(now):
        return None
    if session.status is Status.PREPARING:
        event, problem = Event.PREPARATION_FAILED, Problem.PREPARATION_INTERRUPTED
    elif session.phase is Phase.CONTINUING:
        event, problem = Event.APPROVAL_LOST, Problem.APPROVAL_UNUSABLE
    else:
        return None
    return change(services, session, event, problem=problem, note="lease lapsed")


def _by(key: Actor) -> str:
    return f"by {key.label}"


def _end(
    services: Services,
    session: Session,
    event: Event,
    reserve: Reserve[Session] | None,
    **changes: Any,
) -> Session:
    def ending(current: Session) -> Change:
        return _ending(services, current, event, changes)

    try:
        return give_way(services, session, ending, reserve)
    except IllegalTransition as illegal:
        current = illegal.session
        if event is not Event.ACCEPTED_AS_PAID:
            current = _hasten(services, current)
        raise _refusal(current, event) from None
    except StaleSession:
        raise SessionBusy(
            "This session is being changed by other requests; try again shortly."
        ) from None


def _ending(services: Services, session: Session, event: Event, changes: dict[str, Any]) -> Change:
    """Return the change that ends the session, which may first have to be settled."""
    try:
        return change(services, session, event, **changes)
    except IllegalTransition:
        settled = settle(services, session)
        if settled.version == session.version:
            raise
        return change(services, settled, event, **changes)


def _hasten(services: Services, session: Session) -> Session:
    """Begin the fence of a payment in doubt, since its merchant wants the session to end."""

    def closing(current: Session) -> Change | None:
        now = services.clock.now()
        if not current.may_close(now):
            return None
        return change(services, current, Event.CLOSING_STARTED, closing_at=now, check_at=now)

    try:
        return give_way(services, session, closing)
    except StaleSession as stale:
        return stale.current


def _refusal(session: Session, event: Event) -> CheckoutError:
    verb = _VERB[event]
    if session.partly_paid:
        some = replace(session.receive, value=session.received or 0)
        when = "." if session.check_at is None else ", about a minute after its closing has begun."
        return PaymentInProgress(
            f"{some} of {session.receive} has arrived; the session cannot be {verb}. It can be "
            f"accepted as paid, or given up{when}"
        )
    if session.payment_in_flight and session.closing_at is not None:
        return PaymentInProgress(
            f"A payment for this session is in doubt; it cannot be {verb} now. Its incoming "
            "payment is being closed: ask again in about a minute."
        )
    if session.payment_in_flight or session.phase is not None:
        return PaymentInProgress(
            f"A payment for this session is under way; it cannot be {verb} now."
        )
    if event in (Event.ACCEPTED_AS_PAID, Event.GIVEN_UP):
        wanted = "only a part of the payment has arrived"
    else:
        wanted = f"it is {Status.OPEN} or {Status.AWAITING_APPROVAL}"
    return SessionUnexpectedState(
        f"This session is {session.status}; it can be {verb} only while {wanted}."
    )
