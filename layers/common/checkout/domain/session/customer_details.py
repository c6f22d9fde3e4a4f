"""The details that a customer has given: contact, addresses, and answers.

Only the form of a text is checked. Whether a telephone number exists, for example, is not checked.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from checkout.domain.ground import addresses
from checkout.domain.ground.addresses import Address, Fault
from checkout.domain.ground.grammar import EMAIL_MAX, email_of
from checkout.domain.ground.names import is_name, shown
from checkout.domain.session.collect import Collect, Detail, Place, Question, QuestionKind

__all__ = ["Detail", "Fault"]  # re-exported for the users of this module

NAME_MAX: Final = 100  # characters
PHONE_MAX: Final = 40  # characters, as typed
SAME: Final = "billing_same"  # the field for a billing address equal to the shipping address
ANSWER: Final = "answer_"  # before the key of a question, in the names of fields
_DIGITS_MIN, _DIGITS_MAX = 5, 15  # of a phone number; ITU-T E.164 has at most 15
_BETWEEN: Final = frozenset(" -./()\u00a0")  # what people write between the digits

MAX: Final = {Detail.EMAIL: EMAIL_MAX, Detail.NAME: NAME_MAX, Detail.PHONE: PHONE_MAX}


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a question of the shop. `shown` is the label of a chosen option, or the text."""

    key: str
    label: str
    kind: QuestionKind
    value: str = field(repr=False)
    shown: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class CustomerDetails:
    """The details of one customer. Logs do not show them."""

    email: str | None = field(default=None, repr=False)
    name: str | None = field(default=None, repr=False)
    phone: str | None = field(default=None, repr=False)
    shipping: Address | None = field(default=None, repr=False)
    billing: Address | None = field(default=None, repr=False)
    answers: tuple[Answer, ...] = field(default=(), repr=False)

    @property
    def masked(self) -> CustomerDetails:
        """Return the details in a form that anybody may see, such as `K. …` and `k…@c…`."""
        name = f"{self.name[:1]}. …" if self.name else None
        email = None
        if self.email:
            local, _, host = self.email.partition("@")
            email = f"{local[:1]}…@{host[:1]}…"
        return CustomerDetails(email=email, name=name)

    def to_json(self) -> str:
        """Return e-mail, name and phone as compact JSON, without those that were not given."""
        return _compact({each.value: getattr(self, each) for each in Detail})

    def further_json(self) -> str:
        """Return addresses and answers as compact JSON, without those that were not given."""
        found: dict[str, Any] = {
            place.value: _present(asdict(address))
            for place in Place
            if (address := getattr(self, place)) is not None
        }
        found["answers"] = [asdict(each) for each in self.answers] or None
        return _compact(found)


NONE_GIVEN: Final = CustomerDetails()


def from_json(text: str, further: str | None = None) -> CustomerDetails:
    """Return the details that `to_json` and `further_json` wrote."""
    given = CustomerDetails(**json.loads(text))
    if further is None:
        return given
    found = json.loads(further)
    places: dict[str, Any] = {each.value: Address(**found[each]) for each in Place if each in found}
    answers = tuple(
        Answer(**each | {"kind": QuestionKind(each["kind"])}) for each in found.get("answers", ())
    )
    return replace(given, **places, answers=answers)


def country_of(typed: Mapping[str, str], collect: Collect, place: Place, usual: str) -> str:
    """Return the country of an address in a form.

    This is the country that the customer chose, otherwise `usual`, otherwise the first country.
    """
    possible = collect.countries(place)
    wished = typed.get(f"{place}_country", "")
    return next((each for each in (wished, usual) if each in possible), possible[0])


def checked(typed: Mapping[str, str], collect: Collect) -> tuple[CustomerDetails, dict[str, Fault]]:
    """Return the details in a form, and the faults in it. Only the requested fields are read."""
    wrong: dict[str, Fault] = {}
    given: dict[str, Any] = _details(typed, collect, wrong)
    given |= _addresses(typed, collect, wrong)
    answers = _answers(typed, collect, wrong)
    if collect.places:
        addressees = (given[place.value] for place in collect.places)
        given["name"] = next((each.name for each in addressees if each), None)
    return CustomerDetails(**given, answers=answers), wrong


def _details(typed: Mapping[str, str], collect: Collect, wrong: dict[str, Fault]) -> dict[str, str]:
    given: dict[str, str] = {}
    for each in collect.details:
        text = _text(typed, each.value)
        if text:
            found = _FORMS[each](text)
            if found is None:
                wrong[each.value] = Fault.INVALID
            else:
                given[each.value] = found
        elif each in collect.required:
            wrong[each.value] = Fault.MISSING
    return given


def _addresses(
    typed: Mapping[str, str], collect: Collect, wrong: dict[str, Fault]
) -> dict[str, Address | None]:
    given: dict[str, Address | None] = {}
    for place in collect.places:
        required = place in collect.required
        shipped = given.get(Place.SHIPPING.value)
        same = place is Place.BILLING and collect.copies and typed.get(SAME)
        if same and (shipped or not required):
            given[place.value] = shipped
            continue
        country = country_of(typed, collect, place, "")
        given[place.value], faults = addresses.checked(
            typed, f"{place}_", country=country, required=required
        )
        wrong |= faults
    return given


def _answers(
    typed: Mapping[str, str], collect: Collect, wrong: dict[str, Fault]
) -> tuple[Answer, ...]:
    answers = []
    for question in collect.questions:
        name = f"{ANSWER}{question.key}"
        text = _text(typed, name)
        answer = _answer(question, text) if text else None
        if answer is not None:
            answers.append(answer)
        elif text:
            wrong[name] = Fault.INVALID
        elif question.required:
            wrong[name] = Fault.MISSING
    return tuple(answers)


def _text(typed: Mapping[str, str], name: str) -> str:
    return " ".join(typed.get(name, "").split())


def _answer(question: Question, text: str) -> Answer | None:
    """Return the answer, or None if the text cannot be an answer to the question."""
    label = text
    if question.kind is QuestionKind.DROPDOWN:
        chosen = (each for each in question.options if " ".join(each[0].split()) == text)
        found = next(chosen, None)
        if found is None:
            return None
        text, label = found
    elif question.kind is QuestionKind.NUMERIC:
        text = label = _ascii_digits(text)
        if not (text.isascii() and text.isdigit()):
            return None
    if len(text) > question.longest or len(text) < (question.least or 0) or not shown(text):
        return None
    return Answer(question.key, question.label, question.kind, text, label)


def _name(text: str) -> str | None:
    return text if is_name(text, NAME_MAX) else None


def _phone(text: str) -> str | None:
    """Return a phone number with its digits as ASCII, or None."""
    plain = _ascii_digits(text)
    digits = [each for each in plain if "0" <= each <= "9"]
    rest = set(plain.removeprefix("+")) - set(digits)
    fits = len(plain) <= PHONE_MAX and _DIGITS_MIN <= len(digits) <= _DIGITS_MAX
    return plain if fits and rest <= _BETWEEN else None


def _ascii_digits(text: str) -> str:
    """Return the text with all digits as 0 to 9."""
    return "".join(str(unicodedata.decimal(each, each)) for each in text)


def _compact(found: Mapping[str, Any]) -> str:
    return json.dumps(_present(found), separators=(",", ":"), ensure_ascii=False)


def _present(found: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if value is not None}


_FORMS: Final = {Detail.EMAIL: email_of, Detail.NAME: _name, Detail.PHONE: _phone}
