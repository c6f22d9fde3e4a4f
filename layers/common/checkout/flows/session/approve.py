"""Verify the customer's return from their wallet, continue the grant, pay once (W5 to W8).

The order of writes is the safety: W5 before the interact_ref is redeemed, W6 before the one call
that moves money (domain/session/transitions.py). After W6 only certainty leads back to `open`; a
payment whose outcome is unknown stays `paying` and belongs to reconciliation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from checkout.domain.ground.limits import RETURN
from checkout.domain.links import link_of
from checkout.domain.payment.attempt import Outcome
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Problem
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.session.attempts import running
from checkout.domain.session.record import Session, Status
from checkout.flows import limits, merchants
from checkout.flows.payment import approval, instruct, sealed
from checkout.flows.payment.sealed import Proof
from checkout.flows.payment.visit import WalletVisit
from checkout.flows.payment.writes import move
from checkout.flows.session import completion, reconcile
from checkout.flows.session.lookup import apply_clock, load
from checkout.flows.session.prepare import note_of
from checkout.open_payments import errors as op
from checkout.open_payments.limits import Limits
from checkout.open_payments.urls import authority
from checkout.ports import StaleRecord
from checkout.services import PayServices

DEADLINE: Final = timedelta(seconds=20)  # from W5; API Gateway gives up after 30 s
PATIENCE: Final = 2.5  # seconds that the callback waits for the money; the customer sees no page

# The values of `result` from Rafiki's authorization server; RFC 9635 has no such parameter.
RESULTS: Final = {"grant_rejected": Outcome.DECLINED, "invalid_interaction": Outcome.TIMED_OUT}


@dataclass(frozen=True, slots=True)
class Finish:
    """The session after a callback.

    If `wait_seconds` is above 0, nothing was done, or the wallet could not take the approval just
    now: call the same URL again after that time. It is the browser that waits, because any number
    of copies may come before one of them has the claim.
    Nothing was done either if `asks`: the approval was begun in another browser, so ask this one
    first. `verified`: the browser came back with the session's approval, and was asked if it had to
    be.
    """

    session: Session
    wait_seconds: int = 0
    asks: bool = False
    verified: bool = False


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
        return Finish(apply_clock(services, session))
    assert session.customer is not None
    payer = session.customer
    approval.verify(grant, payer, interact_ref=interact_ref, presented_hash=presented_hash)
    verified, session = session, apply_clock(services, session)
    if session.grant != verified.grant or session.phase is not None or session.terminal:
        return Finish(session)  # another request was faster, or replaced the approval
    if browser is not None and not grant.proves(browser, session.id, Proof.BROWSER):
        return Finish(session, asks=True)
    wait = (grant.continuation.not_before - services.clock.now()).total_seconds()
    if wait > 0:
        return Finish(session, wait_seconds=math.ceil(wait), verified=True)
    assert session.customer is not None
    provider = authority(session.customer.id)
    limits.admit_work(services, RETURN, client, provider=provider)
    session = _claim_and_pay(services, session, grant, interact_ref)
    if session.approve_until is not None and session.phase is None:
        return Finish(session, wait_seconds=approval.KEPT_PAUSE, verified=True)
    if session.status is Status.COMPLETED:
        services.limits.know(provider)
        if session.link is not None and client is not None:
            services.limits.give_items(link_of(session.link), client, session.quantity)
    return Finish(session, verified=True)


def _claim_and_pay(
    services: PayServices, session: Session, grant: sealed.Grant, interact_ref: str
) -> Session:
    """Claim the approval (W5) and go on. The loser of the claim shows the winner's session."""
    merchant = merchants.of(services.merchants, session)
    visit = WalletVisit.begin(services, merchant, within=DEADLINE)
    try:
        session = approval.claim(services, session)
    except StaleRecord as stale:
        winner: Session = stale.current
        return winner
    except IllegalTransition as illegal:
        return apply_clock(services, illegal.record)
    try:
        return _continue_and_pay(visit, session, grant, interact_ref)
    except StaleRecord as stale:  # our lease lapsed, or a sweep came first: its write stands
        current: Session = stale.current
        return current
    except IllegalTransition as illegal:
        return apply_clock(services, load(services, illegal.record.id))


def _continue_and_pay(
    visit: WalletVisit, session: Session, grant: sealed.Grant, interact_ref: str
) -> Session:
    assert session.customer is not None
    assert session.incoming_payment is not None
    assert session.quote is not None
    payer, receiver = session.customer, session.incoming_payment.id
    allowed = Limits(receiver=receiver, debit_amount=session.quote.debit)
    try:
        token = approval.redeem(visit, grant, interact_ref, payer=payer, limits=allowed)
    except op.OpenPaymentsError as error:
        kept = approval.kept_until(visit.services, session.approve_until)
        if approval.stumbled(error) and kept is not None:
            note = note_of(_problem_of(error, Problem.WALLET_UNREACHABLE), error)
            event = Event.APPROVAL_KEPT
            return move(visit.services, session, event, note=note, approve_until=kept)
        problem = _problem_of(error, Problem.APPROVAL_UNUSABLE)
        return _lose_approval(visit, session, grant, problem, error)
    held = session.quote
    try:
        quote = approval.in_spite_of_stumbles(
            visit,
            lambda: instruct.usable_quote(
                visit, held, payer, receiver=receiver, receive=session.receive
            ),
        )
    except op.OpenPaymentsError as error:
        problem = _problem_of(error, Problem.APPROVAL_UNUSABLE)
        return _lose_approval(visit, session, grant, problem, error)
    if quote is None:
        return _lose_approval(visit, session, grant, Problem.PRICE_CHANGED)
    session = instruct.intend(visit.services, session, quote, token)
    sent = instruct.send(
        visit,
        session,
        token,
        payer=payer,
        receiver=receiver,
        patience=timedelta(seconds=PATIENCE),
    )
    session = sent.record
    if sent.seen is not None:
        return reconcile.arrived(visit, session, sent.seen)
    if sent.payment is None or session.status is not Status.PROCESSING:
        return session
    return completion.await_money(visit, session, sent.payment, token, patience=PATIENCE)


def _problem_of(error: op.OpenPaymentsError, problem: Problem) -> Problem:
    """Return `problem`, unless the error is about the shop's keys."""
    of_key = isinstance(error, op.Refused) and error.of_key
    return Problem.MERCHANT_WALLET_ERROR if of_key else problem


def _lose_approval(
    visit: WalletVisit,
    session: Session,
    grant: sealed.Grant,
    problem: Problem,
    error: op.OpenPaymentsError | None = None,
) -> Session:
    """Open the session again: no payment was instructed, so none can come of this approval."""
    assert session.customer is not None
    auth_server = session.customer.auth_server
    note = note_of(problem, error)
    session = move(visit.services, session, Event.APPROVAL_LOST, note=note, problem=problem)
    approval.cancel(visit, auth_server, grant)
    return session


def note_reported(services: PayServices, session: Session, result: str, *, browser: str) -> Session:
    """Note what the browser reports when it comes back without an approval (`result`).

    It is unsigned and names no approval, so it decides nothing. It is noted on the waiting attempt,
    once, if `browser` proves that this approval was begun in it or handed over to it.

    Returns the session as it is then. A lost race leaves it to the winner.
    """
    reported, attempt = RESULTS.get(result), running(session)
    if reported is None or attempt is None or attempt.reported is not None:
        return session
    grant = sealed.pending_grant(services.vault, session)
    if grant is None or not grant.proves(browser, session.id, Proof.BROWSER):
        return session
    try:
        said = {"reported": reported, "note": reported.value}
        return move(services, session, Event.RETURN_REPORTED, **said)
    except StaleRecord as stale:
        current: Session = stale.current
        return current
    except IllegalTransition:
        return session
