"""Verify the customer's return from their wallet, continue the grant, pay once (W5 to W8).

Safety depends on the order of the writes: W5 is written before the interact_ref (the code that the
customer's browser brings back) is redeemed, and W6 before the one call that moves money
(domain/session/transitions.py). After W6 the session returns to `open` only if it is certain that
no payment was made. If the outcome is unknown, the session stays in `paying` until reconciliation,
which asks the wallets later, decides.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

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
from checkout.flows.payment.approval import CallbackResult
from checkout.flows.payment.sealed import Proof
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import move
from checkout.flows.session import completion, reconcile
from checkout.flows.session.lookup import apply_clock, load
from checkout.flows.session.prepare import note_of
from checkout.ports import StaleRecord
from checkout.services import PayServices
from open_payments import errors as op
from open_payments.urls import authority

DEADLINE: Final = timedelta(seconds=20)  # from W5; API Gateway gives up after 30 s
WAIT_FOR_MONEY: Final = (
    2.5  # seconds that the callback waits for the money while the customer sees no page
)

# The values of `result` from Rafiki's authorization server; RFC 9635 has no such parameter.
RESULTS: Final = {"grant_rejected": Outcome.DECLINED, "invalid_interaction": Outcome.TIMED_OUT}


def finish(
    services: PayServices,
    session_id: str,
    *,
    interact_ref: str,
    presented_hash: str,
    browser: str | None = None,
    client: str | None = None,
) -> CallbackResult[Session]:
    """Act on a grant callback, the customer's return (RFC 9635 section 4.2.3).

    `browser` is the proof, in the browser's cookie, that the approval was begun in this browser or
    moved to it, or "" without a cookie. It is None if the customer has confirmed. `client` is the
    browser's network address.

    Raises CallbackInvalid for a callback that does not verify, without any write or wallet call.
    Raises RateLimited; the same callback can be sent again later. After a repeated or late
    callback, the session is returned unchanged.
    """
    session = load(services, session_id)
    grant = approval.returned(
        services,
        session,
        session.payer,
        interact_ref=interact_ref,
        presented_hash=presented_hash,
    )
    verified, session = session, apply_clock(services, session)
    if grant is None or session.phase is not None or session.terminal:
        return CallbackResult(session)
    if session.grant != verified.grant:  # another request has replaced the approval
        return CallbackResult(session)
    if browser is not None and not grant.proves(browser, session.id, Proof.BROWSER):
        return CallbackResult(session, asks=True)
    if wait := grant.wait_seconds(services.clock.now()):
        return CallbackResult(session, wait_seconds=wait, verified=True)
    assert session.customer is not None
    provider = authority(session.customer.id)
    limits.admit_work(services, RETURN, client, provider=provider)
    session = _claim_and_pay(services, session, grant, interact_ref)
    if session.approve_until is not None and session.phase is None:
        return CallbackResult(session, wait_seconds=approval.KEPT_PAUSE, verified=True)
    if session.status is Status.COMPLETED:
        services.limits.know(provider)
        if session.link is not None and client is not None:
            services.limits.give_items(link_of(session.link), client, session.quantity)
    return CallbackResult(session, verified=True)


def _claim_and_pay(
    services: PayServices, session: Session, grant: sealed.Grant, interact_ref: str
) -> Session:
    """Claim the approval (W5) and pay. If the claim is lost, return the stored session."""
    merchant = merchants.of(services.merchants, session)
    calls = WalletCalls.begin(services, merchant, within=DEADLINE)
    try:
        session = approval.claim(services, session, _look_planned)
    except StaleRecord as stale:
        winner: Session = stale.current
        return winner
    except IllegalTransition as illegal:
        return apply_clock(services, illegal.record)
    try:
        return _continue_and_pay(calls, session, grant, interact_ref)
    except StaleRecord as stale:  # our lease lapsed, or a sweep wrote first
        current: Session = stale.current
        return current
    except IllegalTransition as illegal:
        return apply_clock(services, load(services, illegal.record.id))


def _look_planned(session: Session, now: datetime) -> dict[str, Any]:
    """Return the field with the time at which the sweep first checks the claimed session.

    The time is written with the claim (W5), so that W6 does not have to change it.
    """
    planned = now + instruct.SEND_WITHIN + instruct.CHECK_AFTER
    return {"look_at": session.look_at or planned}


def _continue_and_pay(
    calls: WalletCalls, session: Session, grant: sealed.Grant, interact_ref: str
) -> Session:
    session, token = approval.redeem_and_intend(calls, session, grant, interact_ref, _blame)
    if token is None:
        return session
    sent = instruct.send(calls, session, token, timedelta(seconds=WAIT_FOR_MONEY))
    session = sent.session
    if sent.seen is not None:
        return reconcile.arrived(calls, session, sent.seen)
    if sent.payment is None or session.status is not Status.PROCESSING:
        return session
    return completion.await_money(calls, session, sent.payment, token, time_budget=WAIT_FOR_MONEY)


def _blame(
    session: Session, problem: Problem, error: op.OpenPaymentsError | None
) -> tuple[str, dict[str, Any]]:
    """Return the note on a problem, and the session's field for the problem.

    If the wallet refused the shop's keys, both name MERCHANT_WALLET_ERROR instead of `problem`.
    """
    if isinstance(error, op.Refused) and error.of_key:
        problem = Problem.MERCHANT_WALLET_ERROR
    return note_of(problem, error), {"problem": problem}


def note_reported(services: PayServices, session: Session, result: str, *, browser: str) -> Session:
    """Store the `result` with which a browser returns without an approval.

    The result is unsigned and names no approval, so it decides nothing. It is stored only once, in
    the payment attempt that waits for an approval. The proof `browser` must show that this approval
    was begun in this browser or moved to it; otherwise nothing is stored.

    Returns the session as it is afterwards. If another process has written the session first,
    nothing is stored.
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
