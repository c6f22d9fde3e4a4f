"""Records of the providers, as plain data: accounts, grants, tokens, payments, packets.

This module contains no rules. `encode` and `decode` convert the whole state, so that the local
world can save it between runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import TypeAdapter


@dataclass(frozen=True, slots=True)
class Money:
    """An amount: `value` units of 10^-`scale` of the asset `code`."""

    value: int
    code: str
    scale: int

    @classmethod
    def of_json(cls, amount: dict[str, Any]) -> Money:
        return cls(int(amount["value"]), amount["assetCode"], int(amount["assetScale"]))

    def json(self) -> dict[str, Any]:
        return {"value": str(self.value), "assetCode": self.code, "assetScale": self.scale}

    def same_asset(self, other: Money) -> bool:
        return (self.code, self.scale) == (other.code, other.scale)

    def with_value(self, value: int) -> Money:
        return Money(value, self.code, self.scale)

    def __str__(self) -> str:
        if self.scale == 0:
            return f"{self.value} {self.code}"
        digits = f"{abs(self.value):0{self.scale + 1}d}"
        sign = "-" if self.value < 0 else ""
        return f"{sign}{digits[: -self.scale]}.{digits[-self.scale :]} {self.code}"


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of an account's statement; `value` is signed, in the account's units."""

    at: datetime
    text: str
    value: int
    balance: int


@dataclass(slots=True)
class Account:
    """A wallet address and its balance; `behaviour` names one of `behaviours.BEHAVIOURS`.

    `opened_at` is None for an account that has existed from the start of the network.
    """

    id: str
    public_name: str
    asset_code: str
    asset_scale: int
    balance: int
    behaviour: str = "normal"
    keys: list[dict[str, str]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)
    opened_at: datetime | None = None

    def money(self, value: int) -> Money:
        return Money(value, self.asset_code, self.asset_scale)

    def book(self, at: datetime, text: str, value: int) -> None:
        self.balance += value
        self.entries.append(Entry(at, text, value, self.balance))


class GrantState(StrEnum):
    PENDING = "pending"
    APPROVED = "approved"
    ISSUED = "issued"
    REJECTED = "rejected"
    REVOKED = "revoked"


@dataclass(slots=True)
class Interaction:
    """The customer's part of a grant. `finish_uri` is None for a grant that is polled."""

    id: str
    nonce: str
    ref: str
    client_name: str
    client_uri: str
    expires_at: datetime
    finish_uri: str | None
    client_nonce: str | None
    chosen: bool = False
    chosen_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Spent:
    """The sums of a grant's payments in one period, which began at `since`.

    If the grant has no interval, the period is the grant's whole life, and `since` is None.
    """

    since: datetime | None
    debit: Money
    receive: Money


@dataclass(slots=True)
class Grant:
    """A grant. `client` is a wallet address, or None if the client sent its `jwk` instead.

    The time `wait` until a continuation is accepted begins at `last_asked`. `spent` has one record
    for each period, the newest last.
    """

    id: str
    provider: str
    client: str | None
    jwk: dict[str, str] | None
    access: list[dict[str, Any]]
    continue_token: str
    last_asked: datetime
    state: GrantState
    interaction: Interaction | None = None
    spent: list[Spent] = field(default_factory=list)


@dataclass(slots=True)
class Token:
    value: str
    manage_id: str
    grant_id: str
    expires_at: datetime


@dataclass(slots=True)
class IncomingPayment:
    """An incoming payment. `from_outside` is the part of `received` from outside the network.

    With `stays_open`, the provider refuses to complete the payment.
    """

    id: str
    provider: str
    wallet: str
    amount: Money | None
    received: Money
    completed: bool
    created_at: datetime
    expires_at: datetime
    metadata: dict[str, Any] | None
    client: str | None
    from_outside: int = 0
    stays_open: bool = False

    def is_payable(self, now: datetime) -> bool:
        return not self.completed and now < self.expires_at

    def remaining(self) -> int | None:
        return None if self.amount is None else max(0, self.amount.value - self.received.value)


@dataclass(slots=True)
class Quote:
    """A quote. `receiver` is an incoming payment's URL; `fee` is the provider's part of `debit`."""

    id: str
    provider: str
    wallet: str
    receiver: str
    debit: Money
    receive: Money
    fee: int
    created_at: datetime
    expires_at: datetime
    client: str | None
    used: bool = False


@dataclass(slots=True)
class OutgoingPayment:
    """An outgoing payment. `funded` means that the account was debited.

    `settles_at` is None once the payment is final. `since` is the start of the period to which the
    payment belongs, if its grant has an interval.
    """

    id: str
    quote_id: str
    provider: str
    wallet: str
    receiver: str
    debit: Money
    receive: Money
    fee: int
    sent: int
    failed: bool
    metadata: dict[str, Any]
    created_at: datetime
    grant_id: str
    client: str | None
    settles_at: datetime | None
    funded: bool = False
    parts_sent: int = 0
    since: datetime | None = None


@dataclass(frozen=True, slots=True)
class Packet:
    """Money on its way to the incoming payment `receiver` (its UUID), due at `arrives_at`."""

    arrives_at: datetime
    receiver: str
    payment: str
    value: int


@dataclass(slots=True)
class State:
    """All records by id: accounts by wallet address, tokens by value, other records by UUID."""

    accounts: dict[str, Account] = field(default_factory=dict)
    grants: dict[str, Grant] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)
    incoming: dict[str, IncomingPayment] = field(default_factory=dict)
    quotes: dict[str, Quote] = field(default_factory=dict)
    outgoing: dict[str, OutgoingPayment] = field(default_factory=dict)
    packets: list[Packet] = field(default_factory=list)


_ADAPTER = TypeAdapter(State)


def encode(state: State) -> dict[str, Any]:
    """Return `state` as JSON-able data."""
    data: dict[str, Any] = _ADAPTER.dump_python(state, mode="json")
    return data


def decode(data: dict[str, Any]) -> State:
    """Return the state from the data of `encode`. Raises `pydantic.ValidationError` if invalid."""
    return _ADAPTER.validate_python(data)
