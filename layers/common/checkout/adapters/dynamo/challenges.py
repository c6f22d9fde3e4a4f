"""`ports.Challenges` on DynamoDB: rows among the idempotency keys, which expire."""

from __future__ import annotations

from datetime import datetime

from botocore.exceptions import ClientError

from checkout.adapters.aws import ask
from checkout.adapters.dynamo.client import Client
from checkout.adapters.dynamo.conditions import condition_failed
from checkout.adapters.dynamo.records import ttl
from checkout.adapters.dynamo.values import Value, instant, text


class DynamoChallenges:
    """Keys begin with `challenge#`, which the hash of an idempotency key never does."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._table = f"{prefix}-idempotency_keys"

    def put(self, place: str, challenge: bytes, until: datetime) -> None:
        item = {
            "key": _key(place),
            "challenge": {"B": challenge},
            "until": instant(until),
            "ttl": ttl(until),
        }
        ask(self._client.put_item, TableName=self._table, Item=item)

    def take(self, place: str, now: datetime) -> bytes | None:
        untaken = "attribute_exists(#key) AND attribute_not_exists(#taken_at) AND #until > :now"
        names = {"#key": "key", "#taken_at": "taken_at", "#until": "until"}
        try:
            answer = ask(
                self._client.update_item,
                TableName=self._table,
                Key={"key": _key(place)},
                UpdateExpression="SET #taken_at = :now",
                ConditionExpression=untaken,
                ExpressionAttributeNames=names,
                ExpressionAttributeValues={":now": instant(now)},
                ReturnValues="ALL_NEW",
            )
        except ClientError as error:
            if not condition_failed(error):
                raise
            return None
        return bytes(answer["Attributes"]["challenge"]["B"])


def _key(place: str) -> Value:
    return text(f"challenge#{place}")
