"""Approve a refund in the merchant's own wallet, and send it once (R2).

The order of writes is the safety: the claim before the interact_ref is redeemed, R2 before the one
call that moves money (domain/refund/transitions.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from checkout.domain.ground.errors import (
    AmountTooSmallForWallet,
    CheckoutError,
    MerchantWalletError,
    RefundUnexpectedState,
    WalletInvalid,
    WalletUnavailable,
    WalletUnreachable,
)
from checkout.domain.ground.ids import new_nonce
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.in_flight import IncomingPaymentRef, Instruction
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.refund.record import (
    NOT_BY_BUDGET,
    Refund,
    RefundEvent,
    RefundProblem,
    RefundStatus,
)
from checkout.flows import merchants
from checkout.flows.payment import approval, instruct, sealed
from checkout.flows.payment.instruct import CHECK_AFTER, SEND_WITHIN
from checkout.flows.payment.visit import WalletVisit
from checkout.flows.payment.writes import move
from checkout.flows.refund import reconcile, request
from checkout.flows.refund.settle import nothing_sent
from checkout.open_payments import errors as op
from checkout.open_payments.client import Access
from checkout.open_payments.limits import Limits
from checkout.open_payments.models import AccessToken, IncomingPayment, Quote, WalletAddress
from checkout.ports import StaleRecord
from checkout.services import PayServices

DEADLINE: Final = timedelta(seconds=20)
# The customer's incoming payment lasts for the approval and for what is under way after it.
LASTS: Final = timedelta(hours=2)
APPROVE_WITHIN: Final = timedelta(hours=1)
LOOKS: Final = 4  # at the wallets, a second apart, while the merchant waits


@dataclass(frozen=True, slots=True)
class Finish:
    """The refund after a callback.

    If `wait_seconds` is above 0, nothing was done, or the wallet could not take the approval just
    now: call the same URL again after that time.
    """

    refund: Refund
    wait_seconds: int = 0


def prepare(services: PayServices, key: Actor, refund_id: str) -> Refund:
    """Ask for the price and for the merchant's approval, and return the refund with both.

    A refund whose token is lost asks for an approval that can only read. One that the budget was to
    pay is left to this approval.

    Raises ResourceMissing, PermissionMissing as `request.require_own` does, RefundUnexpectedState,
    WalletUnreachable, WalletInvalid, WalletUnavailable, MerchantWalletError,
    AmountTooSmallForWallet.
    """
    refund = request.get(services, key, refund_id)
    request.require_own(key, refund)
    # One that waits for the budget may be approved by hand, too.
    waits = refund.approval_waits or refund.status is RefundStatus.NEEDS_APPROVAL
    if not waits or refund.lease_live(services.clock.now()):
        raise RefundUnexpectedState("This refund does not wait for your approval.")
    merchant = (
        merchants.of(services.merchants, refund)
        if refund.payment_in_flight
        else merchants.get(services.merchants, refund.merchant)
    )
    visit = WalletVisit.begin(services, merchant, within=DEADLINE)
    payer = refund.payer if refund.payment_in_flight else own_wallet(merchant)
    assert payer is not None
    fields: dict[str, Any] = {}
    if refund.problem in NOT_BY_BUDGET:  # it still says why it asks for an approval
        fields["problem"] = refund.problem
    limits: Limits | None = None
    if not refund.payment_in_flight:
        priced, quote = price(visit, refund, payer)
        fields |= priced
        limits = limits_of(priced["incoming_payment"].id, quote)
    try:
        grant, page = approval.ask(
            visit, payer, limits=limits, finish_uri=callback_url(services.base_url, refund.id)
        )
    except op.OpenPaymentsError as error:
        raise of_merchant(error) from None
    try:
        return move(
            services,
            refund,
            RefundEvent.APPROVAL_ASKED,
            grant=sealed.seal_grant(services.vault, refund.id, grant),
            interact_url=page,
            approve_until=services.clock.now() + APPROVE_WITHIN,
            **fields,
        )
    except (StaleRecord, IllegalTransition):
        raise RefundUnexpectedState(
            "This refund was changed meanwhile. Look at it again."
        ) from None


def callback_url(base_url: str, refund_id: str) -> str:
    """Return the address to which the merchant's wallet sends the browser back."""
    return f"{base_url}/dashboard/refunds/{refund_id}/callback"


def own_wallet(merchant: Merchant) -> WalletAddress:
    """Return the merchant's wallet, which pays."""
    return WalletAddress(
        id=merchant.wallet_address,
        asset_code=merchant.asset_code,
        asset_scale=merchant.asset_scale,
        auth_server=merchant.auth_server,
        resource_server=merchant.resource_server,
    )


def price(visit: WalletVisit, refund: Refund, payer: WalletAddress) -> tuple[dict[str, Any], Quote]:
    """Make the customer's incoming payment and the quote (C1 to C3); return them as fields.

    Raises WalletUnreachable, WalletInvalid, WalletUnavailable, MerchantWalletError,
    AmountTooSmallForWallet.
    """
    try:
        customer = visit.client.get_wallet_address(refund.wallet)
    except op.OpenPaymentsError as error:
        raise _of_customer(error) from None
    give = refund.give
    if give is not None and not give.is_of(customer):
        raise WalletInvalid(
            f"The customer's wallet has another currency now than the {give.asset_code} that they "
            "paid. Request the refund at cost."
        )
    incoming = _incoming_payment(visit, refund, customer)
    try:
        quote = instruct.request_quote(
            visit,
            payer,
            receiver=incoming.id,
            receive=give,
            debit=None if give is not None else refund.cost,
        )
    except op.OpenPaymentsError as error:
        raise of_merchant(error) from None
    fields = {
        "payer": payer,
        "customer": customer,
        "incoming_payment": IncomingPaymentRef(
            incoming.id, incoming.expires_at or visit.services.clock.now() + LASTS
        ),
        "quote": quote,
        "identity": visit.merchant.identity or None,
    }
    return fields, quote


def limits_of(receiver: str, quote: Quote) -> Limits:
    """Return the limits of the approval: this receiver and this debit."""
    return Limits(receiver=receiver, debit_amount=quote.debit)


def _incoming_payment(
    visit: WalletVisit, refund: Refund, customer: WalletAddress
) -> IncomingPayment:
    """Create the incoming payment at the customer's wallet (C2), as any client may."""
    expires_at = visit.services.clock.now() + LASTS
    try:
        return visit.services.wallets.tokens.use(
            visit.client,
            customer.auth_server,
            customer.resource_server,
            Access.INCOMING_PAYMENT,
            lambda token: visit.client.create_incoming_payment(
                customer.resource_server,
                token,
                amount=refund.give,
                expires_at=expires_at,
                wallet=customer.id,
            ),
            wallet=customer.id,
        )
    except op.OpenPaymentsError as error:
        raise _of_customer(error) from None


def finish(
    services: PayServices,
    key: Actor,
    refund_id: str,
    *,
    interact_ref: str,
    presented_hash: str,
) -> Finish:
    """Act on the callback of the merchant's wallet (RFC 9635 section 4.2.3).

    Raises ResourceMissing, PermissionMissing as `request.require_own` does, and CallbackInvalid for
    one that does not verify, without any write or wallet call. A repeated or late callback gets the
    refund as it is.
    """
    refund = request.get(services, key, refund_id)
    request.require_own(key, refund)
    if refund.grant is None or refund.payer is None:
        return Finish(refund)
    grant = sealed.open_grant(services.vault, refund.id, refund.grant)
    approval.verify(grant, refund.payer, interact_ref=interact_ref, presented_hash=presented_hash)
    wait = (grant.continuation.not_before - services.clock.now()).total_seconds()
    if wait > 0:
        return Finish(refund, wait_seconds=math.ceil(wait))
    merchant = merchants.of(services.merchants, refund)
    visit = WalletVisit.begin(services, merchant, within=DEADLINE)
    try:
        refund = move(
            services,
            refund,
            RefundEvent.APPROVAL_CLAIMED,
            lease_until=services.clock.now() + approval.LEASE,
        )
        redeemed = _read_again if refund.payment_in_flight else _pay
        refund = redeemed(visit, refund, grant, interact_ref)
        kept = refund.grant is not None and refund.lease_until is None
        return Finish(refund, wait_seconds=approval.KEPT_PAUSE if kept else 0)
    except StaleRecord as stale:  # another request was faster
        return Finish(stale.current)
    except IllegalTransition as illegal:
        return Finish(illegal.record)


def _pay(visit: WalletVisit, refund: Refund, grant: sealed.Grant, interact_ref: str) -> Refund:
    """Redeem the approval (C5), write the intent (R2) and send the payment once (C6)."""
    assert refund.payer is not None
    assert refund.quote is not None
    assert refund.incoming_payment is not None
    payer, receiver = refund.payer, refund.incoming_payment.id
    try:
        token = approval.redeem(
            visit, grant, interact_ref, payer=payer, limits=limits_of(receiver, refund.quote)
        )
    except op.OpenPaymentsError as error:
        return _keep_approval(visit, refund, grant, error)
    held = refund.quote
    try:
        quote = approval.in_spite_of_stumbles(
            visit,
            lambda: instruct.usable_quote(
                visit,
                held,
                payer,
                receiver=receiver,
                receive=refund.give,
                debit=None if refund.give is not None else refund.cost,
            ),
        )
    except op.OpenPaymentsError as error:
        return _lose_approval(visit, refund, grant, RefundProblem.APPROVAL_UNUSABLE, error)
    if quote is None:
        return _lose_approval(visit, refund, grant, RefundProblem.PRICE_CHANGED)
    services = visit.services
    now = services.clock.now()
    sent_by = Instruction(id=new_nonce(services.random_bytes), deadline=now + SEND_WITHIN)
    refund = move(
        services,
        refund,
        RefundEvent.PAYMENT_INTENDED,
        instruction=sent_by,
        quote=quote,
        token=sealed.seal_token(services.vault, refund.id, token),
        check_at=sent_by.deadline + CHECK_AFTER,
        checks=0,
        payments=refund.payments + 1,
    )
    return send(visit, refund, token)


def send(visit: WalletVisit, refund: Refund, token: AccessToken) -> Refund:
    """Send the payment once, never after its deadline (C6), and look for it."""
    assert refund.payer is not None
    assert refund.quote is not None
    assert refund.incoming_payment is not None
    assert refund.instruction is not None
    services, payer, receiver = visit.services, refund.payer, refund.incoming_payment.id
    if services.clock.now() >= refund.instruction.deadline:
        return _not_sent(visit, refund, "not sent in time")
    try:
        payment = visit.client.create_outgoing_payment(
            payer, token, quote=refund.quote, receiver=receiver
        )
    except op.NotSent as error:  # no byte of it reached the wallet
        return _not_sent(visit, refund, type(error).__name__)
    except op.OpenPaymentsError:
        return reconcile.look(visit, refund)  # nothing it answers is believed
    refund = move(
        services,
        refund,
        RefundEvent.PAYMENT_CREATED,
        outgoing_payment=payment.id,
    )
    return await_money(visit, refund)


def await_money(visit: WalletVisit, refund: Refund) -> Refund:
    """Look at both wallets for a few seconds, while the merchant waits."""
    for number in range(LOOKS):
        if number:
            visit.services.clock.sleep(1.0)
        refund = reconcile.look(visit, refund)
        if not refund.payment_in_flight:
            break
    return refund


def _read_again(
    visit: WalletVisit, refund: Refund, grant: sealed.Grant, interact_ref: str
) -> Refund:
    """Redeem an approval that can only read, and look at the payment with it."""
    assert refund.payer is not None
    services = visit.services
    try:
        token = approval.redeem(visit, grant, interact_ref, payer=refund.payer, limits=None)
    except op.OpenPaymentsError as error:
        return _keep_approval(visit, refund, grant, error)
    refund = move(
        services,
        refund,
        RefundEvent.TOKEN_RENEWED,
        token=sealed.seal_token(services.vault, refund.id, token),
        check_at=services.clock.now(),
    )
    return reconcile.look(visit, refund)


def _not_sent(visit: WalletVisit, refund: Refund, why: str) -> Refund:
    """Ask for approval: it is certain that this instruction paid nothing and never will."""
    problem = RefundProblem.NOT_SENT
    return nothing_sent(visit.services, refund, problem, note=f"{problem}: {why}")


def _keep_approval(
    visit: WalletVisit, refund: Refund, grant: sealed.Grant, error: op.OpenPaymentsError
) -> Refund:
    """Keep an approval that the wallet could not take just now, or forget it."""
    kept = approval.kept_until(visit.services, refund.approve_until)
    if not approval.stumbled(error) or kept is None:
        return _lose_approval(visit, refund, grant, RefundProblem.APPROVAL_UNUSABLE, error)
    note = RefundProblem.MERCHANT_WALLET_ERROR.value
    event = RefundEvent.APPROVAL_KEPT
    return move(visit.services, refund, event, note=note, approve_until=kept)


def _lose_approval(
    visit: WalletVisit,
    refund: Refund,
    grant: sealed.Grant,
    problem: RefundProblem,
    error: op.OpenPaymentsError | None = None,
) -> Refund:
    """Forget the approval: no payment was instructed by it, so none can come of it."""
    assert refund.payer is not None
    auth_server = refund.payer.auth_server
    why = f"{problem}: {type(error).__name__}" if error is not None else problem.value
    changes = {} if refund.payment_in_flight else {"problem": problem}
    refund = move(visit.services, refund, RefundEvent.APPROVAL_LOST, note=why, **changes)
    approval.cancel(visit, auth_server, grant)
    return refund


def _of_customer(error: op.OpenPaymentsError) -> CheckoutError:
    """Return the error to show for a failure of the customer's wallet."""
    if isinstance(error, op.Refused) and (error.of_key or error.status == 401):
        return MerchantWalletError(
            "The customer's wallet could not verify your keys just now: "
            f"{error.answered}. Try again later."
        )
    gone = isinstance(error, op.Refused) and error.status in (404, 410)
    if gone or isinstance(error, op.NoSuchHost | op.UntrustedAnswer):
        return WalletInvalid("There is no wallet at the customer's address any more.")
    if isinstance(error, op.Refused) and error.reason is not op.Reason.BUSY:
        return WalletUnavailable(
            "The customer's wallet does not take this money: "
            f"{error.answered or error.reason.value}."
        )
    return WalletUnreachable("The customer's wallet does not answer. Try again later.")


def of_merchant(error: op.OpenPaymentsError) -> CheckoutError:
    """Return the error to show for a failure of the merchant's wallet."""
    if isinstance(error, op.Refused):
        if error.reason is op.Reason.AMOUNT_TOO_SMALL:
            return AmountTooSmallForWallet("This amount is too small to be sent.")
        if error.reason is op.Reason.INVALID_RECEIVER:
            return WalletUnavailable("Your wallet cannot pay to the customer's wallet.")
        return MerchantWalletError(f"Your wallet refused: {error.answered or error.reason.value}.")
    return MerchantWalletError("Your wallet does not answer. Try again later.")
