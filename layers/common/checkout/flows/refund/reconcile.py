"""Decide the result of a refund that may have been sent (R3), by reading both wallets.

If the token for reading the payment has ended, this module renews the token (M). R3 and M are
explained in domain/refund/transitions.py.

Every write is conditional, so the merchant's page and the scheduled sweep can check a refund at the
same time. If a wallet does not answer, nothing is decided.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.payment.in_flight import Attention
from checkout.domain.payment.machine import Change, IllegalTransition
from checkout.domain.refund.record import (
    APPROVAL_AWAITED,
    UNDECIDED_AFTER,
    Refund,
    RefundEvent,
    RefundProblem,
    RefundStatus,
)
from checkout.domain.refund.verdict import Outcome, decide, next_look
from checkout.flows import merchants
from checkout.flows.payment import mandates, sealed
from checkout.flows.payment.schedule import BACKOFF
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import change, move, write_decided
from checkout.flows.refund.settle import nothing_sent, settle
from checkout.ports import StaleRecord
from checkout.services import PayServices, Services
from open_payments import errors as op
from open_payments.models import AccessToken, OutgoingPayment
from open_payments.protocol import Access

DEADLINE: Final = timedelta(seconds=10)
# A token that ends within this time is renewed before use, because it may end before the wallet
# has received the request.
TOKEN_MARGIN: Final = timedelta(seconds=30)
LIST_PAGE: Final = 100
LIST_PAGES_MAX: Final = 10


class CannotTell(Exception):
    """Report that the merchant's wallet has not shown the payment's result."""


@dataclass(frozen=True, slots=True)
class Own:
    """The answer of the merchant's wallet: the payment, or None if certainly no payment exists."""

    payment: OutgoingPayment | None


def step(services: PayServices, refund: Refund, *, within: timedelta = DEADLINE) -> Refund:
    """Look at both wallets once, if this is due. Cancel a refund that was not approved in time.

    Raises StaleRecord if another process has written the refund first.
    """
    now = services.clock.now()
    if refund.status is RefundStatus.NEEDS_APPROVAL:
        return _unapproved(services, refund, now)
    if not refund.payment_in_flight or refund.check_at is None or now < refund.check_at:
        return refund
    merchant = merchants.of(services.merchants, refund)
    return look(WalletCalls.begin(services, merchant, within=within), refund)


def _unapproved(services: Services, refund: Refund, now: datetime) -> Refund:
    if now < refund.created_at + APPROVAL_AWAITED or refund.lease_live(now):
        return refund
    problem = RefundProblem.NOT_APPROVED
    return settle(services, refund, RefundEvent.EXPIRY_PASSED, kept=0, problem=problem)


def look(calls: WalletCalls, refund: Refund) -> Refund:
    """Ask both wallets, and write what they show.

    Raises StaleRecord if another process has written the refund first.
    """
    services = calls.services
    try:
        refund = move(services, refund, RefundEvent.CHECKED, **_next(services, refund))
        assert refund.payer is not None
        if refund.payer.id != calls.merchant.wallet_address:
            return refund  # wallets show a payment only to the client that made it
        begun = services.clock.now()
        try:
            refund, own = _own(calls, refund)
        except (op.OpenPaymentsError, CannotTell):
            return services.refunds.get(refund.id) or refund
        refund = _noted(services, refund, own.payment, begun)
        return _decided(calls, refund, own.payment, begun)
    except IllegalTransition as illegal:
        raise StaleRecord(illegal.record) from None


def _next(services: Services, refund: Refund) -> dict[str, Any]:
    """Return the fields that schedule the next look, if this one decides nothing."""
    now = services.clock.now()
    pause = timedelta(seconds=BACKOFF[min(refund.checks, len(BACKOFF) - 1)])
    attention = refund.attention
    if now >= refund.quote_ends_at + UNDECIDED_AFTER:
        pause, attention = UNDECIDED_AFTER, Attention.UNDECIDED
    ahead = next_look(refund, now)
    check_at = now + pause if ahead is None else min(now + pause, ahead)
    return {"check_at": check_at, "checks": refund.checks + 1, "attention": attention}


def _noted(
    services: Services, refund: Refund, payment: OutgoingPayment | None, at: datetime
) -> Refund:
    """Write the payment's URL, and when it was first seen as failed, unless they are stored."""
    new: dict[str, Any] = {}
    if payment is not None and refund.outgoing_payment is None:
        new["outgoing_payment"] = payment.id
    if payment is not None and payment.failed and refund.failed_at is None:
        new["failed_at"] = at
    return move(services, refund, RefundEvent.CHECKED, **new) if new else refund


def _decided(
    calls: WalletCalls, refund: Refund, own: OutgoingPayment | None, begun: datetime
) -> Refund:
    services = calls.services
    verdict = decide(refund, own, _theirs(calls, refund), now=begun)
    if verdict.outcome is Outcome.SUCCEEDED:
        return settle(
            services,
            refund,
            RefundEvent.SUCCEEDED,
            kept=refund.amount,
            sent=refund.amount,
            spent=verdict.spent,
            confirmed=int(verdict.confirmed),
        )
    if verdict.outcome is Outcome.FAILED:
        problem = RefundProblem.SENT_IN_PART
        return settle(
            services,
            refund,
            RefundEvent.FAILED,
            kept=verdict.sent,
            sent=verdict.sent,
            spent=verdict.spent,
            problem=problem,
        )
    if verdict.outcome is Outcome.NOTHING:
        return nothing_sent(services, refund, RefundProblem.NOT_SENT)
    return refund


def _own(calls: WalletCalls, refund: Refund) -> tuple[Refund, Own]:
    """Read the payment at the merchant's wallet, after renewing the token if it has ended.

    Raises CannotTell, open_payments errors, StaleRecord.
    """
    if refund.token is None:
        return refund, _with_budget(calls, refund)
    token = sealed.open_token(calls.services.vault, refund.id, refund.token)
    ends = token.expires_at
    if refund.rotating or (ends is not None and calls.services.clock.now() + TOKEN_MARGIN >= ends):
        refund, token = _renewed(calls, refund, token)
    try:
        return refund, _find(calls, refund, token)
    except op.Refused as refused:
        if refused.reason is not op.Reason.TOKEN_INACTIVE:
            raise
    refund, token = _renewed(calls, refund, token)
    return refund, _find(calls, refund, token)


def _with_budget(calls: WalletCalls, refund: Refund) -> Own:
    """Read the payment with the mandate's token, which can read all payments of this client.

    A refund that was paid from the budget has no token of its own. Raises CannotTell if the mandate
    has no token, open_payments errors, StaleRecord.
    """
    services = calls.services
    mandate = mandates.of(services, refund.merchant)
    try:
        mandate, token = mandates.usable(calls, mandate)
        try:
            return _find(calls, refund, token)
        except op.Refused as refused:
            if refused.reason is not op.Reason.TOKEN_INACTIVE:
                raise
        _, token = mandates.rotate(calls, mandate)
    except mandates.NoToken as no_token:
        if no_token.gone:  # the payment can be read only after another approval
            _lost(services, refund, lambda current: bool(current.by_budget))
        raise CannotTell from None
    return _find(calls, refund, token)


def _renewed(calls: WalletCalls, refund: Refund, token: AccessToken) -> tuple[Refund, AccessToken]:
    """Exchange the token for a new one (M): write the intent, call the wallet, store the new token.

    Raises CannotTell if there is no new token, open_payments errors, StaleRecord.
    """
    assert refund.payer is not None
    services, known, auth_server = calls.services, refund.token, refund.payer.auth_server
    if not refund.rotating:
        refund = move(services, refund, RefundEvent.ROTATION_STARTED, rotating=1)
    sent = refund.instruction
    try:
        fresh = calls.client.rotate_token(auth_server, token)
    except op.Refused as refused:
        if refused.reason is op.Reason.TOKEN_GONE:
            _lost(services, refund, lambda current: current.token == known)
            raise CannotTell from None
        raise
    new = sealed.seal_token(services.vault, refund.id, fresh)

    def renewed(current: Refund) -> Change[Refund] | None:
        # A late success overwrites a TOKEN_LOST that another process has written.
        ours = current.token in (known, None) and current.instruction == sent
        if not ours or not current.payment_in_flight:
            return None
        return change(services, current, RefundEvent.TOKEN_RENEWED, token=new)

    refund = write_decided(services, refund, renewed)
    if refund.token != new:
        raise CannotTell
    return refund, fresh


def _lost(services: Services, refund: Refund, still: Callable[[Refund], bool]) -> None:
    """Write that the token for reading the payment is lost, if `still` is true for the record."""

    def lost(current: Refund) -> Change[Refund] | None:
        if not still(current) or not current.payment_in_flight:
            return None
        return change(services, current, RefundEvent.TOKEN_LOST)

    write_decided(services, refund, lost)


def _find(calls: WalletCalls, refund: Refund, token: AccessToken) -> Own:
    """Find the payment of the refund's quote, by id and by list.

    "Not found" is believed only with the status 401, which the merchant's own provider uses. If the
    wallet answers that another client made the payment, the payment exists: the other client was an
    earlier client of the same merchant. Raises CannotTell, open_payments errors.
    """
    assert refund.payer is not None
    assert refund.quote is not None
    assert refund.incoming_payment is not None
    client, payer, quote = calls.client, refund.payer, refund.quote.id
    url = refund.outgoing_payment or client.outgoing_payment_url(payer, quote)
    try:
        payment = client.get_outgoing_payment(url, token)
    except op.Refused as refused:
        if refused.reason is not op.Reason.NOT_FOUND or refused.status != 401:
            raise
    else:
        if payment.receiver != refund.incoming_payment.id:
            raise CannotTell
        return Own(payment)
    if refund.outgoing_payment is not None:
        raise CannotTell  # the payment was seen before, so this "not found" is wrong
    cursor: str | None = None
    for _ in range(LIST_PAGES_MAX):
        found, cursor = client.list_outgoing_payments(payer, token, first=LIST_PAGE, cursor=cursor)
        for payment in found:
            if payment.quote_id == quote or payment.receiver == refund.incoming_payment.id:
                return Own(payment)
        if cursor is None:
            return Own(None)
    raise CannotTell


def _theirs(calls: WalletCalls, refund: Refund) -> int | None:
    """Return what the customer's incoming payment has received; None if it cannot be read.

    "Not found" also gives None, not zero. The customer's wallet is not trusted, and providers
    delete expired unpaid incoming payments.
    """
    assert refund.customer is not None
    assert refund.quote is not None
    assert refund.incoming_payment is not None
    customer, url = refund.customer, refund.incoming_payment.id
    try:
        payment = calls.services.wallets.tokens.use(
            calls.client,
            customer.auth_server,
            customer.resource_server,
            Access.INCOMING_PAYMENT,
            lambda token: calls.client.get_incoming_payment(url, token, wallet=customer.id),
            wallet=customer.id,
        )
    except op.OpenPaymentsError:
        return None
    if not payment.received.same_asset(refund.quote.receive):
        return None
    return payment.received.value
