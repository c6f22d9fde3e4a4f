"""The customers' forms: the fields for details, and the parsing of wallets and receipt requests.

The parts of an address and their order depend on the country of the address. Choosing another
country needs no script: the browser sends the form, and gets back the form of the new country with
the typed texts. A script (turn.js) does the same as soon as the country changes.

Unknown and repeated fields are rejected. The client is not authenticated, so the length of each
text is checked before the text is parsed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from babel.core import get_global
from pydantic import BaseModel, ConfigDict

from checkout.domain.ground import addresses, grammar
from checkout.domain.ground.addresses import PART_MAX, Fault, Part, PartAsked
from checkout.domain.ground.errors import EmailInvalid, ParameterInvalid
from checkout.domain.ground.providers import Provider, has_fields
from checkout.domain.ground.typed_address import AddressMistake, mistake_in
from checkout.domain.links import AMOUNT, OpenAmount
from checkout.domain.session.collect import Collect, Detail, Place, Question, QuestionKind
from checkout.domain.session.customer_details import ANSWER, MAX, SAME, country_of
from checkout.web import validated
from open_payments.urls import MAX_URL
from open_payments.wallet_address import unquoted
from pay.language import HEADER_MAX, Reader

QUANTITY: Final = "quantity"
TURN: Final = "turn"  # the button that shows another country's form
_FORM: Final = "form"  # the hidden field with the country whose form was shown
_REGION: Final = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z]{4})?-([A-Za-z]{2})\b")
_TYPES: Final = {Detail.EMAIL: "email", Detail.PHONE: "tel"}
_TOKENS: Final = {
    Part.NAME: "name",
    Part.LINE1: "address-line1",
    Part.LINE2: "address-line2",
    Part.DISTRICT: "address-level3",
    Part.CITY: "address-level2",
    Part.STATE: "address-level1",
    Part.POSTAL_CODE: "postal-code",
}
# The parts of an address that have the same text as another part, by their names in the address
# data.
_CALLED: Final = {
    "oblast": "region",
    "area": "region",
    "parish": "region",
    "department": "region",
    "do_si": "province",
    "village_township": "district",
    "townland": "neighborhood",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A field. `hint` is a text above it, and `fault` the error message, if the text is wrong.

    `first` is true for the first wrong field of a form. With `options` (pairs of value and text)
    the field is a list to choose from. With `beside` the field is in the same row as the previous
    one.
    """

    name: str
    label: str
    typed: str
    required: bool
    longest: int
    type: str = "text"
    inputmode: str | None = None
    autocomplete: str = "off"
    dir: str = "auto"
    options: tuple[tuple[str, str], ...] = ()
    hint: str | None = None
    fault: str | None = None
    first: bool = False
    beside: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Fields that belong together.

    The group of an address has a `title`, a `place` (shipping or billing) and a `country`.
    Customers choose the country from `countries`, and the country determines the fields. `kept` has
    typed texts for which this country has no field, by the names of the fields, in case the
    customer goes back to the earlier country. If `same` is true, the customer can use the shipping
    address here, and `copied` is true if they do. `counts` is true for the group that asks for the
    quantity. `suggestions` are amounts to choose from, shown before the field for another amount;
    each is in minor units and as text.
    """

    asks: tuple[Ask, ...]
    title: str = ""
    place: str = ""
    country: str = ""
    countries: tuple[tuple[str, str], ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    optional: bool = False
    same: bool = False
    copied: bool = False
    counts: bool = False
    suggestions: tuple[tuple[int, str], ...] = ()

    @property
    def turns(self) -> bool:
        """Return whether customers can choose another country, and so get other fields."""
        return len(self.countries) > 1

    @property
    def rows(self) -> list[list[Ask]]:
        """Return the fields in their rows."""
        found: list[list[Ask]] = []
        for each in self.asks:
            if each.beside:
                found[-1].append(each)
            else:
                found.append([each])
        return found


@dataclass(frozen=True, slots=True)
class _Form:
    """A form: the typed texts and their errors."""

    typed: Mapping[str, str]
    wrong: Mapping[str, Fault]
    reader: Reader

    def ask(
        self, name: str, label: str, *, longest: int, said: str, usual: str = "", **rest: Any
    ) -> Ask:
        """Return a field, with the text `usual` until the customer types a text.

        If the typed text is wrong, the error message is `said`.
        """
        fault = self.wrong.get(name)
        sentence = self.reader.texts["buy.missing"] if fault is Fault.MISSING else said
        return Ask(
            name=name,
            label=label,
            typed=self.typed.get(name, usual)[:longest],
            longest=longest,
            fault=sentence if fault else None,
            first=name == next(iter(self.wrong), None),
            **rest,
        )


def groups(
    collect: Collect,
    reader: Reader,
    usual: str,
    typed: Mapping[str, str],
    wrong: Mapping[str, Fault],
    *,
    most: int | None = None,
    left: bool = False,
) -> list[Group]:
    """Return all fields, in groups.

    `usual` is the country for a customer who has not chosen a country. `most` is the number of
    items that a customer can buy at once, or None if the form does not ask for the quantity. `left`
    is true if fewer items are left than the customer has chosen; then the error message says so.
    """
    form = _Form(typed, wrong, reader)
    found = []
    if most is not None:
        found.append(Group(asks=(_quantity(form, most, left=left),), counts=True))
    if collect.details:
        found.append(Group(asks=tuple(_detail(form, collect, each) for each in collect.details)))
    found += [_address(form, collect, place, usual) for place in collect.places]
    if collect.questions:
        found.append(Group(asks=tuple(_question(form, each) for each in collect.questions)))
    return found


def amount_group(
    bounds: OpenAmount,
    price: Callable[[int], str],
    reader: Reader,
    typed: Mapping[str, str],
    wrong: Mapping[str, Fault],
    *,
    usual: str,
    clear: tuple[str, ...],
) -> Group:
    """Return the field for an amount that customers choose, with the text `usual` at first.

    If the typed text could mean two amounts, `clear` has a clear text for each of the two, and the
    error message shows them.
    """
    texts = reader.texts
    said = {"least": price(bounds.smallest), "most": price(bounds.largest)}
    asked = _Form(typed, wrong, reader).ask(
        AMOUNT,
        texts["buy.amount.other" if bounds.suggestions else "buy.amount"],
        longest=31,
        said=texts.text("buy.invalid.unclear", clear=" / ".join(clear))
        if clear
        else texts.text("buy.invalid.amount", **said),
        usual=usual,
        required=True,
        inputmode="decimal",
        dir="ltr",
        hint=texts.text("buy.amount.bounds", **said),
    )
    suggestions = tuple((each, price(each)) for each in bounds.suggestions)
    return Group(asks=(asked,), suggestions=suggestions)


def turned(typed: Mapping[str, str], collect: Collect) -> Place | None:
    """Return the address whose form must be shown again for another country, or None."""
    for place in collect.places:
        shown = typed.get(f"{place}_{_FORM}", "")
        copied = place is Place.BILLING and collect.copies and SAME in typed
        other = shown and shown != country_of(typed, collect, place, "") and not copied
        if other or typed.get(TURN) == place:
            return place
    return None


def usual_country(reader: Reader, accepted: str) -> str:
    """Return the country named in the browser's languages, or else the usual one of the page's."""
    named = _REGION.search(accepted[:HEADER_MAX])
    if named:
        return named[1].upper()
    likely: str = get_global("likely_subtags").get(reader.locale.language, "")
    return likely.rpartition("_")[2]


def _quantity(form: _Form, most: int, *, left: bool) -> Ask:
    texts = form.reader.texts
    said = "buy.invalid.left" if left else "buy.invalid.quantity"
    return form.ask(
        QUANTITY,
        texts["buy.quantity"],
        longest=len(str(most)),
        said=texts.text(said, most=str(most)),
        usual="1",
        required=True,
        inputmode="numeric",
        dir="ltr",
        hint=texts.text("buy.most", most=str(most)),
    )


def _detail(form: _Form, collect: Collect, detail: Detail) -> Ask:
    texts = form.reader.texts
    known = detail is Detail.EMAIL and collect.email_known
    return form.ask(
        detail.value,
        texts[f"buy.{detail}"],
        longest=MAX[detail],
        said=texts[f"buy.invalid.{detail}"],
        required=detail in collect.required,
        type=_TYPES.get(detail, "text"),
        autocomplete="tel" if detail is Detail.PHONE else detail.value,
        dir="auto" if detail is Detail.NAME else "ltr",
        hint=texts["buy.email.known"] if known else None,
    )


def _address(form: _Form, collect: Collect, place: Place, usual: str) -> Group:
    country = country_of(form.typed, collect, place, usual)
    possible = collect.countries(place)
    names = form.reader.locale.territories
    named = [(code, names.get(code, code)) for code in possible]
    same = place is Place.BILLING and collect.copies
    asked = addresses.parts_asked(country)
    return Group(
        asks=tuple(
            _part(form, place, each, required=place in collect.required and not same)
            for each in asked
        ),
        title=form.reader.texts[f"ask.{place}"],
        place=place.value,
        country=country,
        countries=tuple(sorted(named, key=lambda pair: _sorted_as(pair[1]))),
        kept=_kept(form, place, {each.part for each in asked}),
        optional=place not in collect.required,
        same=same,
        copied=same and (SAME in form.typed or not form.typed),
    )


def _kept(form: _Form, place: Place, asked: set[Part]) -> tuple[tuple[str, str], ...]:
    others = [f"{place}_{each}" for each in Part if each not in asked]
    return tuple((name, form.typed[name][:PART_MAX]) for name in others if form.typed.get(name))


def _part(form: _Form, place: Place, asked: PartAsked, *, required: bool) -> Ask:
    texts, part = form.reader.texts, asked.part
    said = texts["buy.invalid.text"]
    if asked.regions:
        said = texts["buy.invalid.choice"]
    elif asked.example:
        said = texts.text("buy.invalid.code", example=asked.example)
    return form.ask(
        f"{place}_{part}",
        texts[f"address.{_CALLED.get(asked.called, asked.called)}"],
        longest=PART_MAX,
        said=said,
        required=required and asked.required,
        inputmode="numeric" if asked.example and asked.example.isdigit() else None,
        autocomplete=f"{place} {_TOKENS[part]}",
        options=asked.regions,
        beside=asked.beside,
    )


def _question(form: _Form, question: Question) -> Ask:
    texts = form.reader.texts
    said = {
        QuestionKind.TEXT: texts["buy.invalid.length"],
        QuestionKind.NUMERIC: texts["buy.invalid.number"],
        QuestionKind.DROPDOWN: texts["buy.invalid.choice"],
    }
    return form.ask(
        f"{ANSWER}{question.key}",
        question.label,
        longest=question.longest,
        said=said[question.kind],
        required=question.required,
        inputmode="numeric" if question.kind is QuestionKind.NUMERIC else None,
        options=question.options,
    )


def _sorted_as(name: str) -> str:
    """Return the name without accents, as the key by which a list is sorted."""
    plain = unicodedata.normalize("NFKD", name.casefold())
    return "".join(each for each in plain if not unicodedata.combining(each))


BODY_MAX: Final = 32 * 1024  # bytes: more than a wallet address in its longest encoding
_UNITS: Final = re.compile(r"[0-9]{0,20}")
# Texts of these kinds cannot be names at a provider. Phone numbers are not among them, because a
# mobile money provider may use phone numbers as names.
_NO_NAMES: Final = frozenset(
    {
        AddressMistake.CARD,
        AddressMistake.IBAN,
        AddressMistake.EMAIL,
        AddressMistake.CRYPTO,
        AddressMistake.SECRET,
    }
)


class WalletForm(BaseModel):
    """The body of a wallet submission. The flow, not this class, parses the wallet address."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    wallet_address: str


class ReceiptForm(BaseModel):
    """The body of a request for the receipt by e-mail."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    email: str


def wallet_of(fields: dict[str, Any]) -> str:
    """Return the wallet address of a submission. Raise the same errors as `validated`."""
    return validated(WalletForm, fields).wallet_address


def email_of(fields: dict[str, Any]) -> str:
    """Return the e-mail address for the receipt. Raise EmailInvalid, and as `validated` does."""
    found = grammar.email_of(validated(ReceiptForm, fields).email)
    if found is None:
        raise EmailInvalid("This is not an e-mail address.", param="email")
    return found


def name_of(fields: dict[str, Any]) -> str | None:
    """Remove and return the random name that the rendered form got, or None if it has no name."""
    name: str = fields.pop("form_name", "")
    return name if grammar.NONCE.fullmatch(name) else None


def provider_of(fields: dict[str, Any]) -> str:
    """Remove and return the chosen provider's address pattern, or "" if no provider was chosen.

    If the customer filled in two fields, join the two texts as the wallet address. A text that
    cannot be a part of an address is left unchanged, and is refused later.
    """
    form: str = fields.pop("provider", "")
    second: str = fields.pop("second", "")
    if len(form) > MAX_URL:
        return ""
    first = fields.get("wallet_address", "")
    if second and isinstance(first, str) and len(first) + len(second) <= MAX_URL:
        wrong = [each for each in (first, second) if mistake_in(each) in _NO_NAMES]
        if not _is_whole(first) or wrong:
            between = Provider("", form, "").between or "/"
            joined = f"{unquoted(first)}{between}{unquoted(second)}"
            fields["wallet_address"] = wrong[0] if wrong else joined
    return form


def address_of(form: str, typed: str) -> str:
    """Return the wallet address for a name at the provider with the address pattern `form`.

    A whole address is returned unchanged. A text that cannot be a name is also returned unchanged,
    and is refused later. `form` is not compared with the list of providers, because a made-up
    pattern is as harmless as a typed address.
    """
    if len(typed) > MAX_URL or not has_fields(form):
        return typed
    provider = Provider("", form, "")
    name = unquoted(typed).removeprefix("@").removeprefix(provider.stem)
    if not name or _is_whole(name) or mistake_in(name) in _NO_NAMES:
        return typed
    return provider.address(name)


def _is_whole(name: str) -> bool:
    """Return whether the customer typed a whole address, not just a name."""
    host = name.rpartition("/")[0]
    return name.startswith("$") or "://" in name or "@" in name or "." in host


def price_of(fields: dict[str, Any]) -> str:
    """Remove and return the price that the page with the form showed, or "".

    The price is in the wallet's units. Raise ParameterInvalid.
    """
    was: str = fields.pop("was", "")
    if not _UNITS.fullmatch(was):
        raise ParameterInvalid("This is not a price.", param="was")
    return was
