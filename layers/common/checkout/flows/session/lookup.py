"""Read one session, after writing what the clock has decided, that is, what the time alone changes.

The clock ends a session whose time is over (`Event.EXPIRY_PASSED`). The clock also ends the phases
"preparing" and "continuing" once the lease, a process's exclusive right for a limited time, has
lapsed. If nobody reads a session, flows/schedule/expiries.py ends it.
"""

from __future__ import annotations

from typing import Final

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.grammar import SESSION_ID
from checkout.domain.merchant.people import Actor
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Phase, Problem
from checkout.domain.payment.machine import Change
from checkout.domain.session.record import CLOCK_IS_FINAL_AFTER, Session, Status
from checkout.domain.session.transitions import advance
from checkout.flows.payment.writes import change, write_decided
from checkout.ports import StaleRecord
from checkout.services import Services


def apply_clock(services: Services, session: Session) -> Session:
    """Write what the clock has decided, if anything. Return the session as it is now.

    A session past its expiry becomes expired. If the lease of a preparation or continuation has
    lapsed, the process that held the lease is dead and no money can follow, so the session becomes
    open again. Exception: a session without a wallet that can no longer change is returned as
    expired, but not written.
    """
    if session.left_to_clock and session.overdue(services.clock.now() - CLOCK_IS_FINAL_AFTER):
        ended_at = session.expires_at
        return advance(session, Event.EXPIRY_PASSED, now=ended_at, writer=session.writer).after
    return write_clock(services, session)


def write_clock(services: Services, session: Session) -> Session:
    """Write what the clock has decided, also for the sessions that `apply_clock` does not write.

    Return the session as it is now.
    """
    try:
        return write_decided(services, session, lambda current: _decided(services, current))
    except StaleRecord as stale:
        current: Session = stale.current
        return current


def _decided(services: Services, session: Session) -> Change[Session] | None:
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


_MISSING: Final = "No such checkout session. Compare its id, and use a key of the same merchant."


def load(services: Services, session_id: str) -> Session:
    """Read a session. Raises ResourceMissing; an id with the wrong format is not looked up."""
    session = services.sessions.get(session_id) if SESSION_ID.fullmatch(session_id) else None
    if session is None:
        raise ResourceMissing(_MISSING)
    return session


def get(services: Services, key: Actor, session_id: str) -> Session:
    """Return the merchant's session after `apply_clock`.

    Raises ResourceMissing, also for another merchant's session.
    """
    return apply_clock(services, own(services, key, session_id))


def own(services: Services, key: Actor, session_id: str) -> Session:
    """Read the merchant's session as it is stored. Raises ResourceMissing."""
    session = load(services, session_id)
    if session.merchant != key.merchant:
        raise ResourceMissing(_MISSING)
    return session
