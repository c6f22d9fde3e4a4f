"""The kinds of records that a codec stores, with samples of all their values.

This file is packed with each release, beside its code, so it uses nothing of the tests. Run with a
release's code, `python kinds.py` writes its samples, or reads records from standard input.

A sample is made of the annotations: each value of each enumeration occurs in one, each optional
field is absent in one and present in another.
"""

from __future__ import annotations

import base64
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import NoneType
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

from checkout.adapters.dynamo import (
    events,
    expiring_tokens,
    links,
    merchants,
    people,
    records,
    refunds,
)
from checkout.domain.merchant.record import ApiKey, Merchant

START = datetime(2026, 11, 1, 12, tzinfo=UTC)


class Kind(NamedTuple):
    """How records of `made_of` are stored."""

    made_of: Any
    encode: Callable[[Any], dict[str, Any]]
    decode: Callable[[Any], Any]


def of_codec(codec: Any) -> Kind:
    """Return the kind that a codec stores."""
    return Kind(codec._kind, codec.encode, codec.decode)


KINDS = {
    "session": of_codec(records._SESSION),
    "answer": of_codec(records._RESERVATION),
    "event": of_codec(events._EVENT),
    "due event": of_codec(events._DUE),
    "merchant": Kind(Merchant, merchants.merchant_item, merchants.merchant_from),
    "key": Kind(ApiKey, merchants.key_item, merchants.key_from),
    "member": of_codec(people._MEMBER),
    "invitation": of_codec(people._INVITATION),
    "audit": of_codec(people._ENTRY),
    "sign-in": of_codec(expiring_tokens._SIGN_IN),
    "link": of_codec(links._LINK),
    "refund": of_codec(refunds._REFUND),
    "mandate": of_codec(refunds._MANDATE),
    "refusals": of_codec(expiring_tokens._REFUSALS),
    "subscriber": of_codec(people._SUBSCRIBER),
}


def samples(kind: Any, without: frozenset[str] = frozenset()) -> Iterator[Any]:
    """Yield records of a dataclass. No enumeration has a value of `without`."""
    yield make(kind, -1, without)
    for variant in range(variants(kind, without)):
        yield make(kind, variant, without)


def make(kind: Any, variant: int, without: frozenset[str]) -> Any:
    """Return a record; with variant -1, it has nothing that may be absent."""
    hints = get_type_hints(kind)
    given = {}
    for place, field in enumerate(fields(kind)):
        if variant < 0 and field.default is not MISSING:
            continue
        given[field.name] = value(hints[field.name], f"{field.name}{place}", variant, without)
    return kind(**given)


def value(hint: Any, name: str, variant: int, without: frozenset[str]) -> Any:
    """Return a value of this type. It differs from field to field and from variant to variant."""
    options = get_args(hint)
    if NoneType in options:
        if variant < 0:
            return None
        (hint,) = (each for each in options if each is not NoneType)
    number = abs(variant) * 1000 + sum(map(ord, name))
    if hint is str and name.startswith("later_json"):
        return f'{{"of_tomorrow":{number}}}'
    if hint is str:
        return f"{name} ä {number}"
    if hint is int:
        return number
    if hint is bytes:
        return name.encode()
    if hint is datetime:
        return START + timedelta(milliseconds=number)
    if get_origin(hint) is tuple:
        inner = get_args(hint)[0]
        return tuple(value(inner, f"{name}{each}", variant + each, without) for each in (0, 1))
    if is_dataclass(hint):
        return make(hint, variant, without)
    allowed = members(hint, without)
    return allowed[variant % len(allowed)]


def members(hint: type[StrEnum], without: frozenset[str]) -> list[StrEnum]:
    """Return the values of an enumeration, less those of `without`, as `Kind.value`."""
    return [each for each in hint if f"{hint.__name__}.{each.value}" not in without]


def variants(kind: Any, without: frozenset[str]) -> int:
    """Return how many records it takes until each value of each enumeration has occurred."""
    found: list[type[StrEnum]] = [*enumerations(kind), Least]
    return max(len(members(each, without)) for each in found)


class Least(StrEnum):
    """Of no record: a kind without an enumeration has two samples too."""

    ONE = "one"
    TWO = "two"


def enumerations(hint: Any) -> Iterator[type[StrEnum]]:
    """Yield the enumerations in a type."""
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        yield hint
    elif is_dataclass(hint):
        for each in get_type_hints(hint).values():
            yield from enumerations(each)
    else:
        for each in get_args(hint):
            yield from enumerations(each)


def plain(record: Any) -> Any:
    """Return a record as JSON, to compare it with that of another release."""
    if is_dataclass(record):
        return {each.name: plain(getattr(record, each.name)) for each in fields(record)}
    if isinstance(record, tuple):
        return [plain(each) for each in record]
    if isinstance(record, datetime):
        return record.isoformat()
    if isinstance(record, bytes):
        return record.hex()
    return record


def packed(item: Any) -> Any:
    """Return an item of DynamoDB as JSON."""
    if isinstance(item, dict):
        return {name: packed(each) for name, each in item.items()}
    if isinstance(item, list):
        return [packed(each) for each in item]
    if isinstance(item, bytes):
        return base64.b64encode(item).decode()
    return item


def unpacked(item: Any) -> Any:
    """Return the item of DynamoDB of its JSON."""
    if isinstance(item, list):
        return [unpacked(each) for each in item]
    if not isinstance(item, dict):
        return item
    return {
        name: base64.b64decode(each) if name == "B" and isinstance(each, str) else unpacked(each)
        for name, each in item.items()
    }


def written(without: frozenset[str] = frozenset()) -> dict[str, list[dict[str, Any]]]:
    """Return the samples of all kinds, each as it is and as it is stored."""
    return {
        name: [
            {"record": plain(each), "item": packed(kind.encode(each))}
            for each in samples(kind.made_of, without)
        ]
        for name, kind in KINDS.items()
    }


def read(stored: dict[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """Return each record as it is read, and as it is stored again; or why it cannot be read."""

    def again(kind: Kind, item: Any) -> dict[str, Any]:
        try:
            record = kind.decode(unpacked(item))
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
            return {"failed": repr(error)}
        return {"record": plain(record), "item": packed(kind.encode(record))}

    return {
        name: [again(KINDS[name], each["item"]) for each in found]
        for name, found in stored.items()
        if name in KINDS
    }


if __name__ == "__main__":
    answer = written() if "--write" in sys.argv else read(json.load(sys.stdin))
    json.dump(answer, sys.stdout, ensure_ascii=False)
