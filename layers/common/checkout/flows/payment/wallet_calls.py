"""The services, the merchant and the wallet client that the steps of one payment share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from checkout.domain.merchant.record import Merchant
from checkout.services import PayServices
from open_payments.models import AccessToken
from open_payments.protocol import Access, OpenPayments

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class WalletCalls:
    """A series of calls to the wallets of one payment, with one deadline for all calls."""

    services: PayServices
    merchant: Merchant
    client: OpenPayments
    deadline: datetime

    @classmethod
    def begin(cls, services: PayServices, merchant: Merchant, *, within: timedelta) -> WalletCalls:
        """Make a client that signs as `merchant`, for calls during `within`. Raises Unavailable."""
        deadline = services.clock.now() + within
        client = services.wallets.client(merchant, deadline=deadline)
        return cls(services, merchant, client, deadline)

    def of(self, merchant: Merchant) -> WalletCalls:
        """Return a series that signs as `merchant`, with the same deadline. Raises Unavailable."""
        client = self.services.wallets.client(merchant, deadline=self.deadline)
        return replace(self, merchant=merchant, client=client)

    def within(self, time: timedelta) -> WalletCalls:
        """Return a series with a deadline that is `time` from now. Raises Unavailable."""
        return WalletCalls.begin(self.services, self.merchant, within=time)

    def at_merchant(self, call: Callable[[AccessToken], T]) -> T:
        """Make a call about incoming payments at the merchant's wallet, with a cached token.

        Raises open_payments errors.
        """
        return self.services.wallets.tokens.use(
            self.client,
            self.merchant.auth_server,
            self.merchant.resource_server,
            Access.INCOMING_PAYMENT,
            call,
        )
