"""Payments in doubt: ask the witness, and open the session again only where it is certain that
nothing will arrive.

What wallets show is read by `witness.py`; what follows from it is decided and written here. The
fence (design.md): write `closing`, close the incoming payment, write `closed_at` once a read shows
it closed, and judge from a read begun 35 s later. Every step is a conditional write by version, so
that the callback, the customer's open page and the scheduled job may all do this at once.
"""

from __future__ import annotations

import contextlib
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.errors import ResourceMissing
from checkout.domain.ids import new_nonce
from checkout.domain.merchant import Merchant
from checkout.domain.session import Attention, Problem, Session, Status
from checkout.domain.transitions import FENCE, Change, Event, IllegalTransition, advance
from checkout.flows.payment import sealed, witness
from checkout.flows.payment.sessions import commit, load, settle
from checkout.open_payments import errors as op
from checkout.open_payments import models
from checkout.open_payments.client import OpenPayments
from checkout.ports.services import PayServices
from checkout.ports.sessions import StaleSession
from checkout.ports.wallets import CompletionPolicy

DEADLINE: Final = timedelta(seconds=20)
# A quote's or an incoming payment's last moment, as their servers judge it, and packets under way
# (design.md "wait").
WAIT_MARGIN: Final = timedelta(seconds=30)
POLL_SECONDS: Final = (0.4, 0.6, 1.0, 1.0, 1.0)
# Seconds between looks at one payment, by how often it was looked at; the last one repeats. It is
# below the scheduled job's minute, so that no round finds it not yet due.
BACKOFF: Final = (2, 2, 2, 3, 5, 8, 13, 20, 30, 50)
# What has not been decided for so long is shown to the merchant, and looked at as rarely.
UNDECIDED_AFTER: Final = timedelta(hours=1)
GIVE_WAY: Final = 3  # how often a loser of a write decides anew


def view(services: PayServices, session_id: str) -> Session:
    """The session, with what the clock has decided written down. No wallet is called."""
    return settle(services, load(services, session_id))


def advance_pending(services: PayServices, session_id: str) -> Session:
    """`view`, and one careful step of a payment in flight, if it is time for one.

    Rate-limited by the session's own `check_at`: however many pages poll, its wallets are asked
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
    """Look once, and write what it shows. Raises StaleSession where somebody else was faster.

    A wallet that does not answer changes nothing: the next look is already scheduled by the first
    write here.
    """
    session = _save(services, session, Event.CHECKED, **_next_look(services, session))
    merchant = services.merchants.get(session.merchant)
    if merchant is None:
        raise ResourceMissing("No such checkout session.")
    client = services.wallets.client(merchant, deadline=services.clock.now() + DEADLINE)
    try:
        if session.closing_at is not None:
            session = _fence(services, session, client, merchant)
        elif session.status is Status.PROCESSING:
            session = _processing(services, session, client, merchant)
        else:
            session = _paying(services, session, client, merchant)
    except op.OpenPaymentsError:
        return session
    return settle(services, session)


def await_money(
    services: PayServices, session: Session, client: OpenPayments, *, patience: float
) -> Session:
    """C9, W8: read the merchant's incoming payment until the money shows, for at most `patience`
    seconds.
    """
    if services.completion_policy is CompletionPolicy.INSTRUCTED:
        return _complete(services, session)
    merchant = services.merchants.get(session.merchant)
    if merchant is None:
        raise ResourceMissing("No such checkout session.")
    give_up_at = services.clock.now() + timedelta(seconds=patience)
    for pause in POLL_SECONDS:
        try:
            seen = witness.look(services, session, client, merchant)
            if seen.received >= session.receive.value:
                return _complete(services, session, received=seen.received)
        except op.OpenPaymentsError:
            pass  # the page keeps asking
        if services.clock.now() + timedelta(seconds=pause) > give_up_at:
            break
        services.clock.sleep(pause)
    return session


def _paying(
    services: PayServices, session: Session, client: OpenPayments, merchant: Merchant
) -> Session:
    """The intent is written and its outcome unknown."""
    seen = witness.look(services, session, client, merchant)
    payment: models.OutgoingPayment | None = None
    with contextlib.suppress(op.OpenPaymentsError):  # else the witness alone has to do
        session, payment = _ask_wallet(services, session, client)
    if payment is not None or seen.received >= session.receive.value:
        session = _save(
            services,
            session,
            Event.PAYMENT_CREATED,
            outgoing_payment=payment.id if payment else None,
            check_at=services.clock.now(),
            checks=0,
        )
        return _judge(services, session, seen)
    return _close_when_waited(services, session)


def _processing(
    services: PayServices, session: Session, client: OpenPayments, merchant: Merchant
) -> Session:
    """The wallet has accepted the payment; has it arrived?"""
    if services.completion_policy is CompletionPolicy.INSTRUCTED:
        return _complete(services, session)
    seen = witness.look(services, session, client, merchant)
    if seen.received > 0:
        return _judge(services, session, seen)
    try:
        session, payment = _ask_wallet(services, session, client)
    except op.OpenPaymentsError:
        return _close_when_waited(services, session)
    if payment is not None and payment.failed:
        return _start_closing(services, session)
    return _close_when_waited(services, session)


def _fence(
    services: PayServices, session: Session, client: OpenPayments, merchant: Merchant
) -> Session:
    """Once closing, only received money counts."""
    if session.closed_at is None:
        witness.close(services, session, client, merchant)
    now = services.clock.now()
    seen = witness.look(services, session, client, merchant)
    if seen.received < session.receive.value:
        if session.closed_at is None:
            if not seen.closed:
                return session
            now = services.clock.now()
            return _save(services, session, Event.CLOSED, closed_at=now, check_at=now + FENCE)
        if now < session.closed_at + FENCE:
            return session  # this read began too early to decide
    if seen.received == 0:
        problem = Problem.PAYMENT_FAILED
        note = "nothing was received, and nothing can be any more"
        return _save(services, session, Event.PAYMENT_DISPROVED, note=note, problem=problem)
    if session.status is not Status.PROCESSING:
        session = _save(services, session, Event.PAYMENT_CREATED, check_at=now)
    return _judge(services, session, seen)


def _judge(services: PayServices, session: Session, seen: witness.Seen) -> Session:
    """A processing session by what was received: completed, flagged as partly paid, or still
    waiting.
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
    return _save(
        services,
        session,
        Event.CHECKED,
        received=seen.received,
        attention=Attention.PARTIAL_PAYMENT,
        check_at=None if over else session.check_at,
    )


def _complete(services: PayServices, session: Session, *, received: int | None = None) -> Session:
    """W8: completed and its event in one transaction; the queue is told afterwards, best effort."""
    for _ in range(GIVE_WAY):
        change = _advance(
            services,
            session,
            Event.RECONCILED,
            completed_at=services.clock.now(),
            received=session.received if received is None else received,
        )
        try:
            return commit(services, change)
        except StaleSession as stale:
            if stale.current.status is not Status.PROCESSING:
                return stale.current
            session = stale.current  # somebody only looked meanwhile
    return session


def _ask_wallet(
    services: PayServices, session: Session, client: OpenPayments
) -> tuple[Session, models.OutgoingPayment | None]:
    """What the customer's wallet knows, asked with the approval's token; a token that ran out is
    rotated once.
    """
    if session.token is None or session.customer is None:
        raise op.NotSent("there is nothing to ask with", operation="get_outgoing_payment")
    token = sealed.open_token(services.vault, session.id, session.token)
    try:
        return session, witness.find(client, session, token)
    except op.Refused as refused:
        if refused.reason is not op.Reason.TOKEN_INACTIVE:
            raise
    token = client.rotate_token(session.customer.auth_server, token)
    kept = sealed.seal_token(services.vault, session.id, token)
    session = _save(services, session, Event.CHECKED, token=kept)
    return session, witness.find(client, session, token)


def _close_when_waited(services: PayServices, session: Session) -> Session:
    """The fence begins when the wait is over, never before."""
    if services.clock.now() < wait_until(session):
        return session
    return _start_closing(services, session)


def _start_closing(services: PayServices, session: Session) -> Session:
    """Whoever looks next goes on, however rare the looks have become."""
    now = services.clock.now()
    return _save(services, session, Event.CLOSING_STARTED, closing_at=now, check_at=now)


def wait_until(session: Session) -> datetime:
    """When no payment of this attempt can begin any more, by the word of whoever's expiry comes
    first.
    """
    assert session.incoming_payment is not None
    ends = [session.incoming_payment.expires_at]
    if session.quote is not None and session.quote.expires_at is not None:
        ends.append(session.quote.expires_at)
    return min(ends) + WAIT_MARGIN


def _next_look(services: PayServices, session: Session) -> dict[str, Any]:
    """When to look again, should this look decide nothing: ever more rarely, but on time when the
    wait or the fence is over.
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


def _advance(services: PayServices, session: Session, event: Event, **changes: Any) -> Change:
    now = services.clock.now()
    writer = new_nonce(services.random_bytes)
    try:
        return advance(session, event, now=now, writer=writer, **changes)
    except IllegalTransition as illegal:
        raise StaleSession(illegal.session) from None


def _save(services: PayServices, session: Session, event: Event, **changes: Any) -> Session:
    return services.sessions.save(_advance(services, session, event, **changes))
