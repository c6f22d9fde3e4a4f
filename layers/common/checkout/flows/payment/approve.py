"""Verify the customer's return from their wallet, continue the grant, pay once (W5 to W8).

The order of writes is the safety: W5 before the interact_ref is redeemed, W6 before the one call
that moves money (domain/transitions.py). After W6 only certainty leads back to `open`; a payment
whose outcome is unknown stays `paying` and belongs to reconciliation.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.errors import CallbackInvalid
from checkout.domain.ids import new_nonce
from checkout.domain.limits import RETURN
from checkout.domain.session import Instruction, Problem, Session, Status
from checkout.domain.transitions import Change, Event, IllegalTransition
from checkout.flows import limits, merchants
from checkout.flows.payment import received, reconcile, sealed, witness
from checkout.flows.payment.prepare import note_of, request_quote
from checkout.flows.payment.sealed import Proof
from checkout.flows.payment.sessions import load, settle
from checkout.flows.payment.work import Work
from checkout.flows.payment.writes import change, give_way, move
from checkout.open_payments import errors as op
from checkout.open_payments import interaction
from checkout.open_payments.models import AccessToken, OutgoingPayment, Quote
from checkout.open_payments.urls import authority
from checkout.ports.services import PayServices
from checkout.ports.sessions import StaleSession

DEADLINE: Final = timedelta(seconds=20)  # from W5; API Gateway gives up after 30 s
LEASE: Final = timedelta(seconds=45)
# From W6; a process that resumes later must not send.
SEND_WITHIN: Final = timedelta(seconds=5)
# The callback has this long to see the money before reconciliation looks for it.
CHECK_AFTER: Final = timedelta(seconds=5)
# A quote that expires between the creation of the payment and its sending fails the payment.
QUOTE_MARGIN: Final = timedelta(seconds=10)
TOO_FAST_TRIES: Final = 2
TOO_FAST_PAUSE: Final = 5.0  # extra seconds to wait after `too_fast`
PATIENCE: Final = 4.0  # seconds that the callback waits for the money to show


@dataclass(frozen=True, slots=True)
class Finish:
    """The session after a callback.

    If `wait_seconds` is above 0, nothing was done: call the same URL again after that time. It is
    the browser that waits, because any number of copies may come before one of them has the claim.
    Nothing was done either if `asks`: the approval was begun in another browser, so ask this one
    first.
    """

    session: Session
    wait_seconds: int = 0
    asks: bool = False


def finish(
    services: PayServices,
    session_id: str,
    *,
    interact_ref: str,
    presented_hash: str,
    browser: str | None = None,
    client: str | None = None,
) -> Finish:
    """Act on a grant callback (RFC 9635 section 4.2.3).

    `browser` is the proof that the browser presents, "" for none; it is None for a customer who was
    asked. `client` is where the browser is.

    Raises CallbackInvalid for a callback that does not verify, without any write or wallet call.
    Raises RateLimited, after which the same callback may come again. A repeated or late callback
    gets the session as it is.
    """
    session = load(services, session_id)
    grant = sealed.pending_grant(services.vault, session)
    if grant is None:
        return Finish(settle(services, session))
    _verify(session, grant, interact_ref=interact_ref, presented_hash=presented_hash)
    verified, session = session, settle(services, session)
    if session.grant != verified.grant or session.phase is not None or session.terminal:
        return Finish(session)  # another request was faster, or replaced the approval
    if browser is not None and not grant.proves(browser, session.id, Proof.BROWSER):
        return Finish(session, asks=True)
    wait = (grant.continuation.not_before - services.clock.now()).total_seconds()
    if wait > 0:
        return Finish(session, wait_seconds=math.ceil(wait))
    assert session.customer is not None
    provider = authority(session.customer.id)
    limits.admit_work(services, RETURN, client, provider=provider)
    session = _claim_and_pay(services, session, grant, interact_ref)
    if session.status is Status.COMPLETED:
        services.limits.know(provider)
    return Finish(session)


def _verify(
    session: Session, grant: sealed.Grant, *, interact_ref: str, presented_hash: str
) -> None:
    assert session.customer is not None
    matched = interaction.matches(
        presented_hash,
        client_nonce=grant.client_nonce,
        finish_nonce=grant.finish_nonce,
        interact_ref=interact_ref,
        grant_url=session.customer.auth_server,
        continue_uri=grant.continuation.uri,
    )
    if matched is None:
        raise CallbackInvalid("This answer does not belong to the approval that we asked for.")


def _claim_and_pay(
    services: PayServices, session: Session, grant: sealed.Grant, interact_ref: str
) -> Session:
    """Claim the approval (W5) and go on. The loser of the claim shows the winner's session."""
    merchant = merchants.get(services.merchants, session.merchant)
    work = Work.begin(services, merchant, within=DEADLINE)

    def claimed(current: Session) -> Change:
        # A check for money from outside may come first; another approval or claim may not.
        if current.grant != session.grant or current.phase is not None:
            raise StaleSession(current)
        now = services.clock.now()  # of the claim that is written, not of one that lost its race
        return change(
            services,
            current,
            Event.APPROVAL_CLAIMED,
            lease_until=now + LEASE,
            look_at=current.look_at or now + SEND_WITHIN + CHECK_AFTER,  # as W6, which leaves it
        )

    try:
        session = give_way(services, session, claimed)
    except (StaleSession, IllegalTransition) as lost:
        return lost.current if isinstance(lost, StaleSession) else settle(services, lost.session)
    try:
        return _continue_and_pay(work, session, grant, interact_ref)
    except StaleSession as stale:  # our lease lapsed, or a sweep came first: its write stands
        return stale.current
    except IllegalTransition as illegal:
        return settle(services, load(services, illegal.session.id))


def _continue_and_pay(
    work: Work, session: Session, grant: sealed.Grant, interact_ref: str
) -> Session:
    services = work.services
    try:
        token = _continue(work, session, grant, interact_ref)
        quote = _usable_quote(work, session)
    except op.OpenPaymentsError as error:
        return _lose_approval(work, session, grant, Problem.APPROVAL_UNUSABLE, error)
    if quote is None:
        return _lose_approval(work, session, grant, Problem.PRICE_CHANGED)
    now = services.clock.now()
    instruction = Instruction(id=new_nonce(services.random_bytes), deadline=now + SEND_WITHIN)
    session = move(  # W6, the point of no return
        services,
        session,
        Event.PAYMENT_INTENDED,
        instruction=instruction,
        quote=quote,
        token=sealed.seal_token(services.vault, session.id, token),
        check_at=instruction.deadline + CHECK_AFTER,
        checks=0,
    )
    return _pay(work, session, token)


def _continue(work: Work, session: Session, grant: sealed.Grant, interact_ref: str) -> AccessToken:
    """Redeem the interact_ref (C7). Only "too fast" leaves it valid, so only that is repeated."""
    assert session.customer is not None
    assert session.incoming_payment is not None
    assert session.quote is not None
    tries = 0
    while True:
        try:
            return work.client.continue_grant(
                session.customer,
                grant.continuation,
                interact_ref=interact_ref,
                receiver=session.incoming_payment.id,
                debit=session.quote.debit,
            )
        except op.Refused as refused:
            tries += 1
            if refused.reason is not op.Reason.TOO_FAST or tries >= TOO_FAST_TRIES:
                raise
            work.services.clock.sleep(TOO_FAST_PAUSE)


def _usable_quote(work: Work, session: Session) -> Quote | None:
    """Return the stored quote, or a new one for the same incoming payment if it has expired.

    Returns None if the new quote costs more than the customer approved.
    """
    assert session.quote is not None
    quote = session.quote
    if quote.expires_at is None or work.services.clock.now() + QUOTE_MARGIN < quote.expires_at:
        return quote
    renewed = request_quote(work, session)
    within = renewed.debit.value <= quote.debit.value and renewed.debit.same_asset(quote.debit)
    return renewed if within else None


def _lose_approval(
    work: Work,
    session: Session,
    grant: sealed.Grant,
    problem: Problem,
    error: op.OpenPaymentsError | None = None,
) -> Session:
    """Open the session again: no payment was instructed, so none can come of this approval.

    Cancels the grant, best effort.
    """
    assert session.customer is not None
    auth_server = session.customer.auth_server
    note = note_of(problem, error)
    session = move(work.services, session, Event.APPROVAL_LOST, note=note, problem=problem)
    with contextlib.suppress(op.OpenPaymentsError):
        work.client.cancel_grant(auth_server, grant.continuation)
    return session


def _pay(work: Work, session: Session, token: AccessToken) -> Session:
    """Send the payment once, never after its deadline (C8), record it, wait for the money."""
    assert session.instruction is not None
    assert session.customer is not None
    assert session.quote is not None
    assert session.incoming_payment is not None
    if work.services.clock.now() >= session.instruction.deadline:
        return _certain(work, session, token, Problem.APPROVAL_UNUSABLE, "not sent in time")
    try:
        payment = work.client.create_outgoing_payment(
            session.customer, token, quote=session.quote, receiver=session.incoming_payment.id
        )
    except op.NotSent as error:  # no byte of it reached the wallet
        return _certain(work, session, token, Problem.WALLET_UNREACHABLE, type(error).__name__)
    except op.Refused as refused:
        return _refused(work, session, token, refused)
    except op.OpenPaymentsError:
        return session  # `paying`: the page says "confirming", reconciliation decides
    return _record_payment(work, session, payment)


def _certain(
    work: Work, session: Session, token: AccessToken, problem: Problem, why: str
) -> Session:
    """Open the session again: it is certain that this instruction paid nothing and never will.

    The access token is revoked, best effort, so that nothing uses this approval any more.
    """
    assert session.customer is not None
    auth_server, note = session.customer.auth_server, f"{problem.value}: {why}"
    session = move(work.services, session, Event.PAYMENT_REFUSED, note=note, problem=problem)
    with contextlib.suppress(op.OpenPaymentsError):
        work.client.revoke_token(auth_server, token)
    return session


def _refused(work: Work, session: Session, token: AccessToken, refused: op.Refused) -> Session:
    """Open the session if the 4xx means that no payment was made; decide by money that is there.

    It does only if the wallet, asked by id and by list, shows no payment for this quote, and the
    merchant's own incoming payment shows no money (C8): a hostile wallet may pay and hide it.
    """
    try:
        seen = witness.check(work, session)
        if seen.received > 0:
            return reconcile.arrived(work, session, seen)
        if refused.reason in (op.Reason.BUSY, op.Reason.INVALID_QUOTE):
            return session
        if witness.find_payment(work.client, session, token) is not None:
            return session
    except op.OpenPaymentsError:
        return session  # a wallet cannot be asked
    return _certain(work, session, token, Problem.PAYMENT_REFUSED, refused.reason.value)


def _record_payment(work: Work, session: Session, payment: OutgoingPayment) -> Session:
    """Record the payment (W7) and wait for the money (C9, W8).

    A session that a sweep moved on meanwhile is taken as it is.
    """
    try:
        session = move(
            work.services,
            session,
            Event.PAYMENT_CREATED,
            outgoing_payment=payment.id,
            check_at=_check_at(work, session),
            checks=0,
        )
    except StaleSession as stale:
        session = stale.current
    if session.status is not Status.PROCESSING or payment.failed:
        return session
    return received.await_money(work, session, patience=PATIENCE)


def _check_at(work: Work, session: Session) -> datetime:
    """Return when others look for the money: as W6 said, as this costs no write of the index."""
    after_us = work.services.clock.now() + timedelta(seconds=PATIENCE)
    return max(session.check_at or after_us, after_us)
