"""Show a new merchant what is connected, by asking their wallet, and what is left to do."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from checkout.domain.merchant import Merchant, private_key_place
from checkout.open_payments import errors as op
from checkout.open_payments.models import WalletAddress
from checkout.open_payments.signatures import public_x
from checkout.ports.runtime import SecretUnreadable
from checkout.ports.services import DashboardServices

# For both questions together, because a person waits for the page.
PATIENCE: Final = timedelta(seconds=3)


class State(StrEnum):
    """The result of one check."""

    FINE = "fine"
    WRONG = "wrong"
    UNKNOWN = "unknown"  # the provider did not answer


@dataclass(frozen=True, slots=True)
class Connected:
    """Two checks: the wallet answers with the currency of the setup, and lists the key.

    The key of a merchant without a key file is at our own document.
    """

    wallet: State
    key: State


def check(services: DashboardServices, merchant: Merchant) -> Connected:
    """Read the merchant's wallet address and its keys. Problems are returned, not raised."""
    client = services.wallets().anonymous(deadline=services.clock.now() + PATIENCE)
    try:
        wallet = client.get_wallet_address(merchant.wallet_address)
    except op.OpenPaymentsError as error:
        return Connected(_unread(error), State.UNKNOWN)
    if merchant.client is not None:  # wallets find its key at our own document
        return Connected(_judged(wallet, merchant), State.FINE)
    try:
        keys = client.get_jwks(wallet.id)
    except op.OpenPaymentsError as error:
        return Connected(_judged(wallet, merchant), _unread(error))
    own = _public(services, merchant)
    listed = any(key.kid == merchant.key_id and key.x == own for key in keys)
    return Connected(_judged(wallet, merchant), State.FINE if listed else State.WRONG)


def _judged(wallet: WalletAddress, merchant: Merchant) -> State:
    same = (wallet.asset_code, wallet.asset_scale) == (merchant.asset_code, merchant.asset_scale)
    return State.FINE if same else State.WRONG


def _unread(error: op.OpenPaymentsError) -> State:
    """Return WRONG if the provider has answered that it does not exist."""
    return State.WRONG if isinstance(error, op.Refused) else State.UNKNOWN


def _public(services: DashboardServices, merchant: Merchant) -> str | None:
    """Return the public part of the stored key, or None if the vault does not open it."""
    try:
        plain = services.vault.open(merchant.private_key, place=private_key_place(merchant.id))
    except SecretUnreadable:
        return None
    return public_x(base64.b64decode(plain, validate=True))
