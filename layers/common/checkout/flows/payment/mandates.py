"""Renew a mandate's token (M1 to M3) before it is used, or before the provider deletes it.

A mandate is a grant for more than one payment: the refund budget. To rotate the token is to
exchange it for a new one. No other module may do so, because a rotation invalidates the old token
everywhere. The file domain/payment/mandate_transitions.py explains M1 to M3, the order of the
writes.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from checkout.domain.ground.ids import mandate_id
from checkout.domain.payment.machine import Change
from checkout.domain.payment.mandate import (
    ROTATED_EVERY,
    ROTATION_LEASE,
    Mandate,
    MandateEvent,
    MandateStatus,
    again_after,
)
from checkout.flows import merchants
from checkout.flows.payment import sealed
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import change, write_decided
from checkout.services import PayServices, Services
from open_payments import errors as op
from open_payments.models import AccessToken

DEADLINE: Final = timedelta(seconds=10)
# A token that ends within this time is renewed before it is used.
GOOD_FOR: Final = timedelta(minutes=1)
_HEALED: Final = (MandateStatus.ACTIVE, MandateStatus.LOST, MandateStatus.REVOKED)


class NoToken(Exception):
    """Report that no token can be used: the token is being renewed or, if `gone`, is lost."""

    def __init__(self, *, gone: bool) -> None:
        super().__init__("the mandate has no token to use")
        self.gone = gone


def of(services: Services, merchant_id: str) -> Mandate | None:
    """Return the merchant's mandate, or None if none was ever requested."""
    return services.mandates.get(mandate_id(merchant_id))


def step(services: PayServices, mandate: Mandate, *, within: timedelta = DEADLINE) -> Mandate:
    """Renew the token if a renewal is due. Return the mandate as it is afterwards.

    Raises StaleRecord if other processes change the mandate too often meanwhile.
    """
    due = mandate.needed_at
    if due is None or services.clock.now() < due:
        return mandate
    assert mandate.terms is not None
    merchant = merchants.as_of(services.merchants, mandate.merchant, mandate.terms.identity)
    calls = WalletCalls.begin(services, merchant, within=within)
    try:
        return rotate(calls, mandate)[0]
    except (NoToken, op.OpenPaymentsError):
        return services.mandates.get(mandate.id) or mandate


def usable(calls: WalletCalls, mandate: Mandate | None) -> tuple[Mandate, AccessToken]:
    """Return the mandate's token if it is valid for at least a minute; otherwise renew it first.

    Raises NoToken, open_payments errors, StaleRecord.
    """
    if mandate is None or not mandate.pays_for(calls.merchant) or mandate.token is None:
        raise NoToken(gone=True)
    token = sealed.open_token(calls.services.vault, mandate.id, mandate.token)
    ends = token.expires_at
    if mandate.rotating is None and (ends is None or calls.services.clock.now() + GOOD_FOR < ends):
        return mandate, token
    return rotate(calls, mandate)


def rotate(calls: WalletCalls, mandate: Mandate) -> tuple[Mandate, AccessToken]:
    """Replace the token that was read: write the intent (M1), call, write the result (M2, M3).

    Raises NoToken, open_payments errors, StaleRecord.
    """
    if mandate.token is None or mandate.terms is None:
        raise NoToken(gone=True)
    services, known, auth_server = calls.services, mandate.token, mandate.terms.payer.auth_server
    token = sealed.open_token(services.vault, mandate.id, known)
    mandate, unanswered = _started(services, mandate, known)
    try:
        fresh = calls.client.rotate_token(auth_server, token)
    except op.Refused as refused:
        if refused.reason is not op.Reason.TOKEN_GONE:
            _unanswered(services, mandate, known)
            raise
        # If an earlier rotation was left without a result, that rotation may have ended the token.
        # Otherwise, only the wallet can have ended it.
        _over(services, mandate, known, MandateEvent.LOST if unanswered else MandateEvent.REVOKED)
        raise NoToken(gone=True) from None
    except op.OpenPaymentsError:
        _unanswered(services, mandate, known)
        raise
    new = sealed.seal_token(services.vault, mandate.id, fresh)

    def rotated(current: Mandate) -> Change[Mandate] | None:
        # A late success overwrites a LOST that another process has written.
        if current.token != known or current.status not in _HEALED:
            return None
        at = services.clock.now() + ROTATED_EVERY
        return change(
            services, current, MandateEvent.ROTATED, token=new, rotate_at=at, unanswered=0
        )

    mandate = write_decided(services, mandate, rotated)
    if mandate.token != new:
        raise NoToken(gone=not mandate.active)
    return mandate, fresh


def _started(services: Services, mandate: Mandate, known: str) -> tuple[Mandate, bool]:
    """Write that the rotation begins (M1). Raises NoToken.

    Returns the mandate, and whether an earlier rotation was left without a result.
    """
    stood = False

    def started(current: Mandate) -> Change[Mandate]:
        nonlocal stood
        now = services.clock.now()
        if not current.active or current.token is None:
            raise NoToken(gone=True)
        if current.token != known or current.rotation_live(now):
            raise NoToken(gone=False)
        stood = current.rotating is not None
        until = now + ROTATION_LEASE
        return change(
            services,
            current,
            MandateEvent.ROTATION_STARTED,
            rotating=current.rotating or now,
            rotation_until=until,
            rotate_at=until,
        )

    mandate = write_decided(services, mandate, started)
    return mandate, stood


def _unanswered(services: Services, mandate: Mandate, known: str) -> None:
    """Write when to try again with the same token, because this rotation decided nothing."""

    def later(current: Mandate) -> Change[Mandate] | None:
        if current.token != known or not current.active:
            return None
        times = current.unanswered + 1
        return change(
            services,
            current,
            MandateEvent.NOT_ROTATED,
            unanswered=times,
            rotate_at=services.clock.now() + again_after(times),
        )

    write_decided(services, mandate, later)


def _over(services: Services, mandate: Mandate, known: str, event: MandateEvent) -> None:
    """Write that the mandate has ended (M3), if the lost token is still the stored one."""

    def over(current: Mandate) -> Change[Mandate] | None:
        if current.token != known or not current.active:
            return None
        return change(services, current, event)

    write_decided(services, mandate, over)
