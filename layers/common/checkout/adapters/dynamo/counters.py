"""`ports.Counters` on DynamoDB: rows among the idempotency keys, which expire."""

from __future__ import annotations

import hashlib
from datetime import datetime

from checkout.adapters.dynamo.client import Client
from checkout.adapters.dynamo.conditions import met
from checkout.adapters.dynamo.records import ttl
from checkout.adapters.dynamo.values import number, text


class DynamoCounters:
    """Keys begin with `attempts#`, which the hash of an idempotency key never does."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._table = f"{prefix}-idempotency_keys"

    def attempt(self, counter: str, *, limit: int, until: datetime) -> bool:
        room = "attribute_not_exists(#count) OR #count < :limit"
        digest = hashlib.sha256(counter.encode()).hexdigest()  # it may name a client's address
        return met(
            self._client.update_item,
            TableName=self._table,
            Key={"key": text(f"attempts#{digest}")},
            UpdateExpression="SET #ttl = :ttl ADD #count :one",
            ConditionExpression=room,
            ExpressionAttributeNames={"#count": "count", "#ttl": "ttl"},
            ExpressionAttributeValues={
                ":one": number(1),
                ":limit": number(limit),
                ":ttl": ttl(until),
            },
        )
