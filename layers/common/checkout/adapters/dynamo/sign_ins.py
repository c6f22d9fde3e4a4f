"""`ports.SignIns` on DynamoDB: rows among the idempotency keys.

That is the table of records that are found by a hash and expire (docs/decisions/0004).
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from checkout.adapters.aws import AWS_ERRORS, ask
from checkout.adapters.dynamo.client import Client, get
from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.records import ttl
from checkout.adapters.dynamo.values import Value, instant, text
from checkout.domain.errors import CheckoutError
from checkout.domain.sign_in import SignIn

_SIGN_IN: Final = Codec(SignIn, names={"id": "key"})


class DynamoSignIns:
    """Keys begin with `sign-in#`, which the hash of an idempotency key never does.

    `courtesy` is the client for what no request waits for.
    """

    def __init__(self, client: Client, prefix: str, *, courtesy: Client | None = None) -> None:
        self._client = client
        self._courtesy = courtesy or client
        self._table = f"{prefix}-idempotency_keys"

    def add(self, sign_in: SignIn) -> None:
        # The same id is the same sign-in: writing it again after a lost answer is no harm.
        place = {"key": _key(sign_in.id), "ttl": ttl(sign_in.ends_at)}
        item = _SIGN_IN.encode(sign_in) | place
        ask(self._client.put_item, TableName=self._table, Item=item)

    def get(self, sign_in_id: str) -> SignIn | None:
        item = get(self._client, self._table, key=_key(sign_in_id))
        if item is None or "ended" in item:
            return None
        return _SIGN_IN.decode({**item, "key": text(sign_in_id)})

    def seen(self, sign_in: SignIn, now: datetime) -> None:
        still_there = "attribute_exists(#key) AND attribute_not_exists(#ended)"
        try:
            ask(
                self._courtesy.update_item,
                TableName=self._table,
                Key={"key": _key(sign_in.id)},
                UpdateExpression="SET #seen_at = :now, #ttl = :ttl",
                ConditionExpression=still_there,
                ExpressionAttributeNames={
                    "#key": "key",
                    "#ended": "ended",
                    "#seen_at": "seen_at",
                    "#ttl": "ttl",
                },
                ExpressionAttributeValues={
                    ":now": instant(now),
                    ":ttl": ttl(sign_in.seen(now).ends_at),
                },
            )
        except (CheckoutError, *AWS_ERRORS):
            return  # what is lost is a minute of the idle time

    def end(self, sign_in_id: str) -> None:
        ask(
            self._client.update_item,
            TableName=self._table,
            Key={"key": _key(sign_in_id)},
            UpdateExpression="SET #ended = :yes",
            ExpressionAttributeNames={"#ended": "ended"},
            ExpressionAttributeValues={":yes": {"BOOL": True}},
        )


def _key(sign_in_id: str) -> Value:
    return text(f"sign-in#{sign_in_id}")
