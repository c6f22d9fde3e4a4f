"""The basis of every store: the client's protocol, DATABASE_URL, and reads of items and indexes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol, TypeVar

from checkout.adapters.aws import AWS_ERRORS, Answer, ask
from checkout.adapters.dynamo.records import DUE_SHARDS
from checkout.adapters.dynamo.values import Item, Value, instant, text
from checkout.domain.errors import CheckoutError
from checkout.open_payments.urls import split

T = TypeVar("T")

PAGE_MAX: Final = 100  # what one BatchGetItem takes
_PLACE: Final = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?")
_PREFIX: Final = re.compile(r"/(?P<prefix>[A-Za-z0-9_.-]+)")


class Client(Protocol):
    """The part of boto3's low-level DynamoDB client that is used."""

    def get_item(self, **request: Any) -> Answer: ...

    def put_item(self, **request: Any) -> Answer: ...

    def update_item(self, **request: Any) -> Answer: ...

    def query(self, **request: Any) -> Answer: ...

    def scan(self, **request: Any) -> Answer: ...

    def batch_get_item(self, **request: Any) -> Answer: ...

    def transact_write_items(self, **request: Any) -> Answer: ...


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """Tables are named `prefix-<table>`; without an endpoint it is AWS itself."""

    prefix: str
    endpoint_url: str | None


def parse_database_url(url: str) -> DatabaseUrl:
    """Parse `dynamodb:///PREFIX` or `dynamodb+http://HOST:PORT/PREFIX`. Raise ValueError."""
    scheme, place, path, *rest = split(url)
    kinds = {"dynamodb": place == "", "dynamodb+http": bool(place and _PLACE.fullmatch(place))}
    found = _PREFIX.fullmatch(path)
    if not found or not kinds.get(scheme) or any(rest):
        raise ValueError(
            "DATABASE_URL must be dynamodb:///PREFIX or dynamodb+http://HOST:PORT/PREFIX, where "
            "PREFIX begins the tables' names (letters, digits, '-', '_', '.')."
        )
    return DatabaseUrl(found["prefix"], f"http://{place}" if place else None)


class DynamoDatabase:
    """`ports.Database`: one cheap read, within the client's time limits."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._table = f"{prefix}-merchants"

    def ping(self) -> bool:
        try:
            get(self._client, self._table, id=text("ping"))
        except (CheckoutError, *AWS_ERRORS):
            return False
        return True


def get(client: Client, table: str, **key: Value) -> Item | None:
    answer = ask(client.get_item, TableName=table, Key=key, ConsistentRead=True)
    item: Item | None = answer.get("Item")
    return item


def due(
    client: Client,
    table: str,
    until: datetime,
    limit: int,
    *,
    read: Callable[[Item], T],
    index: str = "due",
) -> list[T]:
    """Return entries of the `due` index (or one shaped like it) up to `until`, oldest first.

    At most `limit`. One query per shard, each of `limit` rows, since all may be in one.
    """
    rows: list[Item] = []
    for shard in range(DUE_SHARDS):
        rows += _due_in(client, table, index, str(shard), until, limit)
    rows.sort(key=lambda row: (int(row[f"{index}_at"]["N"]), row["id"]["S"]))
    return [read(row) for row in rows[:limit]]


def _due_in(
    client: Client, table: str, index: str, shard: str, until: datetime, limit: int
) -> list[Item]:
    """Return the oldest entries of a shard; a page of a query may end early."""
    rows: list[Item] = []
    start: dict[str, Any] = {}
    while len(rows) < limit:
        found = ask(
            client.query,
            TableName=table,
            IndexName=index,
            KeyConditionExpression="#shard = :shard AND #at <= :now",
            ExpressionAttributeNames={"#shard": f"{index}_shard", "#at": f"{index}_at"},
            ExpressionAttributeValues={":shard": text(shard), ":now": instant(until)},
            Limit=limit - len(rows),
            **start,
        )
        rows += found["Items"]
        if "LastEvaluatedKey" not in found:
            break
        start = {"ExclusiveStartKey": found["LastEvaluatedKey"]}
    return rows
