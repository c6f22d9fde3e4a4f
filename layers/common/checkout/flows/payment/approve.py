"""The customer comes back from the wallet: verify, continue the grant, and instruct the payment
once (design.md W5 to W8).

The order of writes is the safety: W5 before the interact_ref is redeemed, W6 before the one call
that moves money. From W6 on only certainty leads back to `open`; everything doubtful stays `paying`
and belongs to reconciliation.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.errors import CallbackInvalid, ResourceMissing
from checkout.domain.ids import new_nonce
from checkout.domain.session import Attempt, Problem, QuoteRef, Session, Status
from checkout.domain.transitions import Event, IllegalTransition, advance
from checkout.flows.payment import reconcile, sealed, witness
from checkout.flows.payment.prepare import request_quote
from checkout.flows.payment.sessions import load, settle
from checkout.flows.wire import as_quote, as_wallet, to_wire
from checkout.open_payments import errors as op
from checkout.open_payments import interaction, models
from checkout.open_payments.client import OpenPayments
from checkout.ports.services import PayServices
from checkout.ports.sessions import StaleSession

DEADLINE: Final = timedelta(seconds=20)  # from W5 on; with the wait before it below 30 s
LEASE: Final = timedelta(seconds=45)
SEND_WITHIN: Final = timedelta(seconds=5)  # of W6; whoever wakes up later must not send
LOOK_AFTER: Final = timedelta(
    seconds=5
)  # reconciliation leaves the callback this long to do it itself
QUOTE_MARGIN: Final = timedelta(
    seconds=10
)  # a quote that dies between creation and sending fails the payment
WAIT_HERE_MAX: Final = 8  # seconds; a longer `wait` is waited for in the browser
TOO_FAST_TRIES: Final = 2
PATIENCE: Final = 4.0  # seconds that the callback waits for the money to show
TOO_SOON: Final = timedelta(seconds=5)  # what a server that says too_fast is given more


@dataclass(frozen=True, slots=True)
class Finish:
    """`wait_seconds` > 0: nothing was done; come back to the same URL after so many seconds."""

    session: Session
    wait_seconds: int = 0


def finish(
    services: PayServices, session_id: str, *, interact_ref: str, presented_hash: str
) -> Finish:
    """Act on a grant callback (RFC 9635 section 4.2.3).

    A callback that does not verify raises CallbackInvalid and does nothing at all: no write, no
    wallet call. One that comes again, or late, gets the session as it is.
    """
    session = load(services, session_id)
    if session.status is not Status.AWAITING_APPROVAL or session.grant is None:
        return Finish(settle(services, session))
    grant = sealed.open_grant(services.vault, session.id, session.grant)
    _verify(session, grant, interact_ref=interact_ref, presented_hash=presented_hash)
    verified, session = session, settle(services, session)
    if session.grant != verified.grant or session.phase is not None or session.terminal:
        return Finish(session)  # somebody was faster, or another approval is under way by now
    wait = (grant.continuation.not_before - services.clock.now()).total_seconds()
    if wait > WAIT_HERE_MAX:
        return Finish(session, wait_seconds=math.ceil(wait))
    if wait > 0:
        services.clock.sleep(wait)
    return Finish(_claim_and_pay(services, session, grant, interact_ref))


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
    """W5 and what follows. Whoever loses W5 shows what the winner made of it."""
    merchant = services.merchants.get(session.merchant)
    if merchant is None:
        raise ResourceMissing("No such checkout session.")
    now = services.clock.now()
    client = services.wallets.client(merchant, deadline=now + DEADLINE)
    try:
        session = _save(services, session, Event.APPROVAL_CLAIMED, lease_until=now + LEASE)
    except (StaleSession, IllegalTransition) as lost:
        return lost.current if isinstance(lost, StaleSession) else settle(services, lost.session)
    try:
        return _continue_and_pay(services, session, client, grant, interact_ref)
    except StaleSession as stale:  # our lease lapsed, or a sweep came first: its word holds
        return stale.current
    except IllegalTransition as illegal:
        return settle(services, load(services, illegal.session.id))


def _continue_and_pay(
    services: PayServices,
    session: Session,
    client: OpenPayments,
    grant: sealed.Grant,
    interact_ref: str,
) -> Session:
    assert session.customer is not None
    try:
        token = _continue(services, session, client, grant, interact_ref)
    except op.OpenPaymentsError as error:
        return _lose_approval(services, session, client, grant, Problem.APPROVAL_UNUSABLE, error)
    try:
        quote = _usable_quote(services, session, client)
    except op.OpenPaymentsError as error:
        return _lose_approval(services, session, client, grant, Problem.APPROVAL_UNUSABLE, error)
    if quote is None:
        return _lose_approval(services, session, client, grant, Problem.PRICE_CHANGED)
    now = services.clock.now()
    attempt = Attempt(id=new_nonce(services.random_bytes), deadline=now + SEND_WITHIN)
    session = _save(  # W6, the point of no return
        services,
        session,
        Event.PAYMENT_INTENDED,
        attempt=attempt,
        quote=quote,
        token=sealed.seal_token(services.vault, session.id, token),
        check_at=attempt.deadline + LOOK_AFTER,
        checks=0,
    )
    return _pay(services, session, client, token)


def _continue(
    services: PayServices,
    session: Session,
    client: OpenPayments,
    grant: sealed.Grant,
    interact_ref: str,
) -> models.AccessToken:
    """C7. "Too fast" is the one refusal that leaves the reference good; it is waited out."""
    assert session.customer is not None
    tries = 0
    while True:
        try:
            return client.continue_grant(
                session.customer.auth_server, grant.continuation, interact_ref=interact_ref
            )
        except op.Refused as refused:
            tries += 1
            if refused.reason is not op.Reason.TOO_FAST or tries >= TOO_FAST_TRIES:
                raise
            services.clock.sleep(TOO_SOON.total_seconds())


def _usable_quote(services: PayServices, session: Session, client: OpenPayments) -> QuoteRef | None:
    """The stored quote while it lives, else a new one on the same incoming payment; None: it costs
    more than approved.
    """
    assert session.quote is not None
    assert session.incoming_payment is not None
    quote = session.quote
    if quote.expires_at is None or services.clock.now() + QUOTE_MARGIN < quote.expires_at:
        return quote
    renewed = request_quote(services, client, session, session.incoming_payment.id)
    within = renewed.debit.value <= quote.debit.value and to_wire(renewed.debit).same_asset(
        to_wire(quote.debit)
    )
    return renewed if within else None


def _lose_approval(
    services: PayServices,
    session: Session,
    client: OpenPayments,
    grant: sealed.Grant,
    problem: Problem,
    error: op.OpenPaymentsError | None = None,
) -> Session:
    """No payment was instructed, so none can come of this approval: open again. The grant is
    cancelled, best effort.
    """
    assert session.customer is not None
    auth_server = session.customer.auth_server
    note = problem.value if error is None else f"{problem.value}: {type(error).__name__}"
    session = _save(services, session, Event.APPROVAL_LOST, note=note, problem=problem)
    with contextlib.suppress(op.OpenPaymentsError):
        client.cancel_grant(auth_server, grant.continuation)
    return session


def _pay(
    services: PayServices, session: Session, client: OpenPayments, token: models.AccessToken
) -> Session:
    """C8: one send, never after its deadline; then W7 and the look for the money (C9, W8)."""
    assert session.attempt is not None
    assert session.customer is not None
    if services.clock.now() >= session.attempt.deadline:
        return session
    quote = as_quote(session)
    try:
        payment = client.create_outgoing_payment(as_wallet(session.customer), token, quote=quote)
    except op.Refused as refused:
        if not _certainly_refused(client, session, token, quote, refused):
            return session
        auth_server = session.customer.auth_server
        note = f"{Problem.PAYMENT_REFUSED.value}: {refused.reason.value}"
        session = _save(
            services, session, Event.PAYMENT_REFUSED, note=note, problem=Problem.PAYMENT_REFUSED
        )
        with contextlib.suppress(op.OpenPaymentsError):  # nothing may use this approval any more
            client.revoke_token(auth_server, token)
        return session
    except op.OpenPaymentsError:
        return session  # `paying`: the page says "confirming", reconciliation owns it
    return _record_payment(services, session, client, payment)


def _certainly_refused(
    client: OpenPayments,
    session: Session,
    token: models.AccessToken,
    quote: models.Quote,
    refused: op.Refused,
) -> bool:
    """A 4xx counts only where the wallet, asked by id and by list, shows no payment for this quote
    (design.md C8).
    """
    if refused.reason in (op.Reason.BUSY, op.Reason.INVALID_QUOTE):
        return False
    try:
        return witness.find_payment(client, session, token, quote) is None
    except op.OpenPaymentsError:
        return False  # the wallet cannot be asked


def _record_payment(
    services: PayServices,
    session: Session,
    client: OpenPayments,
    payment: models.OutgoingPayment,
) -> Session:
    """W7, C9, W8. A session that a sweep moved on meanwhile is taken as it is."""
    try:
        session = _save(
            services,
            session,
            Event.PAYMENT_CREATED,
            outgoing_payment=payment.id,
            check_at=services.clock.now() + LOOK_AFTER,
            checks=0,
        )
    except StaleSession as stale:
        session = stale.current
    if session.status is not Status.PROCESSING:
        return session
    return reconcile.await_money(services, session, client, patience=PATIENCE)


def _save(services: PayServices, session: Session, event: Event, **changes: Any) -> Session:
    now: datetime = services.clock.now()
    writer = new_nonce(services.random_bytes)
    return services.sessions.save(advance(session, event, now=now, writer=writer, **changes))
