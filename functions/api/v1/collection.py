"""Translate the parameters that ask the customer for details into the questions of the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from api.v1.forms import Parsed
from checkout.domain.ground.errors import (
    ParameterInvalid,
    ParameterInvalidInteger,
    ParameterMissing,
)
from checkout.domain.ground.names import shown
from checkout.domain.session.collect import (
    ANSWER_MAX,
    KEY_MAX,
    LABEL_MAX,
    OPTION_MAX,
    OPTIONS_MAX,
    QUESTIONS_MAX,
    Collect,
    Detail,
    Place,
    Question,
    QuestionKind,
    listed_countries,
)

_ASKING: Final = (
    "billing_address_collection",
    "custom_fields",
    "name_collection",
    "phone_number_collection",
    "shipping_address_collection",
)


def collect(values: Mapping[str, Any]) -> Collect:
    """Return the questions that the page asks.

    If there are questions, the page also asks for the e-mail address, unless the shop has sent it.
    Raises ParameterMissing, ParameterInvalid, ParameterInvalidInteger.
    """
    asked: set[Detail | Place] = set()
    countries = values.get("shipping_address_collection", {}).get("allowed_countries", [])
    name = values.get("name_collection", {}).get("individual", {})
    if name and "enabled" not in name:
        raise _missing("name_collection[individual][enabled]")
    if countries:
        asked.add(Place.SHIPPING)
    if values.get("billing_address_collection") == "required":
        asked.add(Place.BILLING)
    if values.get("phone_number_collection", {}).get("enabled"):
        asked.add(Detail.PHONE)
    if name.get("enabled"):
        asked.add(Detail.NAME)
    questions = _questions(values.get("custom_fields", []))
    if (asked or questions) and "customer_email" not in values:
        asked.add(Detail.EMAIL)
    return Collect(
        asked=frozenset(asked),
        required=frozenset(asked - {Detail.NAME} if name.get("optional") else asked),
        ships_to=listed_countries(
            countries, param="shipping_address_collection[allowed_countries]"
        ),
        questions=questions,
    )


def first_asking(given: Parsed) -> str | None:
    """Return the name of the first parameter that asks for details, or None."""
    asking = (
        name
        for name, value in given.given
        if name.startswith(_ASKING) and value not in ("auto", "false")
    )
    return next(asking, None)


def _questions(fields: list[dict[str, Any]]) -> tuple[Question, ...]:
    if len(fields) > QUESTIONS_MAX:
        raise ParameterInvalid(
            f"There are at most {QUESTIONS_MAX} custom fields.", param="custom_fields"
        )
    questions = [_question(f"custom_fields[{number}]", each) for number, each in enumerate(fields)]
    keys: set[str] = set()
    for number, each in enumerate(questions):
        if each.key in keys:
            raise ParameterInvalid(
                "Each custom field must have a different key.",
                param=f"custom_fields[{number}][key]",
            )
        keys.add(each.key)
    return tuple(questions)


def _question(where: str, field: Mapping[str, Any]) -> Question:
    label = field.get("label", {})
    key = _code(field, "key", KEY_MAX, where)
    kind = QuestionKind(_required(field, "type", where))
    _required(label, "type", f"{where}[label]")
    for other in QuestionKind:
        if other is not kind and other.value in field:
            raise ParameterInvalid(
                f"This is only for a custom field of the type `{other}`.",
                param=f"{where}[{other}]",
            )
    given, place = field.get(kind.value, {}), f"{where}[{kind}]"
    least, most = _bounds(given, place)
    return Question(
        key=key,
        label=_shown(label, "custom", LABEL_MAX, f"{where}[label]"),
        kind=kind,
        required=not field.get("optional", False),
        options=_options(given, f"{place}[options]") if kind is QuestionKind.DROPDOWN else (),
        least=least,
        most=most,
    )


def _options(given: Mapping[str, Any], where: str) -> tuple[tuple[str, str], ...]:
    """Return the value and the label of each choice of a list question."""
    options = given.get("options", [])
    if not options:
        raise _missing(where)
    if len(options) > OPTIONS_MAX:
        raise ParameterInvalid(f"There are at most {OPTIONS_MAX} options.", param=where)
    found: dict[str, str] = {}
    for number, each in enumerate(options):
        place = f"{where}[{number}]"
        value = _code(each, "value", OPTION_MAX, place)
        if value in found:
            raise ParameterInvalid(
                "Each option must have a different value.", param=f"{place}[value]"
            )
        found[value] = _shown(each, "label", OPTION_MAX, place)
    return tuple(found.items())


def _bounds(given: Mapping[str, Any], where: str) -> tuple[int | None, int | None]:
    """Return the minimum and maximum length of an answer, each None if it was not given."""
    least, most = given.get("minimum_length"), given.get("maximum_length")
    for name, value, low in (("minimum_length", least, 0), ("maximum_length", most, 1)):
        if value is not None and not low <= value <= ANSWER_MAX:
            raise ParameterInvalidInteger(
                f"This must be {low} to {ANSWER_MAX}.", param=f"{where}[{name}]"
            )
    if least is not None and most is not None and least > most:
        raise ParameterInvalid("This is more than the maximum.", param=f"{where}[minimum_length]")
    return least, most


def _code(given: Mapping[str, Any], name: str, longest: int, where: str) -> str:
    """Return a required text of letters and digits."""
    found: str = _required(given, name, where)
    if len(found) > longest or not (found.isascii() and found.isalnum()):
        raise ParameterInvalid(
            f"This must be 1 to {longest} characters: the letters A to Z and a to z, and digits.",
            param=f"{where}[{name}]",
        )
    return found


def _shown(given: Mapping[str, Any], name: str, longest: int, where: str) -> str:
    """Return a required text that a page can show."""
    found: str = _required(given, name, where)
    if len(found) > longest or not found.strip() or not shown(found):
        raise ParameterInvalid(
            f"This must be printable text of at most {longest} characters.",
            param=f"{where}[{name}]",
        )
    return found


def _required(given: Mapping[str, Any], name: str, where: str) -> Any:
    if name not in given:
        raise _missing(f"{where}[{name}]")
    return given[name]


def _missing(param: str) -> ParameterMissing:
    return ParameterMissing("This parameter is required.", param=param)
