"""Check a new merchant's connection to their wallet."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from checkout.domain.merchant.record import Merchant, private_key_place
from checkout.ports import SecretUnreadable
from checkout.services import DashboardServices
from open_payments import errors as op
from open_payments.models import WalletAddress
from open_payments.signatures import public_x

# For both checks together, because a person waits for the page.
TIME_BUDGET: Final = timedelta(seconds=3)


class State(StrEnum):
    """The result of one check."""

    FINE = "fine"
    WRONG = "wrong"
    UNKNOWN = "unknown"  # the provider did not answer


@dataclass(frozen=True, slots=True)
class Connected:
    """Whether the wallet has the currency of the setup, and whether the merchant's key is found.

    Wallets look for the key at the merchant's wallet address. For a merchant without a key file,
    they look at the document of the client that this service runs (client_documents.py).
    """

    wallet: State
    key: State


def check(services: DashboardServices, merchant: Merchant) -> Connected:
    """Read the merchant's wallet address, and the keys where wallets do. Return the results."""
    client = services.wallets().anonymous(deadline=services.clock.now() + TIME_BUDGET)
    try:
        wallet = client.get_wallet_address(merchant.wallet_address)
    except op.OpenPaymentsError as error:
        return Connected(_unread(error), State.UNKNOWN)
    try:
        keys = client.get_jwks(merchant.client or wallet.id)
    except op.OpenPaymentsError as error:
        return Connected(_judged(wallet, merchant), _unread(error))
    key_id, sealed = merchant.signing_key(services.clock.now())
    own = _public(services, merchant, sealed)
    listed = any(key.kid == key_id and key.x == own for key in keys)
    return Connected(_judged(wallet, merchant), State.FINE if listed else State.WRONG)


def _judged(wallet: WalletAddress, merchant: Merchant) -> State:
    same = (wallet.asset_code, wallet.asset_scale) == (merchant.asset_code, merchant.asset_scale)
    return State.FINE if same else State.WRONG


def _unread(error: op.OpenPaymentsError) -> State:
    """Return WRONG if the provider has answered "not found", otherwise UNKNOWN."""
    return State.WRONG if isinstance(error, op.Refused) else State.UNKNOWN


def _public(services: DashboardServices, merchant: Merchant, sealed: str) -> str | None:
    """Return the public part of the stored key, or None if the key cannot be decrypted."""
    try:
        plain = services.vault.open(sealed, place=private_key_place(merchant.id))
    except SecretUnreadable:
        return None
    return public_x(base64.b64decode(plain, validate=True))
