"""Read, begin and end the refund budget. No wallet is called."""

from __future__ import annotations

from typing import Final

from checkout.domain.ground.errors import (
    AmountTooLarge,
    AmountTooSmall,
    RefundUnexpectedState,
    SessionBusy,
)
from checkout.domain.ground.ids import mandate_id, new_nonce
from checkout.domain.ground.money import TOTAL_MAX
from checkout.domain.merchant.people import Actor
from checkout.domain.payment.machine import Change, HistoryEntry, IllegalTransition
from checkout.domain.payment.mandate import Mandate, MandateEvent, MandateStatus
from checkout.flows.payment.writes import change, write_decided
from checkout.flows.refund.request import in_own_wallet
from checkout.ports import Cleanup, StaleRecord
from checkout.services import Services
from open_payments.models import Amount

_BUSY: Final = "The budget is being changed by other requests; try again shortly."


def find(services: Services, key: Actor) -> Mandate | None:
    """Return the merchant's budget, or None if none was ever requested."""
    return services.mandates.get(mandate_id(key.merchant))


def end(services: Services, key: Actor) -> Mandate:
    """End the budget. A later task tries to cancel the budget's grant at the wallet.

    The wallet may still send a payment that it accepted before the end. Raises
    RefundUnexpectedState, SessionBusy.
    """
    mandate = before = find(services, key)
    if mandate is None:
        raise RefundUnexpectedState("There is no budget to end.")

    def ended(current: Mandate) -> Change[Mandate]:
        nonlocal before
        before = current
        return change(services, current, MandateEvent.ENDED, note=f"by {key.label}")

    try:
        mandate = write_decided(services, mandate, ended)
    except IllegalTransition:
        raise RefundUnexpectedState("There is no budget to end.") from None
    except StaleRecord as stale:
        raise SessionBusy(_BUSY) from stale
    # Only a budget that was approved can be ended, and the approval stores both.
    assert before is not None
    assert before.handle is not None
    assert before.terms is not None
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


def in_wallet(key: Actor, amount: int) -> Amount:
    """Convert an amount in minor units of the merchant's currency to the scale of their wallet.

    Raises AmountTooSmall, AmountTooLarge, AmountNotRepresentable.
    """
    if amount < 1:
        raise AmountTooSmall("The budget must be at least 1.", param="amount")
    if amount > TOTAL_MAX:
        raise AmountTooLarge(f"The budget must be at most {TOTAL_MAX}.", param="amount")
    return in_own_wallet(amount, key.asset_code.lower(), key.asset_code, key.asset_scale)


def begun(services: Services, key: Actor) -> Mandate:
    """Return the merchant's budget. If there is none, store a budget that has no amount yet."""
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
