"""Declare the store of merchants, which has a cached implementation too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.ports.sessions import Reservation, Stale


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
