"""Read the refund budget, ask an owner for one, and end it. No wallet is called."""

from __future__ import annotations

from typing import Final

from checkout.domain.ground.errors import (
    AmountTooLarge,
    AmountTooSmall,
    PermissionMissing,
    RefundUnexpectedState,
    ResourceMissing,
    SessionBusy,
)
from checkout.domain.ground.ids import mandate_id, new_nonce
from checkout.domain.ground.money import TOTAL_MAX
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.reach import Effect, require
from checkout.domain.merchant.record import ApiKey
from checkout.domain.payment.machine import Change, HistoryEntry, IllegalTransition
from checkout.domain.payment.mandate import Mandate, MandateEvent, MandateStatus
from checkout.flows import merchants
from checkout.flows.idempotency import Reserve
from checkout.flows.payment.writes import change, write_decided
from checkout.flows.refund.request import in_own_wallet
from checkout.ports import Cleanup, StaleRecord
from checkout.services import Services
from open_payments.models import Amount

_BUSY: Final = "The budget is being changed by other requests; try again shortly."


def find(services: Services, key: Actor) -> Mandate | None:
    """Return the merchant's budget, or None if none was ever requested."""
    return services.mandates.get(mandate_id(key.merchant))


def get(services: Services, key: Actor) -> Mandate:
    """Return the merchant's budget. Raises ResourceMissing."""
    mandate = find(services, key)
    if mandate is None:
        raise ResourceMissing("There is no refund budget. Request one, and approve it.")
    return mandate


def request(
    services: Services, key: Actor, amount: int, reserve: Reserve[Mandate] | None = None
) -> Mandate:
    """Ask an owner to approve a budget of `amount` minor units a month.

    The record that `reserve` makes is stored together with the request. The present budget remains
    in use. Raises PermissionMissing as `require_unlimited` does, AmountTooSmall, AmountTooLarge,
    AmountNotRepresentable, MerchantUnproven, MerchantSuspended, SessionBusy, KeyHeld.
    """
    require_unlimited(key)
    if not isinstance(key, ApiKey) or key.suspended is not None:  # otherwise the merchant may sell
        require(merchants.get(services.merchants, key.merchant), Effect.BUDGET)
    wanted = in_wallet(key, amount)
    mandate = begun(services, key)

    def requested(current: Mandate) -> Change[Mandate]:
        note = f"by {key.label}"
        return change(services, current, MandateEvent.REQUESTED, note=note, wanted=wanted)

    try:
        return write_decided(services, mandate, requested, reserve)
    except StaleRecord as stale:
        raise SessionBusy(_BUSY) from stale


def end(services: Services, key: Actor, reserve: Reserve[Mandate] | None = None) -> Mandate:
    """End the budget. Its grant is canceled afterwards, best effort.

    The wallet may still send a payment that it accepted before the end. Raises PermissionMissing as
    `require_unlimited` does, RefundUnexpectedState, SessionBusy, KeyHeld.
    """
    require_unlimited(key)
    mandate = before = find(services, key)
    if mandate is None:
        raise RefundUnexpectedState("There is no budget to end.")

    def ended(current: Mandate) -> Change[Mandate]:
        nonlocal before
        before = current
        return change(services, current, MandateEvent.ENDED, note=f"by {key.label}")

    try:
        mandate = write_decided(services, mandate, ended, reserve)
    except IllegalTransition:
        raise RefundUnexpectedState("There is no budget to end.") from None
    except StaleRecord as stale:
        raise SessionBusy(_BUSY) from stale
    assert before is not None
    if before.handle is not None and before.terms is not None:
        services.tasks.clean_up(
            Cleanup(
                session=before.id,
                merchant=before.merchant,
                auth_server=before.terms.payer.auth_server,
                grant=before.handle,
                identity=before.terms.identity,
            )
        )
    return mandate


def require_unlimited(key: Actor) -> None:
    """Raise PermissionMissing for an actor whose refunds are limited.

    The budget pays the refunds of all actors, and the requested amount is the default value in the
    form where the owner approves it. So an actor with a limit must not choose the amount.
    """
    if key.refund_cap is not None:
        raise PermissionMissing(
            "Your refunds are limited, so only an owner can request or end the refund budget."
        )


def in_wallet(key: Actor, amount: int) -> Amount:
    """Return minor units of the merchant's currency in their wallet's scale.

    Raises AmountTooSmall, AmountTooLarge, AmountNotRepresentable.
    """
    if amount < 1:
        raise AmountTooSmall("The budget must be at least 1.", param="amount")
    if amount > TOTAL_MAX:
        raise AmountTooLarge(f"The budget must be at most {TOTAL_MAX}.", param="amount")
    return in_own_wallet(amount, key.asset_code.lower(), key.asset_code, key.asset_scale)


def begun(services: Services, key: Actor) -> Mandate:
    """Return the merchant's budget. If there is none, store a new one without a request."""
    now = services.clock.now()
    return find(services, key) or services.mandates.begin(
        Mandate(
            id=mandate_id(key.merchant),
            merchant=key.merchant,
            status=MandateStatus.PENDING,
            version=1,
            writer=new_nonce(services.random_bytes),
            updated_at=now,
            created_at=now,
            history=(HistoryEntry(now, MandateEvent.BEGUN, f"by {key.label}"),),
        )
    )
