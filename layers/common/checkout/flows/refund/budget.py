"""The refund budget: an amount a month from which refunds are paid without a person's approval.

The merchant approves the budget once, in their own wallet. The budget's record is a mandate.
domain/payment/mandate_transitions.py explains the order of the budget's writes (A1 to A4, M1 to
M3), and domain/refund/transitions.py explains the order of a refund's writes (R1 to R3).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from checkout.domain.ground.errors import (
    AmountTooSmallForWallet,
    MerchantWalletError,
    RefundUnexpectedState,
    WalletInvalid,
    WalletUnavailable,
    WalletUnreachable,
)
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.reach import Effect, require
from checkout.domain.merchant.record import Merchant
from checkout.domain.payment.machine import Change, IllegalTransition
from checkout.domain.payment.mandate import (
    ROTATED_EVERY,
    USUAL_MARGIN,
    Mandate,
    MandateEvent,
    Margin,
    Terms,
    first_period,
)
from checkout.domain.refund.record import (
    AGAIN_AFTER,
    Refund,
    RefundEvent,
    RefundProblem,
    RefundStatus,
)
from checkout.flows import merchants
from checkout.flows.payment import approval, instruct, mandates, sealed
from checkout.flows.payment.approval import CallbackResult
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import change, commit, move, write_decided
from checkout.flows.refund import approve, budget_request, request
from checkout.flows.refund.approve import APPROVE_WITHIN, DEADLINE, of_merchant, own_wallet
from checkout.flows.refund.request import ALLOWANCE_KEPT
from checkout.flows.retry_on_conflict import TRIES
from checkout.ports import Allowance, AllowanceUsed, StaleRecord
from checkout.services import PayServices
from open_payments import errors as op
from open_payments.interaction import Interval, Limits
from open_payments.models import AccessToken, Amount, Quote

# Approve the budget


def ask(services: PayServices, key: Actor, amount: int, margin: Margin = USUAL_MARGIN) -> Mandate:
    """Request an approval of `amount` minor units a month.

    Returns the mandate with the URL of the wallet's page where the merchant approves. A refund that
    nobody approves may cost its amount and at most the `margin` more. Until the new budget is
    approved, the present one, with its own margin, remains in use. Raises AmountTooSmall,
    AmountTooLarge, AmountNotRepresentable, RefundUnexpectedState, MerchantUnproven,
    MerchantSuspended, MerchantWalletError.
    """
    value = budget_request.in_wallet(key, amount).value
    merchant = merchants.get(services.merchants, key.merchant)
    require(merchant, Effect.BUDGET)
    mandate = budget_request.begun(services, key)
    terms = replace(_terms(mandate, merchant, value, services), margin=margin)
    calls = WalletCalls.begin(services, merchant, within=DEADLINE)
    try:
        grant, page = approval.ask(
            calls,
            terms.payer,
            limits=limits_of(terms),
            finish_uri=callback_url(services.base_url),
        )
    except op.OpenPaymentsError as error:
        raise of_merchant(error) from None
    fields: dict[str, Any] = {
        "asked": terms,
        "grant": sealed.seal_grant(services.vault, mandate.id, grant),
        "interact_url": page,
        "approve_until": services.clock.now() + APPROVE_WITHIN,
    }

    def asked(current: Mandate) -> Change[Mandate]:
        return change(services, current, MandateEvent.APPROVAL_ASKED, **fields)

    try:
        return write_decided(services, mandate, asked)
    except (StaleRecord, IllegalTransition):
        raise RefundUnexpectedState(
            "An approval of the budget is being processed right now. Look at the budget again in a "
            "moment."
        ) from None


def callback_url(base_url: str) -> str:
    """Return the URL to which the merchant's wallet sends the browser back."""
    return f"{base_url}/dashboard/budget/callback"


def limits_of(terms: Terms) -> Limits:
    """Return the limits of the grant, which allow the debit in the `terms` in each month."""
    return Limits(debit_amount=terms.limit, interval=Interval(terms.start, months=1))


def _terms(mandate: Mandate, merchant: Merchant, value: int, services: PayServices) -> Terms:
    """Return the requested terms. If the wallet is the same, the budget's months continue."""
    payer = own_wallet(merchant)
    before = mandate.terms
    same = before is not None and before.payer.id == payer.id and before.limit.is_of(payer)
    start = before.start if before is not None and same else first_period(services.clock.now())
    limit = Amount(value, payer.asset_code, payer.asset_scale)
    return Terms(payer, limit, start, merchant.identity)


def finish(
    services: PayServices, key: Actor, *, interact_ref: str, presented_hash: str
) -> CallbackResult[Mandate | None]:
    """Act on the callback of the merchant's wallet (RFC 9635 section 4.2.3).

    Raises CallbackInvalid for a callback that does not verify, without any write or wallet call. A
    repeated or late callback returns the mandate unchanged.
    """
    mandate = mandates.of(services, key.merchant)
    if mandate is None:
        return CallbackResult(None)
    asked = mandate.asked
    payer = asked.payer if asked else None
    grant = approval.returned(
        services, mandate, payer, interact_ref=interact_ref, presented_hash=presented_hash
    )
    if asked is None or grant is None:
        return CallbackResult(mandate)
    if wait := grant.wait_seconds(services.clock.now()):
        return CallbackResult(mandate, wait_seconds=wait)
    merchant = merchants.as_of(services.merchants, mandate.merchant, asked.identity)
    calls = WalletCalls.begin(services, merchant, within=DEADLINE)
    try:
        mandate = approval.claim(services, mandate)
    except StaleRecord as stale:  # another approval was requested or given
        return CallbackResult(stale.current)
    except IllegalTransition as illegal:  # another request redeems the approval, or it has ended
        return CallbackResult(illegal.record)
    waiting = mandate.grant
    mandate = _redeemed(calls, mandate, grant, interact_ref)
    kept = mandate.grant == waiting and mandate.lease_until is None
    return CallbackResult(mandate, wait_seconds=approval.KEPT_PAUSE if kept else 0)


def _redeemed(
    calls: WalletCalls, mandate: Mandate, grant: sealed.Grant, interact_ref: str
) -> Mandate:
    """Redeem the approval (A3), write the result (A4), and cancel the former budget's grant."""
    services, asked, claimed = calls.services, mandate.asked, mandate
    assert asked is not None
    try:
        token = approval.redeem(
            calls, grant, interact_ref, payer=asked.payer, limits=limits_of(asked)
        )
    except op.OpenPaymentsError as error:
        kept = approval.kept_until(services, error, mandate.approve_until)
        if kept is not None:
            event = MandateEvent.APPROVAL_KEPT
            return _not_redeemed(services, mandate, event, error, approve_until=kept)
        approval.cancel(calls, asked.payer.auth_server, grant)
        return _not_redeemed(services, mandate, MandateEvent.APPROVAL_LOST, error)
    stored = sealed.seal_token(services.vault, mandate.id, token)
    older: Mandate | None = None

    def approved(current: Mandate) -> Change[Mandate] | None:
        nonlocal older
        if not _still_claimed(current, claimed):
            return None
        older = current
        counted = current.terms is not None and current.terms.start == asked.start
        return change(
            services,
            current,
            MandateEvent.APPROVED,
            note=str(asked.limit),
            terms=asked,
            token=stored,
            handle=claimed.grant,
            rotate_at=services.clock.now() + ROTATED_EVERY,
            unanswered=0,
            **({} if counted else {"period": None, "spent": 0}),
        )

    mandate = write_decided(services, mandate, approved)
    if mandate.token != stored:
        approval.cancel(calls, asked.payer.auth_server, grant)
    else:
        assert older is not None
        _cancel(services, older)
    return mandate


def _not_redeemed(
    services: PayServices,
    claimed: Mandate,
    event: MandateEvent,
    error: op.OpenPaymentsError,
    **changes: Any,
) -> Mandate:
    def decided(current: Mandate) -> Change[Mandate] | None:
        if not _still_claimed(current, claimed):
            return None
        return change(services, current, event, note=type(error).__name__, **changes)

    return write_decided(services, claimed, decided)


def _still_claimed(current: Mandate, claimed: Mandate) -> bool:
    """Return whether the approval is still the one that this request has claimed.

    If not, another request has claimed it or has requested another approval. That other request
    then cancels the former budget's grant.
    """
    return current.grant == claimed.grant and current.lease_until == claimed.lease_until


def _cancel(services: PayServices, mandate: Mandate) -> None:
    """Cancel a mandate's former grant, whose token is no longer stored. Ignore errors."""
    if mandate.handle is None or mandate.terms is None:
        return
    terms = mandate.terms
    merchant = merchants.as_of(services.merchants, mandate.merchant, terms.identity)
    calls = WalletCalls.begin(services, merchant, within=DEADLINE)
    grant = sealed.open_grant(services.vault, mandate.id, mandate.handle)
    approval.cancel(calls, terms.payer.auth_server, grant)


# Pay from the budget


def choose(services: PayServices, key: Actor, refund_id: str) -> Refund:
    """Pay a refund from the budget, after a person has confirmed its price. Return the refund.

    The refund is paid only if it costs no more than the price that was shown. Raises
    ResourceMissing and RefundUnexpectedState, the latter also if no price was requested yet.
    """
    refund = request.get(services, key, refund_id)
    if refund.status is not RefundStatus.NEEDS_APPROVAL:
        raise RefundUnexpectedState("This refund is not waiting to be sent.")
    if refund.quote is None:
        raise RefundUnexpectedState(
            "The price of this refund is not known yet. Ask for the price first."
        )
    try:
        refund = move(
            services,
            refund,
            RefundEvent.BUDGET_CHOSEN,
            note=f"by {key.label}",
            budget_at=services.clock.now(),
            budget_tries=0,
        )
        return pay(services, refund, shown=True)
    except (StaleRecord, IllegalTransition):
        raise RefundUnexpectedState(
            "This refund was changed meanwhile. Look at it again."
        ) from None


def pay_now(services: PayServices, refund: Refund) -> Refund:
    """Pay a new refund from the budget if `pay` can. Return the refund as it is afterwards."""
    try:
        return pay(services, refund)
    except (StaleRecord, IllegalTransition):  # the sweep pays it, or it was canceled
        return services.refunds.get(refund.id) or refund


def pay(
    services: PayServices, refund: Refund, *, shown: bool = False, within: timedelta = DEADLINE
) -> Refund:
    """Pay a refund from the budget, if it is due.

    A refund that does not fit into the budget waits for an approval. `shown` means that a person
    has seen and confirmed the stored price. Raises IllegalTransition, and StaleRecord if another
    process has written the refund first.
    """
    now = services.clock.now()
    if refund.budget_at is None or now < refund.budget_at:
        return refund
    merchant = merchants.get(services.merchants, refund.merchant)
    mandate = mandates.of(services, merchant.id)
    if mandate is None or not mandate.pays_for(merchant):
        return _passed(services, refund, RefundProblem.NO_BUDGET)
    calls = WalletCalls.begin(services, merchant, within=within)
    try:
        refund, token = _intended(calls, refund, mandate, shown=shown)
    except _Passed as passed:
        return _passed(services, refund, passed.problem, **passed.fields)
    except mandates.NoToken as no_token:
        if no_token.gone:
            return _passed(services, refund, RefundProblem.NO_BUDGET)
        return _waits(services, refund, None)
    except WalletUnreachable:
        return _waits(services, refund, RefundProblem.CUSTOMER_WALLET_UNREACHABLE)
    except (MerchantWalletError, op.OpenPaymentsError):
        return _waits(services, refund, RefundProblem.MERCHANT_WALLET_ERROR)
    except (WalletInvalid, WalletUnavailable, AmountTooSmallForWallet):  # would fail later, too
        return _passed(services, refund, RefundProblem.CUSTOMER_WALLET_REFUSED)
    return approve.send(calls, refund, token)


class _Passed(Exception):
    """Report that a refund is not paid from the budget. `fields` contain the price, if known."""

    def __init__(self, problem: RefundProblem, fields: dict[str, Any]) -> None:
        super().__init__(problem)
        self.problem, self.fields = problem, fields


def _intended(
    calls: WalletCalls, refund: Refund, mandate: Mandate, *, shown: bool
) -> tuple[Refund, AccessToken]:
    """Request the price, and write the intent to pay it. No money can move before this write.

    Raises _Passed, NoToken, open_payments errors, IllegalTransition, StaleRecord, and the errors of
    `approve.price`.
    """
    fields, quote = _price(calls, refund, mandate, shown=shown)
    if not shown and quote.debit.value > _most(refund, mandate):
        raise _Passed(RefundProblem.TOO_DEAR, fields)
    mandate, token = mandates.usable(calls, mandate)
    return _intend(calls, refund, mandate, quote, fields, shown=shown), token


def _most(refund: Refund, mandate: Mandate) -> int:
    """Return the most that a refund may cost when nobody approves it.

    This limit is in units of the merchant's wallet: the refund's amount and the budget's margin, or
    less if the requesting actor has a limit. The quote that the customer's wallet gave for the sale
    is not used, because that wallet is not trusted. The price that is compared with the limit comes
    from the merchant's own wallet.
    """
    assert mandate.terms is not None
    most = mandate.terms.margin.most(refund.cost.value)
    return most if refund.budget_most is None else min(most, refund.budget_most)


def _price(
    calls: WalletCalls, refund: Refund, mandate: Mandate, *, shown: bool
) -> tuple[dict[str, Any], Quote]:
    """Return the quote and the refund's fields that store it.

    If a quote was shown to a person and is still valid, it is used; otherwise a new quote is
    created. Raises _Passed, and the errors of `approve.price` and `instruct.usable_quote`.
    """
    assert mandate.terms is not None
    payer, receiver = mandate.terms.payer, refund.incoming_payment
    if not shown or refund.quote is None or receiver is None:
        return approve.price(calls, refund, payer)
    if (refund.identity or 0) != calls.merchant.identity:  # another client's quote
        raise _Passed(RefundProblem.PRICE_CHANGED, {})
    receive, debit = refund.fixed
    quote = instruct.usable_quote(
        calls,
        refund.quote,
        payer,
        receiver=receiver.id,
        receive=receive,
        debit=debit,
    )
    if quote is None:
        raise _Passed(RefundProblem.PRICE_CHANGED, {})
    return {"payer": payer, "quote": quote}, quote


def _beyond(refund: Refund, debit: Amount) -> Allowance | None:
    """Return what the refund costs beyond its amount, to be added to the requester's daily sum.

    The result is in minor units, rounded up. The amount itself was added when the refund was
    requested. Returns None if the requester has no daily limit, or if the refund costs no more than
    its amount.
    """
    more = -(-(debit.value - refund.cost.value) * refund.amount // refund.cost.value)
    if refund.allowance is None or refund.allowance_most is None or more < 1:
        return None
    until = refund.created_at + ALLOWANCE_KEPT
    return Allowance(id=refund.allowance, amount=more, most=refund.allowance_most, until=until)


def _intend(
    calls: WalletCalls,
    refund: Refund,
    mandate: Mandate,
    quote: Quote,
    fields: dict[str, Any],
    *,
    shown: bool,
) -> Refund:
    """Write the intent (R2), and count the quote's debit in the mandate and the requester's limits.

    Raises _Passed if the debit does not fit, NoToken if the mandate now has another token,
    IllegalTransition, StaleRecord.
    """
    services, known = calls.services, mandate.token
    for _ in range(TRIES):
        now = services.clock.now()
        if not _fits(mandate, quote.debit, calls.merchant, now):
            raise _Passed(RefundProblem.OVER_BUDGET, fields)
        period = mandate.period_at(now)
        intended = change(
            services,
            refund,
            RefundEvent.BUDGET_INTENDED,
            **fields,
            **instruct.instruction(services),
            by_budget=1,
            period=period,
            counted=quote.debit.value,
            payments=refund.payments + 1,
        )
        spent = mandate.spent_in(period) + quote.debit.value
        try:
            counted = change(services, mandate, MandateEvent.SPENT, period=period, spent=spent)
            allowance = None if shown else _beyond(refund, quote.debit)
            return commit(services, intended, also=counted, allowance=allowance)
        except IllegalTransition:  # during a rotation
            raise mandates.NoToken(gone=False) from None
        except AllowanceUsed:
            raise _Passed(RefundProblem.TOO_DEAR, fields) from None
        except StaleRecord as stale:
            if stale.current.version != refund.version:
                raise
        found = mandates.of(services, refund.merchant)
        if found is None or not found.active or found.token != known:
            raise mandates.NoToken(gone=False)
        mandate = found
    raise mandates.NoToken(gone=False)


def _fits(mandate: Mandate, debit: Amount, merchant: Merchant, now: datetime) -> bool:
    terms = mandate.terms
    ours = terms is not None and terms.limit.same_asset(debit) and mandate.pays_for(merchant)
    return ours and debit.value <= mandate.left(now)


def _passed(services: PayServices, refund: Refund, problem: RefundProblem, **fields: Any) -> Refund:
    """Make the refund wait for an approval. `fields` contain the refund's price, if known."""
    note = problem.value
    return move(services, refund, RefundEvent.BUDGET_PASSED, note=note, problem=problem, **fields)


def _waits(services: PayServices, refund: Refund, problem: RefundProblem | None) -> Refund:
    """Schedule another try to pay; after the final one, make the refund wait for an approval.

    AGAIN_AFTER has the pauses between the tries, which are more than a day and a half together.
    """
    tries = refund.budget_tries
    if tries >= len(AGAIN_AFTER):
        return _passed(services, refund, problem or RefundProblem.MERCHANT_WALLET_ERROR)
    return move(
        services,
        refund,
        RefundEvent.BUDGET_WAITS,
        problem=problem,
        budget_at=services.clock.now() + AGAIN_AFTER[tries],
        budget_tries=tries + 1,
    )
