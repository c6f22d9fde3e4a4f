"""A merchant and its API keys: plain records, no rules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from checkout.domain.providers import Provider
from checkout.domain.webhooks import Endpoint

NAME_MAX: Final = 100  # characters of a merchant's name
TOLERANCE_MAX: Final = 1_000_000_000  # a hundredth of each payment bounds it as well


@dataclass(frozen=True, slots=True)
class Logo:
    """A small picture, served from our own address."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merchant:
    """The receiver of payments.

    `private_key` is sealed; asset and servers are from the wallet address document at setup.
    `version` grows by one with each write. The operator sets `shards`, the number of parts of the
    merchant's lists (domain/shards.py).

    The merchant sets: `endpoint` for webhooks; logo, `accent_color` (#rrggbb) and `locale` (a
    language tag) of the customer's pages; `contact` (an e-mail address or an https URL) and
    `website` (a host), which they and receipts show; `return_hosts`, the only hosts that customers
    may be sent back to (empty: any); `tolerance`, the units of the wallet's scale that may be
    missing of a payment (money.least_accepted); `providers`, which their page offers in place of
    the operator's.
    """

    id: str
    name: str
    wallet_address: str
    key_id: str
    private_key: str = field(repr=False)
    asset_code: str
    asset_scale: int
    auth_server: str
    resource_server: str
    created_at: datetime
    version: int = 1
    endpoint: Endpoint | None = None
    logo: Logo | None = None
    accent_color: str | None = None
    locale: str | None = None
    return_hosts: tuple[str, ...] = ()
    tolerance: int = 1
    contact: str | None = None
    website: str | None = None
    providers: tuple[Provider, ...] = ()
    shards: int = 1

    def changed(self, **fields: Any) -> Merchant:
        """Return the next version, with these fields; `Merchants.replace` writes it."""
        return replace(self, version=self.version + 1, **fields)

    def disabled(self, at: datetime) -> Merchant:
        """Return the next version, with an endpoint that receives nothing more."""
        assert self.endpoint is not None
        return self.changed(endpoint=replace(self.endpoint, disabled_at=at))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key of a merchant. `hash` is the SHA-256 of the key.

    The merchant's asset, return hosts and shards are copied here, so that creating and listing
    sessions needs one look-up. `expires_at` is set when a newer key replaces this one, which serves
    until then.
    """

    id: str
    hash: str
    merchant: str
    name: str
    last_four: str
    asset_code: str
    asset_scale: int
    created_at: datetime
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    expires_at: datetime | None = None
    return_hosts: tuple[str, ...] = ()
    shards: int = 1

    def active_at(self, now: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)

    @property
    def lasting(self) -> bool:
        """Whether the key is active, without an end."""
        return self.revoked_at is None and self.expires_at is None


def private_key_place(merchant_id: str) -> tuple[str, str, str]:
    """Return the place of a merchant's private key in the vault: table, record, field."""
    return ("merchants", merchant_id, "private_key")
