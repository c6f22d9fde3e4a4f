"""Request a refund (R1), read and list refunds, cancel a refund. No wallet is called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.ground.errors import (
    AmountNotRepresentable,
    AmountTooLarge,
    AmountTooSmall,
    ParameterInvalid,
    ParameterMissing,
    PaymentInProgress,
    PermissionMissing,
    RefundUnexpectedState,
    ResourceMissing,
    SessionBusy,
    SessionUnexpectedState,
)
from checkout.domain.ground.grammar import REFUND_ID, position
from checkout.domain.ground.ids import mandate_id, new_nonce, new_refund_id
from checkout.domain.ground.json_values import compact
from checkout.domain.ground.money import from_minor_units, to_wallet
from checkout.domain.ground.typed_address import NotAnAddress, wallet_url
from checkout.domain.merchant.people import Actor, counted_as
from checkout.domain.payment.events import Event
from checkout.domain.payment.machine import Change, HistoryEntry, IllegalTransition
from checkout.domain.refund.record import (
    AmountMode,
    Reason,
    Refund,
    RefundEvent,
    RefundProblem,
    RefundRef,
    RefundStatus,
)
from checkout.domain.session.record import Session
from checkout.flows.cursors import CursorPage, position_of, with_cursor
from checkout.flows.idempotency import Reserve
from checkout.flows.payment import writes
from checkout.flows.refund.settle import settle
from checkout.flows.session import lookup
from checkout.ports import Allowance, AllowanceUsed, StaleRecord
from checkout.services import Services
from open_payments.models import Amount

REFUNDS_MAX: Final = 100  # of one session
ALLOWANCE_KEPT: Final = timedelta(days=2)  # a day's total is needed only until the day ends
TRIES: Final = 20  # many refunds of one session can be requested at once
_MISSING: Final = "No such refund. Compare its id, and use a key of the same merchant."


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRefund:
    """A merchant's request. `amount` is in minor units; None means all that can be refunded.

    The `mode` AS_PAID gives the customer what they paid, in their own currency. AT_COST costs the
    merchant exactly the amount. None means AS_PAID if the customer's debit is known, otherwise
    AT_COST. `wallet` is a wallet other than the payer's. With `by_budget`, the refund is paid from
    the refund budget without an approval, if it fits into the budget. With `elsewhere`, nothing is
    sent; the record is a note on how the merchant has paid the customer back by other means.
    """

    session: str
    amount: int | None = None
    mode: AmountMode | None = None
    reason: Reason | None = None
    metadata: Mapping[str, Any] | None = None
    wallet: str | None = None
    by_budget: bool = True
    elsewhere: str | None = None


def create(
    services: Services, key: Actor, asked: NewRefund, reserve: Reserve[Refund] | None = None
) -> Refund:
    """Request a refund, or note one that was paid elsewhere.

    `reserve` makes the stored answer to the request's idempotency key, which is written together
    with the refund. Raises ResourceMissing, SessionUnexpectedState, PaymentInProgress,
    AmountTooLarge, AmountTooSmall, AmountNotRepresentable, ParameterMissing, ParameterInvalid,
    RefundUnexpectedState, SessionBusy, KeyHeld, and PermissionMissing if the amount is above the
    actor's limits.
    """
    wallet = _wallet(services, asked.wallet)
    refund_id = new_refund_id(services.random_bytes)
    for _ in range(TRIES):
        session = lookup.get(services, key, asked.session)
        refund = _refund(services, key, session, asked, wallet, refund_id)
        if asked.by_budget and not refund.terminal:
            refund = replace(refund, **_from_budget(services, session, refund))
        allowance = _allowance(key, refund)
        refund = _limited(refund, key, allowance)
        give = refund.give.value if refund.give is not None else 0
        held = (*(session.refunds or ()), RefundRef(refund.id, refund.amount, give))
        event = Event.PAID_ELSEWHERE if refund.terminal else Event.REFUND_REQUESTED
        try:
            change = writes.change(services, session, event, refunds=held)
            writes.commit(
                services,
                change,
                _of_refund(refund, reserve),
                refund=refund,
                allowance=allowance,
            )
        except StaleRecord:
            continue
        except AllowanceUsed as used:
            raise _over_the_day(key, used.used) from None
        return refund
    raise SessionBusy("This session is being changed by other requests; try again shortly.")


def _allowance(key: Actor, refund: Refund) -> Allowance | None:
    """Return the actor's daily allowance, or None without a limit. Raises PermissionMissing."""
    cap, day = key.refund_cap, refund.created_at.date()
    if cap is None:
        return None
    if refund.currency != key.asset_code.lower():
        raise PermissionMissing(f"Your limits are in {key.asset_code}.")
    if cap.once is not None and refund.amount > cap.once:
        most = _readable(key, cap.once)
        raise PermissionMissing(f"Your limit for a single refund is {most}. Ask an owner.")
    if cap.day is None:
        return None
    if refund.amount > cap.day:
        raise _over_the_day(key, 0)
    return Allowance(
        id=f"{counted_as(key)}#{day.isoformat()}",
        amount=refund.amount,
        most=cap.day,
        until=refund.created_at + ALLOWANCE_KEPT,
    )


def _over_the_day(key: Actor, used: int) -> PermissionMissing:
    cap = key.refund_cap
    assert cap is not None
    assert cap.day is not None
    most, left = _readable(key, cap.day), _readable(key, cap.day - used)
    return PermissionMissing(
        f"Your limit is {most} a day (UTC), of which {left} are left. Ask an owner."
    )


def require_own(key: Actor, refund: Refund) -> None:
    """Raise PermissionMissing if an actor with a limit may not change this refund or note.

    An actor with a limit may change only requests that they made themselves and that are within the
    limit. So they cannot cancel a refund that an owner has requested, or redirect that refund to
    another wallet.
    """
    if not is_own(key, refund):
        raise PermissionMissing(
            "Your refunds are limited, and this refund is above your limit or was requested by "
            "somebody else. Ask an owner."
        )


def is_own(key: Actor, refund: Refund) -> bool:
    """Return whether the actor has no limit, or has requested this refund within the limit."""
    cap = key.refund_cap
    if cap is None:
        return True
    most = [each for each in (cap.once, cap.day) if each is not None]
    return refund.asked_by == counted_as(key) and all(refund.amount <= each for each in most)


def _readable(key: Actor, value: int) -> str:
    scale = key.asset_scale
    return str(from_minor_units(value, currency=key.asset_code, wallet_scale=scale))


def _of_refund(refund: Refund, reserve: Reserve[Refund] | None) -> Reserve[Session] | None:
    """Return the function that makes the stored answer, for the write of the refund's session."""
    if reserve is None:
        return None
    return lambda _, writer: reserve(refund, writer)


def get(services: Services, key: Actor, refund_id: str) -> Refund:
    """Return the merchant's refund. Raises ResourceMissing, also for another merchant's refund."""
    refund = services.refunds.get(refund_id) if REFUND_ID.fullmatch(refund_id) else None
    if refund is None or refund.merchant != key.merchant:
        raise ResourceMissing(_MISSING)
    return refund


def of_session(services: Services, key: Actor, session_id: str) -> tuple[Refund, ...]:
    """Return the refunds of the merchant's session, the newest first. Raises ResourceMissing."""
    session = lookup.own(services, key, session_id)
    ids = tuple(each.id for each in reversed(session.refunds or ()))
    return services.refunds.of(ids) if ids else ()


def list_page(
    services: Services, key: Actor, *, limit: int, after: str | None
) -> CursorPage[Refund]:
    """Return a page of the merchant's refunds, newest first. Raises CursorInvalid."""
    return _page(services, key, limit, position_of(key.merchant, after, REFUND_ID))


def list_behind(
    services: Services,
    key: Actor,
    *,
    limit: int,
    anchor: str | None,
    created_from: datetime | None = None,
    created_before: datetime | None = None,
) -> CursorPage[Refund]:
    """Return a page of refunds after the refund with the id `anchor`. Raises ResourceMissing.

    The times limit when the refunds were created (from inclusive, before exclusive).
    """
    behind = None if anchor is None else get(services, key, anchor)
    place = None if behind is None else position(behind.created_at, behind.id)
    bounds = {"created_from": created_from, "created_before": created_before}
    return _page(services, key, limit, place, **bounds)


def _page(
    services: Services, key: Actor, limit: int, after: str | None, **bounds: datetime | None
) -> CursorPage[Refund]:
    page = services.refunds.page(key.lists, limit=limit, after=after, **bounds)
    return with_cursor(key.merchant, page)


def cancel(
    services: Services, key: Actor, refund_id: str, reserve: Reserve[Refund] | None = None
) -> Refund:
    """Cancel a refund that was not sent yet, or remove the note on money paid back elsewhere.

    Raises ResourceMissing, PermissionMissing as `require_own` does, RefundUnexpectedState,
    SessionBusy, KeyHeld.
    """
    refund = get(services, key, refund_id)
    require_own(key, refund)
    try:
        return settle(
            services,
            refund,
            RefundEvent.CANCEL_REQUESTED,
            kept=0,
            reserve=reserve,
            note=f"by {key.label}",
        )
    except IllegalTransition as illegal:
        raise RefundUnexpectedState(_uncancelable(illegal.record)) from None
    except StaleRecord as stale:
        raise SessionBusy(
            "This refund is being changed by other requests; try again shortly."
        ) from stale


def update_metadata(
    services: Services,
    key: Actor,
    refund_id: str,
    merge: Callable[[Mapping[str, Any]], Mapping[str, Any]],
    reserve: Reserve[Refund] | None = None,
) -> Refund:
    """Write the metadata that `merge` returns; nothing else of the refund changes.

    Raises ResourceMissing, SessionBusy, KeyHeld, PermissionMissing as `require_own` does,
    RefundUnexpectedState while the refund is being sent, and the errors of `merge`.
    """
    refund = get(services, key, refund_id)
    require_own(key, refund)

    def changed(refund: Refund) -> Change[Refund]:
        text = compact(dict(merge(refund.metadata)))
        return writes.change(services, refund, RefundEvent.METADATA_CHANGED, metadata_json=text)

    try:
        return writes.write_decided(services, refund, changed, reserve)
    except IllegalTransition:
        raise RefundUnexpectedState(
            "This refund is being sent. You can change its metadata when it has ended."
        ) from None
    except StaleRecord:
        raise SessionBusy(
            "This refund is being changed by other requests; try again shortly."
        ) from None


def _uncancelable(refund: Refund) -> str:
    if refund.status is RefundStatus.NEEDS_APPROVAL:
        return "This refund is being approved right now; it cannot be canceled."
    if refund.payment_in_flight:
        return "This refund was sent, or may have been; it cannot be canceled."
    return f"This refund is {refund.status.value}; it cannot be canceled."


def _refund(
    services: Services,
    key: Actor,
    session: Session,
    asked: NewRefund,
    wallet: str | None,
    refund_id: str,
) -> Refund:
    """Return the new record. Raises as `create` does."""
    left = _left(session)
    amount = left if asked.amount is None else asked.amount
    if amount < 1:
        raise AmountTooSmall("The amount of a refund must be at least 1.", param="amount")
    if amount > left:
        raise AmountTooLarge(
            f"Only {left} {session.currency.upper()} (in its smallest unit) of this session can "
            "still be refunded.",
            param="amount",
        )
    if len(session.refunds or ()) >= REFUNDS_MAX:
        raise RefundUnexpectedState(f"A session has at most {REFUNDS_MAX} refunds.")
    noted = asked.elsewhere is not None
    mode = asked.mode or (AmountMode.AS_PAID if session.paid_as_quoted else AmountMode.AT_COST)
    if noted:
        _no_payment(asked)
        mode = AmountMode.AT_COST
    if mode is AmountMode.AS_PAID and not session.paid_as_quoted:
        raise ParameterInvalid(
            "It is not known what the customer paid in their own currency, because the money "
            "arrived late, in part, or from outside. Use at_cost.",
            param="amount_mode",
        )
    now = services.clock.now()
    event = RefundEvent.NOTED if noted else RefundEvent.REQUESTED
    return Refund(
        id=refund_id,
        merchant=session.merchant,
        status=RefundStatus.PAID_ELSEWHERE if noted else RefundStatus.NEEDS_APPROVAL,
        version=1,
        writer=new_nonce(services.random_bytes),
        updated_at=now,
        history=(HistoryEntry(now, event, f"by {key.label}"),),
        created_at=now,
        session=session.id,
        part=session.part,
        amount=amount,
        currency=session.currency,
        mode=mode,
        give=_give(session, amount) if mode is AmountMode.AS_PAID else None,
        cost=_cost(session, amount),
        wallet=_known_payer(session) or "" if noted else wallet or _payer(session),
        reason=asked.reason,
        elsewhere=asked.elsewhere,
        ended_at=now if noted else None,
        metadata_json=compact(dict(asked.metadata or {})),
        by=key.label,
        asked_by=counted_as(key),
    )


def _no_payment(asked: NewRefund) -> None:
    """Raise ParameterInvalid if a note has parameters that apply only to a refund that is sent."""
    for name, value in (("customer_wallet", asked.wallet), ("amount_mode", asked.mode)):
        if value is not None:
            raise ParameterInvalid(
                f"{name} applies only to a refund that is sent. With paid_elsewhere, nothing is "
                "sent.",
                param=name,
            )


def _from_budget(services: Services, session: Session, refund: Refund) -> dict[str, Any]:
    """Return the fields for paying the refund from the budget, or the problem that prevents it.

    A refund that nobody approves can only go to the wallet that paid. Otherwise, a thief with a
    stolen API key could send refunds to the thief's own wallet.
    """
    mandate, now = services.mandates.get(mandate_id(refund.merchant)), services.clock.now()
    if mandate is None or mandate.terms is None:
        return {}
    if not mandate.active:
        return {"problem": RefundProblem.NO_BUDGET} if mandate.gone else {}
    if not _paid_from(session, refund.wallet):
        return {"problem": RefundProblem.OTHER_WALLET}
    fits = refund.cost.same_asset(mandate.terms.limit) and refund.cost.value <= mandate.left(now)
    return {"budget_at": now} if fits else {"problem": RefundProblem.OVER_BUDGET}


def _limited(refund: Refund, key: Actor, allowance: Allowance | None) -> Refund:
    """Return the refund with the actor's limits, which also limit what the refund may cost."""
    once = key.refund_cap.once if key.refund_cap is not None else None
    return replace(
        refund,
        budget_most=None if once is None else refund.cost.value * once // refund.amount,
        allowance=allowance.id if allowance else None,
        allowance_most=allowance.most if allowance else None,
    )


def _left(session: Session) -> int:
    """Return the amount left to refund. Raises errors if this amount is not certain, or is zero."""
    if session.partly_paid:
        raise PaymentInProgress(
            "Only a part of the payment has arrived. Accept it as paid, or give the session up. "
            "After that, it can be refunded."
        )
    if not session.terminal:
        raise SessionUnexpectedState(
            f"This session is {session.status}. It can be refunded only after it has ended and has "
            "received money."
        )
    if session.check_at is not None:
        raise PaymentInProgress(
            "It is not certain yet how much this session has received. Try again in about a minute."
        )
    if not session.amount_received:
        raise SessionUnexpectedState("This session has received nothing that could be refunded.")
    if session.refundable < 1:
        raise RefundUnexpectedState(
            "Everything that this session has received was already refunded."
        )
    return session.refundable


def _payer(session: Session) -> str:
    """Return the wallet that paid. Raises ParameterMissing if this wallet is not known."""
    payer = _known_payer(session)
    if payer is not None:
        return payer
    why = "was erased" if session.erased else "is not known: the money came from outside"
    raise ParameterMissing(
        f"The wallet that paid this session {why}. Give the wallet that the refund should go to.",
        param="customer_wallet",
    )


def _known_payer(session: Session) -> str | None:
    customer = session.customer
    return customer.id if customer is not None and _paid_from(session, customer.id) else None


def _paid_from(session: Session, wallet: str) -> bool:
    """Return whether this wallet has paid the session by a payment that we instructed."""
    customer = session.customer
    return session.outgoing_payment is not None and customer is not None and customer.id == wallet


def _wallet(services: Services, typed: str | None) -> str | None:
    """Return the URL of the wallet that the merchant typed, or None. Raises ParameterInvalid."""
    if typed is None:
        return None
    try:
        return wallet_url(typed, allow_ports=services.allow_loopback)
    except NotAnAddress:
        raise ParameterInvalid(
            "customer_wallet must be a wallet address: https://… or $….", param="customer_wallet"
        ) from None


def _give(session: Session, amount: int) -> Amount:
    """Return what the customer's wallet gets back for a part: what this part cost the customer.

    The amount is computed from all refunds of the session together, so that the parts add up
    exactly to the whole. An earlier refund with the mode AT_COST, or an earlier note, counts as if
    the same share of the customer's debit had been given back. Raises AmountTooSmall.
    """
    paid, whole = session.amount_paid or 1, _given_of_all(session)
    given = sum(each.give or whole.value * each.amount // paid for each in session.refunds or ())
    value = whole.value * (session.refunded + amount) // paid - given
    if value < 1:
        raise AmountTooSmall(
            f"This amount is less than one unit of the customer's currency, {whole.asset_code}.",
            param="amount",
        )
    return replace(whole, value=value)


def _given_of_all(session: Session) -> Amount:
    """Return the amount that the customer's wallet gets for the whole session.

    The customer's debit is known only from a quote of the customer's wallet, which is not trusted.
    If the debit is in the currency of the shop's wallet, at most the amount received is given back.
    Any debit above this amount was at best a fee of the customer's provider. If the debit is in
    another currency, the amounts cannot be compared; what limits the refund is then the price that
    the shop's wallet shows for it (budget.py).
    """
    assert session.quote is not None
    debit, receive = session.quote.debit, session.receive
    if debit.asset_code != receive.asset_code:
        return debit
    up, down = 10**debit.asset_scale, 10**receive.asset_scale
    return replace(debit, value=min(debit.value, (session.received or 0) * up // down))


def _cost(session: Session, amount: int) -> Amount:
    """Return the amount in the scale of the merchant's wallet. Raises AmountNotRepresentable."""
    code, scale = session.receive.asset_code, session.receive.asset_scale
    return in_own_wallet(amount, session.currency, code, scale)


def in_own_wallet(amount: int, currency: str, code: str, scale: int) -> Amount:
    """Convert minor units of `currency` to the scale of the merchant's wallet, which holds `code`.

    Raises AmountNotRepresentable.
    """
    try:
        return to_wallet(amount, currency=currency, asset_code=code, asset_scale=scale)
    except AmountNotRepresentable:
        raise AmountNotRepresentable(
            f"Your wallet cannot represent this amount in {code} exactly.", param="amount"
        ) from None
