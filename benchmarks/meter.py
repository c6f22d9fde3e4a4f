"""Metering DynamoDB client: adds up the request units that AWS would bill.

Units follow the items' sizes, double in transactions, plus one unit per kilobyte for each index
entry that a write changes.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import ceil
from typing import Any, Final

from tests.fakes.dynamodb import InMemoryDynamoDb, item_size

WRITES: Final = ("put_item", "update_item", "transact_write_items")
_WRITE_KB, _READ_KB = 1, 4

Rows = dict[str, dict[str, Any]]


@dataclass
class Usage:
    """Sums of billed units."""

    requests: float = 0
    invocations: float = 0
    seconds: float = 0
    calls: float = 0
    writes: float = 0
    index_writes: float = 0
    reads: float = 0
    messages: float = 0
    wallet_calls: float = 0
    log_kb: float = 0
    out_kb: float = 0

    def __add__(self, other: Usage) -> Usage:
        names = [each.name for each in fields(self)]
        return Usage(**{name: getattr(self, name) + getattr(other, name) for name in names})


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
            before = self._rows()
            try:
                answer = found(**request)
            finally:
                self.usage.calls += 1
                if name in WRITES:
                    self._wrote(name, before, self._rows())
            if name not in WRITES:
                self._read(name, answer)
            return answer

        return call

    def _rows(self) -> dict[str, Rows]:
        found: dict[str, Rows] = {}
        for table in self.tables:
            name, key = table["TableName"], table["KeySchema"][0]["AttributeName"]
            found[name] = {row[key]["S"]: row for row in self.client.rows(name)}
        return found

    def _wrote(self, operation: str, before: dict[str, Rows], after: dict[str, Rows]) -> None:
        units = moved = 0
        for table in self.tables:
            old, new = before[table["TableName"]], after[table["TableName"]]
            for key in old.keys() | new.keys():
                one, other = old.get(key, {}), new.get(key, {})
                if one == other:
                    continue
                units += ceil(max(item_size(one), item_size(other)) / 1024 / _WRITE_KB)
                moved += sum(
                    index_writes(one, other, index)
                    for index in table.get("GlobalSecondaryIndexes", [])
                )
        factor = 2 if operation == "transact_write_items" else 1
        self.usage.writes += max(units, 1) * factor  # rejected writes are billed too
        self.usage.index_writes += moved

    def _read(self, operation: str, answer: dict[str, Any]) -> None:
        if operation == "get_item":
            self.usage.reads += _read_units(answer.get("Item", {}))
        elif operation == "batch_get_item":
            items = [item for found in answer["Responses"].values() for item in found]
            self.usage.reads += sum(map(_read_units, items))
        else:  # a query of an index, eventually consistent
            size = sum(map(item_size, answer["Items"]))
            self.usage.reads += max(1, ceil(size / 1024 / _READ_KB)) / 2


def _read_units(item: dict[str, Any]) -> int:
    return max(1, ceil(item_size(item) / 1024 / _READ_KB))


def index_writes(old: dict[str, Any], new: dict[str, Any], index: dict[str, Any]) -> int:
    """Return the writes of an index: one for an entry added or deleted, two for one that moves."""
    names = [part["AttributeName"] for part in index["KeySchema"]]
    kept = names + index["Projection"].get("NonKeyAttributes", [])
    was = {name: old.get(name) for name in kept} if all(name in old for name in names) else None
    is_ = {name: new.get(name) for name in kept} if all(name in new for name in names) else None
    if was == is_:
        return 0
    moves = was is not None and is_ is not None and any(was[n] != is_[n] for n in names)
    return 2 if moves else 1
