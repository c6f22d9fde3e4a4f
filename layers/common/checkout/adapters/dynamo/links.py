"""`ports.Links` on DynamoDB: rows among the sessions, whose transactions change their stock.

The index `by_search` lists those of a merchant (docs/decisions/0015).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import Persistent, ask
from checkout.adapters.dynamo.client import Client, get
from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.conditions import condition_failed
from checkout.adapters.dynamo.values import Item, Value, number, text
from checkout.domain.grammar import position
from checkout.domain.links import LINKS_MAX, PaymentLink
from checkout.ports.runtime import RandomBytes

# `merchant` is the key of the sessions' list, in which a link has no place.
_LINK: Final = Codec(PaymentLink, names={"merchant": "owner"})
_CHANGING: Final = ("left", "stopped_at")


def take_item(table: str, link_id: str) -> dict[str, Any]:
    """Return the update that takes an item from the link's stock, if one is left to be sold."""
    request = _of_stock(table, link_id, -1)
    request["ExpressionAttributeNames"]["#stopped_at"] = "stopped_at"
    request["ExpressionAttributeValues"][":one"] = number(1)
    some_left, sells = "#left >= :one", "attribute_not_exists(#stopped_at)"
    return request | {"ConditionExpression": f"{some_left} AND {sells}"}


def give_back(table: str, link_id: str) -> dict[str, Any]:
    """Return the update that gives an item back, also to a link that is stopped."""
    return _of_stock(table, link_id, 1)


def _of_stock(table: str, link_id: str, change: int) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": {"id": text(link_id)},
        "UpdateExpression": "ADD #left :change",
        "ExpressionAttributeNames": {"#left": "left"},
        "ExpressionAttributeValues": {":change": number(change)},
    }


class DynamoLinks:
    """Ids begin with `plink_`, which a session's never does."""

    def __init__(
        self,
        client: Client,
        prefix: str,
        *,
        sleep: Callable[[float], None],
        random_bytes: RandomBytes,
    ) -> None:
        self._client = client
        self._table = f"{prefix}-checkout_sessions"
        self._persistent = Persistent(sleep, random_bytes)

    def add(self, link: PaymentLink) -> None:
        # The id is new, so writing it again after a lost answer is no harm.
        ask(self._client.put_item, TableName=self._table, Item=_item(link))

    def get(self, link_id: str) -> PaymentLink | None:
        item = get(self._client, self._table, id=text(link_id))
        return _LINK.decode(item) if item else None

    def of(self, merchant: str) -> tuple[PaymentLink, ...]:
        found = ask(
            self._client.query,
            TableName=self._table,
            IndexName="by_search",
            KeyConditionExpression="#key = :key",
            ExpressionAttributeNames={"#key": "search_key"},
            ExpressionAttributeValues={":key": _listed_under(merchant)},
            ScanIndexForward=False,
            Limit=LINKS_MAX,
        )
        ids = [row["id"]["S"] for row in found["Items"]]
        if not ids:
            return ()
        items = self._persistent.batch_get(self._client, self._table, ids)
        return tuple(_LINK.decode(items[each]) for each in ids if each in items)

    def replace(self, before: PaymentLink, after: PaymentLink) -> bool:
        was = _LINK.encode(before)
        as_read = [
            f"#{name} = :{name}" if name in was else f"attribute_not_exists(#{name})"
            for name in ("id", *_CHANGING)
        ]
        try:
            ask(
                self._client.put_item,
                TableName=self._table,
                Item=_item(after),
                ConditionExpression=" AND ".join(as_read),
                ExpressionAttributeNames={f"#{name}": name for name in ("id", *_CHANGING)},
                ExpressionAttributeValues={
                    f":{name}": was[name] for name in ("id", *_CHANGING) if name in was
                },
            )
        except ClientError as error:
            if not condition_failed(error):
                raise
            return False
        return True


def _item(link: PaymentLink) -> Item:
    place = {
        "search_key": _listed_under(link.merchant),
        "created_key": text(position(link.created_at, link.id)),
    }
    return _LINK.encode(link) | place


def _listed_under(merchant: str) -> Value:
    return text(f"links#{merchant}")
