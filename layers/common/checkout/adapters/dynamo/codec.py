"""Frozen dataclasses as DynamoDB items and back, by their field types.

`Codec(kind)` reads the annotations once, at import; a new field needs no line here. Each field is
an attribute of its name:

    str, StrEnum      S               tuple[X, ...]   L
    int               N               a dataclass     M
    datetime          N, epoch ms     X | None        no attribute for None
    bytes             B

A field in `packed` is a tuple of dataclasses as one compact JSON string, a row per record with the
values in the order of the fields, times in epoch milliseconds and a dataclass as a row: what is
never searched takes little room, and DynamoDB allows 400 KB an item. A row may be shorter than the
dataclass, by fields that have defaults.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from operator import attrgetter, itemgetter
from types import NoneType
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

from checkout.adapters.dynamo.values import (
    Item,
    Value,
    instant,
    instant_from,
    milliseconds,
    moment,
    number,
    number_from,
    text,
)

T = TypeVar("T")
Encode = Callable[[Any], Value]
Decode = Callable[[Value], Any]

_PLAIN: Final[dict[Any, tuple[Encode, Decode]]] = {
    str: (text, itemgetter("S")),
    int: (number, number_from),
    datetime: (instant, instant_from),
    bytes: (lambda value: {"B": value}, lambda value: bytes(value["B"])),
}


class Codec(Generic[T]):
    """Encodes and decodes records of the dataclass `kind`.

    `names` maps fields to attributes of another name. Attributes that are no field are ignored.
    """

    def __init__(
        self, kind: type[T], *, names: Mapping[str, str] | None = None, packed: Collection[str] = ()
    ) -> None:
        renamed, hints, columns = names or {}, get_type_hints(kind), _columns(kind)
        pairs = {
            name: _packed(hint) if name in packed else _pair(hint)
            for name, hint in ((name, hints[name]) for name in columns)
        }
        self._kind = kind
        self._values = attrgetter(*pairs)
        self._encoders = [(renamed.get(name, name), pair[0]) for name, pair in pairs.items()]
        without = [name for name, default in columns.items() if not default]
        self._absent: dict[str, Any] = {name: None for name in without if _optional(hints[name])}
        required = set(without) - set(self._absent)
        self._decoders = [
            (name, renamed.get(name, name), pair[1], name in required)
            for name, pair in pairs.items()
        ]

    def encode(self, record: T) -> Item:
        """Return the attributes of `record`."""
        return {
            name: encode(value)
            for (name, encode), value in zip(self._encoders, self._values(record), strict=True)
            if value is not None
        }

    def decode(self, item: Mapping[str, Value]) -> T:
        """Return the record of `item`. A field without attribute has its default, or is None.

        Raises KeyError if a required attribute is missing.
        """
        found = {
            name: decode(item[attribute])
            for name, attribute, decode, required in self._decoders
            if required or attribute in item
        }
        return self._kind(**(self._absent | found if self._absent else found))


def compact(value: Any) -> str:
    """Return `value` as JSON without spaces, in which text stays as it is."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _columns(kind: Any) -> dict[str, bool]:
    """Return the names of the fields, and whether each has a default."""
    found = {field.name: field.default is not MISSING for field in fields(kind)}
    assert len(found) > 1, "attrgetter of one name gives no tuple"
    return found


def _optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


def _pair(hint: Any) -> tuple[Encode, Decode]:
    if _optional(hint):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is tuple:
        return _list(*_pair(get_args(hint)[0]))
    if is_dataclass(hint):
        return _map(hint)
    if issubclass(hint, StrEnum):
        return text, lambda value: hint(value["S"])
    raise TypeError(f"no encoding for {hint}")


def _list(encode: Encode, decode: Decode) -> tuple[Encode, Decode]:
    return (
        lambda values: {"L": [encode(each) for each in values]},
        lambda value: tuple([decode(each) for each in value["L"]]),
    )


def _map(kind: Any) -> tuple[Encode, Decode]:
    codec: Codec[Any] = Codec(kind)
    return lambda record: {"M": codec.encode(record)}, lambda value: codec.decode(value["M"])


def _packed(hint: Any) -> tuple[Encode, Decode]:
    pack, unpack = _row(get_args(hint)[0])
    return (
        lambda records: text(compact([pack(each) for each in records])),
        lambda value: tuple([unpack(row) for row in json.loads(value["S"])]),
    )


def _row(kind: Any) -> tuple[Callable[[Any], list[Any]], Callable[[list[Any]], Any]]:
    """Return what makes a row of a record of `kind`, and the record of a row."""
    columns, hints = list(_columns(kind)), get_type_hints(kind)
    values = attrgetter(*columns)
    cells = [(index, *cell) for index, name in enumerate(columns) if (cell := _cell(hints[name]))]
    least = sum(not default for default in _columns(kind).values())

    def pack(record: Any) -> list[Any]:
        row = list(values(record))
        while len(row) > least and row[-1] is None:
            del row[-1]
        for index, write, _ in cells:
            if index < len(row) and row[index] is not None:
                row[index] = write(row[index])
        return row

    def unpack(row: list[Any]) -> Any:
        for index, _, read in cells:
            if index < len(row) and row[index] is not None:
                row[index] = read(row[index])
        return kind(*row)

    return pack, unpack


def _cell(hint: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]] | None:
    """Return the conversions of a value in a row, or None if JSON has it as it is."""
    if _optional(hint):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if hint is datetime:
        return milliseconds, moment
    if is_dataclass(hint):
        return _row(hint)
    return (str, hint) if issubclass(hint, StrEnum) else None
