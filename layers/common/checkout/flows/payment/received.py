"""Decide a session by what its incoming payment received: completed, or flagged as partly paid.

The merchant's own incoming payment is the witness (C9, W8 in domain/transitions.py).
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from checkout.domain.session import Attention, Session, Status
from checkout.domain.transitions import Change, Event
from checkout.flows.payment import witness
from checkout.flows.payment.work import Work
from checkout.flows.payment.writes import change, give_way, move
from checkout.open_payments import errors as op
from checkout.ports.sessions import StaleSession
from checkout.ports.wallets import CompletionPolicy

# The money shows about 200 ms after the wallet has accepted the payment (benchmarks/callback.py).
POLL_SECONDS: Final = (0.2, 0.15, 0.25, 0.4, 1.0, 1.0, 1.0)


def judge(work: Work, session: Session, seen: witness.Seen, *, final: bool = False) -> Session:
    """Complete a processing session that is paid, and flag one that is partly paid.

    `final`: nothing more can arrive, so a partly paid session is not checked again.
    """
    if work.paid(session, seen.received):
        return complete(work, session, seen.received)
    if seen.received == 0 or (session.received == seen.received and not final):
        return session
    return move(
        work.services,
        session,
        Event.CHECKED if session.received == seen.received else Event.PART_ARRIVED,
        received=seen.received,
        attention=Attention.PARTIAL_PAYMENT,
        check_at=None if final else session.check_at,
    )


def complete(work: Work, session: Session, received: int | None) -> Session:
    """Write `completed` and its event in one transaction (W8).

    `received` is in the wallet's scale; None if it is not known, which only the policy
    `instructed` allows. If it is less than asked, the session is checked again after its end.
    """
    services = work.services

    def completed(current: Session) -> Change | None:
        if current.status is not Status.PROCESSING:
            return None  # decided meanwhile
        now = services.clock.now()
        whole = received is not None and received >= session.receive.value
        return change(
            services,
            current,
            Event.RECONCILED,
            completed_at=now,
            received=current.received if received is None else received,
            check_at=None if whole else now,
        )

    try:
        return give_way(services, session, completed)
    except StaleSession as stale:
        return stale.current


def await_money(work: Work, session: Session, *, patience: float) -> Session:
    """Read the incoming payment of a processing session until the money shows (C9), complete it.

    Gives up after `patience` seconds. With the policy `instructed` there is one read.
    """
    services = work.services
    if services.completion_policy is CompletionPolicy.INSTRUCTED:
        return complete(work, session, seen_if_readable(work, session).received or None)
    give_up_at = services.clock.now() + timedelta(seconds=patience)
    for pause in POLL_SECONDS:
        try:
            seen = witness.check(work, session)
            if work.paid(session, seen.received):
                return complete(work, session, seen.received)
        except op.OpenPaymentsError:
            pass  # the page keeps asking
        if services.clock.now() + timedelta(seconds=pause) > give_up_at:
            break
        services.clock.sleep(pause)
    return session


def seen_if_readable(work: Work, session: Session) -> witness.Seen:
    """Read the incoming payment; with the policy `instructed`, one that cannot be read is empty.

    Raises open_payments errors with the policy `received`.
    """
    try:
        return witness.check(work, session)
    except op.OpenPaymentsError:
        if work.services.completion_policy is CompletionPolicy.RECEIVED:
            raise
        return witness.Seen(received=0, closed=False, begun_at=work.services.clock.now())
