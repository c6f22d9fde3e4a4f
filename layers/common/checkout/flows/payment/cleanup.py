"""Clean up at the wallets after a session ended or an approval was given up.

Cancels the customer's grant and closes the merchant's incoming payment. Nothing depends on it, and
doing it twice does no harm. An incoming payment comes here only from a session that ended without a
payment in flight, so nothing that may still be paid is closed.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from checkout.domain.errors import ResourceMissing
from checkout.flows import merchants
from checkout.flows.payment import sealed
from checkout.flows.payment.work import Work
from checkout.open_payments import errors as op
from checkout.ports.services import PayServices
from checkout.ports.wallets import Cleanup

DEADLINE: Final = timedelta(seconds=10)


class TryLater(Exception):
    """Report that a wallet did not answer, or was busy."""


def clean_up(services: PayServices, cleanup: Cleanup) -> None:
    """Cancel the grant and close the incoming payment. Raises TryLater, `errors.Unavailable`.

    A wallet that refuses has been asked: its grant or incoming payment is gone, or will expire.
    """
    try:
        merchant = merchants.get(services.merchants, cleanup.merchant)
    except ResourceMissing:
        return
    work = Work.begin(services, merchant, within=DEADLINE)
    done = [
        _tried(lambda: _cancel_grant(work, cleanup)),
        _tried(lambda: _close(work, cleanup)),
    ]
    if not all(done):
        raise TryLater


def _tried(call: Callable[[], None]) -> bool:
    """Make the call; return False if another try may help."""
    try:
        call()
    except op.OpenPaymentsError as error:
        return not error.retryable
    return True


def _cancel_grant(work: Work, cleanup: Cleanup) -> None:
    if cleanup.grant is None or cleanup.auth_server is None:
        return
    grant = sealed.open_grant(work.services.vault, cleanup.session, cleanup.grant)
    work.client.cancel_grant(cleanup.auth_server, grant.continuation)


def _close(work: Work, cleanup: Cleanup) -> None:
    url = cleanup.incoming_payment
    if url is not None:
        work.at_merchant(lambda token: work.client.complete_incoming_payment(url, token))
