"""`ports.Merchants` on DynamoDB: merchants, their API keys, and one guard row per wallet."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import ask
from checkout.adapters.dynamo.client import Client, get
from checkout.adapters.dynamo.conditions import (
    TAKEN,
    failed_item,
    put_new,
    put_next,
    put_reservation,
    raise_if_held,
    transaction,
)
from checkout.adapters.dynamo.merchant_records import (
    key_item,
    merchant_from,
    merchant_item,
)
from checkout.adapters.dynamo.values import Item, Value, text
from checkout.domain.errors import Unavailable
from checkout.domain.merchant import ApiKey, Merchant
from checkout.ports.merchants import MerchantPage, StaleMerchant
from checkout.ports.sessions import Reservation

_TOUCH_EVERY: Final = timedelta(minutes=1)
_GUARD: Final = "wallet:"


class DynamoMerchants:
    """`ports.Merchants`. One guard row per wallet keeps a wallet from having two merchants."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._merchants = f"{prefix}-merchants"
        self._keys = f"{prefix}-api_keys"
        self._reservations = f"{prefix}-idempotency_keys"

    def add(self, merchant: Merchant, key: ApiKey) -> Merchant | None:
        guard = {"id": _guard_id(merchant.wallet_address), "merchant": text(merchant.id)}
        request = transaction(
            {"Put": put_new(self._merchants, guard, "id")},
            {"Put": put_new(self._merchants, merchant_item(merchant), "id")},
            {"Put": put_new(self._keys, key_item(key), "hash")},
        )
        try:
            ask(self._client.transact_write_items, **request)
        except ClientError as error:
            held = failed_item(error, index=0)
            if held is None:
                raise Unavailable(TAKEN) from error
            return None if held["merchant"]["S"] == merchant.id else self._of_guard(held)
        return None

    def replace(self, merchant: Merchant, reservation: Reservation | None = None) -> None:
        """Write the next version. Raise KeyHeld, StaleMerchant; LookupError without a merchant."""
        item = merchant_item(merchant)
        request = put_next(self._merchants, item, merchant.version)
        try:
            if reservation is None:
                ask(self._client.put_item, **request)
            else:
                put_key = put_reservation(self._reservations, reservation)
                both = transaction({"Put": request}, {"Put": put_key})
                ask(self._client.transact_write_items, **both)
        except ClientError as error:
            if reservation is not None:
                raise_if_held(error, reservation, index=1)
            found = failed_item(error)
            if found is None:
                raise LookupError("no such merchant") from None
            if found != item:  # else it is our own write, whose answer was lost
                raise StaleMerchant(merchant_from(found)) from None

    def get(self, merchant_id: str) -> Merchant | None:
        item = get(self._client, self._merchants, id=text(merchant_id))
        return merchant_from(item) if item else None

    def find_by_wallet(self, wallet_address: str) -> Merchant | None:
        guard = get(self._client, self._merchants, id=_guard_id(wallet_address))
        return self._of_guard(guard) if guard else None

    def page(self, *, limit: int, after: str | None = None) -> MerchantPage:
        start: dict[str, Any] = {"ExclusiveStartKey": {"id": text(after)}} if after else {}
        found = ask(
            self._client.scan,
            TableName=self._merchants,
            ConsistentRead=True,
            Limit=limit,
            **start,
        )
        rows = [row for row in found["Items"] if not row["id"]["S"].startswith(_GUARD)]
        last = found.get("LastEvaluatedKey")
        return MerchantPage(tuple(map(merchant_from, rows)), last["id"]["S"] if last else None)

    def _of_guard(self, guard: Item) -> Merchant:
        merchant = self.get(guard["merchant"]["S"])
        if merchant is None:
            raise LookupError("a wallet's guard row names a merchant that does not exist")
        return merchant


def _guard_id(wallet_address: str) -> Value:
    return text(f"{_GUARD}{wallet_address}")
