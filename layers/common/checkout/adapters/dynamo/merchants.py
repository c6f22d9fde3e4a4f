"""Merchants and API keys in DynamoDB.

The merchants' table has one guard row per wallet, which prevents a second merchant from using the
same wallet. Each change of keys is one transaction. The last key without an expiry date cannot be
revoked, because every revocation checks in its transaction that another such key stays. The check
also works if two browsers revoke the last two such keys at the same time. A reservation is an
idempotency record (`ports.Reservation`).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import AWS_ERRORS, ask
from checkout.adapters.dynamo.client import Client, Store, all_of, get, readable
from checkout.adapters.dynamo.codec import Codec, Item, Value, instant, number, text, texts
from checkout.adapters.dynamo.conditions import (
    TAKEN,
    Writes,
    at_version,
    failed_item,
    put,
    put_new,
    put_next,
    transaction,
)
from checkout.domain.ground.errors import CheckoutError, Unavailable
from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.ports import Clock, Page, Reservation, StaleMerchant

_MERCHANT: Final = Codec(Merchant, names={"parts": "shards"})
_KEY: Final = Codec(ApiKey, names={"parts": "shards"})
merchant_item: Final = _MERCHANT.encode
merchant_from: Final = _MERCHANT.decode
key_item: Final = _KEY.encode
key_from: Final = _KEY.decode

_GUARD: Final = "wallet:"
REMEMBERED: Final = timedelta(seconds=60)
MERCHANTS_MAX: Final = 1_000  # merchants that a process keeps in memory
_TOUCH_EVERY: Final = timedelta(minutes=1)
_NOT_REVOKED = "attribute_exists(#hash) AND attribute_not_exists(#revoked_at)"
_LASTING = f"{_NOT_REVOKED} AND attribute_not_exists(#expires_at)"
_NAMES = {"#hash": "hash", "#revoked_at": "revoked_at"}
_LASTING_NAMES = {**_NAMES, "#expires_at": "expires_at"}


class DynamoMerchants(Store):
    """Stores merchants, and each new merchant's first key."""

    def add(self, merchant: Merchant, key: ApiKey) -> Merchant | None:
        """Write a merchant and its first API key.

        Returns None if both were written. If another merchant already has this wallet address,
        writes nothing and returns that merchant.
        """
        guard = {"id": _guard_id(merchant.wallet_address), "merchant": text(merchant.id)}
        request = transaction(
            {"Put": put_new(self._merchants, guard, "id")},
            {"Put": put_new(self._merchants, merchant_item(merchant), "id")},
            {"Put": put_new(self._keys, key_item(key), "hash")},
        )
        try:
            ask(self._client.transact_write_items, **request)
        except ClientError as error:
            held = failed_item(error)  # the guard row
            if held is None:
                raise Unavailable(TAKEN) from error
            return None if held["merchant"]["S"] == merchant.id else self._of_guard(held)
        return None

    def replace(self, merchant: Merchant, reservation: Reservation | None = None) -> None:
        """Write the merchant if the stored version is one less than `merchant.version`.

        The reservation is written in the same transaction. Raises KeyHeld if another write holds
        the reservation's key, StaleMerchant if another version is stored, and LookupError if there
        is no such merchant.
        """
        item = merchant_item(merchant)
        request = put_next(self._merchants, item, merchant.version)
        try:
            put(self._client, request, self._reservations, reservation)
        except ClientError as error:
            found = failed_item(error)
            if found is None:
                raise LookupError("no such merchant") from None
            if found != item:  # if equal, an earlier try of this call wrote it
                raise StaleMerchant(merchant_from(found)) from None

    def move(self, merchant: Merchant) -> Merchant | None:
        """Write the merchant as `replace` does, and reserve its wallet address for it.

        Returns None if the merchant was written. If another merchant has this wallet address,
        returns that merchant. The earlier addresses of a merchant stay reserved for that merchant.
        """
        guard = {"id": _guard_id(merchant.wallet_address), "merchant": text(merchant.id)}
        item = merchant_item(merchant)
        writes = Writes(
            {
                "merchant": {"Put": put_next(self._merchants, item, merchant.version)},
                "guard": {"Put": put_new(self._merchants, guard, "id")},
            }
        )
        try:
            ask(self._client.transact_write_items, **writes.request())
        except ClientError as error:
            held = writes.stored(error, "guard")
            if held is not None and held["merchant"]["S"] != merchant.id:
                return self._of_guard(held)
            if held is None:
                found = writes.stored(error, "merchant")
                if found is not None and found != item:
                    raise StaleMerchant(merchant_from(found)) from None
            # Three cases are left: the merchant moves back to an earlier wallet, whose guard row is
            # still there; an earlier try of this call was stored; or there is no such merchant.
            self.replace(merchant)
        return None

    def get(self, merchant_id: str, identity: int = 0) -> Merchant | None:
        """Return the merchant.

        `CachedMerchants` may return a cached copy, but only if the copy already has the client
        identity with the number `identity` (Merchant.as_of).
        """
        return self.latest(merchant_id)

    def latest(self, merchant_id: str) -> Merchant | None:
        """Read the merchant from the table, never from a copy in memory."""
        item = get(self._client, self._merchants, id=text(merchant_id))
        return merchant_from(item) if item else None

    def find_by_wallet(self, wallet_address: str) -> Merchant | None:
        guard = get(self._client, self._merchants, id=_guard_id(wallet_address))
        return self._of_guard(guard) if guard else None

    def page(self, *, limit: int, after: str | None = None) -> Page[Merchant]:
        """Read all merchants a page at a time, in no particular order, for operators' commands.

        The table is scanned, so a merchant that is added or changed meanwhile can be missing.
        `after` is the `next_key` of an earlier page.
        """
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
        merchants, damaged = readable(rows, merchant_from)
        return Page(tuple(merchants), last["id"]["S"] if last else None, tuple(damaged))

    def _of_guard(self, guard: Item) -> Merchant:
        merchant = self.latest(guard["merchant"]["S"])
        if merchant is None:
            raise LookupError("a wallet's guard row names a merchant that does not exist")
        return merchant


class CachedMerchants(DynamoMerchants):
    """Caches merchants in each process for a minute, so that a payment reads its merchant once.

    Only the results of `get` are cached.
    """

    def __init__(self, client: Client, prefix: str, clock: Clock) -> None:
        super().__init__(client, prefix)
        self._clock = clock
        self._known: dict[str, tuple[datetime, Merchant]] = {}
        self._lock = threading.Lock()

    def get(self, merchant_id: str, identity: int = 0) -> Merchant | None:
        now = self._clock.now()
        with self._lock:
            known = self._known.get(merchant_id)
        if known is not None and now < known[0] and identity <= known[1].identity:
            return known[1]
        merchant = self.latest(merchant_id)
        if merchant is not None:
            with self._lock:
                if len(self._known) >= MERCHANTS_MAX:
                    self._known.clear()
                self._known[merchant_id] = (now + REMEMBERED, merchant)
        return merchant

    def replace(self, merchant: Merchant, reservation: Reservation | None = None) -> None:
        super().replace(merchant, reservation)
        with self._lock:
            self._known.pop(merchant.id, None)

    def move(self, merchant: Merchant) -> Merchant | None:
        other = super().move(merchant)
        with self._lock:
            self._known.pop(merchant.id, None)
        return other


class DynamoApiKeys(Store):
    """Stores API keys, in the tables of `DynamoMerchants`.

    In `add` and `roll`, `merchant` is the merchant as it was read. If another version is stored
    now, these methods write nothing and return False. `courtesy` is a client with short timeouts
    for optional writes.
    """

    def __init__(self, client: Client, prefix: str, *, courtesy: Client | None = None) -> None:
        super().__init__(client, prefix)
        self._courtesy = courtesy or client

    def find(self, key_hash: str) -> ApiKey | None:
        """Read the key of this hash with strong consistency."""
        item = get(self._client, self._keys, hash=text(key_hash))
        return key_from(item) if item else None

    def touch(self, key: ApiKey, now: datetime) -> None:
        """Record the key's use, at most once a minute. A failure never fails the request."""
        if key.last_used_at is not None and key.last_used_at > now - _TOUCH_EVERY:
            return
        exists = "attribute_exists(#hash)"
        stale = "(attribute_not_exists(#last_used_at) OR #last_used_at <= :minute_ago)"
        try:
            ask(
                self._courtesy.update_item,
                TableName=self._keys,
                Key={"hash": text(key.hash)},
                UpdateExpression="SET #last_used_at = :now",
                ConditionExpression=f"{exists} AND {stale}",
                ExpressionAttributeNames={"#hash": "hash", "#last_used_at": "last_used_at"},
                ExpressionAttributeValues={
                    ":now": instant(now),
                    ":minute_ago": instant(now - _TOUCH_EVERY),
                },
            )
        except (CheckoutError, *AWS_ERRORS):
            return  # the time of last use is optional, so the request must not fail because of it

    def of(self, merchant_id: str) -> tuple[ApiKey, ...]:
        """Return all keys of a merchant, in no order. The index lags a little.

        One query reads up to 1 MB, which is about three thousand keys.
        """
        return all_of(self._client, self._keys, merchant_id, key_from)

    def add(self, key: ApiKey, merchant: Merchant, reservation: Reservation | None = None) -> bool:
        """Write the key and the merchant's next version, unless the merchant was changed.

        If the merchant has changed, write nothing and return False. So if the caller has checked
        the maximum number of keys after the read, this number cannot be exceeded. The reservation
        is written in the same transaction. Raises KeyHeld.
        """
        # Each addition writes the merchant's next version, so only one of two simultaneous
        # additions succeeds.
        after = merchant_item(merchant.changed())
        request = put_next(self._merchants, after, merchant.version + 1)
        return self._written({"merchant": {"Put": request}, "key": self._new(key)}, reservation)

    def roll(self, ended: ApiKey, new: ApiKey, merchant: Merchant) -> bool:
        """Write the new key and the end of the key `ended`, if no end of that key is stored yet."""
        read, end = self._as_read(merchant), self._end(ended, _LASTING)
        return self._written({"merchant": read, "new": self._new(new), "ended": end})

    def revoke(self, revoked: ApiKey, kept: ApiKey) -> bool:
        """Write `revoked`, unless the stored key is revoked already or `kept` has an end."""
        still_lasting = {
            "TableName": self._keys,
            "Key": {"hash": text(kept.hash)},
            "ConditionExpression": _LASTING,
            "ExpressionAttributeNames": _LASTING_NAMES,
        }
        end = self._end(revoked, _NOT_REVOKED)
        return self._written({"revoked": end, "kept": {"ConditionCheck": still_lasting}})

    def settle(self, merchant: Merchant, keys: Sequence[ApiKey]) -> None:
        """Replace the merchant and update the copies of its fields in these keys, or write nothing.

        Each key has copies of the return hosts, the number of parts (shards of lists), the setting
        whether keys can sign in, and the field `suspended`.

        Raises StaleMerchant.
        """
        request = put_next(self._merchants, merchant_item(merchant), merchant.version)
        updates = [self._copied(key, merchant) for key in keys]
        try:
            ask(self._client.transact_write_items, **transaction({"Put": request}, *updates))
        except ClientError as error:
            found = failed_item(error)
            if found is None:
                raise
            if found != request["Item"]:  # if equal, an earlier try of this call wrote it
                raise StaleMerchant(merchant_from(found)) from None

    def _written(
        self, items: dict[str, dict[str, Any]], reservation: Reservation | None = None
    ) -> bool:
        """Write a transaction. Return False if a condition failed. Raise KeyHeld."""
        writes = Writes(items)
        writes.reserve(self._reservations, reservation)
        try:
            ask(self._client.transact_write_items, **writes.request())
        except ClientError as error:
            writes.raise_if_held(error, reservation)
            failed_item(error)  # raises every other error
            return False
        return True

    def _as_read(self, merchant: Merchant) -> dict[str, Any]:
        key = {"TableName": self._merchants, "Key": {"id": text(merchant.id)}}
        return {"ConditionCheck": key | at_version(merchant.version)}

    def _new(self, key: ApiKey) -> dict[str, Any]:
        return {"Put": put_new(self._keys, key_item(key), "hash")}

    def _end(self, key: ApiKey, condition: str) -> dict[str, Any]:
        """Return the update that ends `key`, if the stored key meets `condition`."""
        name = "revoked_at" if key.revoked_at is not None else "expires_at"
        at = key.revoked_at or key.expires_at
        assert at is not None
        return {
            "Update": {
                "TableName": self._keys,
                "Key": {"hash": text(key.hash)},
                "UpdateExpression": f"SET #{name} = :at",
                "ConditionExpression": condition,
                "ExpressionAttributeNames": _LASTING_NAMES if condition == _LASTING else _NAMES,
                "ExpressionAttributeValues": {":at": instant(at)},
            }
        }

    def _copied(self, key: ApiKey, merchant: Merchant) -> dict[str, Any]:
        """Return the update that writes the merchant's copied fields to `key`."""
        change, removed = "SET #hosts = :hosts, #shards = :shards", []
        values = {":hosts": texts(merchant.return_hosts), ":shards": number(merchant.parts)}
        off_at, suspended = merchant.key_sign_in_off_at, merchant.suspended
        optional = {
            "off_at": None if off_at is None else instant(off_at),
            "suspended": None if suspended is None else text(suspended),
        }
        for name, value in optional.items():
            if value is None:
                removed.append(f"#{name}")
            else:
                change += f", #{name} = :{name}"
                values[f":{name}"] = value
        if removed:
            change += f" REMOVE {', '.join(removed)}"
        names = {
            "#hosts": "return_hosts",
            "#shards": "shards",
            "#off_at": "key_sign_in_off_at",
            "#suspended": "suspended",
        }
        return {
            "Update": {
                "TableName": self._keys,
                "Key": {"hash": text(key.hash)},
                "UpdateExpression": change,
                "ConditionExpression": "attribute_exists(#hash)",
                "ExpressionAttributeNames": {"#hash": "hash", **names},
                "ExpressionAttributeValues": values,
            }
        }


def _guard_id(wallet_address: str) -> Value:
    return text(f"{_GUARD}{wallet_address}")
