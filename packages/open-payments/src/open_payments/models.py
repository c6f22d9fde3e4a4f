"""Values of Open Payments, once checked: frozen, typed, aware datetimes, integers with a scale.

These classes refuse nothing, because they are built from answers that were already checked.

Source: the Open Payments OpenAPI files 1.3 (wallet-address-server, auth-server, resource-server).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

Metadata = Mapping[str, object]  # JSON of the caller, which servers return as they got it


@dataclass(frozen=True, slots=True)
class Amount:
    """`value` is in units of 10^-`asset_scale` of the asset: 2500, "USD", 2 is 25.00 USD."""

    value: int
    asset_code: str
    asset_scale: int

    def same_asset(self, other: Amount) -> bool:
        return (self.asset_code, self.asset_scale) == (other.asset_code, other.asset_scale)

    def is_of(self, wallet: WalletAddress) -> bool:
        """Return whether the amount is in the wallet's asset."""
        return (self.asset_code, self.asset_scale) == (wallet.asset_code, wallet.asset_scale)

    def members(self) -> dict[str, str | int]:
        """Return the JSON object for requests."""
        return {
            "value": str(self.value),
            "assetCode": self.asset_code,
            "assetScale": self.asset_scale,
        }

    def decimal(self) -> str:
        """Return the amount in plain digits with a point, such as "25.00"; exact at any scale."""
        digits = str(abs(self.value)).rjust(self.asset_scale + 1, "0")
        whole = digits[: len(digits) - self.asset_scale]
        fraction = digits[len(whole) :]
        sign = "-" if self.value < 0 else ""
        return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"

    def __str__(self) -> str:
        return f"{self.decimal()} {self.asset_code}"


@dataclass(frozen=True, slots=True)
class WalletAddress:
    """The wallet address document.

    `id` is its canonical form, the only one used after discovery.
    """

    id: str
    asset_code: str
    asset_scale: int
    auth_server: str
    resource_server: str
    public_name: str | None = None


@dataclass(frozen=True, slots=True)
class Jwk:
    """An Ed25519 public key of a wallet's `jwks.json`; `x` is base64url without padding."""

    kid: str
    x: str

    def members(self) -> dict[str, str]:
        """Return the JSON object of a key set (RFC 7517, RFC 8037)."""
        return {"kid": self.kid, "alg": "EdDSA", "kty": "OKP", "crv": "Ed25519", "x": self.x}


@dataclass(frozen=True, slots=True)
class ClientIdentity:
    """The signer: wallet address, key id and the raw 32-byte Ed25519 private key.

    `url` is the URL of the client, at whose `jwks.json` servers find the key. If it is None, the
    client is the wallet address. A client with `directed` sends its public key with each grant
    request instead. Servers then read no document of the client, and give it only grants without an
    interaction.
    """

    wallet_address: str
    key_id: str
    private_key: bytes = field(repr=False)
    url: str | None = None
    directed: bool = False

    @property
    def client(self) -> str:
        return self.url or self.wallet_address


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A GNAP access token.

    `expires_at` is computed from the time before the request was sent, so it may be a little early.
    """

    value: str = field(repr=False)
    manage: str = field(repr=False)
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Continuation:
    """The URI and token with which a grant is continued or canceled.

    `not_before` is the earliest time for that, from the server's `wait`.
    """

    uri: str = field(repr=False)
    token: str = field(repr=False)
    not_before: datetime


@dataclass(frozen=True, slots=True)
class PendingGrant:
    """An interactive grant that waits for the customer at `interact_url`.

    `finish_nonce` is "" for a grant that is polled, because it was requested without a finish URI.
    """

    interact_url: str = field(repr=False)  # some servers put the nonce into this URL
    finish_nonce: str = field(repr=False)
    continuation: Continuation


@dataclass(frozen=True, slots=True)
class Continued:
    """The answer to a continuation: what was granted, and how to go on.

    `token` is None for a grant of subject information, and for one that still waits for the
    customer. `subject` has the wallet addresses that the customer has proved to own. `continuation`
    is None if the server did not send a usable one.
    """

    token: AccessToken | None
    subject: tuple[str, ...] = ()
    continuation: Continuation | None = None

    @property
    def waits(self) -> bool:
        """Return whether the customer has not decided yet."""
        return self.token is None and not self.subject


@dataclass(frozen=True, slots=True)
class GrantSpent:
    """The sums of a grant's payments that its limits apply to, in the present period.

    Each is None before the first payment, and outside of all periods.
    """

    debit: Amount | None
    receive: Amount | None


@dataclass(frozen=True, slots=True)
class IncomingPayment:
    """The receiver's side of a payment. Only `received.value` proves it, not `completed`."""

    id: str
    wallet_address: str
    incoming_amount: Amount | None
    received: Amount
    completed: bool
    expires_at: datetime | None
    metadata: Metadata | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class PublicIncomingPayment:
    """What a server shows of an incoming payment without a token."""

    received: Amount
    auth_server: str


@dataclass(frozen=True, slots=True)
class Quote:
    """A price. `debit` includes the sender's fees.

    `expires_at` is set by the sender's wallet, and may be absent. `receiver` is the incoming
    payment, or "" in a quote that the caller built.
    """

    id: str
    debit: Amount
    receive: Amount
    expires_at: datetime | None
    receiver: str = field(default="", repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class OutgoingPayment:
    """The sender's side of a payment. Neither `failed: False` nor `sent` proves an arrival."""

    id: str
    wallet_address: str
    quote_id: str | None
    receiver: str
    debit: Amount
    sent: Amount
    failed: bool
    metadata: Metadata | None = field(default=None, repr=False, compare=False)
