"""Read one session: any, or one of the merchant's own with what the clock has decided."""

from __future__ import annotations

from typing import Final

from checkout.domain.ground.errors import ResourceMissing
from checkout.domain.ground.grammar import SESSION_ID
from checkout.domain.merchant.people import Actor
from checkout.domain.session.record import Session
from checkout.flows.checkout.clock import apply_clock
from checkout.ports.services import Services

_MISSING: Final = "No such checkout session. Compare its id, and use a key of the same merchant."


def load(services: Services, session_id: str) -> Session:
    """Read a session. Raises ResourceMissing; an id of the wrong form is not looked up."""
    session = services.sessions.get(session_id) if SESSION_ID.fullmatch(session_id) else None
    if session is None:
        raise ResourceMissing(_MISSING)
    return session


def get(services: Services, key: Actor, session_id: str) -> Session:
    """Return the merchant's session with what the clock has decided.

    Raises ResourceMissing, also for another's.
    """
    return apply_clock(services, own(services, key, session_id))


def own(services: Services, key: Actor, session_id: str) -> Session:
    """Read the merchant's session as it is stored. Raises ResourceMissing, also for another's."""
    session = load(services, session_id)
    if session.merchant != key.merchant:
        raise ResourceMissing(_MISSING)
    return session
