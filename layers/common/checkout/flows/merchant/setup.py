"""Set up a merchant: read their wallet, check their key against it, make their first API key.

A private key must be the one registered at the wallet under that key id, and a wallet has one
merchant. Source: spec.md "Merchant setup procedure".
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from checkout.domain.ids import new_merchant_id
from checkout.domain.merchant import NAME_MAX, Merchant, private_key_place
from checkout.flows.checkout import details
from checkout.flows.merchant.api_keys import new_key
from checkout.open_payments import errors as op
from checkout.open_payments.client import OpenPayments
from checkout.open_payments.models import WalletAddress
from checkout.open_payments.signatures import load_private_key, public_x
from checkout.open_payments.wallet_address import parse
from checkout.ports.merchants import StaleMerchant
from checkout.ports.services import PayServices

DEADLINE: Final = timedelta(seconds=30)


class SetupRefused(Exception):
    """Report to the operator what is wrong and what to do. The message holds no secret."""


class AlreadyMerchant(SetupRefused):
    """Report that the wallet already belongs to `merchant`. Nothing was written."""

    def __init__(self, merchant: Merchant) -> None:
        super().__init__(
            f"{merchant.wallet_address} already belongs to merchant {merchant.id} "
            f"({merchant.name}). Nothing was changed. Use --new-api-key to make another API key "
            "for it, or --replace-key to store this private key and key id for it."
        )
        self.merchant = merchant


@dataclass(frozen=True, slots=True)
class NewMerchant:
    """The parameters of a setup.

    `private_key_text` is the key file's content: PKCS#8 PEM Ed25519, or base64 of that PEM.
    """

    name: str
    wallet_address: str
    key_id: str
    private_key_text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class SetUp:
    """The result of a setup. A new `api_key` is shown once and never stored."""

    merchant: Merchant
    api_key: str | None = field(repr=False)


def set_up(services: PayServices, new: NewMerchant) -> SetUp:
    """Create the merchant and its first API key. Raises SetupRefused, AlreadyMerchant."""
    name = new.name.strip()
    if not 1 <= len(name) <= NAME_MAX or not name.isprintable():
        raise SetupRefused(f"The merchant's name must be 1 to {NAME_MAX} printable characters.")
    wallet, private_key = _checked(services, new)
    merchant_id = new_merchant_id(services.random_bytes)
    merchant = Merchant(
        id=merchant_id,
        name=name,
        wallet_address=wallet.id,
        key_id=new.key_id,
        private_key=_seal(services, merchant_id, private_key),
        details_key=details.new_key(services.vault, services.random_bytes, merchant_id),
        asset_code=wallet.asset_code,
        asset_scale=wallet.asset_scale,
        auth_server=wallet.auth_server,
        resource_server=wallet.resource_server,
        created_at=services.clock.now(),
    )
    made = new_key(services, merchant, name="First key")
    existing = services.merchants.add(merchant, made.key)
    if existing is not None:
        raise AlreadyMerchant(existing)
    return SetUp(merchant, made.plain)


def add_api_key(services: PayServices, wallet_address: str, *, name: str) -> SetUp:
    """Make another API key for the merchant of this wallet. Raises SetupRefused."""
    merchant = _existing(services, wallet_address)
    made = new_key(services, merchant, name=name)
    if not services.api_keys.add(made.key, merchant):
        raise SetupRefused("The merchant was changed meanwhile; run the command again.")
    return SetUp(merchant, made.plain)


def replace_key(services: PayServices, new: NewMerchant) -> SetUp:
    """Store a new private key and key id. The wallet is read again. Raises SetupRefused."""
    merchant = _existing(services, new.wallet_address)
    wallet, private_key = _checked(services, new)
    if (wallet.asset_code, wallet.asset_scale) != (merchant.asset_code, merchant.asset_scale):
        raise SetupRefused(
            "The wallet's currency has changed; set up a merchant with another wallet address."
        )
    changed = merchant.changed(
        key_id=new.key_id,
        private_key=_seal(services, merchant.id, private_key),
        auth_server=wallet.auth_server,
        resource_server=wallet.resource_server,
    )
    try:
        services.merchants.replace(changed)
    except StaleMerchant:
        raise SetupRefused("The merchant was changed meanwhile; run the command again.") from None
    return SetUp(changed, None)


def _seal(services: PayServices, merchant_id: str, private_key: bytes) -> str:
    plain = base64.b64encode(private_key).decode()
    return services.vault.seal(plain, place=private_key_place(merchant_id))


def _existing(services: PayServices, typed: str) -> Merchant:
    wallet = _read_wallet(services, typed)
    merchant = services.merchants.find_by_wallet(wallet.id)
    if merchant is None:
        raise SetupRefused(f"There is no merchant with the wallet {wallet.id}. Set it up first.")
    return merchant


def _client(services: PayServices) -> OpenPayments:
    return services.wallets.anonymous(deadline=services.clock.now() + DEADLINE)


def _read_wallet(services: PayServices, typed: str) -> WalletAddress:
    try:
        url = parse(typed, allow_ports=services.allow_loopback)
    except ValueError as error:
        raise SetupRefused(f"The wallet address is not usable: {error}") from None
    try:
        return _client(services).get_wallet_address(url)
    except op.NotSent:
        raise SetupRefused(f"The wallet provider of {url} could not be reached.") from None
    except op.OpenPaymentsError:
        raise SetupRefused(
            f"There is no Open Payments wallet at {url}. Check the wallet address."
        ) from None


def _checked(services: PayServices, new: NewMerchant) -> tuple[WalletAddress, bytes]:
    """Return the wallet, and the private key if it belongs to the registered public key."""
    try:
        private_key = load_private_key(new.private_key_text)
    except ValueError as error:
        raise SetupRefused(f"The private key file is not usable: {error}") from None
    wallet = _read_wallet(services, new.wallet_address)
    try:
        keys = _client(services).get_jwks(wallet.id)
    except op.OpenPaymentsError:
        raise SetupRefused(f"The keys of {wallet.id} (jwks.json) could not be read.") from None
    registered = [key for key in keys if key.kid == new.key_id]
    if not registered:
        raise SetupRefused(
            f"The wallet {wallet.id} has no key with the id {new.key_id}. Create a developer key "
            "in the wallet's settings, and give its key id and the private key file."
        )
    if all(key.x != public_x(private_key) for key in registered):
        raise SetupRefused(
            f"The private key file is not the pair of the key {new.key_id} registered at "
            f"{wallet.id}. Give a file and a key id that belong together."
        )
    if not wallet.public_name:
        raise SetupRefused(
            f"The wallet {wallet.id} has no public name. Wallets ask customers to approve a "
            "payment to a named client only: set the public name in the wallet's settings."
        )
    return wallet, private_key
