"""What a shop asks its customers for: details, addresses, and answers to its own questions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from checkout.domain.ground.addresses import countries
from checkout.domain.ground.errors import ParameterInvalid

QUESTIONS_MAX: Final = 3
KEY_MAX: Final = 200  # characters, ASCII letters and digits
LABEL_MAX: Final = 100  # characters
OPTIONS_MAX: Final = 200
OPTION_MAX: Final = 100  # characters
ANSWER_MAX: Final = 255  # characters


class Detail(StrEnum):
    """The details that a shop can ask for, in the order of the form."""

    EMAIL = "email"
    NAME = "name"
    PHONE = "phone"


class Place(StrEnum):
    """The addresses that a shop can ask for, in the order of the form."""

    SHIPPING = "shipping"
    BILLING = "billing"


class QuestionKind(StrEnum):
    """The kinds of questions. The answer to a DROPDOWN is one of its options."""

    TEXT = "text"
    NUMERIC = "numeric"
    DROPDOWN = "dropdown"


@dataclass(frozen=True, slots=True)
class Question:
    """A question of the shop.

    `options` are the values and labels of a DROPDOWN. `least` and `most` limit the number of
    characters of other answers.
    """

    key: str
    label: str
    kind: QuestionKind
    required: bool = True
    options: tuple[tuple[str, str], ...] = ()
    least: int | None = None
    most: int | None = None

    @property
    def longest(self) -> int:
        """Return how many characters an answer may have."""
        return min(self.most or ANSWER_MAX, ANSWER_MAX)


@dataclass(frozen=True, slots=True)
class Collect:
    """What the customer is asked for. The customer must fill in the details in `required`.

    `ships_to` are the countries allowed in the shipping address; empty means all. If `email_known`
    is true, the shop has given an e-mail address, which is used if the customer gives none.
    """

    asked: frozenset[Detail | Place] = frozenset()
    required: frozenset[Detail | Place] = frozenset()
    ships_to: tuple[str, ...] = ()
    questions: tuple[Question, ...] = ()
    email_known: bool = False

    def __bool__(self) -> bool:
        return bool(self.asked or self.questions)

    @property
    def requires(self) -> bool:
        """Return whether the customer must fill in any detail."""
        return bool(self.required) or any(each.required for each in self.questions)

    @property
    def details(self) -> tuple[Detail, ...]:
        """Return the details that need their own field; a name in an address form needs none."""
        named = bool(self.places)
        return tuple(
            each for each in Detail if each in self.asked and not (named and each is Detail.NAME)
        )

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(each for each in Place if each in self.asked)

    @property
    def copies(self) -> bool:
        """Return whether the customer can use the shipping address as the billing address."""
        return len(self.places) == len(Place)

    def countries(self, place: Place) -> tuple[str, ...]:
        """Return the countries that the form allows for this address."""
        return self.ships_to if place is Place.SHIPPING and self.ships_to else countries()

    def to_json(self) -> str:
        """Return this object as compact JSON, without empty fields."""
        found: dict[str, Any] = {}
        for name in ("asked", "required"):
            if chosen := getattr(self, name):
                found[name] = sorted(chosen)
        if self.ships_to:
            found["ships_to"] = list(self.ships_to)
        if self.questions:
            found["questions"] = [_question_json(each) for each in self.questions]
        if self.email_known:
            found["email_known"] = True
        return json.dumps(found, separators=(",", ":"), ensure_ascii=False)


NOTHING_ASKED: Final = Collect()
_ASKABLE: Final[dict[str, Detail | Place]] = {each.value: each for each in (*Detail, *Place)}


def from_json(text: str | None) -> Collect:
    """Return the object that `to_json` wrote, without details that this release does not have."""
    if text is None:
        return NOTHING_ASKED
    found = json.loads(text)
    return Collect(
        asked=_known(found.get("asked", ())),
        required=_known(found.get("required", ())),
        ships_to=tuple(found.get("ships_to", ())),
        questions=tuple(map(_question_from, found.get("questions", ()))),
        email_known=found.get("email_known", False),
    )


def known_countries(codes: list[str], *, param: str) -> tuple[str, ...]:
    """Return the codes in capitals, without repeats. Raise ParameterInvalid for an unknown code."""
    found = (known_country(each, param=param) for each in codes if each.strip())
    return tuple(dict.fromkeys(found))


def listed_countries(codes: list[str], *, param: str) -> tuple[str, ...]:
    """Return the codes as `known_countries` does, with an error that names the list position."""
    found = (known_country(each, param=f"{param}[{at}]") for at, each in enumerate(codes))
    return tuple(dict.fromkeys(found))


def known_country(code: str, *, param: str) -> str:
    """Return a country's code in capitals. Raise ParameterInvalid for an unknown code."""
    found = code.strip().upper()
    if found not in countries():
        raise ParameterInvalid(
            f"{found[:20]} is not a country code. Use two letters, such as DE or US.", param=param
        )
    return found


def _known(names: list[str]) -> frozenset[Detail | Place]:
    return frozenset(_ASKABLE[each] for each in names if each in _ASKABLE)


def _question_json(question: Question) -> dict[str, Any]:
    found = {
        "key": question.key,
        "label": question.label,
        "kind": question.kind.value,
        "required": question.required,
        "options": [list(each) for each in question.options],
        "least": question.least,
        "most": question.most,
    }
    return {name: value for name, value in found.items() if value not in (None, [])}


def _question_from(found: Mapping[str, Any]) -> Question:
    return Question(
        key=found["key"],
        label=found["label"],
        kind=QuestionKind(found["kind"]),
        required=found["required"],
        options=tuple((value, label) for value, label in found.get("options", ())),
        least=found.get("least"),
        most=found.get("most"),
    )
