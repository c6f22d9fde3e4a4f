"""Read and change a merchant's own record."""

from __future__ import annotations

from collections.abc import Callable

from checkout.domain.errors import ResourceMissing
from checkout.domain.merchant import Merchant
from checkout.flows.retry_on_conflict import retry_on_conflict
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
    """Write the result of `changed`, with `write` or `Merchants.replace`.

    A merchant that `changed` returns unchanged is not written. Raises ResourceMissing, Conflict.
    """
    return retry_on_conflict(get(merchants, merchant_id), changed, write or merchants.replace)
