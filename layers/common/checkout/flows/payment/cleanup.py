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
from checkout.flows.payment import sealed
from checkout.open_payments import errors as op
from checkout.open_payments.client import Access, OpenPayments
from checkout.open_payments.conclusions import conclude
from checkout.ports.services import PayServices
from checkout.ports.wallets import Cleanup

DEADLINE: Final = timedelta(seconds=10)


class TryLater(Exception):  # noqa: N818 - says what to do
    """A wallet did not answer, or was busy."""


def clean_up(services: PayServices, cleanup: Cleanup) -> None:
    """Cancel and close what is left. Raises TryLater, `errors.Unavailable`.

    A wallet that refuses has been asked: its grant or incoming payment is gone, or runs out.
    """
    merchant = services.merchants.get(cleanup.merchant)
    if merchant is None:
        return
    client = services.wallets.client(merchant, deadline=services.clock.now() + DEADLINE)
    done = [
        _tried(lambda: _cancel_grant(services, client, cleanup)),
        _tried(lambda: _close(services, client, merchant, cleanup)),
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


def _cancel_grant(services: PayServices, client: OpenPayments, cleanup: Cleanup) -> None:
    if cleanup.grant is None or cleanup.auth_server is None:
        return
    grant = sealed.open_grant(services.vault, cleanup.session, cleanup.grant)
    client.cancel_grant(cleanup.auth_server, grant.continuation)


def _close(
    services: PayServices, client: OpenPayments, merchant: Merchant, cleanup: Cleanup
) -> None:
    url = cleanup.incoming_payment
    if url is None:
        return
    services.wallets.tokens.use(
        client,
        merchant.auth_server,
        Access.INCOMING_PAYMENT,
        lambda token: client.complete_incoming_payment(url, token),
    )
