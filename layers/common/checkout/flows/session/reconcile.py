"""Reconcile payments in doubt with what the wallets show.

The engine (flows/payment) reads and closes incoming payments, and this module decides about the
session (domain/session/transitions.py). Every write is conditional. So the callback (the customer's
return), the customer's open page and the scheduled sweep can all reconcile a session at the same
time.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import FENCE, Attention, Phase
from checkout.domain.payment.machine import Change, IllegalTransition
from checkout.domain.session.record import Session, Status
from checkout.flows import limits, merchants
from checkout.flows.payment import instruct, proof, schedule, sealed
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import change, move, write_decided
from checkout.flows.session import completion, unsolicited_payments
from checkout.flows.session.lookup import apply_clock, load
from checkout.ports import CompletionPolicy, StaleRecord
from checkout.services import PayServices
from open_payments import errors as op
from open_payments.models import AccessToken, OutgoingPayment

DEADLINE: Final = timedelta(seconds=20)
PAGE_DEADLINE: Final = timedelta(seconds=8)  # a customer is waiting, and the sweep asks again
# If a wallet cannot be asked about an ended session, it is tried again until this time has passed.
ACCOUNT_FOR: Final = timedelta(days=7)
# The callback itself looks for the money. The customer's page begins to look this long after the
# callback's last write.
FIRST_LOOK: Final = timedelta(seconds=3)
STILL_FOR: Final = 1.0  # a payment has ended if it sends nothing more in these seconds


def view(services: PayServices, session_id: str) -> Session:
    """Return the session after `apply_clock`, which writes what the time alone has changed.

    Calls no wallet.
    """
    return apply_clock(services, load(services, session_id))


def advance_pending(services: PayServices, session_id: str, client: str | None = None) -> Session:
    """Return the session. Reconcile it first if that is due, or if the callback has just ended.

    For each session, the wallets are asked only once per interval, however many pages poll. If the
    pages of one `client` (a network address) poll too many sessions in doubt, they cause no more
    calls to wallets, and only the sweep checks these sessions.
    """
    session = view(services, session_id)
    now = services.clock.now()
    due = schedule.due(session, now) or _callback_over(session, now)
    if not due and not unsolicited_payments.may_look(session, now):
        return session
    if not limits.admits_work(services, client):
        return session
    try:
        return step(services, session, within=PAGE_DEADLINE)
    except StaleRecord as stale:
        current: Session = stale.current
        return current


def _callback_over(session: Session, now: datetime) -> bool:
    """Return whether the callback of a payment has ended and no longer looks for the money.

    The sweep's first check is later. An earlier check would make W7 write the index.
    """
    waits = session.status is Status.PROCESSING and session.check_at is not None
    first = session.checks == 0 and session.closing_at is None
    return waits and first and now >= session.updated_at + FIRST_LOOK


@dataclass(frozen=True, slots=True)
class Checked:
    """A session after the merchant's wallet was asked.

    `seen` is the answer of the merchant's wallet if the session is not decided yet. `paid` means
    that the session will be completed in any case, and the customer's wallet is asked only for the
    payment's URL.
    """

    session: Session
    seen: proof.IncomingPaymentState | None = None
    paid: bool = False


@dataclass(frozen=True, slots=True)
class WalletAnswer:
    """A session after the customer's wallet was asked, and the payment that this wallet shows.

    The caller must continue with this session even if the wallet has not `answered`, because the
    session may have a new token from before the failure.
    """

    session: Session
    payment: OutgoingPayment | None = None
    answered: bool = True


def step(services: PayServices, session: Session, *, within: timedelta = DEADLINE) -> Session:
    """Ask the wallets once, and write what they show.

    The first write schedules the next check. If a wallet does not answer, nothing else needs to be
    written. Raises StaleRecord if another process has written the session first.
    """
    until = services.clock.now() + within
    checked = ask_merchant(services, session, within=within)
    return ask_customer(services, checked, within=until - services.clock.now())


def ask_merchant(
    services: PayServices, session: Session, *, within: timedelta = DEADLINE
) -> Checked:
    """Take the first half of a step: ask the merchant's wallet.

    Raises as `step` does.
    """
    try:
        session = move(services, session, Event.CHECKED, **_next_check(services, session))
        calls = _visit(services, session, within)
        checked = Checked(session)
        with contextlib.suppress(op.OpenPaymentsError):
            checked = _checked(calls, session)
        return replace(checked, session=apply_clock(services, checked.session))
    except IllegalTransition as illegal:  # the session was changed by another process or the clock
        raise StaleRecord(illegal.record) from None


def ask_customer(
    services: PayServices, checked: Checked, *, within: timedelta = DEADLINE
) -> Session:
    """Take the second half of a step: ask the customer's wallet, if that is due.

    If the customer's wallet hangs, the session stores until when this wallet is not asked again.
    Until then, or if no time is left for the call, the merchant's wallet alone decides. Raises as
    `step` does.
    """
    session, seen = checked.session, checked.seen
    if seen is None:
        return session
    begun = services.clock.now()
    try:
        calls = _visit(services, session, within)
        payment: OutgoingPayment | None = None
        if schedule.may_ask(session, begun, within):
            asked = _ask_wallet(calls, session)
            session, payment = asked.session, asked.payment
            if not asked.answered:  # the merchant's wallet alone decides
                session = schedule.note_if_hung(services, session, begun)
        if session.status is Status.PROCESSING:
            session = _decide(calls, session, seen, payment)
        elif payment is None and seen.received == 0:
            session = schedule.close_when_waited(calls.services, session, completed=seen.completed)
        else:
            session = arrived(calls, session, seen, payment)
        return apply_clock(services, session)
    except IllegalTransition as illegal:
        raise StaleRecord(illegal.record) from None


def _visit(services: PayServices, session: Session, within: timedelta) -> WalletCalls:
    return WalletCalls.begin(services, merchants.of(services.merchants, session), within=within)


def _checked(calls: WalletCalls, session: Session) -> Checked:
    if session.terminal:
        return Checked(unsolicited_payments.account(calls, session))
    if not session.payment_in_flight:
        return Checked(unsolicited_payments.found(calls, session, proof.read(calls, session)))
    if session.closing_at is not None:
        return Checked(_fence(calls, session))
    seen = completion.seen_if_readable(calls, session)
    if session.phase is Phase.PAYING:
        return Checked(session, seen, paid=proof.enough(calls, session, seen.received))
    session = completion.decide_by_money(calls, session, seen)
    return Checked(session, seen if session.status is Status.PROCESSING else None)


def arrived(
    calls: WalletCalls,
    session: Session,
    seen: proof.IncomingPaymentState,
    payment: OutgoingPayment | None = None,
) -> Session:
    """Write that the instructed payment exists (W7), because a wallet shows it, and then decide."""
    now = calls.services.clock.now()
    paid_by = payment.id if payment else None
    session = instruct.note_created(calls.services, session, paid_by, check_at=lambda current: now)
    session = completion.decide_by_money(calls, session, seen)
    if session.status is not Status.PROCESSING:
        return session
    return _decide(calls, session, seen, payment)


def _decide(
    calls: WalletCalls,
    session: Session,
    seen: proof.IncomingPaymentState,
    payment: OutgoingPayment | None,
) -> Session:
    """Decide on an unpaid processing session, from the answer of the customer's wallet."""
    if proof.enough(calls, session, seen.received):
        return session  # paid, but another process wrote first; the next check completes it
    if payment is not None and payment.failed:
        return schedule.start_closing(calls.services, session)
    if payment is not None and proof.enough(calls, session, seen.received, ended=True):
        calls.services.clock.sleep(STILL_FOR)
        asked = _ask_wallet(calls, session)  # once more, after a pause
        session, later = asked.session, asked.payment
        if later and completion.paid_but_for_rounding(calls, session, seen, payment, later):
            return completion.complete(calls, session, seen.received)
    instructed = calls.services.completion_policy is CompletionPolicy.INSTRUCTED
    if instructed and session.outgoing_payment is not None:
        return completion.complete(calls, session, seen.received or None)
    return schedule.close_when_waited(calls.services, session, completed=seen.completed)


def _fence(calls: WalletCalls, session: Session) -> Session:
    """Take one step of the fence, which closes and reads the incoming payment; decide by the money.

    In a processing session, a part that has arrived is written even before the fence ends.
    """
    session, seen, decides = proof.fence(calls, session)
    told = session.status is Status.PROCESSING
    if seen.received == 0 or not (told or decides):
        return session
    if not told:
        session = move(calls.services, session, Event.PAYMENT_CREATED, check_at=seen.begun_at)
    return completion.decide_by_money(calls, session, seen, final=decides)


def _ask_wallet(calls: WalletCalls, session: Session) -> WalletAnswer:
    """Ask the customer's wallet for the payment, with the approval's token.

    A token that has expired is rotated once.
    """
    if session.token is None or session.customer is None:
        return WalletAnswer(session, answered=False)  # there is no token
    vault = calls.services.vault
    token = sealed.open_token(vault, session.id, session.token)
    try:
        try:
            return WalletAnswer(session, _find(calls, session, token))
        except op.Refused as refused:
            if refused.reason is not op.Reason.TOKEN_INACTIVE:
                raise
        token = calls.client.rotate_token(session.customer.auth_server, token)
        session = _keep_token(calls, session, token)
        return WalletAnswer(session, _find(calls, session, token))
    except op.OpenPaymentsError:
        return WalletAnswer(session, answered=False)


def _keep_token(calls: WalletCalls, session: Session, fresh: AccessToken) -> Session:
    """Store the token that replaces the session's old token, which the wallet no longer accepts.

    If another process has written meanwhile, the token is added to the stored session. StaleRecord
    is then raised, because this check has nothing more to decide.
    """
    services, known = calls.services, session.token
    new = sealed.seal_token(services.vault, session.id, fresh)

    def kept(current: Session) -> Change[Session] | None:
        if current.token != known or not current.payment_in_flight:
            return None
        return change(services, current, Event.CHECKED, token=new)

    written = write_decided(services, session, kept)
    if written.token != new or written.version != session.version + 1:
        raise StaleRecord(written)
    return written


def _find(calls: WalletCalls, session: Session, token: AccessToken) -> OutgoingPayment | None:
    """Return the session's outgoing payment or None. If its URL is stored, it is read there.

    Raises open_payments errors if the wallet cannot be asked.
    """
    if session.outgoing_payment is not None:
        return calls.client.get_outgoing_payment(session.outgoing_payment, token)
    assert session.customer is not None
    assert session.quote is not None
    assert session.incoming_payment is not None
    return instruct.find_payment(
        calls.client,
        token,
        payer=session.customer,
        quote=session.quote.id,
        receiver=session.incoming_payment.id,
    )


def _next_check(services: PayServices, session: Session) -> dict[str, Any]:
    """Return the fields that schedule the next check if the present one decides nothing."""
    now = services.clock.now()
    if session.terminal:
        return _next_account(services, session, now)
    return schedule.next_check(session, now) if session.payment_in_flight else {}


def _next_account(services: PayServices, session: Session, now: datetime) -> dict[str, Any]:
    """Return the fields that schedule the next check of an ended session.

    After ACCOUNT_FOR, only the merchant can decide.
    """
    last_end = session.incoming_payment_ends_at + FENCE
    if now >= last_end + ACCOUNT_FOR:
        return {"check_at": None, "attention": session.attention or Attention.UNDECIDED}
    pause = schedule.BACKOFF[-1] if now < session.updated_at + schedule.UNDECIDED_AFTER else 3600
    check_at = now + timedelta(seconds=pause)
    if session.closed_at is not None and now < session.closed_at + FENCE:
        check_at = session.closed_at + FENCE
    instructed = services.completion_policy is CompletionPolicy.INSTRUCTED
    if instructed and session.status is Status.COMPLETED:  # check when no more money can arrive
        check_at = max(check_at, last_end)
    return {"check_at": check_at}
