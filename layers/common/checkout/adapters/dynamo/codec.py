"""Frozen dataclasses as DynamoDB items and back, by their field types.

`Codec(kind)` reads the annotations once, at import; a new field needs no change here. Each field is
an attribute of its name:

    str, StrEnum      S               tuple[X, ...]   L
    int               N               a dataclass     M
    datetime          N, epoch ms     X | None        no attribute for None
    bytes             B

DynamoDB charges a write by the size of the whole item, names included, and allows 400 KB. So fields
that no condition and no index needs are stored in little space:

    packed     a tuple of dataclasses as one JSON text (S): a row per record with the values in the
               order of the fields; a row may lack the last ones, if they have defaults
    deflated   a text, compressed (B)
    groups     several fields as one JSON object by their names, compressed (B); dataclasses in it
               are rows, too. A field that is None is left out. One field of a group may hold the
               members that only a later release knows, so that they are written again

In JSON, times are epoch milliseconds.
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

T = TypeVar("T")
Encode = Callable[[Any], Value]
Decode = Callable[[Value], Any]
Convert = Callable[[Any], Any] | None

_JSON: Final = json.JSONDecoder()  # `json.loads` takes twice as long for a short text
_PLAIN: Final[dict[Any, tuple[Encode, Decode]]] = {
    str: (text, itemgetter("S")),
    int: (number, number_from),
    datetime: (instant, instant_from),
    bytes: (lambda value: {"B": value}, lambda value: bytes(value["B"])),
}


class Codec(Generic[T]):
    """Encodes and decodes records of the dataclass `kind`.

    `names` maps fields to attributes of another name, `groups` attributes to the fields in them.
    `later` is a field of a group: the JSON text of its unknown members. Other attributes are
    ignored. A record of a class without slots is made without its `__init__`,
    in a tenth of the time.
    """

    def __init__(
        self,
        kind: type[T],
        *,
        names: Mapping[str, str] | None = None,
        packed: Collection[str] = (),
        deflated: Collection[str] = (),
        groups: Mapping[str, Collection[str]] | None = None,
        later: str | None = None,
    ) -> None:
        renamed, hints, columns = names or {}, get_type_hints(kind), _columns(kind)
        without = [name for name, default in columns.items() if not default]
        self._absent: dict[str, Any] = {name: None for name in without if _optional(hints[name])}
        self._required = set(without) - set(self._absent)
        self._groups = {
            attribute: _Group({name: hints[name] for name in members}, later)
            for attribute, members in (groups or {}).items()
        }
        grouped = {name for group in self._groups.values() for name in group.members}
        special = dict.fromkeys(deflated, _DEFLATED) | {
            name: _packed(hints[name]) for name in packed
        }
        pairs = {
            name: special.get(name) or _pair(hints[name]) for name in columns if name not in grouped
        }
        self._kind = kind
        self._values = attrgetter(*pairs)
        self._encoders = [(renamed.get(name, name), pair[0]) for name, pair in pairs.items()]
        self._decoders = {renamed.get(name, name): (name, pair[1]) for name, pair in pairs.items()}

    @property
    def attributes(self) -> tuple[str, ...]:
        """Return the names of all attributes that a record may have."""
        return (*(name for name, _ in self._encoders), *self._groups)

    def encode(self, record: T, groups: Collection[str] | None = None) -> Item:
        """Return the attributes of `record`, with these groups or all."""
        item = {
            name: encode(value)
            for (name, encode), value in zip(self._encoders, self._values(record), strict=True)
            if value is not None
        }
        for attribute in self._groups if groups is None else groups:
            item[attribute] = self.encode_group(attribute, record)
        return item

    def encode_group(self, attribute: str, record: T) -> Value:
        """Return the attribute of a group of fields."""
        return self._groups[attribute].encode(record)

    def changed_groups(self, before: T, after: T) -> list[str]:
        """Return the attributes of the groups in which the records differ."""
        return [name for name, group in self._groups.items() if group.differs(before, after)]

    def decode(self, item: Mapping[str, Value]) -> T:
        """Return the record of `item`. A field without an attribute has its default, or is None.

        Raises KeyError if a required attribute is missing.
        """
        found = self._absent.copy()
        for attribute, value in item.items():
            if field := self._decoders.get(attribute):
                name, decode = field
                found[name] = decode(value)
            elif group := self._groups.get(attribute):
                found |= group.decode(value)
        if not found.keys() >= self._required:
            raise KeyError(*self._required - found.keys())
        if "__slots__" in vars(self._kind):  # its own: those of ABC, a base of sessions, are none
            return self._kind(**found)
        record = object.__new__(self._kind)
        record.__dict__.update(found)
        return record


class _Group:
    """Encodes and decodes the fields that share an attribute."""

    def __init__(self, hints: Mapping[str, Any], later: str | None) -> None:
        self.members = {name: _json(hint) for name, hint in hints.items()}
        self._later = later if later in hints else None
        self._values = attrgetter(*hints)
        self._decoders = [(name, back) for name, (_, back) in self.members.items() if back]

    def differs(self, before: Any, after: Any) -> bool:
        return bool(self._values(before) != self._values(after))

    def encode(self, record: Any) -> Value:
        values = zip(self.members.items(), self._values(record), strict=True)
        found = {
            name: to(value) if to else value
            for (name, (to, _)), value in values
            if value is not None
        }
        if self._later in found:
            found = {**json.loads(found.pop(self._later)), **found}
        return deflated(compact(found))

    def decode(self, value: Value) -> dict[str, Any]:
        plain = inflated(value)
        found: dict[str, Any]
        found, end = _JSON.raw_decode(plain)
        if end != len(plain):
            raise ValueError("a group is not one JSON object")
        if not found.keys() <= self.members.keys():  # a later release may have more
            later = {name: each for name, each in found.items() if name not in self.members}
            found = {name: each for name, each in found.items() if name in self.members}
            if self._later is not None:
                found[self._later] = compact(later)
        for name, back in self._decoders:
            if name in found:
                found[name] = back(found[name])
        return found


def compact(value: Any) -> str:
    """Return `value` as JSON without spaces and without escapes for non-ASCII text."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def _columns(kind: Any) -> dict[str, bool]:
    """Return the names of the fields, and whether each has a default."""
    found = {field.name: field.default is not MISSING for field in fields(kind)}
    assert len(found) > 1, "attrgetter of one name gives no tuple"
    assert not hasattr(kind, "__post_init__"), "a record may be made without __init__"
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
    to, back = _json(hint)
    if to is None or back is None:
        raise TypeError(f"nothing to pack in {hint}")
    return lambda records: text(compact(to(records))), lambda value: back(json.loads(value["S"]))


def _json(hint: Any) -> tuple[Convert, Convert]:
    """Return the functions that convert a value of this type to JSON and back, or None for JSON.

    They are never called with None.
    """
    if _optional(hint):
        (hint,) = (each for each in get_args(hint) if each is not NoneType)
    if hint in (str, int):
        return None, None
    if hint is datetime:
        return milliseconds, moment
    if get_origin(hint) is tuple:
        to, back = _json(get_args(hint)[0])
        return (
            lambda values: [to(each) for each in values] if to else list(values),
            lambda values: tuple([back(each) for each in values]) if back else tuple(values),
        )
    if is_dataclass(hint):
        return _row(hint)
    if issubclass(hint, StrEnum):
        return str, hint
    raise TypeError(f"no encoding for {hint}")


def _row(kind: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return these functions for a dataclass, which becomes a list of its values."""
    columns, hints = list(_columns(kind)), get_type_hints(kind)
    values, pairs = attrgetter(*columns), [_json(hints[name]) for name in columns]
    to_convert = [(place, to, back) for place, (to, back) in enumerate(pairs) if to and back]
    least = sum(not default for default in _columns(kind).values())

    def pack(record: Any) -> list[Any]:
        row = list(values(record))
        for place, to, _ in to_convert:
            if row[place] is not None:
                row[place] = to(row[place])
        while len(row) > least and row[-1] is None:
            del row[-1]
        return row

    def unpack(row: list[Any]) -> Any:
        present = len(row)
        for place, _, back in to_convert:
            if place < present and row[place] is not None:
                row[place] = back(row[place])
        return kind(*row[: len(columns)])  # a later release may have more

    return pack, unpack


_DEFLATED: Final[tuple[Encode, Decode]] = (deflated, inflated)
