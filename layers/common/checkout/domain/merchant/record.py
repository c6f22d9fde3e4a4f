"""A merchant and its API keys: plain records, no rules."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from checkout.domain.ground.parts import Lists
from checkout.domain.ground.providers import Provider
from checkout.domain.merchant.people import USUAL, RefundCap, Role, Scope
from checkout.domain.webhooks.record import Endpoint, secret_place

NAME_MAX: Final = 100  # characters of a merchant's name
COMPANY_MAX: Final = 200  # characters of the footer's text about the seller
TOLERANCE_MAX: Final = 1_000_000_000  # money.least_accepted also limits the tolerance


class Suspension(StrEnum):
    """Why a merchant may not sell: the operator has suspended it, or has paused all sales."""

    ALONE = "alone"
    WITH_ALL = "with_all"


class Ownership(StrEnum):
    """Whether a merchant who has signed up has proven that the wallet belongs to them.

    Until this proof the merchant is suspended, and others can sign up with the same wallet.
    """

    UNPROVEN = "unproven"
    PROVEN = "proven"
    REFUSED = "refused"  # the operator suspended the merchant first, so a proof changes nothing


@dataclass(frozen=True, slots=True)
class Logo:
    """A small picture, which is served from our own address."""

    media_type: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Footer:
    """The footer of the customers' pages: the seller, and the URLs of the seller's rules.

    `company` is the legal name and, optionally, the address and the tax number.
    """

    company: str | None = None
    terms: str | None = None
    refunds: str | None = None
    privacy: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceKey:
    """A key that we have made for a merchant and publish with our client document (`jwks.json`).

    `x` is the public key, as in a JWK; `private_key` is sealed. We sign with the key only from
    `signs_from` on, some minutes after its publication, because until then wallets may still have a
    copy of the document without this key.
    """

    key_id: str
    x: str
    private_key: str = field(repr=False)
    signs_from: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A former client of a merchant, and the merchant's wallet at that time.

    Wallets show a payment only to the client that made it, so the former client is kept to read its
    payments. `client` is None if the merchant's own wallet listed the merchant's key at that time.
    """

    number: int
    client: str | None
    wallet_address: str
    key_id: str
    private_key: str = field(repr=False)
    auth_server: str
    resource_server: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Merchant:
    """The receiver of payments.

    `private_key` and `details_key` are sealed, that is, stored as ciphertext. `details_key` is the
    key that seals the details that customers give (flows/session/details.py). `details_key_kms` is
    the same key, encrypted with KMS instead of ENCRYPTION_KEY, which the API cannot read. The asset
    and the servers were read from the wallet address document at setup. `version` grows by one with
    each write. The operator sets `suspended` and `parts`, the number of parts of the merchant's
    lists (domain/ground/parts.py). While a merchant is suspended, no session is created and no
    wallet is accepted, but payments in flight finish.

    The merchant sets:

    - `endpoint` for webhooks, and `further_endpoints`
    - `logo`, `accent_color` (#rrggbb) and `locale` (a language tag) of the customers' pages
    - `contact` (an e-mail address or an https URL), `website` (a host) and `footer`, which the
      customers' pages and receipts show
    - `return_hosts`, the only hosts to which customers can be sent back (empty: any host)
    - `tolerance`, how many units of the wallet's scale may be missing from a payment
      (money.least_accepted)
    - `withdrawal_days`, for how many days after the payment the customer's page offers a withdrawal
      from the purchase (0: no withdrawal)
    - `providers`, the wallet providers that the customers' pages offer instead of the operator's
    - `key_sign_in_off_at`, the time from which API keys cannot sign in to the dashboard

    `wallet_name` is the wallet's public name. The customers' pages show it beside `name`, to expose
    a shop that pretends to be another. `ownership` is None if the operator has set up the merchant.

    `client` is the URL of our client document (our identity at wallets), whose keys are
    `service_keys`; None if the merchant's wallet lists the merchant's own key. `identity` is the
    number of changes of the client or the wallet; `former` are the earlier identities
    (docs/decisions/0023-the-service-is-the-merchants-client.md).
    """

    id: str
    name: str
    wallet_address: str
    key_id: str
    private_key: str = field(repr=False)
    details_key: str = field(repr=False)
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
    withdrawal_days: int = 0
    contact: str | None = None
    website: str | None = None
    footer: Footer | None = None
    providers: tuple[Provider, ...] = ()
    key_sign_in_off_at: datetime | None = None
    parts: int = 1
    suspended: Suspension | None = None
    further_endpoints: tuple[Endpoint, ...] = ()
    client: str | None = None
    service_keys: tuple[ServiceKey, ...] = ()
    identity: int = 0
    former: tuple[Identity, ...] = ()
    wallet_name: str | None = None
    ownership: Ownership | None = None
    details_key_kms: str | None = field(default=None, repr=False)

    def as_of(self, identity: int | None) -> Merchant:
        """Return the merchant with the client and wallet of this identity; None means the first.

        If an identity's key is published by the wallet itself, the newest key for that wallet is
        used, because the wallet may no longer publish the older keys. Raises LookupError if this
        record does not contain the identity.
        """
        number = identity or 0
        if number == self.identity:
            return self
        for each in self.former:
            if each.number == number:
                same = (each.client, each.wallet_address)
                known = [one for one in self.former if (one.client, one.wallet_address) == same]
                signs = self if (self.client, self.wallet_address) == same else known[-1]
                return replace(
                    self,
                    identity=each.number,
                    client=each.client,
                    wallet_address=each.wallet_address,
                    key_id=signs.key_id,
                    private_key=signs.private_key,
                    auth_server=each.auth_server,
                    resource_server=each.resource_server,
                )
        raise LookupError(f"merchant {self.id} has no identity {number}")

    def signing_key(self, now: datetime) -> tuple[str, str]:
        """Return the id of the key that signs at `now`, and the sealed key.

        If the merchant uses our client, this is the newest key whose `signs_from` is past, because
        wallets may not have read a newer key yet. If no `signs_from` is past, because this
        machine's clock is behind, this is the oldest key.
        """
        if self.client is None or not self.service_keys:
            return self.key_id, self.private_key
        signing = [each for each in self.service_keys if each.signs_from <= now]
        key = signing[-1] if signing else self.service_keys[0]
        return key.key_id, key.private_key

    def changed_identity(self, **fields: Any) -> Merchant:
        """Return the next version with another client or wallet; the present one joins `former`."""
        kept = Identity(
            number=self.identity,
            client=self.client,
            wallet_address=self.wallet_address,
            key_id=self.key_id,
            private_key=self.private_key,
            auth_server=self.auth_server,
            resource_server=self.resource_server,
        )
        return self.changed(identity=self.identity + 1, former=(*self.former, kept), **fields)

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """All webhook endpoints, the first one first."""
        return (*((self.endpoint,) if self.endpoint else ()), *self.further_endpoints)

    def endpoint_of(self, identity: str | None) -> Endpoint | None:
        """Return the endpoint with this id, or the first if the id is None; None if not found."""
        if identity is None:
            return self.endpoint
        return next((e for e in self.endpoints if e.id == identity), None)

    def secret_place(self, endpoint: Endpoint) -> tuple[str, str, str]:
        """Return the place to which the encryption binds the secrets of `endpoint`."""
        further = any(each.id == endpoint.id for each in self.further_endpoints)
        return secret_place(self.id, endpoint.id if further else None)

    def changed(self, **fields: Any) -> Merchant:
        """Return the next version, with these fields, for the store to write."""
        return replace(self, version=self.version + 1, **fields)

    def with_endpoint(self, old: Endpoint | None, new: Endpoint | None) -> Merchant:
        """Return the next version with `new` in place of the endpoint `old`, or without `old`.

        If `old` is None, `new` is added; it becomes the first endpoint if there is none.
        """
        if old == self.endpoint:
            return self.changed(endpoint=new)
        kept = tuple(new if each == old else each for each in self.further_endpoints)
        if old is None:
            kept = (*kept, new)
        return self.changed(further_endpoints=tuple(each for each in kept if each is not None))

    def disabled(self, at: datetime, endpoint: Endpoint | None = None) -> Merchant:
        """Return the next version, with `endpoint` (None: the first endpoint) disabled."""
        found = endpoint or self.endpoint
        assert found is not None
        return self.with_endpoint(found, replace(found, disabled_at=at))


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """An API key of a merchant. `hash` is the SHA-256 of the key.

    The merchant's asset, return hosts, parts, `suspended` and `key_sign_in_off_at` are copied here,
    so that a request needs only one look-up. When a newer key replaces this one, `expires_at` is
    set to the time until which this key works. `ends_at` is the expiry date that was chosen when
    the key was created. `maker` is the id of the member who created the key, if any. `refund_cap`
    limits the key's refunds.
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
    scopes: tuple[Scope, ...] = USUAL
    ends_at: datetime | None = None
    maker: str | None = None
    key_sign_in_off_at: datetime | None = None
    parts: int = 1
    suspended: Suspension | None = None
    refund_cap: RefundCap | None = None

    def active_at(self, now: datetime) -> bool:
        ends = self.lasts_until
        return self.revoked_at is None and (ends is None or now < ends)

    @property
    def lasts_until(self) -> datetime | None:
        """The earliest end of the key, if it has one."""
        return min((at for at in (self.expires_at, self.ends_at) if at is not None), default=None)

    @property
    def current(self) -> bool:
        """Whether the key was neither revoked nor replaced."""
        return self.revoked_at is None and self.expires_at is None

    @property
    def lasting(self) -> bool:
        """Whether the key has no end and can do everything, except perhaps refunds."""
        return self.current and self.ends_at is None and set(self.scopes) >= set(USUAL)

    @property
    def signs_in(self) -> bool:
        """Whether the key can sign in to the dashboard.

        A key that a member created cannot sign in, because the key would give the member the rights
        of an owner. A key with a refund limit cannot sign in, because an owner's rights include the
        creation of another key without a limit.
        """
        limited = self.maker is not None or self.refund_cap is not None
        return self.key_sign_in_off_at is None and not limited and Scope.READ in self.scopes

    @property
    def moves_money(self) -> bool:
        return Scope.REFUND in self.scopes

    @property
    def owns(self) -> bool:
        """Whether a browser that signs in with the key has all rights."""
        return self.signs_in and self.role is Role.OWNER and self.moves_money

    @property
    def label(self) -> str:
        return f"{self.name} (…{self.last_four})"

    @property
    def lists(self) -> Lists:
        return Lists(self.merchant, self.parts)

    @property
    def role(self) -> Role:
        """The role of a browser that signed in with the key."""
        return Role.OWNER if set(self.scopes) >= set(USUAL) else Role.SUPPORT


def private_key_place(merchant_id: str) -> tuple[str, str, str]:
    """Return the place (table, record, field) to which the private key's encryption is bound."""
    return ("merchants", merchant_id, "private_key")


def details_key_place(merchant_id: str) -> tuple[str, str, str]:
    """Return the place to which the encryption of the key for customers' details is bound."""
    return ("merchants", merchant_id, "details_key")
