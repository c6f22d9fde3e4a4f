"""The details that a payment link asks of its customer: a name, and how the shop reaches them.

A text is checked for its form only: nobody can say from here whether a number is answered.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Final

from checkout.domain.grammar import EMAIL_MAX, email_of

NAME_MAX: Final = 100  # characters
PHONE_MAX: Final = 40  # characters, as typed
_DIGITS_MIN, _DIGITS_MAX = 5, 15  # of a phone number; ITU-T E.164 has at most 15
_BETWEEN: Final = frozenset(" -./()\u00a0")  # what people write between the digits


class Detail(StrEnum):
    """The details that can be asked, in the order of the form."""

    EMAIL = "email"
    NAME = "name"
    PHONE = "phone"


class Fault(StrEnum):
    """The reason why a detail is not taken."""

    MISSING = "missing"
    INVALID = "invalid"


MAX: Final = {Detail.EMAIL: EMAIL_MAX, Detail.NAME: NAME_MAX, Detail.PHONE: PHONE_MAX}


@dataclass(frozen=True, slots=True)
class CustomerDetails:
    """The details of one customer. None of them shows in a log."""

    email: str | None = field(default=None, repr=False)
    name: str | None = field(default=None, repr=False)
    phone: str | None = field(default=None, repr=False)

    def to_json(self) -> str:
        """Return what was given as compact JSON."""
        given = {name: text for name, text in asdict(self).items() if text is not None}
        return json.dumps(given, separators=(",", ":"), ensure_ascii=False)


NONE_GIVEN: Final = CustomerDetails()


def from_json(text: str) -> CustomerDetails:
    """Return the details that `to_json` wrote."""
    return CustomerDetails(**json.loads(text))


def checked(
    typed: Mapping[str, str], *, asked: Collection[Detail], required: Collection[Detail]
) -> tuple[CustomerDetails, dict[Detail, Fault]]:
    """Return the details of a form, and what is wrong with it. Only what is `asked` is read."""
    given: dict[str, str] = {}
    wrong: dict[Detail, Fault] = {}
    for each in asked:
        text = " ".join(typed.get(each.value, "").split())
        if text:
            found = _FORMS[each](text)
            if found is None:
                wrong[each] = Fault.INVALID
            else:
                given[each.value] = found
        elif each in required:
            wrong[each] = Fault.MISSING
    return CustomerDetails(**given), wrong


def _name(text: str) -> str | None:
    return text if len(text) <= NAME_MAX and text.isprintable() else None


def _phone(text: str) -> str | None:
    """Return a phone number with its digits as ASCII, or None."""
    plain = "".join(str(unicodedata.decimal(each, each)) for each in text)
    digits = [each for each in plain if "0" <= each <= "9"]
    rest = set(plain.removeprefix("+")) - set(digits)
    fits = len(plain) <= PHONE_MAX and _DIGITS_MIN <= len(digits) <= _DIGITS_MAX
    return plain if fits and rest <= _BETWEEN else None


_FORMS: Final = {Detail.EMAIL: email_of, Detail.NAME: _name, Detail.PHONE: _phone}
