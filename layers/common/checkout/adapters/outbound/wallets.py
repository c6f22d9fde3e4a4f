"""Clients of Open Payments, each for one flow, which sign with a merchant's key from the vault.

`StageTransport` keeps test stages and other stages apart: test stages send requests only to test
wallets, and other stages only to other wallets.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from checkout.adapters.vault import AesVault
from checkout.domain.ground.grammar import of_stage
from checkout.domain.merchant.record import Merchant, private_key_place
from checkout.ports import Clock
from open_payments.errors import NotSent, OpenPaymentsError, Refused
from open_payments.models import ClientIdentity, Jwk
from open_payments.protocol import ClientForms, OpenPayments
from open_payments.signatures import public_x
from open_payments.tokens import TokenKeeper
from open_payments.transports import Request, Response, Transport

OnRefusal = Callable[[Merchant, Refused, bool | None], None]
LOOK_FOR_KEY: Final = timedelta(seconds=2)


class SignedWallets:
    """Makes Open Payments clients. Each has one deadline for all its calls together.

    All clients use one transport. Until the process ends, this object keeps `tokens` (the
    non-interactive grants for each merchant and pair of servers), and the form of the field
    `client` that each server accepts.

    `on_refusal` is called after each refusal of a merchant's key. Its last argument is whether the
    key is missing at the merchant's wallet, or None if the wallet's keys cannot be read. If the
    merchant uses our own client document instead (docs/decisions/0023), nothing is read, because
    that document always contains the key.
    """

    def __init__(
        self,
        transport: Transport,
        vault: AesVault,
        clock: Clock,
        *,
        allow_loopback: bool = False,
        on_refusal: OnRefusal | None = None,
    ) -> None:
        self._transport = transport
        self._vault = vault
        self._clock = clock
        self._allow_loopback = allow_loopback
        self._on_refusal = on_refusal
        self._forms = ClientForms()
        self.tokens = TokenKeeper(clock.now)

    def client(self, merchant: Merchant, *, deadline: datetime) -> OpenPayments:
        """Return a client that signs as `merchant`.

        Raises `errors.Unavailable` when the key cannot be read.
        """
        key_id, sealed = merchant.signing_key(self._clock.now())
        plain = self._vault.open(sealed, place=private_key_place(merchant.id))
        identity = ClientIdentity(
            wallet_address=merchant.wallet_address,
            key_id=key_id,
            private_key=base64.b64decode(plain, validate=True),
            url=merchant.client,
        )
        return OpenPayments(
            self._transport,
            identity,
            now=self._clock.now,
            deadline=deadline,
            allow_http_interaction=self._allow_loopback,
            forms=self._forms,
            on_refusal=partial(self._refused, merchant, identity, deadline),
        )

    def _refused(
        self, merchant: Merchant, identity: ClientIdentity, deadline: datetime, refused: Refused
    ) -> None:
        if self._on_refusal is None or not refused.of_key:
            return
        if merchant.client is not None:  # our own document, which always contains the key
            self._on_refusal(merchant, refused, False)
            return
        until = min(deadline, self._clock.now() + LOOK_FOR_KEY)
        try:
            keys = self.anonymous(deadline=until).get_jwks(merchant.wallet_address)
        except OpenPaymentsError:
            lacks = None
        else:
            lacks = Jwk(identity.key_id, public_x(identity.private_key)) not in keys
        self._on_refusal(merchant, refused, lacks)

    def anonymous(self, *, deadline: datetime) -> OpenPayments:
        """Return a client for the unsigned requests that read wallet addresses and their keys."""
        return OpenPayments(self._transport, None, now=self._clock.now, deadline=deadline)


class StageTransport:
    """Wraps an `open_payments.transports.Transport`, and sends only to wallets of this stage.

    Every request to a wallet's servers passes through this class. So the check covers every place
    where a wallet address can be entered, and every server that a wallet's answer refers to.
    `test_wallets` is as in `grammar.of_stage`.
    """

    def __init__(self, transport: Transport, test_wallets: str) -> None:
        self._transport = transport
        self._test_wallets = test_wallets

    def send(self, request: Request, *, timeout: float) -> Response:
        """Send with the wrapped transport. Raises NotSent for a wallet of another stage."""
        if not of_stage(request.url, self._test_wallets):
            raise NotSent(
                "a test stage asks only its own wallets"
                if self._test_wallets
                else "this is a wallet of a test stage, which has no real money"
            )
        return self._transport.send(request, timeout=timeout)
