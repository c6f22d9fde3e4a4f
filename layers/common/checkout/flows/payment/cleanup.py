"""Cancel a grant at the customer's wallet after its approval was abandoned.

No payment depends on the cancellation, and repeating it does no harm.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from checkout.domain.ground.errors import ResourceMissing
from checkout.flows import merchants
from checkout.flows.payment import sealed
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.ports import Cleanup
from checkout.services import PayServices
from open_payments import errors as op

DEADLINE: Final = timedelta(seconds=3)  # the queue delivers an unfinished task again


class TryLater(Exception):
    """Report that a wallet did not answer, or was busy."""


def clean_up(services: PayServices, cleanup: Cleanup) -> None:
    """Cancel the grant. Raises TryLater, `errors.Unavailable`.

    If the wallet refuses, the task ends, because the grant no longer exists or will expire.
    """
    try:
        merchant = merchants.as_of(services.merchants, cleanup.merchant, cleanup.identity)
    except ResourceMissing:
        return
    calls = WalletCalls.begin(services, merchant, within=DEADLINE)
    grant = sealed.open_grant(services.vault, cleanup.session, cleanup.grant)
    try:
        calls.client.cancel_grant(cleanup.auth_server, grant.continuation)
    except op.OpenPaymentsError as error:
        if error.retryable:
            raise TryLater from None
