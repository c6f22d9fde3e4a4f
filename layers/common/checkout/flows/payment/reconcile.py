"""Reconcile payments in doubt with what the wallets show.

`witness.py` reads what wallets show, `received.py` decides by money. The rest follows here, and the
fence (domain/transitions.py). Every step is a conditional write, so the callback, the customer's
open page and the sweep may all do this at the same time.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.session import Attention, Phase, Problem, Session, Status
from checkout.domain.transitions import FENCE, Event, IllegalTransition
from checkout.flows import limits, merchants
from checkout.flows.payment import outside, received, sealed, witness
from checkout.flows.payment.sessions import load, settle
from checkout.flows.payment.work import Work
from checkout.flows.payment.writes import move
from checkout.open_payments import errors as op
from checkout.open_payments.models import OutgoingPayment
from checkout.ports.services import PayServices
from checkout.ports.sessions import StaleSession
from checkout.ports.wallets import CompletionPolicy

DEADLINE: Final = timedelta(seconds=20)
PAGE_DEADLINE: Final = timedelta(seconds=8)  # a customer is waiting, and the sweep asks again
# A wallet that keeps a check waiting for so long hangs.
HUNG: Final = timedelta(seconds=3)
# One that has hung is left alone for as long as the payment has been in doubt, within these bounds.
HUNG_LEAST: Final = timedelta(minutes=1)
HUNG_MOST: Final = timedelta(hours=1)
# Covers the clocks of the servers that judge a quote's or an incoming payment's expiry, and packets
# under way (domain/transitions.py, the fence).
WAIT_MARGIN: Final = timedelta(seconds=30)
# A quote that names no end holds a session for this long after the payment was sent.
ENDLESS_QUOTE: Final = timedelta(minutes=10)
# Seconds between checks of one payment, by how often it was checked; the last one repeats. It is
# below the sweep's minute, so that no round finds the payment not yet due.
BACKOFF: Final = (2, 2, 2, 3, 5, 8, 13, 20, 30, 50)
# A payment undecided for this long is shown to the merchant, and checked only as often as this.
UNDECIDED_AFTER: Final = timedelta(hours=1)
CHECKS_AN_HOUR: Final = 80  # where no payment was sent, checks are counted instead
# After this, a wallet that cannot be asked about an ended session is not asked any more.
ACCOUNT_FOR: Final = timedelta(days=7)


def view(services: PayServices, session_id: str) -> Session:
    """Return the session, with what the clock has decided written. Calls no wallet."""
    return settle(services, load(services, session_id))


def advance_pending(services: PayServices, session_id: str, client: str | None = None) -> Session:
    """Return `view`, after one step of reconciliation if it is due.

    The session itself limits the rate: however many pages poll, its wallets are asked once per
    interval. The pages of a `client` with many such sessions leave the rest to the sweep.
    """
    session = view(services, session_id)
    now = services.clock.now()
    if not due(session, now) and not outside.may_look(session, now):
        return session
    if not limits.admits_work(services, client):
        return session
    try:
        return step(services, session, within=PAGE_DEADLINE)
    except StaleSession as stale:
        return stale.current


def due(session: Session, now: datetime) -> bool:
    """Tell whether the wallets must be asked about a payment in flight, or an ended session."""
    owes = session.payment_in_flight or session.terminal
    return owes and session.check_at is not None and session.check_at <= now


@dataclass(frozen=True, slots=True)
class Checked:
    """A session after its merchant's wallet was asked.

    `seen`: what that showed, where the session is not decided yet. `paid`: it will be, whatever the
    customer's wallet says, which only adds the payment's address.
    """

    session: Session
    seen: witness.Seen | None = None
    paid: bool = False


def step(services: PayServices, session: Session, *, within: timedelta = DEADLINE) -> Session:
    """Check the wallets once, and write what they show. Raises StaleSession after a lost race.

    A wallet that does not answer changes nothing: the first write here has already scheduled the
    next check.
    """
    until = services.clock.now() + within
    checked = ask_merchant(services, session, within=within)
    return ask_customer(services, checked, within=until - services.clock.now())


def ask_merchant(
    services: PayServices, session: Session, *, within: timedelta = DEADLINE
) -> Checked:
    """Take the first half of a step: ask the merchant's wallet, the witness.

    Raises as `step` does.
    """
    try:
        session = move(services, session, Event.CHECKED, **_next_check(services, session))
        work = _work(services, session, within)
        checked = Checked(session)
        with contextlib.suppress(op.OpenPaymentsError):
            checked = _checked(work, session)
        return replace(checked, session=settle(services, checked.session))
    except IllegalTransition as illegal:  # another writer, or the clock, has moved it on
        raise StaleSession(illegal.session) from None


def ask_customer(
    services: PayServices, checked: Checked, *, within: timedelta = DEADLINE
) -> Session:
    """Take the second half of a step: ask the customer's wallet, if it is its turn.

    One that hangs is noted on the record, and left alone for a while; what was seen at the merchant
    decides then, as it does where there is no time. Raises as `step` does.
    """
    session, seen = checked.session, checked.seen
    if seen is None:
        return session
    begun = services.clock.now()
    try:
        work = _work(services, session, within)
        payment: OutgoingPayment | None = None
        if _may_ask(session, begun, within):
            try:
                session, payment = _ask_wallet(work, session)
            except op.OpenPaymentsError:  # the witness alone decides
                session = _note_if_hung(services, session, begun)
        if session.status is Status.PROCESSING:
            session = _decide(work, session, seen, payment)
        elif payment is None and seen.received == 0:
            session = _close_when_waited(work, session)
        else:
            session = arrived(work, session, seen, payment)
        return settle(services, session)
    except IllegalTransition as illegal:
        raise StaleSession(illegal.session) from None


def _may_ask(session: Session, now: datetime, within: timedelta) -> bool:
    rested = session.hung_until is None or now >= session.hung_until
    return rested and within > timedelta(0)


def _work(services: PayServices, session: Session, within: timedelta) -> Work:
    return Work.begin(services, merchants.get(services.merchants, session.merchant), within=within)


def _checked(work: Work, session: Session) -> Checked:
    if session.terminal:
        return Checked(outside.account(work, session))
    if not session.payment_in_flight:
        return Checked(outside.found(work, session, witness.check(work, session)))
    if session.closing_at is not None:
        return Checked(_fence(work, session))
    seen = received.seen_if_readable(work, session)
    if session.phase is Phase.PAYING:
        return Checked(session, seen, paid=work.paid(session, seen.received))
    session = received.judge(work, session, seen)
    return Checked(session, seen if session.status is Status.PROCESSING else None)


def _note_if_hung(services: PayServices, session: Session, begun: datetime) -> Session:
    now = services.clock.now()
    if now < begun + HUNG:
        return session
    sent = session.instruction.deadline if session.instruction is not None else now
    pause = min(max(now - sent, HUNG_LEAST), HUNG_MOST)
    return move(services, session, Event.CHECKED, hung_until=now + pause)


def arrived(
    work: Work, session: Session, seen: witness.Seen, payment: OutgoingPayment | None = None
) -> Session:
    """Write that the instructed payment is there (W7), as a wallet or its money shows; decide."""
    session = move(
        work.services,
        session,
        Event.PAYMENT_CREATED,
        outgoing_payment=payment.id if payment else None,
        check_at=work.services.clock.now(),
        checks=0,
    )
    session = received.judge(work, session, seen)
    if session.status is not Status.PROCESSING:
        return session
    return _decide(work, session, seen, payment)


def _decide(
    work: Work, session: Session, seen: witness.Seen, payment: OutgoingPayment | None
) -> Session:
    """Decide on a processing session that is not paid by what the customer's wallet says."""
    if payment is not None and payment.failed:
        return _start_closing(work, session)
    instructed = work.services.completion_policy is CompletionPolicy.INSTRUCTED
    if instructed and session.outgoing_payment is not None:
        return received.complete(work, session, seen.received or None)
    return _close_when_waited(work, session)


def _fence(work: Work, session: Session) -> Session:
    """Take one step of the fence. Once closing, only received money counts."""
    services = work.services
    if session.closed_at is None:
        seen = witness.check_and_close(work, session)
    else:
        seen = witness.check(work, session)
    if not work.paid(session, seen.received):
        if session.closed_at is None:
            if not seen.closed:
                return session
            now = services.clock.now()
            return move(services, session, Event.CLOSED, closed_at=now, check_at=now + FENCE)
        if seen.begun_at < session.closed_at + FENCE:
            return session  # this read began too early to decide
    if seen.received == 0:
        problem = Problem.PAYMENT_FAILED
        note = "nothing was received, and nothing can be any more"
        return move(services, session, Event.PAYMENT_DISPROVED, note=note, problem=problem)
    if session.status is not Status.PROCESSING:
        session = move(services, session, Event.PAYMENT_CREATED, check_at=seen.begun_at)
    return received.judge(work, session, seen, final=True)


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


def _close_when_waited(work: Work, session: Session) -> Session:
    """Begin the fence when the wait is over, never before."""
    if work.services.clock.now() < wait_until(session):
        return session
    return _start_closing(work, session)


def _start_closing(work: Work, session: Session) -> Session:
    """Begin the fence; the next check is due at once, however rare checks have become."""
    now = work.services.clock.now()
    return move(work.services, session, Event.CLOSING_STARTED, closing_at=now, check_at=now)


def wait_until(session: Session) -> datetime:
    """Return the time from which no payment of this instruction can begin.

    That is a margin after the quote or the incoming payment expires, whichever comes first. Once a
    part of the money is there, the rest may come until the incoming payment expires.
    """
    ends = [session.incoming_payment_ends_at]
    if not session.received:
        if session.quote is not None and session.quote.expires_at is not None:
            ends.append(session.quote.expires_at)
        elif session.instruction is not None:
            ends.append(session.instruction.deadline + ENDLESS_QUOTE)
    return min(ends) + WAIT_MARGIN


def _next_check(services: PayServices, session: Session) -> dict[str, Any]:
    """Return the fields that schedule the next check, in case this one decides nothing.

    Checks become rarer, but one is on time when the wait or the fence is over.
    """
    now = services.clock.now()
    if session.terminal:
        return _next_account(services, session, now)
    if not session.payment_in_flight:
        return {}
    attention = session.attention
    pause = timedelta(seconds=BACKOFF[min(session.checks, len(BACKOFF) - 1)])
    if session.instruction is not None and now >= session.instruction.deadline + UNDECIDED_AFTER:
        pause = UNDECIDED_AFTER
        attention = attention or Attention.UNDECIDED
    elif session.instruction is None and session.checks >= CHECKS_AN_HOUR:
        pause = UNDECIDED_AFTER
    check_at = now + pause
    if session.closed_at is not None:
        check_at = max(check_at, session.closed_at + FENCE)
    elif session.closing_at is None and now < wait_until(session):
        check_at = min(check_at, wait_until(session))
    return {"check_at": check_at, "checks": session.checks + 1, "attention": attention}


def _next_account(services: PayServices, session: Session, now: datetime) -> dict[str, Any]:
    """Return the same for an ended session. After ACCOUNT_FOR the merchant has to look."""
    last_end = session.incoming_payment_ends_at + FENCE
    if now >= last_end + ACCOUNT_FOR:
        return {"check_at": None, "attention": session.attention or Attention.UNDECIDED}
    pause = BACKOFF[-1] if now < session.updated_at + UNDECIDED_AFTER else 3600
    check_at = now + timedelta(seconds=pause)
    if session.closed_at is not None and now < session.closed_at + FENCE:
        check_at = session.closed_at + FENCE
    instructed = services.completion_policy is CompletionPolicy.INSTRUCTED
    if instructed and session.status is Status.COMPLETED:  # once now, and once when it is closed
        check_at = max(check_at, last_end)
    return {"check_at": check_at}
