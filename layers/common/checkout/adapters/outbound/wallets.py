"""Open Payments clients that sign with a merchant's key, opened from the vault for one flow."""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime
from functools import partial

from checkout.domain.merchant import Merchant, private_key_place
from checkout.open_payments.client import OpenPayments
from checkout.open_payments.client_forms import ClientForms
from checkout.open_payments.errors import Refused
from checkout.open_payments.models import ClientIdentity
from checkout.open_payments.tokens import TokenKeeper
from checkout.open_payments.transport import Transport
from checkout.ports.runtime import Clock, Vault


class SignedWallets:
    """`ports.Wallets` over one transport.

    `tokens`, and the form in which each server takes the client, are kept for the life of the
    process. `on_refusal` is called with each refusal of a request that a merchant signed.
    """

    def __init__(
        self,
        transport: Transport,
        vault: Vault,
        clock: Clock,
        *,
        allow_loopback: bool = False,
        on_refusal: Callable[[Merchant, Refused], None] = lambda merchant, refused: None,
    ) -> None:
        self._transport = transport
        self._vault = vault
        self._clock = clock
        self._allow_loopback = allow_loopback
        self._on_refusal = on_refusal
        self._forms = ClientForms()
        self.tokens = TokenKeeper(clock.now)

    def client(self, merchant: Merchant, *, deadline: datetime) -> OpenPayments:
        sealed = merchant.private_key
        plain = self._vault.open(sealed, place=private_key_place(merchant.id))
        identity = ClientIdentity(
            wallet_address=merchant.wallet_address,
            key_id=merchant.key_id,
            private_key=base64.b64decode(plain, validate=True),
        )
        return OpenPayments(
            self._transport,
            identity,
            now=self._clock.now,
            deadline=deadline,
            allow_http_interaction=self._allow_loopback,
            forms=self._forms,
            on_refusal=partial(self._on_refusal, merchant),
        )

    def anonymous(self, *, deadline: datetime) -> OpenPayments:
        return OpenPayments(self._transport, None, now=self._clock.now, deadline=deadline)
