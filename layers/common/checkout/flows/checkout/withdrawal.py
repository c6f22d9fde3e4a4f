"""File a customer's withdrawal from a purchase, which asks the shop to pay back.

Anybody who has the page's address can file it, as with all of that page: it moves no money, and the
shop decides. It is filed once; filing again changes nothing.
"""

from __future__ import annotations

from typing import Final

from checkout.domain.customer_details import CustomerDetails
from checkout.domain.errors import ResourceMissing
from checkout.domain.merchant import Merchant
from checkout.domain.session import Session
from checkout.domain.withdrawal import Withdrawal, last_moment
from checkout.flows.checkout import details
from checkout.ports.services import PayServices

NONE: Final = "There is no withdrawal from this purchase."


def find(services: PayServices, merchant: Merchant, session: Session) -> Withdrawal | None:
    """Return the withdrawal that was filed, or None. Nothing is read of a shop without any."""
    if last_moment(session, merchant.withdrawal_days) is None:
        return None
    return services.withdrawals.get(session.id)


def is_open(services: PayServices, merchant: Merchant, session: Session) -> bool:
    """Return whether the customer can withdraw now."""
    until = last_moment(session, merchant.withdrawal_days)
    return until is not None and services.clock.now() < until


def file(
    services: PayServices, merchant: Merchant, session: Session, said: CustomerDetails
) -> tuple[Withdrawal, bool]:
    """Store the withdrawal; return it, and whether it is the first.

    Raises ResourceMissing if the time is over, Unavailable.
    """
    if not is_open(services, merchant, session):
        raise ResourceMissing(NONE)
    withdrawal = Withdrawal(
        session=session.id,
        merchant=session.merchant,
        at=services.clock.now(),
        said=details.seal_said(services.vault, merchant, session.id, said),
    )
    if services.withdrawals.put(withdrawal, session):
        return withdrawal, True
    filed = services.withdrawals.get(session.id)
    assert filed is not None, "a first version is refused only if there is one"
    return filed, False
