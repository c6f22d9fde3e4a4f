"""An in-memory DynamoDB client: the operations of boto3's low-level client that the product uses.

Each operation is atomic (one lock), items are copied in and out, and what DynamoDB refuses is
refused with the same exceptions; an argument or expression that is not known here is an error. It
has no randomness, and a ClientRequestToken never ages. A batch is always read whole. With a `Lag`,
reads that DynamoDB may answer with old data do so. With a clock, each item is deleted a day before
the end of its time to live, because the product adds a day on which nothing may depend.
"""

from __future__ import annotations

import json
import marshal
import threading
from bisect import bisect_left, bisect_right, insort
from collections import ChainMap, Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, MutableSequence, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import wraps
from heapq import heappop, heappush
from typing import Any, cast

from botocore.exceptions import ClientError

from tests.fakes.expressions import (
    BadExpression,
    Expressions,
    Item,
    Node,
    Update,
    comparable,
    parse_condition,
    parse_update,
)
from tests.support import aws_calls

ITEM_MAX = 400 * 1024  # bytes
TRANSACTION_MAX = 100
ADDED_TO_TTL = 24 * 60 * 60  # seconds
BATCH_MAX = 25
Answer = dict[str, Any]
Operation = Callable[..., Answer]
Key = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Lag:
    """The age of reads that are not consistent: `draw()`, at most `longest`.

    Times are numbers of one unit.
    """

    now: Callable[[], int]
    longest: int
    draw: Callable[[], int]


def _operation(method: Operation) -> Operation:
    """Counted, one at a time, and with AWS's exceptions."""

    @wraps(method)
    def wrapped(self: InMemoryDynamoDb, **request: Any) -> Answer:
        with self.lock:
            self._delete_expired()
            self.calls[method.__name__] += 1
            if self._noted:
                aws_calls.note("dynamodb", method.__name__, request)
            try:
                answer: Answer = _copy(method(self, **_copy(request)))
            except BadExpression as error:
                raise _error("ValidationException", str(error)) from error
            return answer

    return wrapped


_PROJECTION = ("ProjectionExpression", "ExpressionAttributeNames")


class InMemoryDynamoDb:
    """Made from create_table arguments. `calls` counts operations by their name.

    `stale_reads` counts the reads that took place before a change of their table. `noted`: calls
    are noted for the comparison with the policies (tests/support/aws_calls.py), a sixth of a
    simulated world's time. `now`: the clock that times to live end by.
    """

    def __init__(
        self,
        tables: Iterable[dict[str, Any]],
        lag: Lag | None = None,
        *,
        noted: bool = True,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._noted = noted
        self.lock = threading.RLock()
        self.calls: Counter[str] = Counter()
        self.stale_reads = 0
        self._lag = lag
        self._now = now
        self._tables = {table["TableName"]: _Table(table, lag) for table in tables}
        self._tokens: dict[str, int] = {}

    def rows(self, table: str) -> list[Item]:
        """Every item of a table, for a test to look at; not an operation, not counted."""
        with self.lock:
            self._delete_expired()
            return [_copy(item) for item in self._tables[table].items.values()]

    def row(self, table: str, key: Item) -> Item | None:
        """An item by its key, or by an item with that key; like `rows`."""
        with self.lock:
            self._delete_expired()
            found = self._tables[table]
            item: Item | None = _copy(found.items.get(found.key(key)))
            return item

    @_operation
    def get_item(self, *, TableName: str, Key: Item, ConsistentRead: bool = False) -> Answer:
        table = self._table(TableName)
        rows = self._rows(table, consistent=ConsistentRead)
        item = rows.get(table.key(Key, exact=True))
        return {"Item": item} if item is not None else {}

    @_operation
    def put_item(self, *, TableName: str, Item: Item, **condition: Any) -> Answer:
        write = self._put(TableName, Item, **condition)
        self._require(write)
        write.apply()
        return {}

    @_operation
    def update_item(self, *, ReturnValues: str = "NONE", **update: Any) -> Answer:
        if ReturnValues not in ("NONE", "ALL_NEW"):
            raise NotImplementedError(ReturnValues)
        write = self._update(**update)
        self._require(write)
        item = write.apply()
        return {"Attributes": item} if ReturnValues == "ALL_NEW" else {}

    @_operation
    def query(
        self,
        *,
        TableName: str,
        IndexName: str,
        KeyConditionExpression: str,
        ExpressionAttributeNames: dict[str, str],
        ExpressionAttributeValues: Item,
        ScanIndexForward: bool = True,
        Limit: int | None = None,
        ExclusiveStartKey: Item | None = None,
    ) -> Answer:
        table = self._table(TableName)
        index = table.indexes[IndexName]
        node = parse_condition(KeyConditionExpression)
        expressions = Expressions(ExpressionAttributeNames, ExpressionAttributeValues, node)
        old = self._old(table)
        rows = ChainMap(old, table.items)
        entries = index.between(node, expressions)
        if old:
            past = index.of(old)
            present = [entry for entry in entries if entry[1] not in old]
            entries = sorted([*present, *past.between(node, expressions)])
        if ExclusiveStartKey is not None:
            start = index.entry(ExclusiveStartKey, table.key(ExclusiveStartKey))
            if ScanIndexForward:
                entries = entries[bisect_right(entries, start) :]
            else:
                entries = entries[: bisect_left(entries, start)]
        if not ScanIndexForward:
            entries = entries[::-1]
        chosen = entries if Limit is None else entries[:Limit]
        items = [index.projected(rows[key], table.key_names) for _, key in chosen]
        answer: Answer = {"Items": items, "Count": len(items), "ScannedCount": len(items)}
        if Limit is not None and len(items) == Limit:  # DynamoDB does not look whether more follows
            names = {*table.key_names, *index.names}
            last = rows[chosen[-1][1]]
            answer["LastEvaluatedKey"] = {name: last[name] for name in names}
        return answer

    @_operation
    def scan(
        self,
        *,
        TableName: str,
        Limit: int | None = None,
        ConsistentRead: bool = False,
        ExclusiveStartKey: Item | None = None,
    ) -> Answer:
        table = self._table(TableName)
        seen = self._rows(table, consistent=ConsistentRead)
        rows = sorted((key, item) for key, item in seen.items() if item is not None)
        if ExclusiveStartKey is not None:
            start = table.key(ExclusiveStartKey, exact=True)
            rows = [(key, item) for key, item in rows if key > start]
        chosen = rows if Limit is None else rows[:Limit]
        answer: Answer = {"Items": [item for _, item in chosen], "Count": len(chosen)}
        if Limit is not None and len(chosen) == Limit:
            answer["LastEvaluatedKey"] = {name: chosen[-1][1][name] for name in table.key_names}
        return answer

    @_operation
    def batch_get_item(self, *, RequestItems: dict[str, Answer]) -> Answer:
        responses: dict[str, list[Item]] = defaultdict(list)
        if sum(len(request["Keys"]) for request in RequestItems.values()) > 100:
            raise _error("ValidationException", "Too many items requested for the BatchGetItem")
        for name, request in RequestItems.items():
            if set(request) - {"Keys", "ConsistentRead", *_PROJECTION}:
                raise NotImplementedError(str(request))
            table = self._table(name)
            keys = [table.key(key, exact=True) for key in request["Keys"]]
            if len(set(keys)) < len(keys):
                raise _error("ValidationException", "Provided list of item keys has duplicates")
            # Backwards: DynamoDB promises no order, so nobody may rely on one.
            rows = self._rows(table, consistent=request.get("ConsistentRead", False))
            found = [rows[key] for key in reversed(keys) if rows.get(key)]
            responses[name] += _projected(found, request)
        return {"Responses": dict(responses), "UnprocessedKeys": {}}

    @_operation
    def batch_write_item(self, *, RequestItems: dict[str, list[Answer]]) -> Answer:
        if not 1 <= sum(map(len, RequestItems.values())) <= BATCH_MAX:
            raise _error("ValidationException", "1 to 25 items")
        writes = [
            self._put(name, each["PutRequest"]["Item"])
            for name, requests in RequestItems.items()
            for each in requests
        ]
        if len({(id(write.table), write.key) for write in writes}) < len(writes):
            raise _error("ValidationException", "Provided list of item keys contains duplicates")
        for write in writes:
            self._require(write)
            write.apply()
        return {"UnprocessedItems": {}}

    @_operation
    def transact_write_items(
        self, *, TransactItems: list[Answer], ClientRequestToken: str | None = None
    ) -> Answer:
        if not 1 <= len(TransactItems) <= TRANSACTION_MAX:
            raise _error("ValidationException", "1 to 100 items")
        fingerprint = hash(json.dumps(TransactItems, sort_keys=True, default=bytes.hex))
        if ClientRequestToken is not None:
            if not 1 <= len(ClientRequestToken) <= 36:
                raise _error("ValidationException", "clientRequestToken has 1 to 36 characters")
            known = self._tokens.get(ClientRequestToken, fingerprint)
            if known != fingerprint:
                raise _error("IdempotentParameterMismatchException", "other parameters")
            if ClientRequestToken in self._tokens:
                return {}
        writes = [self._transacted(item) for item in TransactItems]
        if len({(id(write.table), write.key) for write in writes}) < len(writes):
            raise _error("ValidationException", "multiple operations on one item")
        reasons = [write.reason() for write in writes]
        if any(reason["Code"] != "None" for reason in reasons):
            codes = ", ".join(reason["Code"] for reason in reasons)
            message = f"Transaction cancelled, please refer cancellation reasons: [{codes}]"
            raise _error("TransactionCanceledException", message, CancellationReasons=reasons)
        for write in writes:
            write.apply()
        if ClientRequestToken is not None:
            self._tokens[ClientRequestToken] = fingerprint
        return {}

    def _delete_expired(self) -> None:
        """Delete what is not needed any more."""
        if self._now is not None:
            for table in self._tables.values():
                table.delete_expired(self._now().timestamp() + ADDED_TO_TTL)

    def _table(self, name: str) -> _Table:
        if name not in self._tables:
            raise _error("ResourceNotFoundException", f"no table {name}")
        return self._tables[name]

    def _rows(self, table: _Table, *, consistent: bool) -> Mapping[Key, Any]:
        """Return the items as a read sees them; None where an item was not there yet."""
        return table.items if consistent else ChainMap(self._old(table), table.items)

    def _old(self, table: _Table) -> dict[Key, Any]:
        """Return how items were for a read that is not consistent, where they differ from now."""
        if self._lag is None:
            return {}
        old = table.before(self._lag.now() - self._lag.draw())
        self.stale_reads += bool(old)
        return old

    def _transacted(self, item: Answer) -> _Write:
        ((kind, request),) = item.items()
        make: Any = {
            "Put": self._put,
            "Update": self._update,
            "Delete": self._delete,
            "ConditionCheck": self._check,
        }
        write: _Write = make[kind](**request)
        return write

    def _put(self, TableName: str, Item: Item, **condition: Any) -> _Write:
        return _Write(self._table(TableName), Item, lambda _: Item, **condition)

    def _update(self, TableName: str, Key: Item, UpdateExpression: str, **condition: Any) -> _Write:
        table = self._table(TableName)
        table.key(Key, exact=True)
        update = parse_update(UpdateExpression)
        return _Write(table, Key, update, **condition)

    def _check(self, TableName: str, Key: Item, **condition: Any) -> _Write:
        table = self._table(TableName)
        table.key(Key, exact=True)
        return _Check(table, Key, dict, **condition)

    def _delete(self, TableName: str, Key: Item, **condition: Any) -> _Write:
        table = self._table(TableName)
        table.key(Key, exact=True)
        return _Deletion(table, Key, dict, **condition)

    @staticmethod
    def _require(write: _Write) -> None:
        reason = write.reason()
        if reason["Code"] != "None":
            found = {"Item": reason["Item"]} if "Item" in reason else {}
            raise _error(reason["Code"] + "Exception", reason["Message"], **found)


class _Write:
    """One conditional put or update, checked before it is applied."""

    def __init__(
        self,
        table: _Table,
        key: Item,
        change: Update | Callable[[Item], Item],
        *,
        ConditionExpression: str | None = None,
        ExpressionAttributeNames: dict[str, str] | None = None,
        ExpressionAttributeValues: Item | None = None,
        ReturnValuesOnConditionCheckFailure: str = "NONE",
    ) -> None:
        self.table = table
        self.key = table.key(key)
        self._key_item = {name: key[name] for name in table.key_names}
        self._condition = parse_condition(ConditionExpression) if ConditionExpression else None
        self._change = change
        self._return_old = ReturnValuesOnConditionCheckFailure == "ALL_OLD"
        self._expressions = Expressions(
            ExpressionAttributeNames,
            ExpressionAttributeValues,
            *([self._condition] if self._condition else []),
            *([change] if isinstance(change, Update) else []),
        )

    def reason(self) -> Answer:
        """The CancellationReason: code None where the condition holds."""
        old = self.table.items.get(self.key)
        if self._condition and not self._expressions.holds(self._condition, old or {}):
            found = {"Item": old} if old is not None and self._return_old else {}
            message = "The conditional request failed"
            return {"Code": "ConditionalCheckFailed", "Message": message, **found}
        self.table.validate(self._new())
        return {"Code": "None"}

    def apply(self) -> Item:
        item = self._new()
        self.table.store(self.key, item)
        return item

    def _new(self) -> Item:
        old = self.table.items.get(self.key, self._key_item)
        if not isinstance(self._change, Update):
            return self._change(old)
        item = self._expressions.updated(self._change, old)
        if any(item.get(name) != value for name, value in self._key_item.items()):
            raise BadExpression("an update cannot change the key")
        return item


class _Deletion(_Write):
    """A conditional delete."""

    def apply(self) -> Item:
        self.table.remove(self.key)
        return {}

    def _new(self) -> Item:
        return self._key_item


class _Check(_Write):
    """A condition in a transaction that writes nothing there."""

    def apply(self) -> Item:
        return {}

    def _new(self) -> Item:
        return self._key_item


class _Table:
    def __init__(self, definition: dict[str, Any], lag: Lag | None = None) -> None:
        types = {d["AttributeName"]: d["AttributeType"] for d in definition["AttributeDefinitions"]}
        self.key_names = [part["AttributeName"] for part in definition["KeySchema"]]
        self.types = types
        self.items: dict[Key, Any] = {}
        self._lag = lag
        self._ends: list[tuple[int, Key]] = []  # a heap of times to live
        self._changes: deque[tuple[int, Key, Item | None]] = deque()  # with the item before
        self.indexes = {
            index["IndexName"]: _Index(index)
            for index in definition.get("GlobalSecondaryIndexes", [])
        }

    def key(self, item: Item, *, exact: bool = False) -> tuple[Any, ...]:
        if exact and set(item) != set(self.key_names):
            raise _error(
                "ValidationException", "The provided key element does not match the schema"
            )
        for name in self.key_names:
            if name not in item or set(item[name]) != {self.types[name]}:
                raise _error("ValidationException", f"Missing or wrong type of the key {name}")
            if item[name] == {"S": ""}:
                raise _error("ValidationException", f"empty key {name}")
        return tuple(comparable(item[name]) for name in self.key_names)

    def validate(self, item: Item) -> None:
        for name, kind in self.types.items():
            if name in item and (set(item[name]) != {kind} or item[name] == {"S": ""}):
                raise _error("ValidationException", f"wrong type of the index key {name}")
        # A letter has at most four bytes: few items need to be counted.
        if len(repr(item)) * 4 > ITEM_MAX and item_size(item) > ITEM_MAX:
            raise _error("ValidationException", "Item size has exceeded the maximum allowed size")

    def store(self, key: tuple[Any, ...], item: Item) -> None:
        old = self.items.get(key)
        for index in self.indexes.values():
            if old is not None:
                index.remove(old, key)
            index.add(item, key)
        self.items[key] = item
        if "ttl" in item:
            heappush(self._ends, (int(item["ttl"]["N"]), key))
        self._note(key, old)

    def delete_expired(self, now: float) -> None:
        while self._ends and self._ends[0][0] < now:
            ttl, key = heappop(self._ends)
            if self.items.get(key, {}).get("ttl") == {"N": str(ttl)}:
                self.remove(key)

    def remove(self, key: tuple[Any, ...]) -> None:
        old = self.items.pop(key, None)
        if old is not None:
            for index in self.indexes.values():
                index.remove(old, key)
            self._note(key, old)

    def _note(self, key: tuple[Any, ...], old: Item | None) -> None:
        """Remember the item before a change, for reads that lag behind."""
        if self._lag is not None:
            now = self._lag.now()
            self._changes.append((now, key, old))
            while self._changes[0][0] < now - self._lag.longest:
                self._changes.popleft()

    def before(self, at: int) -> dict[Key, Any]:
        """Return the items as they were at that time, of those that changed since."""
        old: dict[Key, Any] = {}
        for changed_at, key, item in reversed(self._changes):
            if changed_at <= at:
                break
            old[key] = item
        return old


class _Index:
    """A global secondary index: per hash value a sorted list of (range value, table key)."""

    def __init__(self, definition: dict[str, Any]) -> None:
        self._definition = definition
        self.names = [part["AttributeName"] for part in definition["KeySchema"]]
        self._everything = definition["Projection"]["ProjectionType"] == "ALL"
        self._besides = definition["Projection"].get("NonKeyAttributes", [])
        self.entries: dict[Any, MutableSequence[tuple[Any, Any]]] = defaultdict(list)

    def of(self, items: Mapping[Key, Item | None]) -> _Index:
        """Return this index over other items."""
        other = _Index(self._definition)
        for key, item in items.items():
            if item is not None:
                other.add(item, key)
        return other

    def _has(self, item: Item) -> bool:
        return all(name in item for name in self.names)  # sparse

    def entry(self, item: Item, key: tuple[Any, ...]) -> tuple[Any, Any]:
        return comparable(item[self.names[1]]), key

    def add(self, item: Item, key: tuple[Any, ...]) -> None:
        if self._has(item):
            insort(self.entries[comparable(item[self.names[0]])], self.entry(item, key))

    def remove(self, item: Item, key: tuple[Any, ...]) -> None:
        if self._has(item):
            entries = self.entries[comparable(item[self.names[0]])]
            del entries[bisect_left(entries, self.entry(item, key))]

    def projected(self, item: Item, key_names: list[str]) -> Item:
        wanted = {*key_names, *self.names, *(name for name in self._besides if name in item)}
        return item if self._everything else {name: item[name] for name in wanted}

    def between(self, node: Node, expressions: Expressions) -> Sequence[tuple[Any, Any]]:
        """The entries of a key condition: hash = value, and at most one range condition."""
        hash_node, range_node = (node[1], node[2]) if node[0] == "and" else (node, None)
        if hash_node[0] != "=" or expressions.path(hash_node[1]) != self.names[:1]:
            raise BadExpression("the condition must name the index's hash key with =")
        entries = self.entries.get(comparable(expressions.value(hash_node[2], {})), [])
        if range_node is None:
            return entries[:]
        kind = range_node[0]
        if kind not in ("<", "<=", "between"):
            raise BadExpression(f"{kind} on a range key is not known here")
        if expressions.path(range_node[1]) != self.names[1:]:
            raise BadExpression("the condition must name the index's range key")
        bounds = [expressions.value(operand, {}) for operand in range_node[2:]]
        low = 0
        if kind == "between":
            expressions.require_order(range_node, *bounds)
            low = bisect_left(entries, comparable(bounds[0]), key=_range_of)
        cut = bisect_left if kind == "<" else bisect_right
        return entries[low : cut(entries, comparable(bounds[-1]), key=_range_of)]


def _range_of(entry: tuple[Any, Any]) -> Any:
    return entry[0]


def _error(code: str, message: str, **details: Any) -> ClientError:
    response = {
        "Error": {"Code": code, "Message": message},
        "ResponseMetadata": {"HTTPStatusCode": 400},
        **_copy(details),
    }
    return ClientError(cast("Any", response), "InMemory")


def _copy(value: Any) -> Any:
    """Return a deep copy of plain JSON and bytes, which `marshal` makes several times as fast.

    Raise ValueError for anything else, such as a member of an enum that is a string.
    """
    return marshal.loads(marshal.dumps(value))  # noqa: S302 (what it has just written)


def _projected(items: list[Any], request: Answer) -> list[Any]:
    """Return the items with the attributes that are asked for, each by a name of its own."""
    if "ProjectionExpression" not in request:
        return items
    names = request["ExpressionAttributeNames"]
    asked = request["ProjectionExpression"].split(", ")
    if sorted(asked) != sorted(names):
        raise _error("ValidationException", "names that are not used, or not defined")
    kept = {names[each] for each in asked}
    return [{name: value for name, value in item.items() if name in kept} for item in items]


def item_size(value: Any) -> int:
    """Bytes, much as DynamoDB counts an item: names and text as UTF-8."""
    if isinstance(value, dict):
        return sum(len(name.encode()) + 1 + item_size(inner) for name, inner in value.items())
    if isinstance(value, list):
        return sum(1 + item_size(inner) for inner in value)
    if isinstance(value, bytes):
        return len(value)
    return len(value.encode()) if isinstance(value, str) else 1
