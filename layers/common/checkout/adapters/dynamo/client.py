"""The basis of every store: the client's protocol, DATABASE_URL, and reads of items and indexes."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Any, Final, Generic, Protocol, TypeVar

from checkout.adapters.aws import AWS_ERRORS, Answer, Persistent, ask
from checkout.adapters.dynamo.codec import Item, Value, instant, text, text_from
from checkout.domain.ground.errors import CheckoutError
from checkout.domain.ground.ids import RandomBytes, session_ref
from checkout.ports import WHOLE, Concurrency, ShardRange
from open_payments.urls import split

T = TypeVar("T")

logger = logging.getLogger(__name__)

_MILLISECOND: Final = timedelta(milliseconds=1)  # the unit of stored times
PAGE_MAX: Final = 100  # the limit of one BatchGetItem
_PLACE: Final = re.compile(r"[A-Za-z0-9.-]+(?::[0-9]{1,5})?")
_PREFIX: Final = re.compile(r"/(?P<prefix>[A-Za-z0-9_.-]+)")


class Client(Protocol):
    """The part of boto3's low-level DynamoDB client that the stores use."""

    def get_item(self, **request: Any) -> Answer: ...

    def put_item(self, **request: Any) -> Answer: ...

    def update_item(self, **request: Any) -> Answer: ...

    def query(self, **request: Any) -> Answer: ...

    def scan(self, **request: Any) -> Answer: ...

    def batch_get_item(self, **request: Any) -> Answer: ...

    def batch_write_item(self, **request: Any) -> Answer: ...

    def transact_write_items(self, **request: Any) -> Answer: ...


@dataclass(frozen=True, slots=True)
class DatabaseUrl:
    """The address of the tables, each named `prefix-<table>`. Without an endpoint, AWS is used."""

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


@dataclass(frozen=True, slots=True)
class Entries(Generic[T]):
    """Entries of an index, oldest first. `total` includes entries beyond the limit."""

    kept: list[T]
    total: int


class Store:
    """The basis of each store. The names of its tables begin with `prefix`."""

    def __init__(self, client: Client, prefix: str) -> None:
        self._client = client
        self._sessions = f"{prefix}-checkout_sessions"
        self._events = f"{prefix}-webhook_events"
        self._merchants = f"{prefix}-merchants"
        self._keys = f"{prefix}-api_keys"
        self._reservations = f"{prefix}-idempotency_keys"


class PacedStore(Store):
    """A store that repeats its calls, after random pauses. `sleep` takes seconds."""

    def __init__(
        self,
        client: Client,
        prefix: str,
        *,
        sleep: Callable[[float], None],
        random_bytes: RandomBytes,
    ) -> None:
        super().__init__(client, prefix)
        self._random_bytes = random_bytes
        self._persistent = Persistent(sleep, random_bytes)

    def _in_order(self, table: str, ids: Sequence[str], read: Callable[[Item], T]) -> list[T]:
        """Read records by their ids, strongly consistent, 100 in each request.

        Missing and damaged records are left out.
        """
        found = self._persistent.batch_get(self._client, table, list(ids))
        return readable((found[each] for each in ids if each in found), read)[0]


class DynamoDatabase(Store):
    """Answers the health check with one cheap read, within the client's time limits."""

    def ping(self) -> bool:
        """Return True if the data store answers within about a second; never raises."""
        try:
            get(self._client, self._merchants, id=text("ping"))
        except (CheckoutError, *AWS_ERRORS):
            return False
        return True


def get(client: Client, table: str, **key: Value) -> Item | None:
    answer = ask(client.get_item, TableName=table, Key=key, ConsistentRead=True)
    item: Item | None = answer.get("Item")
    return item


def all_of(client: Client, table: str, merchant: str, read: Callable[[Item], T]) -> tuple[T, ...]:
    """Read all rows of a merchant in the index `by_merchant`, one query for each megabyte.

    Damaged rows are left out (`readable`).
    """
    found = pages(
        client.query,
        TableName=table,
        IndexName="by_merchant",
        KeyConditionExpression="#merchant = :merchant",
        ExpressionAttributeNames={"#merchant": "merchant"},
        ExpressionAttributeValues={":merchant": text(merchant)},
    )
    return tuple(readable(chain.from_iterable(found), read, "hash")[0])


def pages(operation: Callable[..., Answer], **request: Any) -> Iterator[list[Item]]:
    """Yield the pages of a query or a scan. DynamoDB ends a page at 1 MB, or at its `Limit`."""
    while True:
        found = ask(operation, **request)
        yield found["Items"]
        if "LastEvaluatedKey" not in found:
            return
        request["ExclusiveStartKey"] = found["LastEvaluatedKey"]


def readable(
    rows: Iterable[Item], read: Callable[[Item], T], key: str = "id"
) -> tuple[list[T], list[str]]:
    """Read the rows of a list. Return the records, and the keys of rows that cannot be read.

    A damaged record does not hide the others: the record is skipped and logged with a reference to
    its key (docs/operating.md). `key` is the name of the key's attribute.
    """
    found: list[T] = []
    unreadable: list[str] = []
    for row in rows:
        try:
            found.append(read(row))
        except Exception as error:  # noqa: BLE001 - damage can cause any error
            unreadable.append(text_from(row[key]))
            logger.warning(
                "a record cannot be read: %s",
                type(error).__name__,
                extra={"session": session_ref(unreadable[-1])},
            )
    return found, unreadable


def due(
    client: Client,
    table: str,
    until: datetime,
    limit: int,
    *,
    read: Callable[[Item], T],
    run_concurrently: Concurrency,
    shards: int,
    lane: str = "",
    part: ShardRange = WHOLE,
) -> Entries[T]:
    """Return the entries of the index `due` up to `until`, from one lane and a range of its shards.

    A lane is a group of shards (parts of the index), such as those for urgent records
    (index_keys.py). At most `limit` entries of each shard are returned, but all are counted. If a
    shard has more entries, half of the returned entries are its oldest and half its newest, so that
    old records that cannot be processed do not hide all others. This takes one query per shard and
    page.
    """
    half = limit // 2

    def in_shard(shard: int) -> tuple[list[Item], int]:
        oldest: list[Item] = []
        newest: list[Item] = []
        total = 0
        for page in entries(client, table, "due", f"{lane}{shard}", until):
            room = limit - half - len(oldest)
            oldest += page[:room]
            newest = [*newest, *page[room:]][-half:] if half else []
            total += len(page)
        return oldest + newest, total

    found = run_concurrently(in_shard, part.among(shards))
    rows = [row for kept, _ in found for row in kept]
    rows.sort(key=lambda row: (int(row["due_at"]["N"]), row["id"]["S"]))
    return Entries([read(row) for row in rows], sum(total for _, total in found))


def entries(
    client: Client,
    table: str,
    index: str,
    shard: str,
    until: datetime,
    *,
    since: datetime | None = None,
    limit: int | None = None,
) -> Iterator[list[Item]]:
    """Return the pages of one shard of an index by time, after `since` and up to `until`."""
    key = "#shard = :shard AND #at <= :until"
    values = {":shard": text(shard), ":until": instant(until)}
    if since is not None:
        key = "#shard = :shard AND #at BETWEEN :since AND :until"
        values[":since"] = instant(since + _MILLISECOND)
    limited: dict[str, Any] = {} if limit is None else {"Limit": limit}
    return pages(
        client.query,
        TableName=table,
        IndexName=index,
        KeyConditionExpression=key,
        ExpressionAttributeNames={"#shard": f"{index}_shard", "#at": f"{index}_at"},
        ExpressionAttributeValues=values,
        **limited,
    )
