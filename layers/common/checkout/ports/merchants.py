"""Declare the stores of merchants, their API keys, dashboard sign-ins and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from checkout.domain.audit import AuditEntry
from checkout.domain.merchant import ApiKey, Merchant
from checkout.domain.sign_in import SignIn
from checkout.ports.sessions import Reservation
from checkout.ports.stale import Stale


class StaleMerchant(Stale):
    """Report that the merchant changed since it was read; `current` is the winner's version."""

    current: Merchant


@dataclass(frozen=True, slots=True)
class MerchantPage:
    """A page of merchants; `next_key` continues after the last one read, or is None at the end.

    `unreadable`: the ids of damaged records, which the page lacks.
    """

    merchants: tuple[Merchant, ...]
    next_key: str | None
    unreadable: tuple[str, ...] = ()


class Merchants(Protocol):
    """Store merchants."""

    def add(self, merchant: Merchant, key: ApiKey) -> Merchant | None:
        """Write a merchant and its first API key.

        Returns None if they were written, or the merchant that already has this wallet address
        (then nothing was written).
        """
        ...

    def replace(self, merchant: Merchant, reservation: Reservation | None = None) -> None:
        """Write the merchant if the stored version is one less than `merchant.version`.

        The reservation is written in the same transaction. Raises KeyHeld, StaleMerchant.
        """
        ...

    def get(self, merchant_id: str, identity: int = 0) -> Merchant | None:
        """Return the merchant; if a copy is kept, not one of before `identity` (Merchant.as_of)."""
        ...

    def latest(self, merchant_id: str) -> Merchant | None:
        """Read the merchant, never from a copy."""
        ...

    def move(self, merchant: Merchant) -> Merchant | None:
        """Write the merchant as `replace` does, and take its wallet address for it.

        Returns None if it was written, or the other merchant that has this wallet address. The
        addresses of before stay its own.
        """
        ...

    def find_by_wallet(self, wallet_address: str) -> Merchant | None: ...

    def page(self, *, limit: int, after: str | None = None) -> MerchantPage:
        """Read all merchants a page at a time, in no particular order, for operators' commands.

        Scans the table: a merchant that is added or changed meanwhile may be missed. `after` is the
        `next_key` of an earlier page.
        """
        ...


class ApiKeys(Protocol):
    """Store API keys.

    A `merchant` argument is the version that was read: if another version is stored, nothing is
    written and the method returns False.
    """

    def find(self, key_hash: str) -> ApiKey | None:
        """Read the key with this hash, strongly consistent."""
        ...

    def touch(self, key: ApiKey, now: datetime) -> None:
        """Record the key's use, at most once a minute, best effort: it never fails a request."""
        ...

    def of(self, merchant_id: str) -> tuple[ApiKey, ...]:
        """Return all keys of a merchant, unordered, by an index that lags a little."""
        ...

    def add(self, key: ApiKey, merchant: Merchant, reservation: Reservation | None = None) -> bool:
        """Write the key and the merchant's next version, if the merchant is as it was read.

        So a limit holds that was counted after the merchant was read. Return False otherwise. The
        reservation is written in the same transaction. Raises KeyHeld.
        """
        ...

    def roll(self, ended: ApiKey, new: ApiKey, merchant: Merchant) -> bool:
        """Write both keys, if `ended` had no end before."""
        ...

    def revoke(self, revoked: ApiKey, kept: ApiKey) -> bool:
        """Write `revoked`, if it was not revoked before and `kept` has no end."""
        ...

    def settle(self, merchant: Merchant, keys: Sequence[ApiKey]) -> None:
        """Replace the merchant and write its copied fields to these keys, or write nothing.

        Keys copy the return hosts, the number of parts, whether keys sign in, and `suspended`.

        Raises StaleMerchant.
        """
        ...


class SignIns(Protocol):
    """Store the sign-ins to the dashboard, which are short-lived."""

    def add(self, sign_in: SignIn) -> None: ...

    def get(self, sign_in_id: str) -> SignIn | None:
        """Read the sign-in, strongly consistent."""
        ...

    def seen(self, sign_in: SignIn, now: datetime) -> None:
        """Record the sign-in's use, best effort: it never fails a request."""
        ...

    def end(self, sign_in_id: str) -> None:
        """Delete the sign-in; the next request with it is rejected."""
        ...


@dataclass(frozen=True, slots=True)
class AuditPage:
    """A page of audit entries; `next_key` is the position of the last one, or None at the end."""

    entries: tuple[AuditEntry, ...]
    next_key: str | None


class Audit(Protocol):
    """Store the audit log: each change made in the dashboard, and who made it."""

    def add(self, entry: AuditEntry) -> None: ...

    def page(self, merchant: str, *, limit: int, after: str | None) -> AuditPage:
        """Read a merchant's entries, newest first by `grammar.position`.

        `after` is the position of the last entry seen.
        """
        ...
