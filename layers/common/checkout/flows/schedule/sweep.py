"""Run one round of the sweep: enqueue webhook events that are due, check each due session once.

All writes are conditional, so a round may overlap with itself, with every handler and with the
customer's open page: the loser of a write leaves the session to the winner. One record that fails
stops no other, nor does one provider that hangs. Nothing is decided here: the clock's decisions are
`sessions.settle`, a payment in doubt is `reconcile.step`.
"""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.session import Session
from checkout.flows.payment import reconcile
from checkout.flows.payment.sessions import settle
from checkout.flows.webhooks import deliver
from checkout.open_payments.urls import authority
from checkout.ports.services import PayServices
from checkout.ports.sessions import StaleSession

LIMIT: Final = 200  # sessions a round
ENQUEUED_MAX: Final = 500  # webhook events a round; each costs a write
SLOW: Final = timedelta(seconds=5)  # a check that takes longer means that a provider hangs

logger = logging.getLogger(__name__)


@dataclass(slots=True)
class Counts:
    """The counts of one round.

    `moved` counts the last event of each session that changed. `failed`: the check raised, and will
    be retried. `not_reached`: due, but not reached this round. `enqueued` counts the webhook events
    that were due, the oldest of them for `longest_due`.
    """

    checked: int = 0
    moved: Counter[str] = field(default_factory=Counter)
    failed: int = 0
    needs_attention: int = 0
    not_reached: int = 0
    enqueued: int = 0
    longest_due: timedelta = timedelta(0)


def run(services: PayServices, *, until: datetime, limit: int = LIMIT) -> Counts:
    """Check up to `limit` due sessions, oldest first, and begin none after `until`.

    A session that fails stays at the head of the index and costs one read a round; it does not
    count towards `limit`. Nor do the other sessions of a provider that has just hung: they are
    checked in the time that remains at the end. Raises Unavailable if the index cannot be read.
    """
    now = services.clock.now()
    counts = Counts()
    _enqueue(services, now, counts)
    hanging: set[str] = set()
    put_off: list[str] = []
    seen: set[str] = set()
    full = True
    while full and counts.checked < limit:
        asked = limit + len(seen) - counts.checked + 1
        found = services.sessions.due(now, limit=asked)
        full = len(found) == asked
        fresh = [session_id for session_id in found if session_id not in seen]
        for index, session_id in enumerate(fresh):
            if counts.checked == limit or services.clock.now() >= until:
                counts.not_reached = len(fresh) - index + len(put_off)
                return counts
            seen.add(session_id)
            if not _check(services, session_id, counts, hanging):
                put_off.append(session_id)
        full = full and bool(fresh)
    while put_off and counts.checked < limit and services.clock.now() < until:
        _check(services, put_off.pop(0), counts, set())
    counts.not_reached = len(put_off)
    return counts


def _enqueue(services: PayServices, now: datetime, counts: Counts) -> None:
    """Enqueue due events first: it is quick, and merchants wait for them."""
    try:
        due = deliver.enqueue_due(services.events, services.queue, now=now, limit=ENQUEUED_MAX)
        counts.enqueued, counts.longest_due = due.enqueued, due.longest
    except Exception as error:  # noqa: BLE001 - the sessions are checked all the same
        logger.warning("enqueueing due webhook events failed, will retry: %s", _place(error))
        counts.failed += 1


def _check(services: PayServices, session_id: str, counts: Counts, hanging: set[str]) -> bool:
    """Check one session; return False to put it off because one of its providers hangs."""
    try:
        before = services.sessions.get(session_id)
        if before is None:  # the index lags behind
            return True
        begun = services.clock.now()
        if reconcile.due(before, begun) and hanging & _providers(before):
            return False
        after = _reconciled(services, before)
        if services.clock.now() - begun >= SLOW:
            hanging |= _providers(before)
    except Exception as error:  # noqa: BLE001 - one poisoned record must not stop the others
        # Neither the error's text nor the id: a session's id is enough to pay it.
        logger.warning("reconciling a due session failed, will retry: %s", _place(error))
        counts.failed += 1
        return True
    counts.checked += 1
    counts.needs_attention += after.attention is not None
    if after.history != before.history:
        counts.moved[after.history[-1].event] += 1
    return True


def _reconciled(services: PayServices, session: Session) -> Session:
    session = settle(services, session)
    if not reconcile.due(session, services.clock.now()):
        return session
    try:
        return reconcile.step(services, session)
    except StaleSession as stale:
        return stale.current


def _providers(session: Session) -> set[str]:
    merchants, customers = session.incoming_payment, session.customer
    urls = [merchants.id if merchants else "", customers.resource_server if customers else ""]
    return {authority(url) for url in urls if url}


def _place(error: Exception) -> str:
    """Return the error's type and the function and line that raised it."""
    trace = error.__traceback__
    assert trace is not None
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f"{type(error).__name__} at {trace.tb_frame.f_code.co_name}:{trace.tb_lineno}"
