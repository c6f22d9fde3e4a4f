"""Metering DynamoDB client: adds up the request units that AWS would bill.

Units follow the items' sizes, double in transactions, plus one unit per kilobyte for each index
entry that a write changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from math import ceil
from typing import Any, Final

from checkout.adapters.dynamo.codec import milliseconds
from checkout.adapters.dynamo.records import SEARCH_ROW
from tests.fakes.dynamodb import InMemoryDynamoDb, item_size

WRITES: Final = ("put_item", "update_item", "batch_write_item", "transact_write_items")
_WRITE_KB, _READ_KB = 1, 4
OVERHEAD: Final = 100  # bytes that each stored item, and each entry of an index, takes besides
SECONDS_A_MONTH: Final = 86_400 * 365 / 12

Rows = dict[str, dict[str, Any]]


@dataclass
class Usage:
    """Sums of billed units."""

    requests: float = 0
    invocations: float = 0
    seconds: float = 0
    gb_seconds: float = 0
    calls: float = 0
    writes: float = 0
    index_writes: float = 0
    search_writes: float = 0  # the part of both for search rows
    reads: float = 0
    items: float = 0  # read, including entries of indexes
    messages: float = 0
    wallet_calls: float = 0
    log_kb: float = 0
    out_kb: float = 0
    access_kb: float = 0  # of the access log
    kept: float = 0  # kB-months of items and entries of indexes
    recoverable: float = 0  # kB-months of items, of which recovery copies are kept

    def __add__(self, other: Usage) -> Usage:
        names = [each.name for each in fields(self)]
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in names})

    def __mul__(self, times: float) -> Usage:
        names = [each.name for each in fields(self)]
        return Usage(**{name: getattr(self, name) * times for name in names})


@dataclass
class Metered:
    """A metered client; `tables` are create_table's arguments."""

    client: InMemoryDynamoDb
    tables: list[dict[str, Any]]
    usage: Usage = field(default_factory=Usage)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.client, name)
        if name in ("calls", "rows"):
            return found

        def call(**request: Any) -> Any:
            written = list(_written(request)) if name in WRITES else []
            before = self._rows(written)
            try:
                answer = found(**request)
            finally:
                self.usage.calls += 1
                if name in WRITES:
                    self._wrote(name, before, self._rows(written))
            if name not in WRITES:
                self._read(name, request, answer)
            return answer

        return call

    def _rows(self, written: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, Rows]:
        """Return the current items of these keys."""
        keys = {each["TableName"]: each["KeySchema"][0]["AttributeName"] for each in self.tables}
        found: dict[str, Rows] = {name: {} for name in keys}
        for name, key in written:
            row = self.client.row(name, key)
            if row is not None:
                found[name][row[keys[name]]["S"]] = row
        return found

    def _wrote(self, operation: str, before: dict[str, Rows], after: dict[str, Rows]) -> None:
        factor = 2 if operation == "transact_write_items" else 1
        units = moved = found_by = 0
        for table in self.tables:
            old, new = before[table["TableName"]], after[table["TableName"]]
            for key in old.keys() | new.keys():
                one, other = old.get(key, {}), new.get(key, {})
                if one == other:
                    continue
                own = ceil(max(item_size(one), item_size(other)) / 1024 / _WRITE_KB)
                of_indexes = sum(
                    index_writes(one, other, index)
                    for index in table.get("GlobalSecondaryIndexes", [])
                )
                units, moved = units + own, moved + of_indexes
                if key.startswith(SEARCH_ROW):
                    found_by += own * factor + of_indexes
        self.usage.writes += max(units, 1) * factor  # rejected writes are billed too
        self.usage.index_writes += moved
        self.usage.search_writes += found_by

    def _read(self, operation: str, request: dict[str, Any], answer: dict[str, Any]) -> None:
        if operation == "get_item":
            self.usage.items += "Item" in answer
            self.usage.reads += _read_units(answer.get("Item", {}))
        elif operation == "batch_get_item":
            items = [item for found in answer["Responses"].values() for item in found]
            self.usage.items += len(items)
            asked = sum(len(each["Keys"]) for each in request["RequestItems"].values())
            self.usage.reads += sum(map(_read_units, items)) + asked - len(items)
        else:  # a query of an index, eventually consistent
            self.usage.items += len(answer["Items"])
            size = sum(map(item_size, answer["Items"]))
            self.usage.reads += max(1, ceil(size / 1024 / _READ_KB)) / 2


def stored(client: InMemoryDynamoDb, tables: list[dict[str, Any]]) -> dict[str, Rows]:
    """Return all items of the tables, by the table's name and their keys."""
    found: dict[str, Rows] = {}
    for table in tables:
        name, key = table["TableName"], [each["AttributeName"] for each in table["KeySchema"]]
        rows = client.rows(name)
        found[name] = {"\n".join(row[part]["S"] for part in key): row for row in rows}
    return found


def keeping(
    before: Mapping[str, Rows],
    after: Mapping[str, Rows],
    tables: list[dict[str, Any]],
    *,
    since: datetime,
) -> Usage:
    """Return the usage of keeping the items that are new until their time to live.

    An item without one is kept for ever, and so is no part of a checkout.
    """
    usage = Usage()
    for table in tables:
        old, new = before[table["TableName"]], after[table["TableName"]]
        for item in (new[key] for key in new.keys() - old.keys() if "ttl" in new[key]):
            months = (int(item["ttl"]["N"]) - milliseconds(since) / 1000) / SECONDS_A_MONTH
            own = (item_size(item) + OVERHEAD) / 1000
            entries = sum(
                _entry_size(item, index, table) for index in table.get("GlobalSecondaryIndexes", [])
            )
            usage.recoverable += own * months
            usage.kept += (own + entries / 1000) * months
    return usage


def _entry_size(item: dict[str, Any], index: dict[str, Any], table: dict[str, Any]) -> int:
    """Return the bytes that an item's entry of an index takes; 0 if it has none."""
    names = [part["AttributeName"] for part in index["KeySchema"]]
    if any(name not in item for name in names):
        return 0
    names += [part["AttributeName"] for part in table["KeySchema"]]
    names += index["Projection"].get("NonKeyAttributes", [])
    return OVERHEAD + item_size({name: item[name] for name in names if name in item})


def _written(request: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the tables and items, or keys of items, that a request may write."""
    for change in request.get("TransactItems", []):
        [inner] = change.values()
        yield from _written(inner)
    for table, puts in request.get("RequestItems", {}).items():
        yield from ((table, each["PutRequest"]["Item"]) for each in puts)
    if "TableName" in request:
        yield request["TableName"], request.get("Item") or request["Key"]


def _read_units(item: dict[str, Any]) -> int:
    return max(1, ceil(item_size(item) / 1024 / _READ_KB))


def index_writes(old: dict[str, Any], new: dict[str, Any], index: dict[str, Any]) -> int:
    """Return the writes of an index: one for an added or deleted entry, two for a moved one."""
    names = [part["AttributeName"] for part in index["KeySchema"]]
    kept = names + index["Projection"].get("NonKeyAttributes", [])
    was = {name: old.get(name) for name in kept} if all(name in old for name in names) else None
    is_ = {name: new.get(name) for name in kept} if all(name in new for name in names) else None
    if was == is_:
        return 0
    moves = was is not None and is_ is not None and any(was[n] != is_[n] for n in names)
    return 2 if moves else 1
