"""A merchant's own record: read, and changed on condition that it is as it was read. A loser of a
write decides anew from what the winner wrote.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from checkout.domain.errors import Conflict, ResourceMissing
from checkout.domain.merchant import Merchant
from checkout.ports.merchants import Merchants, StaleMerchant

_GIVE_WAY: Final = 5  # how often a loser of a write decides anew


def get(merchants: Merchants, merchant_id: str) -> Merchant:
    """Raises ResourceMissing."""
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
    """The record as `changed` makes it, written by `write`, or `Merchants.replace`. A record that
    `changed` gives back as it was is not written. Raises ResourceMissing, Conflict.
    """
    merchant = get(merchants, merchant_id)
    for _ in range(_GIVE_WAY):
        after = changed(merchant)
        if after is merchant:
            return merchant
        try:
            (write or merchants.replace)(after)
        except StaleMerchant as stale:
            merchant = stale.current
        else:
            return after
    raise Conflict("These settings are being changed by other requests; try again shortly.")
