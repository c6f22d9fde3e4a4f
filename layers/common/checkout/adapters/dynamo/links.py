"""`ports.Links` on DynamoDB: rows among the sessions, whose transactions change their stock.

The index `by_search` lists a merchant's links (docs/decisions/0015).
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from checkout.adapters.aws import Persistent, ask
from checkout.adapters.dynamo import lists
from checkout.adapters.dynamo.client import Client, get, readable
from checkout.adapters.dynamo.codec import Codec
from checkout.adapters.dynamo.conditions import met
from checkout.adapters.dynamo.wire import instant, number, text
from checkout.domain.grammar import position
from checkout.domain.links import PaymentLink
from checkout.ports.links import LinkPage
from checkout.ports.runtime import RandomBytes

# `merchant` is the key of the list of sessions, which must not contain links.
_LINK: Final = Codec(PaymentLink, names={"merchant": "owner"})


def take_item(table: str, link_id: str) -> dict[str, Any]:
    """Return the update that takes an item from the link's stock, if one is left."""
    request = _of_stock(table, link_id, -1)
    request["ExpressionAttributeNames"]["#stopped_at"] = "stopped_at"
    request["ExpressionAttributeValues"][":one"] = number(1)
    some_left, sells = "#left >= :one", "attribute_not_exists(#stopped_at)"
    return request | {"ConditionExpression": f"{some_left} AND {sells}"}


def give_back(table: str, link_id: str) -> dict[str, Any]:
    """Return the update that gives an item back, even to a stopped link."""
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
    """Ids begin with `plink_`, unlike the id of any session."""

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
        # The id is new, so writing it again after a lost answer does no harm.
        place = {
            "search_key": text(_listed_under(link.merchant)),
            "created_key": text(position(link.created_at, link.id)),
        }
        ask(self._client.put_item, TableName=self._table, Item=_LINK.encode(link) | place)

    def get(self, link_id: str) -> PaymentLink | None:
        item = get(self._client, self._table, id=text(link_id))
        return _LINK.decode(item) if item else None

    def page(self, merchant: str, *, limit: int, after: str | None) -> LinkPage:
        found = lists.page(
            self._client,
            self._table,
            "by_search",
            "search_key",
            _listed_under(merchant),
            shards=1,
            limit=limit,
            after=after,
            created_from=None,
            created_before=None,
            upward=False,
        )
        items = self._persistent.batch_get(self._client, self._table, found.ids)
        shown, _ = readable((items[each] for each in found.ids if each in items), _LINK.decode)
        return LinkPage(tuple(shown), found.next_key)

    def set_left(self, link: PaymentLink, left: int) -> bool:
        return met(
            self._client.update_item,
            TableName=self._table,
            Key={"id": text(link.id)},
            UpdateExpression="SET #left = :left",
            ConditionExpression="#left = :read",
            ExpressionAttributeNames={"#left": "left"},
            ExpressionAttributeValues={
                ":left": number(left),
                ":read": _LINK.encode(link)["left"],
            },
        )

    def set_stopped(self, link: PaymentLink, at: datetime | None) -> None:
        change = "REMOVE #stopped_at" if at is None else "SET #stopped_at = :at"
        request = {} if at is None else {"ExpressionAttributeValues": {":at": instant(at)}}
        ask(
            self._client.update_item,
            TableName=self._table,
            Key={"id": text(link.id)},
            UpdateExpression=change,
            ConditionExpression="attribute_exists(#id)",
            ExpressionAttributeNames={"#id": "id", "#stopped_at": "stopped_at"},
            **request,
        )


def _listed_under(merchant: str) -> str:
    return f"links#{merchant}"
