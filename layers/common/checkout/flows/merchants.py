"""Read and change a merchant's own record."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from checkout.domain.ground.errors import ResourceMissing, Unavailable
from checkout.domain.merchant.record import Merchant
from checkout.domain.refund.record import Refund
from checkout.domain.session.record import Session
from checkout.flows.retry_on_conflict import retry_on_conflict

if TYPE_CHECKING:
    from checkout.adapters.dynamo import DynamoMerchants


def get(merchants: DynamoMerchants, merchant_id: str) -> Merchant:
    """Read a merchant. Raises ResourceMissing."""
    merchant = merchants.get(merchant_id)
    if merchant is None:
        raise ResourceMissing("No such merchant.")
    return merchant


def of(merchants: DynamoMerchants, record: Session | Refund) -> Merchant:
    """Read a payment's merchant, with the client and the wallet with which the payment began.

    (The client is who signs the requests to wallets.) Raises ResourceMissing. Raises Unavailable if
    the merchant's record lacks this client and wallet. The payment then waits, because wallets show
    a payment only to the client that made it.
    """
    return as_of(merchants, record.merchant, record.identity)


def as_of(merchants: DynamoMerchants, merchant_id: str, identity: int | None) -> Merchant:
    """Read a merchant with this former or present client and wallet (`Merchant.as_of`).

    Raises ResourceMissing, Unavailable.
    """
    merchant = merchants.get(merchant_id, identity or 0)
    if merchant is None:
        raise ResourceMissing("No such merchant.")
    try:
        return merchant.as_of(identity)
    except LookupError:
        raise Unavailable("The shop's earlier identity at wallets is not known.") from None


def change(
    merchants: DynamoMerchants,
    merchant_id: str,
    changed: Callable[[Merchant], Merchant],
    write: Callable[[Merchant], None] | None = None,
) -> Merchant:
    """Change the merchant with `changed`, and write it with `write` or `DynamoMerchants.replace`.

    If `changed` returns the merchant unchanged, nothing is written. Raises ResourceMissing,
    Conflict.
    """
    return retry_on_conflict(get(merchants, merchant_id), changed, write or merchants.replace)
