"""At the wallets, after a session ended or an approval was given up: the customer's grant is
cancelled and the merchant's incoming payment closed.

Nothing depends on it, and doing it twice is no harm. Refuses to close what could still be owed: an
incoming payment comes here only from a session that ended without one in flight.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from checkout.domain.merchant import Merchant
from checkout.flows import sealed
from checkout.open_payments import errors as op
from checkout.open_payments.client import Access, OpenPayments
from checkout.open_payments.conclusions import conclude
from checkout.ports import Leftovers, PayServices

DEADLINE: Final = timedelta(seconds=10)


class TryLater(Exception):  # noqa: N818 - says what to do
    """A wallet did not answer, or was busy."""


def tidy(services: PayServices, leftovers: Leftovers) -> None:
    """Cancel and close what is left. Raises TryLater, `errors.Unavailable`.

    A wallet that refuses has been asked: its grant or incoming payment is gone, or runs out.
    """
    merchant = services.merchants.get(leftovers.merchant)
    if merchant is None:
        return
    client = services.wallets.client(merchant, deadline=services.clock.now() + DEADLINE)
    done = [
        _tried(lambda: _cancel_grant(services, client, leftovers)),
        _tried(lambda: _close(services, client, merchant, leftovers)),
    ]
    if not all(done):
        raise TryLater


def _tried(call: Callable[[], None]) -> bool:
    """False: another try may help."""
    try:
        call()
    except op.OpenPaymentsError as error:
        return conclude(error) is not op.Conclusion.RETRY
    return True


def _cancel_grant(services: PayServices, client: OpenPayments, leftovers: Leftovers) -> None:
    if leftovers.grant is None or leftovers.auth_server is None:
        return
    grant = sealed.open_grant(services.vault, leftovers.session, leftovers.grant)
    client.cancel_grant(leftovers.auth_server, grant.continuation)


def _close(
    services: PayServices, client: OpenPayments, merchant: Merchant, leftovers: Leftovers
) -> None:
    url = leftovers.incoming_payment
    if url is None:
        return
    services.wallets.tokens.use(
        client,
        merchant.auth_server,
        Access.INCOMING_PAYMENT,
        lambda token: client.complete_incoming_payment(url, token),
    )
