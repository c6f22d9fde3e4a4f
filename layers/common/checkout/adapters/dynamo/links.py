"""Payment links in DynamoDB: rows in the sessions' table.

The links are in this table because the transactions of sessions change the links' stock. The index
`by_search` lists a merchant's links. A stock can be spread over several rows: the link's own row
and each further row get an equal part, and the further rows contain nothing else. A session takes
items from one row and returns them to the same row (docs/decisions/0015). A reservation is an
idempotency record (`ports.Reservation`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from botocore.exceptions import ClientError

from checkout.adapters.aws import ask
from checkout.adapters.dynamo import lists
from checkout.adapters.dynamo.client import PacedStore, get
from checkout.adapters.dynamo.codec import Codec, Item, instant, number, number_from, text
from checkout.adapters.dynamo.conditions import (
    Writes,
    met,
    put_reserved,
)
from checkout.domain.ground.grammar import position
from checkout.domain.ground.ids import new_nonce
from checkout.domain.links import PaymentLink, shares
from checkout.ports import Page, Reservation

# `merchant` is the key of the list of sessions, which must not contain links.
_LINK: Final = Codec(PaymentLink, names={"merchant": "owner"})


def take_items(table: str, row_id: str, items: int) -> dict[str, Any]:
    """Return the update that takes items from a row of a stock, if the row has enough."""
    request = _of_stock(table, row_id, -items)
    request["ExpressionAttributeNames"]["#stopped_at"] = "stopped_at"
    request["ExpressionAttributeValues"][":items"] = number(items)
    enough_left, sells = "#left >= :items", "attribute_not_exists(#stopped_at)"
    return request | {"ConditionExpression": f"{enough_left} AND {sells}"}


def give_back(table: str, row_id: str, items: int) -> dict[str, Any]:
    """Return the update that gives items back to a row, even if the link is stopped."""
    return _of_stock(table, row_id, items)


def _of_stock(table: str, row_id: str, change: int) -> dict[str, Any]:
    return {
        "TableName": table,
        "Key": {"id": text(row_id)},
        "UpdateExpression": "ADD #left :change",
        "ExpressionAttributeNames": {"#left": "left"},
        "ExpressionAttributeValues": {":change": number(change)},
    }


class DynamoLinks(PacedStore):
    """Stores payment links. `DynamoSessions.create` and `save` change the stock of links.

    Ids begin with `plink_`, as no id of a session does.
    """

    def add(self, link: PaymentLink, reservation: Reservation | None = None) -> None:
        """Write a new link, and the reservation in the same transaction. Raises KeyHeld."""
        # The id is new, so writing it again after a lost answer does no harm.
        place = {
            "search_key": text(_listed_under(link.merchant)),
            "created_key": text(position(link.created_at, link.id)),
        }
        own, *others = _parts(link)
        item = _LINK.encode(link) | own | place
        if reservation is None:
            self._persistent.batch_put(self._client, self._sessions, others)
            ask(self._client.put_item, TableName=self._sessions, Item=item)
            return
        puts = ({"TableName": self._sessions, "Item": each} for each in (item, *others))
        put_reserved(self._client, self._reservations, reservation, *puts, ask=self._persistent.ask)

    def get(self, link_id: str) -> PaymentLink | None:
        """Read the link with strong consistency."""
        item = get(self._client, self._sessions, id=text(link_id))
        return self._with_stock([_LINK.decode(item)])[0] if item else None

    def page(self, merchant: str, *, limit: int, after: str | None) -> Page[PaymentLink]:
        """Return a page of a merchant's links, newest first. The index lags a little.

        `after` is the position (`grammar.position`) of the link at which the previous page ended,
        None for the first page. `limit` is at most 99.
        """
        owner = _listed_under(merchant)
        found = lists.page(
            self._client, self._sessions, "by_search", owner, shards=1, limit=limit, after=after
        )
        shown = self._in_order(self._sessions, found.ids, _LINK.decode)
        return Page(tuple(self._with_stock(shown)), found.next_key)

    def _with_stock(self, links: Sequence[PaymentLink]) -> list[PaymentLink]:
        """Return the links, decoded from their own rows, with the number of items in all rows."""
        found = self._left_in([row for link in links for row in link.row_ids[1:]])
        return [
            link
            if link.left is None
            else replace(link, left=link.left + sum(found.get(row, 0) for row in link.row_ids[1:]))
            for link in links
        ]

    def _left_in(self, rows: Sequence[str]) -> dict[str, int]:
        """Read the number of items left in each row, with strong consistency."""
        read = ("id", "left")
        items = self._persistent.batch_get(self._client, self._sessions, list(rows), read)
        return {row: number_from(item["left"]) for row, item in items.items()}

    def set_left(self, link: PaymentLink, left: int) -> bool:
        """Write the number of items left, if the stored number is still the one in `link`.

        If it is not, or if buyers take items at the same time, write nothing and return False.
        """
        read = self._left_in(link.row_ids)
        if set(read) != set(link.row_ids) or sum(read.values()) != link.left:
            return False
        changes = [
            {
                "TableName": self._sessions,
                "Key": {"id": text(row)},
                "UpdateExpression": "SET #left = :left",
                "ConditionExpression": "#left = :read",
                "ExpressionAttributeNames": {"#left": "left"},
                "ExpressionAttributeValues": {":left": number(part), ":read": number(read[row])},
            }
            for row, part in zip(link.row_ids, shares(left, link.rows), strict=True)
        ]
        if len(changes) == 1:
            return met(self._client.update_item, **changes[0])
        writes = Writes(
            {row: {"Update": change} for row, change in zip(link.row_ids, changes, strict=True)}
        )
        # Without a new writer, DynamoDB would treat a later, equal change as a repetition.
        writer = new_nonce(self._random_bytes)
        request = writes.request(writer=writer)
        try:
            self._persistent.ask(self._client.transact_write_items, **request)
        except ClientError as error:
            if not any(writes.failed(error, row) for row in link.row_ids):
                raise
            return False
        return True

    def set_stopped(self, link: PaymentLink, at: datetime | None) -> None:
        """Stop the link, or start it again if `at` is None."""
        # The page and each purchase read the link's own row first. Therefore the own row is stopped
        # first and started last, and an interrupted call can be repeated.
        rows = link.row_ids if at is not None else link.row_ids[::-1]
        change = "REMOVE #stopped_at" if at is None else "SET #stopped_at = :at"
        request = {} if at is None else {"ExpressionAttributeValues": {":at": instant(at)}}
        for row in rows:
            ask(
                self._client.update_item,
                TableName=self._sessions,
                Key={"id": text(row)},
                UpdateExpression=change,
                ConditionExpression="attribute_exists(#id)",
                ExpressionAttributeNames={"#id": "id", "#stopped_at": "stopped_at"},
                **request,
            )


def _parts(link: PaymentLink) -> list[Item]:
    """Return, for each of the link's rows, its id and its part of the stock."""
    if link.left is None:
        return [{"id": text(link.id)}]
    parts = zip(link.row_ids, shares(link.left, link.rows), strict=True)
    return [{"id": text(row), "left": number(part)} for row, part in parts]


def _listed_under(merchant: str) -> str:
    return f"links#{merchant}"
