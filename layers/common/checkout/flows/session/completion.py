"""Decide a session by the money received: complete it, or flag it as partly paid.

The merchant's own incoming payment is the evidence (C9, W8 in domain/session/transitions.py). With
the policy `received`, a session completes when the money has arrived. With the policy `instructed`,
it completes once the customer's wallet has accepted the payment.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention
from checkout.domain.payment.machine import Change
from checkout.domain.session.record import Session, Status
from checkout.flows.payment import proof, schedule
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import change, move, write_decided
from checkout.ports import CompletionPolicy, StaleRecord
from open_payments import errors as op
from open_payments.models import AccessToken, OutgoingPayment

# The money shows about 200 ms after the wallet has accepted the payment (benchmarks/callback.py).
POLL_SECONDS: Final = (0.2, 0.15, 0.25, 0.4, 1.0, 1.0)
# If too little money shows after this time, the customer's wallet is asked repeatedly whether the
# payment has failed.
ASK_AFTER: Final = timedelta(seconds=1)


def decide_by_money(
    calls: WalletCalls, session: Session, seen: proof.IncomingPaymentState, *, final: bool = False
) -> Session:
    """Complete a processing session if it is paid, and flag it if it is partly paid.

    `final` means that nothing more can arrive, so a partly paid session is not checked again.
    """
    if proof.enough(calls, session, seen.received):
        return complete(calls, session, seen.received)
    if seen.received == 0 or (session.received == seen.received and not final):
        return session
    return move(
        calls.services,
        session,
        Event.CHECKED if session.received == seen.received else Event.PART_ARRIVED,
        received=seen.received,
        attention=Attention.PARTIAL_PAYMENT,
        check_at=None if final else session.check_at,
    )


def complete(calls: WalletCalls, session: Session, received: int | None) -> Session:
    """Write `completed` and its event in one transaction (W8).

    `received` is in the merchant's wallet's scale, or None if the amount is not known, which only
    the policy `instructed` allows. If less than the whole amount was received, the session is
    checked again later, although it has ended.
    """
    services = calls.services

    def completed(current: Session) -> Change[Session] | None:
        if current.status is not Status.PROCESSING:
            return None  # another process has decided the session
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
        return write_decided(services, session, completed)
    except StaleRecord as stale:
        current: Session = stale.current
        return current


def await_money(
    calls: WalletCalls,
    session: Session,
    payment: OutgoingPayment,
    token: AccessToken,
    *,
    time_budget: float,
) -> Session:
    """Read a processing session's incoming payment until the money shows (C9), then complete it.

    Records a partial amount as soon as it is seen. If the customer's wallet reports that the
    `payment` has failed, or if the incoming payment is completed with too little money, begins the
    fence (proof.py), which makes the amount certain. The calls and pauses take `time_budget`
    seconds at most. With the policy `instructed` there is only one read. Raises StaleRecord,
    IllegalTransition.
    """
    services = calls.services
    if payment.failed:
        return schedule.start_closing(services, session)
    if services.completion_policy is CompletionPolicy.INSTRUCTED:
        return complete(calls, session, seen_if_readable(calls, session).received or None)
    begun = services.clock.now()
    calls = calls.within(timedelta(seconds=time_budget))
    known: OutgoingPayment | None = None
    for pause in POLL_SECONDS:
        try:
            seen = proof.read(calls, session)
            if proof.enough(calls, session, seen.received):
                return complete(calls, session, seen.received)
            session = _tell_part(calls, session, seen)
            over = seen.completed
            if services.clock.now() >= begun + ASK_AFTER:
                before, known = known, calls.client.get_outgoing_payment(payment.id, token)
                if paid_but_for_rounding(calls, session, seen, before, known):
                    return complete(calls, session, seen.received)
                over = over or known.failed
            if over:
                session = decide_by_money(calls, session, seen)
                return schedule.start_closing(services, session)
        except op.OpenPaymentsError:
            pass  # the customer's page asks again later
        if services.clock.now() + timedelta(seconds=pause) > calls.deadline:
            break
        services.clock.sleep(pause)
    return session


def _tell_part(calls: WalletCalls, session: Session, seen: proof.IncomingPaymentState) -> Session:
    """Write the part received, unless no more than a rounding difference is missing."""
    if proof.enough(calls, session, seen.received, ended=True):
        return session
    return decide_by_money(calls, session, seen)


def paid_but_for_rounding(
    calls: WalletCalls,
    session: Session,
    seen: proof.IncomingPaymentState,
    before: OutgoingPayment | None,
    after: OutgoingPayment,
) -> bool:
    """Return whether the payment has ended and lacks no more than a conversion can lose.

    The payment has ended if the customer's wallet shows no failure, and shows the same sum as sent
    `before` and `after` a pause. That wallet is not trusted, but its answer decides only about one
    unit of money (money.least_accepted).
    """
    if before is None or after.failed or not 0 < after.sent.value == before.sent.value:
        return False
    return proof.enough(calls, session, seen.received, ended=True)


def seen_if_readable(calls: WalletCalls, session: Session) -> proof.IncomingPaymentState:
    """Read the incoming payment; with the policy `instructed`, treat an unreadable one as empty.

    Raises open_payments errors with the policy `received`.
    """
    try:
        return proof.read(calls, session)
    except op.OpenPaymentsError:
        if calls.services.completion_policy is CompletionPolicy.RECEIVED:
            raise
        return proof.IncomingPaymentState(
            received=0, closed=False, begun_at=calls.services.clock.now()
        )
