"""`ports.ApiKeys` on DynamoDB: each change of keys is one transaction.

The last lasting key cannot be revoked, even if two browsers revoke one of the last two each: every
revocation checks, in its transaction, a key that stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import AWS_ERRORS, ask
from checkout.adapters.dynamo.client import Client, all_of, get
from checkout.adapters.dynamo.conditions import (
    at_version,
    failed_item,
    put_new,
    put_next,
    transaction,
)
from checkout.adapters.dynamo.merchant_records import (
    key_from,
    key_item,
    merchant_from,
    merchant_item,
)
from checkout.adapters.dynamo.values import instant, number, text, texts
from checkout.domain.errors import CheckoutError
from checkout.domain.merchant import ApiKey, Merchant
from checkout.ports.merchants import StaleMerchant

_TOUCH_EVERY: Final = timedelta(minutes=1)
_NOT_REVOKED = "attribute_exists(#hash) AND attribute_not_exists(#revoked_at)"
_LASTING = f"{_NOT_REVOKED} AND attribute_not_exists(#expires_at)"
_NAMES = {"#hash": "hash", "#revoked_at": "revoked_at"}
_LASTING_NAMES = {**_NAMES, "#expires_at": "expires_at"}


class DynamoApiKeys:
    """Stores keys in the tables of `DynamoMerchants`.

    `courtesy` is the client for what no request waits for.
    """

    def __init__(self, client: Client, prefix: str, *, courtesy: Client | None = None) -> None:
        self._client = client
        self._courtesy = courtesy or client
        self._merchants = f"{prefix}-merchants"
        self._keys = f"{prefix}-api_keys"

    def find(self, key_hash: str) -> ApiKey | None:
        item = get(self._client, self._keys, hash=text(key_hash))
        return key_from(item) if item else None

    def touch(self, key: ApiKey, now: datetime) -> None:
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
            return  # the time of last use is a courtesy; the request is what counts

    def of(self, merchant_id: str) -> tuple[ApiKey, ...]:
        """Return the keys of a merchant: one query for up to 1 MB, some three thousand keys."""
        return tuple(map(key_from, all_of(self._client, self._keys, merchant_id)))

    def add(self, key: ApiKey, merchant: Merchant) -> bool:
        return self._written(self._as_read(merchant), self._new(key))

    def roll(self, ended: ApiKey, new: ApiKey, merchant: Merchant) -> bool:
        return self._written(self._as_read(merchant), self._new(new), self._end(ended, _LASTING))

    def revoke(self, revoked: ApiKey, kept: ApiKey) -> bool:
        still_lasting = {
            "TableName": self._keys,
            "Key": {"hash": text(kept.hash)},
            "ConditionExpression": _LASTING,
            "ExpressionAttributeNames": _LASTING_NAMES,
        }
        return self._written(self._end(revoked, _NOT_REVOKED), {"ConditionCheck": still_lasting})

    def settle(self, merchant: Merchant, keys: Sequence[ApiKey]) -> None:
        put = put_next(self._merchants, merchant_item(merchant), merchant.version)
        updates = [self._copied(key, merchant) for key in keys]
        try:
            ask(self._client.transact_write_items, **transaction({"Put": put}, *updates))
        except ClientError as error:
            found = failed_item(error)
            if found is None:
                raise
            if found != put["Item"]:  # else it is our own write, whose answer was lost
                raise StaleMerchant(merchant_from(found)) from None

    def _written(self, *items: dict[str, Any]) -> bool:
        """Write a transaction; return False if a condition failed."""
        try:
            ask(self._client.transact_write_items, **transaction(*items))
        except ClientError as error:
            failed_item(error)  # raises what no condition was
            return False
        return True

    def _as_read(self, merchant: Merchant) -> dict[str, Any]:
        key = {"TableName": self._merchants, "Key": {"id": text(merchant.id)}}
        return {"ConditionCheck": key | at_version(merchant.version)}

    def _new(self, key: ApiKey) -> dict[str, Any]:
        return {"Put": put_new(self._keys, key_item(key), "hash")}

    def _end(self, key: ApiKey, condition: str) -> dict[str, Any]:
        """Return the update that gives `key` its end, if the stored one meets `condition`."""
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
        """Return the update that writes to `key` what keys copy of the merchant."""
        change = "SET #hosts = :hosts, #shards = :shards"
        values = {":hosts": texts(merchant.return_hosts), ":shards": number(merchant.shards)}
        if merchant.key_sign_in_off_at is None:
            change += " REMOVE #off_at"
        else:
            change += ", #off_at = :off_at"
            values[":off_at"] = instant(merchant.key_sign_in_off_at)
        names = {"#hosts": "return_hosts", "#shards": "shards", "#off_at": "key_sign_in_off_at"}
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
