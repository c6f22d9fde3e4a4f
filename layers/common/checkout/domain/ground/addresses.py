"""Postal addresses in the format of their country, as fields of a form and as lines of a label.

The formats are data of Google's libaddressinput. `bin/address_formats` writes them into
address_formats.json, which a process reads when it handles its first address. Only the form of a
text is checked, not whether the address exists.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Final

from checkout.domain.ground.names import shown

PART_MAX: Final = 100  # characters
_FILE: Final = Path(__file__).with_name("address_formats.json")
_LATIN_LAST: Final = 0x24F  # the last Latin letter in Unicode that European names use
# The names of parts, used if the data of a country contain no name for a part.
_CALLED: Final = {"Z": "postal", "S": "province", "C": "city", "D": "suburb"}
_KINDS: Final = {
    "Z": "zip_name_type",
    "S": "state_name_type",
    "C": "locality_name_type",
    "D": "sublocality_name_type",
}
_TOKEN: Final = re.compile(r"%([NADCSZ])")

_PIECES: Final = re.compile(r"(%[NADCSZ])")
_SIGNS: Final = " ,-/"
_COUNTRY: Final = re.compile(r"^[A-Z]{1,3}[ -]")  # in front of a postal code, as in "D-26133"
_CODE_MAX: Final = 14  # characters; every postal code is shorter


class Fault(StrEnum):
    """The reason why a text is not accepted."""

    MISSING = "missing"
    INVALID = "invalid"


class Part(StrEnum):
    """The parts of an address, apart from its country."""

    NAME = "name"
    LINE1 = "line1"
    LINE2 = "line2"
    DISTRICT = "district"
    CITY = "city"
    STATE = "state"
    POSTAL_CODE = "postal_code"


_PARTS: Final = {
    "N": (Part.NAME,),
    "A": (Part.LINE1, Part.LINE2),
    "D": (Part.DISTRICT,),
    "C": (Part.CITY,),
    "S": (Part.STATE,),
    "Z": (Part.POSTAL_CODE,),
}


@dataclass(frozen=True, slots=True)
class Address:
    """An address, with a two-letter country (ISO 3166). Logs do not show it."""

    country: str = field(repr=False)
    name: str | None = field(default=None, repr=False)
    line1: str | None = field(default=None, repr=False)
    line2: str | None = field(default=None, repr=False)
    district: str | None = field(default=None, repr=False)
    city: str | None = field(default=None, repr=False)
    state: str | None = field(default=None, repr=False)
    postal_code: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class PartAsked:
    """One part of the addresses in a country.

    `called` is the name of the part in that country, such as `zip`, `prefecture` or `post_town`.
    If `regions` (code and name) is not empty, the part must be one of these regions. `beside` means
    that the part is on the same line as the previous part.
    """

    part: Part
    required: bool
    called: str
    example: str | None
    regions: tuple[tuple[str, str], ...]
    beside: bool


def countries() -> tuple[str, ...]:
    """Return the codes of all countries whose format is known."""
    return tuple(_rows())


def parts_asked(country: str) -> tuple[PartAsked, ...]:
    """Return the parts of an address in `country`, in the order that this country uses."""
    row = _rows()[country]
    asked = []
    for token, beside in _tokens(row["fmt"]):
        for part in _PARTS[token]:
            required = token == "N" or (token in row["require"] and part is not Part.LINE2)
            called = row.get(_KINDS.get(token, ""), _CALLED.get(token, part.value))
            regions = _regions(country) if part is Part.STATE else ()
            example = row.get("zipex") if part is Part.POSTAL_CODE else None
            asked.append(PartAsked(part, required, called, example, regions, beside))
    return tuple(asked)


def _tokens(form: str) -> Iterator[tuple[str, bool]]:
    """Yield the tokens of a form, and whether each is on the same line as the previous token.

    A name and a street always have their own line, because they are too long to share one.
    """
    for line in form.split("%n"):
        before = ""
        for token in _TOKEN.findall(line):
            yield token, bool(before) and not {before, token} & {"N", "A"}
            before = token


def checked(
    typed: Mapping[str, str], prefix: str, *, country: str, required: bool
) -> tuple[Address | None, dict[str, Fault]]:
    """Return the address in the form `typed`, and the fault of each field that is not accepted.

    The names of the address's fields begin with `prefix`. The address lacks the fields with faults.
    If `required` is false, the customer can leave out the whole address; the address is then None,
    without faults.
    """
    asked = parts_asked(country)
    texts = {each.part: " ".join(typed.get(f"{prefix}{each.part}", "").split()) for each in asked}
    if not required and not any(text for part, text in texts.items() if part is not Part.NAME):
        return None, {}
    found: dict[str, str] = {}
    wrong: dict[str, Fault] = {}
    for each in asked:
        text = texts[each.part]
        if not text:
            if each.required:
                wrong[f"{prefix}{each.part}"] = Fault.MISSING
            continue
        taken = _taken(country, each, text)
        if taken is None:
            wrong[f"{prefix}{each.part}"] = Fault.INVALID
        else:
            found[each.part.value] = taken
    return Address(country, **found), wrong


def label(address: Address) -> list[str]:
    """Return the lines of an address in its country's order, with the country's name last.

    Some countries have a second order for addresses in Latin letters. Such addresses get this
    order.
    """
    row = _rows()[address.country]
    texts = [address.name, address.line1, address.district, address.city]
    latin = all(ord(letter) <= _LATIN_LAST for text in texts for letter in text or "")
    form = row["lfmt"] if latin and "lfmt" in row else row["fmt"]
    names = dict(_regions(address.country)) if "lfmt" in row and latin else {}
    values = {
        "N": address.name,
        "A": "\n".join(filter(None, (address.line1, address.line2))),
        "D": address.district,
        "C": address.city,
        "S": names.get(address.state or "", address.state),
        "Z": address.postal_code,
    }
    for token in values.keys() & set(row["upper"]):
        values[token] = (values[token] or "").upper()
    lines = [_line(line, values) for line in form.split("%n")]
    written = [each.strip() for line in lines for each in line.split("\n")]
    return [*(line for line in written if line), row["name"]]


def _line(form: str, values: Mapping[str, str | None]) -> str:
    """Return a line with its values filled in, without the separators of missing parts."""
    text = between = ""
    for piece in _PIECES.split(form):
        value = values[piece[1]] if piece.startswith("%") else None
        if not piece.startswith("%"):
            between = piece
        elif value:
            text += (between if text or between.strip(_SIGNS) else "") + value
    return text


def _taken(country: str, asked: PartAsked, text: str) -> str | None:
    """Return a typed text in its stored form, or None if it is not valid for this part."""
    if len(text) > PART_MAX or not shown(text):
        return None
    if asked.regions:
        folded = text.casefold()
        fits = (
            code for code, name in asked.regions if folded in (code.casefold(), name.casefold())
        )
        return next(fits, None)
    form = _rows()[country].get("zip")
    if asked.part is Part.POSTAL_CODE and form is not None:
        code = unicodedata.normalize("NFKC", text).upper()
        code = "".join(str(unicodedata.decimal(each, each)) for each in code)
        return next((each for each in _spellings(code) if re.fullmatch(form, each)), None)
    return text


def _spellings(code: str) -> Iterator[str]:
    """Yield a postal code as typed, then other spellings that the customer may have meant.

    People write the country in front of a code, or leave out or exchange the space or hyphen in it.
    """
    written = (code, _COUNTRY.sub("", code))
    yield from written
    for each in written:
        bare = each.replace(" ", "").replace("-", "")[:_CODE_MAX]
        yield from (bare[:at] + sign + bare[at:] for sign in "- " for at in range(1, len(bare)))
        yield bare


@lru_cache(maxsize=300)
def _regions(country: str) -> tuple[tuple[str, str], ...]:
    """Return the code and name of each region; empty if customers type the region."""
    listed = _rows()[country].get("regions")
    if listed is None:
        return ()
    pairs = (each.partition("=") for each in listed.split("|"))
    return tuple((code, name or code) for code, _, name in pairs)


@lru_cache(maxsize=1)
def _rows() -> dict[str, dict[str, str]]:
    rows: dict[str, dict[str, str]] = json.loads(_FILE.read_text(encoding="utf-8"))
    return rows
