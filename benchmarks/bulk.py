"""A million stored sessions without memory: each is made when it is read.

A `Bulk` knows the numbers of the sessions in each partition of each index, in their order there.
Their items are made from a few real sessions by the product's own `records.py`, so they have the
right keys and sizes. `grow` puts a bulk behind an in-memory DynamoDB, whose operations work as
before, except that nothing writes a session of the bulk. tests/benchmarks/test_bulk.py compares a
small bulk with the same sessions stored.

    70 % carts without a wallet, ended by the clock 28 %    completed, 30 of each customer 2 %
    of the last 20 hours: open, or awaiting the approval of their customers

The ended ones are spread evenly over 49 days, and so are the ends. None of them is due within four
hours of `now`.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, insort
from collections import defaultdict
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cached_property, lru_cache, partial
from typing import Any, Final, cast, overload

from checkout.adapters.dynamo.codec import Item
from checkout.adapters.dynamo.index_keys import CLOCK, due_shard, prefix_key, search_key
from checkout.adapters.dynamo.records import SEARCH_ROW, id_row, rows_of, session_item
from checkout.domain.reports.search_terms import PAID, metadata_texts, outer_ids, words
from checkout.domain.session.record import Session
from tests.fakes.dynamodb import InMemoryDynamoDb, Key
from tests.support.flows import CEDAR

PERIOD: Final = timedelta(days=49)  # the time the time in which the ended sessions were created
ENDED: Final = timedelta(hours=26)  # before now: the last of them
LIVE: Final = timedelta(hours=20)  # the time the time in which the others were created
BLOCK: Final = 105  # sessions, 30 of them completed by one customer
PAID_OF_SEVEN: Final = 2
LIVE_PART: Final = 50  # one open session in this many
ORDER: Final = "C-2026-"
_FIRST, _NUMBERS = 10_000_000, 90_000_000  # of orders: eight digits
_MILLISECOND: Final = timedelta(milliseconds=1)

# An entry of an index in the fake: the value of its range key, and the table's key.
Entry = tuple[Any, Any]


@dataclass(frozen=True)
class Samples:
    """Sessions of one merchant, stored by the product. All have an order number."""

    left: Session
    paid: Session
    awaiting: Session


class Bulk:
    """`count` sessions of the samples' merchant, as they are at `now`.

    The oldest has the number 0.
    """

    def __init__(self, count: int, samples: Samples, now: datetime) -> None:
        self._count, self._samples, self._now = count, samples, now
        self._ended = count - count // LIVE_PART
        self._merchant = samples.left.merchant
        self.rows = lru_cache(2_000)(self._rows)

    @property
    def a_paid_one(self) -> int:
        """Return the number of a completed session in the middle."""
        return self._ended // 2 // BLOCK * BLOCK

    def session(self, number: int) -> Session:
        sample = self._sample(number)
        created = self._created(number)
        later = created - sample.created_at
        copy = replace(
            sample,
            id=_id(number),
            created_at=created,
            updated_at=sample.updated_at + later,
            expires_at=sample.expires_at + later,
            completed_at=sample.completed_at and sample.completed_at + later,
            client_reference_id=f"{ORDER}{self._digits(number)}",
            request_id=sample.request_id and _own(sample.request_id, number),
        )
        if sample.customer is None or sample.incoming_payment is None or sample.quote is None:
            return copy
        given: dict[str, Any] = {
            "incoming_payment": _own(sample.incoming_payment.id, number),
            "quote": replace(sample.quote, id=_own(sample.quote.id, number)),
            "outgoing_payment": sample.outgoing_payment and _own(sample.outgoing_payment, number),
        }
        wallet = self.wallet(number)
        attempts = sample.payment_attempts
        if sample is self._samples.paid:
            attempts = tuple(replace(each, wallet=wallet, **given) for each in attempts)
        given["incoming_payment"] = replace(sample.incoming_payment, id=given["incoming_payment"])
        customer = replace(sample.customer, id=wallet)
        return replace(copy, customer=customer, payment_attempts=attempts, **given)

    def wallet(self, number: int) -> str:
        """Return the wallet of the customer who has made 30 payments around this one."""
        return f"{CEDAR}/customer-{number // BLOCK:06d}"

    def item(self, key: str) -> Item | None:
        """Return the item with this key, or None."""
        number = self._number(key)
        return None if number is None else self.rows(number).get(key)

    def entry(self, key_names: Sequence[str], partition: str, number: int) -> Entry:
        """Return the entry of a session in a partition of the index with these keys."""
        first, second = key_names
        [row] = [each for each in self.rows(number).values() if each.get(first) == {"S": partition}]
        ((kind, value),) = row[second].items()
        return (int(value) if kind == "N" else value), (row["id"]["S"],)

    def partitions(self) -> dict[str, dict[str, Sequence[int]]]:
        """Return the sessions' numbers in each partition of each index, in order."""
        everything = range(self._count)
        return {
            "by_merchant": {self._merchant: everything},
            "by_search": self._searched(everything),
            "due": self._due(),
            "uncounted": self._uncounted(everything),
        }

    def _searched(self, everything: range) -> dict[str, Sequence[int]]:
        """Return the partitions of order numbers, texts, wallets and completed sessions."""
        found: dict[str, Sequence[int]] = {prefix_key(self._merchant, ORDER): everything}
        for digits in range(10, 100):
            low, high = (
                bisect_left(everything, f"{each}", key=self._digits)
                for each in (digits, digits + 1 if digits < 99 else ":")
            )
            if low < high:
                found[prefix_key(self._merchant, str(digits))] = everything[low:high]
        prepared = array("I", self._prepared())
        for text in (*metadata_texts(self._samples.paid), *words(self._samples.paid)):
            found[search_key(self._merchant, text)] = prepared
        customers: dict[int, array[int]] = defaultdict(lambda: array("I"))
        for number in prepared:
            customers[number // BLOCK].append(number)
        for some in customers.values():
            name = self.wallet(some[0]).rpartition("/")[2]
            found[search_key(self._merchant, name)] = some
        paid = self._samples.paid
        found[search_key(self._merchant, PAID)] = array(
            "I", (each for each in everything if self._sample(each) is paid)
        )
        return found

    def _due(self) -> dict[str, Sequence[int]]:
        found: dict[str, array[int]] = defaultdict(lambda: array("I"))
        for number in range(self._ended, self._count):
            shard = self.rows(number)[_id(number)].get("due_shard")
            if shard is not None:
                found[shard["S"]].append(number)
        return dict(found)

    def _uncounted(self, everything: range) -> dict[str, Sequence[int]]:
        found: dict[str, array[int]] = defaultdict(lambda: array("I"))
        for number in everything:
            sample = self._sample(number)
            if sample is not self._samples.awaiting:
                lane = CLOCK if sample is self._samples.left else ""
                found[lane + due_shard(_id(number))].append(number)
        return dict(found)

    def _sample(self, number: int) -> Session:
        if number >= self._ended:
            return self._samples.awaiting if number % 2 else self._samples.left
        return self._samples.paid if number % 7 < PAID_OF_SEVEN else self._samples.left

    def _prepared(self) -> Iterator[int]:
        """Yield the sessions with a wallet."""
        left = self._samples.left
        return (each for each in range(self._count) if self._sample(each) is not left)

    def _created(self, number: int) -> datetime:
        if number < self._ended:
            before = ENDED + PERIOD * (self._ended - number) / self._ended
        else:
            before = LIVE * (self._count - number) / (self._count - self._ended)
        return self._now - before // _MILLISECOND * _MILLISECOND

    def _digits(self, number: int) -> str:
        return str(_FIRST + number * (_NUMBERS // self._count))

    def _rows(self, number: int) -> dict[str, Item]:
        session = self.session(number)
        return {row["id"]["S"]: row for row in (session_item(session), *rows_of(session))}

    def _number(self, key: str) -> int | None:
        """Return the number of the session to which an item belongs, by the item's key."""
        name = key.rpartition("#")[2]
        if name.startswith("cs_"):
            number = int(name[3:]) if name[3:].isdecimal() else self._count
            return number if number < self._count else None
        return self._by_outer_id.get(key) if key.startswith(SEARCH_ROW) else None

    @cached_property
    def _by_outer_id(self) -> dict[str, int]:
        """Return the sessions by the keys of the rows that name them."""
        found = {}
        for sample in (self._samples.paid, self._samples.awaiting):
            texts = outer_ids(sample)
            for number in self._prepared():
                if self._sample(number) is sample:
                    for text in texts:
                        found[id_row(self._merchant, _own(text, number))] = number
        return found


def _id(number: int) -> str:
    return f"cs_{number:022d}"


def _own(outer_id: str, number: int) -> str:
    """Return another id of the same length that belongs to this session only."""
    return f"{outer_id[:-8]}{number:08d}"


def grow(client: InMemoryDynamoDb, table: str, bulk: Bulk) -> None:
    """Put a bulk into a table, beside the stored items."""
    grown = client._tables[table]
    grown.items = cast("dict[Key, Any]", Items(grown.items, bulk.item))
    for name, partitions in bulk.partitions().items():
        index = grown.indexes[name]
        for partition, numbers in partitions.items():
            merged = Merged(Lazy(numbers, partial(bulk.entry, index.names, partition)))
            for entry in index.entries[partition]:
                insort(merged, entry)
            index.entries[partition] = merged


class Items(MutableMapping[Key, Any]):
    """The stored items, and behind them the items of the bulk, which cannot be written.

    Iterates over the stored ones.
    """

    def __init__(self, stored: dict[Key, Any], made: Callable[[str], Item | None]) -> None:
        self._stored, self._made = stored, made

    def __getitem__(self, key: Key) -> Any:
        if key in self._stored:
            return self._stored[key]
        found = self._made(key[0])
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: Key, item: Any) -> None:
        if key not in self._stored and self._made(key[0]) is not None:
            raise NotImplementedError("an item of the bulk is not written")
        self._stored[key] = item

    def __delitem__(self, key: Key) -> None:
        if key not in self._stored:
            raise NotImplementedError("an item of the bulk is not deleted")
        del self._stored[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)


class Lazy(Sequence[Entry]):
    """The entries of some sessions, each made when it is read."""

    def __init__(self, numbers: Sequence[int], make: Callable[[int], Entry]) -> None:
        self._numbers, self._make = numbers, make

    @overload
    def __getitem__(self, place: int) -> Entry: ...

    @overload
    def __getitem__(self, place: slice) -> Lazy: ...

    def __getitem__(self, place: int | slice) -> Entry | Lazy:
        if isinstance(place, slice):
            return Lazy(self._numbers[place], self._make)
        return self._make(self._numbers[place])

    def __len__(self) -> int:
        return len(self._numbers)


class Merged(MutableSequence[Entry]):
    """The sorted entries of a partition: entries of the bulk, with stored ones between them."""

    def __init__(self, bulk: Sequence[Entry]) -> None:
        self._bulk = bulk
        self._stored: list[Entry] = []
        self._places: list[int] = []  # of the stored ones

    @overload
    def __getitem__(self, place: int) -> Entry: ...

    @overload
    def __getitem__(self, place: slice) -> Any: ...

    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return Lazy(range(len(self))[place], self.__getitem__)
        before = bisect_left(self._places, place)
        if self._places[before : before + 1] == [place]:
            return self._stored[before]
        return self._bulk[place - before]

    def __setitem__(self, place: Any, entry: Any) -> None:
        raise NotImplementedError("an entry is deleted and inserted")

    def __delitem__(self, place: Any) -> None:
        if place not in self._places:
            raise NotImplementedError("an entry of the bulk is not deleted")
        before = self._places.index(place)
        del self._stored[before]
        self._places[before:] = [each - 1 for each in self._places[before + 1 :]]

    def __len__(self) -> int:
        return len(self._bulk) + len(self._stored)

    def insert(self, place: int, entry: Entry) -> None:
        before = bisect_left(self._places, place)
        self._stored.insert(before, entry)
        self._places[before:] = [place, *(each + 1 for each in self._places[before:])]
