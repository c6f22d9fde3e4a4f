"""Approve a refund in the merchant's own wallet, and send it once (R2).

Safety depends on the order of the writes (domain/refund/transitions.py). The claim of the approval
is written before the interact_ref (the code with which the wallet sends the browser back) is
redeemed. The intent to pay (R2) is written before the one call that moves money.
"""

from __future__ import annotations

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
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.in_flight import IncomingPaymentRef, Problem
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
from checkout.flows.payment.approval import CallbackResult
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import move
from checkout.flows.refund import reconcile, request
from checkout.flows.refund.settle import nothing_sent
from checkout.ports import StaleRecord
from checkout.services import PayServices
from open_payments import errors as op
from open_payments.interaction import Limits
from open_payments.models import AccessToken, IncomingPayment, Quote, WalletAddress
from open_payments.protocol import Access

DEADLINE: Final = timedelta(seconds=20)
# The customer's incoming payment lasts long enough for the approval and then the payment.
LASTS: Final = timedelta(hours=2)
APPROVE_WITHIN: Final = timedelta(hours=1)
LOOKS: Final = 4  # reads of both wallets, a second apart, while the merchant waits


def prepare(services: PayServices, key: Actor, refund_id: str) -> Refund:
    """Request the price and the merchant's approval.

    Returns the refund with its price and the URL of the wallet's page where the merchant approves.
    If the refund was already sent, and the token for reading its payment is lost, the approval only
    allows reading. If the refund was waiting to be paid from the refund budget, it now waits for
    this approval instead.

    Raises ResourceMissing, PermissionMissing as `request.require_own` does, RefundUnexpectedState,
    WalletUnreachable, WalletInvalid, WalletUnavailable, MerchantWalletError,
    AmountTooSmallForWallet.
    """
    refund = request.get(services, key, refund_id)
    request.require_own(key, refund)
    # A refund that waits for the budget may also be approved by hand.
    waits = refund.approval_waits or refund.status is RefundStatus.NEEDS_APPROVAL
    if not waits or refund.lease_live(services.clock.now()):
        raise RefundUnexpectedState("This refund is not waiting for your approval.")
    merchant = (
        merchants.of(services.merchants, refund)
        if refund.payment_in_flight
        else merchants.get(services.merchants, refund.merchant)
    )
    calls = WalletCalls.begin(services, merchant, within=DEADLINE)
    payer = refund.payer if refund.payment_in_flight else own_wallet(merchant)
    assert payer is not None
    fields: dict[str, Any] = {}
    if refund.problem in NOT_BY_BUDGET:  # still the reason why an approval is needed
        fields["problem"] = refund.problem
    limits: Limits | None = None
    if not refund.payment_in_flight:
        priced, quote = price(calls, refund, payer)
        fields |= priced
        limits = Limits(receiver=priced["incoming_payment"].id, debit_amount=quote.debit)
    try:
        grant, page = approval.ask(
            calls, payer, limits=limits, finish_uri=callback_url(services.base_url, refund.id)
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
    """Return the URL to which the merchant's wallet sends the browser back."""
    return f"{base_url}/dashboard/refunds/{refund_id}/callback"


def own_wallet(merchant: Merchant) -> WalletAddress:
    """Return the merchant's wallet, which pays the refund."""
    return WalletAddress(
        id=merchant.wallet_address,
        asset_code=merchant.asset_code,
        asset_scale=merchant.asset_scale,
        auth_server=merchant.auth_server,
        resource_server=merchant.resource_server,
    )


def price(calls: WalletCalls, refund: Refund, payer: WalletAddress) -> tuple[dict[str, Any], Quote]:
    """Create the customer's incoming payment and the quote (C1 to C3).

    Returns the refund's fields that store both, and the quote. Raises WalletUnreachable,
    WalletInvalid, WalletUnavailable, MerchantWalletError, AmountTooSmallForWallet.
    """
    try:
        customer = calls.client.get_wallet_address(refund.wallet)
    except op.OpenPaymentsError as error:
        raise _of_customer(error) from None
    give, debit = refund.fixed
    if give is not None and not give.is_of(customer):
        raise WalletInvalid(
            f"The customer's wallet no longer uses {give.asset_code}, the currency that they paid "
            "in. Request the refund at cost."
        )
    incoming = _incoming_payment(calls, refund, customer)
    try:
        quote = instruct.request_quote(
            calls, payer, receiver=incoming.id, receive=give, debit=debit
        )
    except op.OpenPaymentsError as error:
        raise of_merchant(error) from None
    fields = {
        "payer": payer,
        "customer": customer,
        "incoming_payment": IncomingPaymentRef(
            incoming.id, incoming.expires_at or calls.services.clock.now() + LASTS
        ),
        "quote": quote,
        "identity": calls.merchant.identity or None,
    }
    return fields, quote


def _incoming_payment(
    calls: WalletCalls, refund: Refund, customer: WalletAddress
) -> IncomingPayment:
    """Create the incoming payment at the customer's wallet (C2), which needs no approval there."""
    expires_at = calls.services.clock.now() + LASTS
    try:
        return calls.services.wallets.tokens.use(
            calls.client,
            customer.auth_server,
            customer.resource_server,
            Access.INCOMING_PAYMENT,
            lambda token: calls.client.create_incoming_payment(
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
) -> CallbackResult[Refund]:
    """Act on the callback of the merchant's wallet (RFC 9635 section 4.2.3).

    Raises ResourceMissing, PermissionMissing as `request.require_own` does, and CallbackInvalid for
    a callback that does not verify, without any write or wallet call. A repeated or late callback
    returns the refund unchanged.
    """
    refund = request.get(services, key, refund_id)
    request.require_own(key, refund)
    grant = approval.returned(
        services, refund, refund.payer, interact_ref=interact_ref, presented_hash=presented_hash
    )
    if grant is None:
        return CallbackResult(refund)
    if wait := grant.wait_seconds(services.clock.now()):
        return CallbackResult(refund, wait_seconds=wait)
    merchant = merchants.of(services.merchants, refund)
    calls = WalletCalls.begin(services, merchant, within=DEADLINE)
    try:
        refund = approval.claim(services, refund)
        redeemed = _read_again if refund.payment_in_flight else _pay
        refund = redeemed(calls, refund, grant, interact_ref)
    except StaleRecord as stale:  # another request was faster
        return CallbackResult(stale.current)
    except IllegalTransition as illegal:
        return CallbackResult(illegal.record)
    kept = refund.grant is not None and refund.lease_until is None
    return CallbackResult(refund, wait_seconds=approval.KEPT_PAUSE if kept else 0)


def _pay(calls: WalletCalls, refund: Refund, grant: sealed.Grant, interact_ref: str) -> Refund:
    """Redeem the approval (C5), write the intent (R2) and send the payment once (C6)."""
    refund, token = approval.redeem_and_intend(
        calls, refund, grant, interact_ref, _blame, payments=refund.payments + 1
    )
    return refund if token is None else send(calls, refund, token)


def send(calls: WalletCalls, refund: Refund, token: AccessToken) -> Refund:
    """Send the payment once (C6), and look for it at both wallets.

    NothingSent shows that no payment was made. After any other error, only the looks decide.
    """
    try:
        payment = instruct.send_once(calls, refund, token)
    except instruct.NothingSent as nothing:
        problem = RefundProblem.NOT_SENT
        note = f"{problem}: {nothing.why}"
        return nothing_sent(calls.services, refund, problem, note=note)
    except op.OpenPaymentsError:
        return reconcile.look(calls, refund)  # no error proves that nothing was paid
    event = RefundEvent.PAYMENT_CREATED
    refund = move(calls.services, refund, event, outgoing_payment=payment.id)
    return await_money(calls, refund)


def await_money(calls: WalletCalls, refund: Refund) -> Refund:
    """Look for the money at both wallets for a few seconds, while the merchant waits."""
    for number in range(LOOKS):
        if number:
            calls.services.clock.sleep(1.0)
        refund = reconcile.look(calls, refund)
        if not refund.payment_in_flight:
            break
    return refund


def _read_again(
    calls: WalletCalls, refund: Refund, grant: sealed.Grant, interact_ref: str
) -> Refund:
    """Redeem an approval that only allows reading, and use it to read the payment."""
    assert refund.payer is not None
    services = calls.services
    try:
        token = approval.redeem(calls, grant, interact_ref, payer=refund.payer, limits=None)
    except op.OpenPaymentsError as error:
        return approval.keep_or_lose(calls, refund, grant, error, _blame)
    refund = move(
        services,
        refund,
        RefundEvent.TOKEN_RENEWED,
        token=sealed.seal_token(services.vault, refund.id, token),
        check_at=services.clock.now(),
    )
    return reconcile.look(calls, refund)


def _blame(
    refund: Refund, problem: Problem, error: op.OpenPaymentsError | None
) -> tuple[str, dict[str, Any]]:
    """Return a note on a problem of the merchant's wallet, and the refund's field for the problem.

    If the refund's payment is in flight, no field is returned.
    """
    if problem is Problem.WALLET_UNREACHABLE:
        return RefundProblem.MERCHANT_WALLET_ERROR.value, {}
    why = RefundProblem(problem.value)
    note = f"{why}: {type(error).__name__}" if error is not None else why.value
    return note, {} if refund.payment_in_flight else {"problem": why}


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
            "The customer's wallet does not accept this money: "
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
