"""Set up a merchant: read the wallet, check the private key, and create the first API key.

The private key must belong to the public key that is registered at the wallet under the given key
id. A wallet can belong to only one merchant. For a merchant without a key file, this service is the
client at wallets, that is, it signs the requests, with a key that this module generates
(docs/decisions/0023-the-service-is-the-merchants-client.md). Source: spec.md "Merchant setup
procedure".
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, Final
from uuid import UUID

from checkout.domain.ground.grammar import of_stage
from checkout.domain.ground.ids import new_merchant_id
from checkout.domain.ground.names import is_plain_name, shown
from checkout.domain.ground.providers import NO_SUCH_WALLET
from checkout.domain.ground.typed_address import wallet_url
from checkout.domain.merchant.people import USUAL, Scope
from checkout.domain.merchant.record import (
    NAME_MAX,
    Merchant,
    Ownership,
    ServiceKey,
    Suspension,
    private_key_place,
)
from checkout.flows.merchant.api_keys import new_key
from checkout.flows.merchant.client_documents import client_url
from checkout.flows.session import details
from checkout.ports import SecretUnreadable, StaleMerchant
from checkout.services import PayServices
from open_payments import errors as op
from open_payments.models import WalletAddress
from open_payments.protocol import OpenPayments
from open_payments.signatures import load_private_key, public_x

DEADLINE: Final = timedelta(seconds=30)
IDENTITIES_MAX: Final = 20  # former clients or wallets, half a kilobyte each in the record
# Our client document (client_documents.py) shows a key some time before the key's first use and
# some time after its final use. Wallets' copies of the document may be a minute old, and our
# processes cache a merchant for a minute.
SHOWN_BEFORE: Final = timedelta(minutes=5)
SHOWN_AFTER: Final = timedelta(days=1)


_NEXT_STEP: Final = (
    "Use --new-api-key to create another API key for this merchant, or --replace-key to replace "
    "its private key and key id with these."
)


class SetupRefused(Exception):
    """Report the problem and its solution to the operator. The message contains no secret."""


class AlreadyMerchant(SetupRefused):
    """Report that the wallet already belongs to `merchant`, and what to do. Nothing was written."""

    def __init__(self, merchant: Merchant, next_step: str = "") -> None:
        super().__init__(
            f"{merchant.wallet_address} already belongs to merchant {merchant.id} "
            f"({merchant.name}). Nothing was changed. " + (next_step or _NEXT_STEP)
        )
        self.merchant = merchant


@dataclass(frozen=True, slots=True)
class NewMerchant:
    """The parameters of a setup.

    `private_key_text` is the key file's content: PKCS#8 PEM Ed25519, or base64 of that PEM. For a
    merchant without a key file, `private_key_text` and `key_id` are None. Without a `name`, the
    merchant gets the wallet's public name. `scopes` are the scopes of the first API key.
    """

    name: str
    wallet_address: str
    key_id: str | None = None
    private_key_text: str | None = field(default=None, repr=False)
    scopes: tuple[Scope, ...] = USUAL


@dataclass(frozen=True, slots=True)
class SetUp:
    """The result of a setup. A new `api_key` is shown once and never stored."""

    merchant: Merchant
    api_key: str | None = field(repr=False)


def set_up(services: PayServices, new: NewMerchant) -> SetUp:
    """Create the merchant and its first API key. Raises SetupRefused, AlreadyMerchant."""
    found = _checked(services, new)
    merchant = _new(services, found, name=new.name)
    made = new_key(services, merchant, name="First key", scopes=new.scopes)
    existing = services.merchants.add(merchant, made.key)
    if existing is not None:
        raise AlreadyMerchant(existing)
    return SetUp(merchant, made.plain)


def signed_up(services: PayServices, wallet: WalletAddress, *, name: str) -> Merchant:
    """Return the merchant for a sign-up. It is not stored yet. Raises SetupRefused.

    Until the owner proves that the wallet is theirs (ownership.py), the merchant is suspended and
    has no claim to the wallet.
    """
    waits = {"suspended": Suspension.ALONE, "ownership": Ownership.UNPROVEN}
    return _new(services, _Found(wallet), name=name, **waits)


def _new(services: PayServices, found: _Found, *, name: str, **more: Any) -> Merchant:
    wallet = found.wallet
    merchant_id = new_merchant_id(services.random_bytes)
    return Merchant(
        id=merchant_id,
        name=shop_name(name, wallet),
        wallet_address=wallet.id,
        wallet_name=wallet.public_name,
        **_signer(services, merchant_id, found),
        **details.new_keys(
            services.vault, services.details_keys, services.random_bytes, merchant_id
        ),
        asset_code=wallet.asset_code,
        asset_scale=wallet.asset_scale,
        auth_server=wallet.auth_server,
        resource_server=wallet.resource_server,
        created_at=services.clock.now(),
        **more,
    )


def shop_name(typed: str, wallet: WalletAddress) -> str:
    """Return the typed name, or otherwise the wallet's public name. Raises SetupRefused."""
    name = typed.strip() or wallet.public_name or ""
    if not is_plain_name(name, NAME_MAX):
        raise SetupRefused(
            f"The merchant's name must be 1 to {NAME_MAX} letters, digits and signs, without a web "
            "or e-mail address."
        )
    return name


def add_api_key(
    services: PayServices, wallet_address: str, *, name: str, scopes: tuple[Scope, ...] = USUAL
) -> SetUp:
    """Create another API key for the merchant of this wallet. Raises SetupRefused."""
    merchant = _existing(services, wallet_address)
    made = new_key(services, merchant, name=name, scopes=scopes)
    if not services.api_keys.add(made.key, merchant):
        raise SetupRefused("The merchant was changed meanwhile; run the command again.")
    return SetUp(merchant, made.plain)


def replace_key(services: PayServices, new: NewMerchant) -> SetUp:
    """Store a new private key and key id. The wallet is read again. Raises SetupRefused.

    Without a key file, the service generates a new key. Payments in flight continue with the client
    that began them, which is either the merchant's own (with a key file) or this service.
    """
    merchant = _existing(services, new.wallet_address)
    found = _checked(services, replace(new, wallet_address=merchant.wallet_address))
    _require_same_asset(merchant, found.wallet)
    servers = _servers(found.wallet)
    if found.private_key is None and merchant.client is not None:
        changed = merchant.changed(**_next_key(services, merchant), **servers)
    elif found.private_key is not None and merchant.client is None:
        changed = merchant.changed(**_signer(services, merchant.id, found), **servers)
    else:
        _require_room(merchant)
        signer = _signer(services, merchant.id, found, merchant)
        changed = merchant.changed_identity(**signer, **servers)
    _write(services, changed)
    return SetUp(changed, None)


def move_wallet(services: PayServices, wallet_address: str, new: NewMerchant) -> SetUp:
    """Change the wallet into which a merchant is paid. Raises SetupRefused.

    Sessions that already have an incoming payment are still paid into the old wallet. The new
    wallet needs the currency of the old one, because the amounts of sessions and links are in that
    currency.
    """
    merchant = _existing(services, wallet_address)
    found = _checked(services, new)
    _require_same_asset(merchant, found.wallet)
    if found.wallet.id == merchant.wallet_address:
        raise SetupRefused(
            "The merchant already receives payments at this wallet. Nothing was changed."
        )
    _require_room(merchant)
    changed = merchant.changed_identity(
        wallet_address=found.wallet.id,
        **_signer(services, merchant.id, found, merchant),
        **_servers(found.wallet),
    )
    _write(services, changed, moved=True)
    return SetUp(changed, None)


def _write(services: PayServices, changed: Merchant, *, moved: bool = False) -> None:
    try:
        if moved:
            other = services.merchants.move(changed)
            if other is not None:
                raise AlreadyMerchant(other)
        else:
            services.merchants.replace(changed)
    except StaleMerchant:
        raise SetupRefused("The merchant was changed meanwhile; run the command again.") from None


def _require_same_asset(merchant: Merchant, wallet: WalletAddress) -> None:
    if (wallet.asset_code, wallet.asset_scale) != (merchant.asset_code, merchant.asset_scale):
        raise SetupRefused(
            "The wallet's currency has changed; set up a merchant with another wallet address."
        )


def _require_room(merchant: Merchant) -> None:
    if len(merchant.former) >= IDENTITIES_MAX:
        raise SetupRefused(
            f"This merchant has already changed its client or wallet {IDENTITIES_MAX} times, which "
            "is the maximum, because each is kept for the payments made with it. Set up another "
            "merchant."
        )


def _servers(wallet: WalletAddress) -> dict[str, Any]:
    """Return the fields of a merchant that come from the wallet's document and can change there."""
    return {
        "auth_server": wallet.auth_server,
        "resource_server": wallet.resource_server,
        "wallet_name": wallet.public_name,
    }


def _signer(
    services: PayServices, merchant_id: str, found: _Found, before: Merchant | None = None
) -> dict[str, Any]:
    """Return a merchant's fields for the signing key, which is the wallet's own key or ours."""
    if found.private_key is not None:
        sealed = _seal(services, merchant_id, found.private_key)
        return {"key_id": found.key_id, "private_key": sealed, "client": None}
    url = client_url(services.base_url, merchant_id)
    kept = before.service_keys if before is not None else ()
    made = kept[-1] if kept else _new_key(services, merchant_id, services.clock.now())
    return {
        "key_id": made.key_id,
        "private_key": made.private_key,
        "client": url,
        "service_keys": kept or (made,),
    }


def _next_key(services: PayServices, merchant: Merchant) -> dict[str, Any]:
    """Return a merchant's fields with a new key in our client document.

    The new key signs only when the time SHOWN_BEFORE has passed. Exception: the new key signs at
    once if the present key cannot be decrypted because ENCRYPTION_KEY was lost. Keys that were
    replaced longer ago than the time SHOWN_AFTER are removed from the document.
    """
    now = services.clock.now()
    wait = SHOWN_BEFORE if key_opens(services, merchant) else timedelta(0)
    made = _new_key(services, merchant.id, now + wait)
    keys = (*merchant.service_keys, made)
    kept = tuple(
        each
        for each, following in pairwise((*keys, None))
        if following is None or following.signs_from > now - SHOWN_AFTER
    )
    return {"service_keys": kept, "key_id": made.key_id, "private_key": made.private_key}


def key_opens(services: PayServices, merchant: Merchant) -> bool:
    """Return whether the merchant's key can be decrypted with the present ENCRYPTION_KEY."""
    _, sealed = merchant.signing_key(services.clock.now())
    try:
        services.vault.open(sealed, place=private_key_place(merchant.id))
    except SecretUnreadable:
        return False
    return True


def _new_key(services: PayServices, merchant_id: str, signs_from: datetime) -> ServiceKey:
    private_key = services.random_bytes(32)
    return ServiceKey(
        key_id=str(UUID(bytes=services.random_bytes(16), version=4)),
        x=public_x(private_key),
        private_key=_seal(services, merchant_id, private_key),
        signs_from=signs_from,
    )


def _seal(services: PayServices, merchant_id: str, private_key: bytes) -> str:
    plain = base64.b64encode(private_key).decode()
    return services.vault.seal(plain, place=private_key_place(merchant_id))


def _existing(services: PayServices, typed: str) -> Merchant:
    wallet = read_wallet(services, typed)
    merchant = services.merchants.find_by_wallet(wallet.id)
    if merchant is None:
        raise SetupRefused(
            f"There is no merchant with the wallet {wallet.id}. Set up the merchant first."
        )
    return merchant


def _client(services: PayServices) -> OpenPayments:
    return services.wallets.anonymous(deadline=services.clock.now() + DEADLINE)


def read_wallet(services: PayServices, typed: str) -> WalletAddress:
    """Read the wallet at a typed address, which can have any form that `wallet_url` accepts.

    A public name that cannot be shown is left out. Raises SetupRefused.
    """
    try:
        url = wallet_url(typed, allow_ports=services.allow_loopback)
    except ValueError as error:
        raise SetupRefused(f"The wallet address is not usable: {error}") from None
    if not of_stage(url, services.test_wallets):
        raise SetupRefused(
            f"This is a test stage: only its own wallets are usable, {services.test_wallets}/…"
            if services.test
            else "This is a wallet of a test stage, which has no real money."
        )
    try:
        wallet = _client(services).get_wallet_address(url)
    except op.NotSent:
        raise SetupRefused(f"The wallet provider of {url} could not be reached.") from None
    except op.OpenPaymentsError as error:
        if isinstance(error, op.Refused) and error.status not in NO_SUCH_WALLET:
            raise SetupRefused(
                f"The wallet provider of {url} refused to answer ({error.status})."
            ) from None
        raise SetupRefused(
            f"There is no Open Payments wallet at {url}. Check the wallet address."
        ) from None
    return wallet if shown(wallet.public_name or "") else replace(wallet, public_name=None)


@dataclass(frozen=True, slots=True)
class _Found:
    """A wallet and, if given, the private key to the public key that is registered there."""

    wallet: WalletAddress
    key_id: str | None = None
    private_key: bytes | None = field(default=None, repr=False)


def _checked(services: PayServices, new: NewMerchant) -> _Found:
    if new.key_id is None or new.private_key_text is None:
        return _Found(read_wallet(services, new.wallet_address))
    try:
        private_key = load_private_key(new.private_key_text)
    except ValueError as error:
        raise SetupRefused(f"The private key file is not usable: {error}") from None
    wallet = read_wallet(services, new.wallet_address)
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
            f"The private key file does not match the key {new.key_id} registered at {wallet.id}. "
            "Give a file and a key id that belong together."
        )
    if not wallet.public_name:
        raise SetupRefused(
            f"The wallet {wallet.id} has no public name that can be shown. Wallets let customers "
            "approve a payment only if the client has a name. Set the public name in the wallet's "
            "settings."
        )
    return _Found(wallet, new.key_id, private_key)
