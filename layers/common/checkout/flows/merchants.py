"""Read and change a merchant's own record."""

from __future__ import annotations

from collections.abc import Callable

from checkout.domain.errors import ResourceMissing
from checkout.domain.merchant import Merchant
from checkout.flows.give_way import give_way
from checkout.ports.merchants import Merchants


def get(merchants: Merchants, merchant_id: str) -> Merchant:
    """Read a merchant. Raises ResourceMissing."""
    merchant = merchants.get(merchant_id)
    if merchant is None:
        raise ResourceMissing("No such merchant.")
    return merchant


def change(
    merchants: Merchants,
    merchant_id: str,
    changed: Callable[[Merchant], Merchant],
    write: Callable[[Merchant], None] | None = None,
) -> Merchant:
    """Write what `changed` makes of the merchant, by `write` or `Merchants.replace`.

    A record that `changed` returns as it was is not written. Raises ResourceMissing, Conflict.
    """
    return give_way(get(merchants, merchant_id), changed, write or merchants.replace)
