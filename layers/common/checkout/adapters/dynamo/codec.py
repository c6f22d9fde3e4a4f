"""Frozen dataclasses as DynamoDB items and back, by their field types.

`Codec(kind)` reads the annotations once, at import; a new field needs no change here. Each field is
an attribute of its name:

    str, StrEnum      S               tuple[X, ...]   L
    int               N               a dataclass     M
    datetime          N, epoch ms     X | None        no attribute for None
    bytes             B

DynamoDB charges a write by the size of the whole item, names included, and allows 400 KB. So fields
that no condition and no index needs are stored in little space:

    deflated   a text, compressed (B)
    groups     fields as one JSON object by their names, compressed (B). A dataclass in it is a row:
               its values in the order of the fields; a row may lack the last ones, if they have
               defaults. A field that is None is left out. One field of a group may hold the
               members that only a later release knows, so that they are written again

In JSON, times are epoch milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from enum import StrEnum
from operator import itemgetter
from types import NoneType
from typing import Any, Final, Generic, TypeVar, get_args, get_origin, get_type_hints

from checkout.adapters.dynamo.compression import deflated, inflated
from checkout.adapters.dynamo.wire import (
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
from checkout.domain.ground.json_values import compact

T = TypeVar("T")
Encode = Callable[[Any], Value]
Decode = Callable[[Value], Any]
Convert = Callable[[Any], Any]

_PLAIN: Final[dict[Any, tuple[Encode, Decode]]] = {
    str: (text, itemgetter("S")),
    int: (number, number_from),
    datetime: (instant, instant_from),
    bytes: (lambda value: {"B": value}, lambda value: bytes(value["B"])),
}
_DEFLATED: Final[tuple[Encode, Decode]] = (deflated, inflated)


class Codec(Generic[T]):
    """Encodes and decodes records of the dataclass `kind`.

    `names` maps fields to attributes of another name, `groups` attributes to the fields in them.
    `later` is a field of a group: the JSON text of its unknown members. Other attributes are
    ignored.
    """

    def __init__(
        self,
        kind: type[T],
        *,
        names: Mapping[str, str] | None = None,
        deflated: Collection[str] = (),
        groups: Mapping[str, Collection[str]] | None = None,
        later: str | None = None,
    ) -> None:
        renamed, groups, columns = names or {}, groups or {}, _columns(kind)
        grouped = {name for members in groups.values() for name in members}
        self._kind = kind
        self._absent = {
            name: None for name, (hint, required) in columns.items() if required and _optional(hint)
        }
        self._groups = {
            attribute: _Group({name: columns[name][0] for name in members}, later)
            for attribute, members in groups.items()
        }
        self._own = {
            renamed.get(name, name): (name, *(_DEFLATED if name in deflated else _pair(hint)))
            for name, (hint, _) in columns.items()
            if name not in grouped
        }

    @property
    def attributes(self) -> tuple[str, ...]:
        """Return the names of all attributes that a record may have."""
        return (*self._own, *self._groups)

    def encode(self, record: T, groups: Collection[str] | None = None) -> Item:
        """Return the attributes of `record`, with these groups or all."""
        item = {
            attribute: encode(value)
            for attribute, (name, encode, _) in self._own.items()
            if (value := getattr(record, name)) is not None
        }
        for attribute in self._groups if groups is None else groups:
            item[attribute] = self.encode_group(attribute, record)
        return item

    def encode_group(self, attribute: str, record: T) -> Value:
        """Return the attribute of a group of fields."""
        return self._groups[attribute].encode(record)

    def changed_groups(self, before: T, after: T) -> list[str]:
        """Return the attributes of the groups in which the records differ."""
        return [
            attribute
            for attribute, group in self._groups.items()
            if any(getattr(before, name) != getattr(after, name) for name in group.members)
        ]

    def decode(self, item: Mapping[str, Value]) -> T:
        """Return the record of `item`. A field without an attribute has its default, or is None.

        Raises TypeError if a required attribute is missing, KeyError, TypeError or ValueError if
        one is damaged.
        """
        found: dict[str, Any] = {**self._absent}
        for attribute, value in item.items():
            if column := self._own.get(attribute):
                name, _, decode = column
                found[name] = decode(value)
            elif group := self._groups.get(attribute):
                found |= group.decode(value)
        return self._kind(**found)


class _Group:
    """Encodes and decodes the fields that share an attribute."""

    def __init__(self, hints: Mapping[str, Any], later: str | None) -> None:
        self.members = {name: _json(hint) for name, hint in hints.items()}
        self._later = later if later in hints else None

    def encode(self, record: Any) -> Value:
        found = {
            name: to(value)
            for name, (to, _) in self.members.items()
            if (value := getattr(record, name)) is not None
        }
        if self._later in found:
            found = json.loads(found.pop(self._later)) | found
        return deflated(compact(found))

    def decode(self, value: Value) -> dict[str, Any]:
        stored = json.loads(inflated(value))
        found = {
            name: back(stored.pop(name))
            for name, (_, back) in self.members.items()
            if name in stored
        }
        if stored and self._later is not None:  # a later release may have more
            found[self._later] = compact(stored)
        return found


def _columns(kind: Any) -> dict[str, tuple[Any, bool]]:
    """Return for each field its type, and whether it has no default."""
    hints = get_type_hints(kind)
    return {each.name: (hints[each.name], each.default is MISSING) for each in fields(kind)}


def _optional(hint: Any) -> bool:
    return NoneType in get_args(hint)


def _given(hint: Any) -> Any:
    """Return the type of a value that is there."""
    return get_args(hint)[0] if _optional(hint) else hint


def _pair(hint: Any) -> tuple[Encode, Decode]:
    """Return the functions that convert a value of this type to an attribute and back."""
    hint = _given(hint)
    if hint in _PLAIN:
        return _PLAIN[hint]
    if get_origin(hint) is tuple:
        to, back = _pair(get_args(hint)[0])
        return (
            lambda values: {"L": [to(each) for each in values]},
            lambda value: tuple([back(each) for each in value["L"]]),
        )
    if is_dataclass(hint):
        return _map(hint)
    if issubclass(hint, StrEnum):
        return text, lambda value: hint(value["S"])
    raise TypeError(f"no encoding for {hint}")


def _map(kind: Any) -> tuple[Encode, Decode]:
    codec: Codec[Any] = Codec(kind)
    return lambda record: {"M": codec.encode(record)}, lambda value: codec.decode(value["M"])


def _json(hint: Any) -> tuple[Convert, Convert]:
    """Return the functions that convert a value of this type to JSON and back."""
    hint = _given(hint)
    if hint in (str, int):
        return _itself, _itself
    if hint is datetime:
        return milliseconds, moment
    if get_origin(hint) is tuple:
        to, back = _json(get_args(hint)[0])
        return lambda values: [*map(to, values)], lambda values: (*map(back, values),)
    if is_dataclass(hint):
        return _row(hint)
    if issubclass(hint, StrEnum):
        return str, hint
    raise TypeError(f"no encoding for {hint}")


def _itself(value: Any) -> Any:
    return value


def _row(kind: Any) -> tuple[Convert, Convert]:
    """Return these functions for a dataclass, which becomes a list of its values."""
    columns = _columns(kind)
    pairs = [(name, *_json(hint)) for name, (hint, _) in columns.items()]
    least = sum(required for _, required in columns.values())

    def pack(record: Any) -> list[Any]:
        row = [
            None if (value := getattr(record, name)) is None else to(value) for name, to, _ in pairs
        ]
        while len(row) > least and row[-1] is None:
            del row[-1]
        return row

    def unpack(row: list[Any]) -> Any:  # a later release may have more values
        return kind(
            *[
                None if value is None else back(value)
                for value, (_, _, back) in zip(row, pairs, strict=False)
            ]
        )

    return pack, unpack
