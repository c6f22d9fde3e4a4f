"""Reconcile payments in doubt with what the wallets show.

`witness.py` reads what wallets show; what follows from it is decided and written here. The fence
(domain/transitions.py): write `closing`, close the incoming payment, write `closed_at` once a read
shows it closed, and judge from a read that begins 35 s later. Every step is a conditional write, so
the callback, the customer's open page and the sweep may all do this at the same time.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.session import Attention, Problem, Session, Status
from checkout.domain.transitions import FENCE, Change, Event, IllegalTransition
from checkout.flows import merchants
from checkout.flows.payment import sealed, witness
from checkout.flows.payment.sessions import load, settle
from checkout.flows.payment.work import Work
from checkout.flows.payment.writes import change, give_way, move
from checkout.open_payments import errors as op
from checkout.open_payments.models import OutgoingPayment
from checkout.ports.services import PayServices
from checkout.ports.sessions import StaleSession
from checkout.ports.wallets import CompletionPolicy

DEADLINE: Final = timedelta(seconds=20)
# Covers the clocks of the servers that judge a quote's or an incoming payment's expiry, and packets
# under way (domain/transitions.py, the fence).
WAIT_MARGIN: Final = timedelta(seconds=30)
POLL_SECONDS: Final = (0.4, 0.6, 1.0, 1.0, 1.0)
# Seconds between checks of one payment, by how often it was checked; the last one repeats. It is
# below the sweep's minute, so that no round finds the payment not yet due.
BACKOFF: Final = (2, 2, 2, 3, 5, 8, 13, 20, 30, 50)
# A payment undecided for this long is shown to the merchant, and checked only as often as this.
UNDECIDED_AFTER: Final = timedelta(hours=1)


def view(services: PayServices, session_id: str) -> Session:
    """Return the session, with what the clock has decided written. Calls no wallet."""
    return settle(services, load(services, session_id))


def advance_pending(services: PayServices, session_id: str) -> Session:
    """Return `view`, after one step of a payment in flight if it is due.

    The session's own `check_at` limits the rate: however many pages poll, its wallets are asked
    once per interval.
    """
    session = view(services, session_id)
    now = services.clock.now()
    if not session.payment_in_flight or session.check_at is None or now < session.check_at:
        return session
    try:
        return step(services, session)
    except StaleSession as stale:
        return stale.current


def step(services: PayServices, session: Session) -> Session:
    """Check the wallets once, and write what they show. Raises StaleSession after a lost race.

    A wallet that does not answer changes nothing: the first write here has already scheduled the
    next check.
    """
    try:
        return _step(services, session)
    except IllegalTransition as illegal:  # another writer, or the clock, has moved it on
        raise StaleSession(illegal.session) from None


def _step(services: PayServices, session: Session) -> Session:
    session = move(services, session, Event.CHECKED, **_next_check(services, session))
    merchant = merchants.get(services.merchants, session.merchant)
    work = Work.begin(services, merchant, within=DEADLINE)
    try:
        if session.closing_at is not None:
            session = _fence(work, session)
        elif session.status is Status.PROCESSING:
            session = _processing(work, session)
        else:
            session = _paying(work, session)
    except op.OpenPaymentsError:
        return session
    return settle(services, session)


def await_money(work: Work, session: Session, *, patience: float) -> Session:
    """Read the merchant's incoming payment until the money shows (C9), then complete (W8).

    Gives up after `patience` seconds.
    """
    services = work.services
    if services.completion_policy is CompletionPolicy.INSTRUCTED:
        return _complete(services, session)
    give_up_at = services.clock.now() + timedelta(seconds=patience)
    for pause in POLL_SECONDS:
        try:
            seen = witness.check(work, session)
            if seen.received >= session.receive.value:
                return _complete(services, session, received=seen.received)
        except op.OpenPaymentsError:
            pass  # the page keeps asking
        if services.clock.now() + timedelta(seconds=pause) > give_up_at:
            break
        services.clock.sleep(pause)
    return session


def _paying(work: Work, session: Session) -> Session:
    """Look for a payment whose intent is written and whose outcome is unknown."""
    seen = witness.check(work, session)
    payment: OutgoingPayment | None = None
    with contextlib.suppress(op.OpenPaymentsError):  # else the witness alone decides
        session, payment = _ask_wallet(work, session)
    if payment is not None or seen.received >= session.receive.value:
        session = move(
            work.services,
            session,
            Event.PAYMENT_CREATED,
            outgoing_payment=payment.id if payment else None,
            check_at=work.services.clock.now(),
            checks=0,
        )
        return _judge(work.services, session, seen)
    return _close_when_waited(work.services, session)


def _processing(work: Work, session: Session) -> Session:
    """Check whether a payment that the wallet accepted has arrived."""
    services = work.services
    if services.completion_policy is CompletionPolicy.INSTRUCTED:
        return _complete(services, session)
    seen = witness.check(work, session)
    if seen.received > 0:
        return _judge(services, session, seen)
    try:
        session, payment = _ask_wallet(work, session)
    except op.OpenPaymentsError:
        return _close_when_waited(services, session)
    if payment is not None and payment.failed:
        return _start_closing(services, session)
    return _close_when_waited(services, session)


def _fence(work: Work, session: Session) -> Session:
    """Take one step of the fence. Once closing, only received money counts."""
    services = work.services
    if session.closed_at is None:
        witness.close(work, session)
    now = services.clock.now()
    seen = witness.check(work, session)
    if seen.received < session.receive.value:
        if session.closed_at is None:
            if not seen.closed:
                return session
            now = services.clock.now()
            return move(services, session, Event.CLOSED, closed_at=now, check_at=now + FENCE)
        if now < session.closed_at + FENCE:
            return session  # this read began too early to decide
    if seen.received == 0:
        problem = Problem.PAYMENT_FAILED
        note = "nothing was received, and nothing can be any more"
        return move(services, session, Event.PAYMENT_DISPROVED, note=note, problem=problem)
    if session.status is not Status.PROCESSING:
        session = move(services, session, Event.PAYMENT_CREATED, check_at=now)
    return _judge(services, session, seen)


def _judge(services: PayServices, session: Session, seen: witness.Seen) -> Session:
    """Decide on a processing session by what was received.

    The result is completed, flagged as partly paid, or still waiting.
    """
    if services.completion_policy is CompletionPolicy.INSTRUCTED:
        return _complete(services, session)
    if seen.received >= session.receive.value:
        return _complete(services, session, received=seen.received)
    if seen.received == 0:
        return session
    assert session.incoming_payment is not None
    over = services.clock.now() >= session.incoming_payment.expires_at
    if session.received == seen.received and not over:
        return session
    return move(
        services,
        session,
        Event.CHECKED,
        received=seen.received,
        attention=Attention.PARTIAL_PAYMENT,
        check_at=None if over else session.check_at,
    )


def _complete(services: PayServices, session: Session, *, received: int | None = None) -> Session:
    """Write `completed` and its event in one transaction (W8)."""

    def completed(current: Session) -> Change | None:
        if current.status is not Status.PROCESSING:
            return None  # decided meanwhile
        return change(
            services,
            current,
            Event.RECONCILED,
            completed_at=services.clock.now(),
            received=current.received if received is None else received,
        )

    try:
        return give_way(services, session, completed)
    except StaleSession as stale:
        return stale.current


def _ask_wallet(work: Work, session: Session) -> tuple[Session, OutgoingPayment | None]:
    """Ask the customer's wallet for the payment, with the approval's token.

    A token that has expired is rotated once. Raises open_payments errors.
    """
    if session.token is None or session.customer is None:
        raise op.NotSent("there is nothing to ask with", operation="get_outgoing_payment")
    vault = work.services.vault
    token = sealed.open_token(vault, session.id, session.token)
    try:
        return session, witness.find(work.client, session, token)
    except op.Refused as refused:
        if refused.reason is not op.Reason.TOKEN_INACTIVE:
            raise
    token = work.client.rotate_token(session.customer.auth_server, token)
    kept = sealed.seal_token(vault, session.id, token)
    session = move(work.services, session, Event.CHECKED, token=kept)
    return session, witness.find(work.client, session, token)


def _close_when_waited(services: PayServices, session: Session) -> Session:
    """Begin the fence when the wait is over, never before."""
    if services.clock.now() < wait_until(session):
        return session
    return _start_closing(services, session)


def _start_closing(services: PayServices, session: Session) -> Session:
    """Begin the fence; the next check is due at once, however rare checks have become."""
    now = services.clock.now()
    return move(services, session, Event.CLOSING_STARTED, closing_at=now, check_at=now)


def wait_until(session: Session) -> datetime:
    """Return the time from which no payment of this attempt can begin.

    That is a margin after the quote or the incoming payment expires, whichever comes first.
    """
    assert session.incoming_payment is not None
    ends = [session.incoming_payment.expires_at]
    if session.quote is not None and session.quote.expires_at is not None:
        ends.append(session.quote.expires_at)
    return min(ends) + WAIT_MARGIN


def _next_check(services: PayServices, session: Session) -> dict[str, Any]:
    """Return the fields that schedule the next check, in case this one decides nothing.

    Checks become rarer, but one is on time when the wait or the fence is over.
    """
    now = services.clock.now()
    attention = session.attention
    pause = timedelta(seconds=BACKOFF[min(session.checks, len(BACKOFF) - 1)])
    if session.attempt is not None and now >= session.attempt.deadline + UNDECIDED_AFTER:
        pause = UNDECIDED_AFTER
        attention = attention or Attention.UNDECIDED
    check_at = now + pause
    if session.closed_at is not None:
        check_at = max(check_at, session.closed_at + FENCE)
    elif session.closing_at is None and now < wait_until(session):
        check_at = min(check_at, wait_until(session))
    return {"check_at": check_at, "checks": session.checks + 1, "attention": attention}
