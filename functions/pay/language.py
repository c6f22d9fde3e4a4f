"""Choose a page's language, and format its numbers and dates.

The session's language comes first, then the browser's, then the merchant's default. A price is
written with the symbol that the currency has in the page's language, and with at most the
currency's number of decimals. No two currencies share a symbol in one language ("$" and "CA$"). An
amount is written with the currency's code, and is exact at any scale. Digits are 0 to 9 in every
language, as on the pages of wallets.

Every text that a customer sees is in a gettext catalog (`locale/LANGUAGE.po`), which is read when
the language is first used. A text that is missing in a catalog is an error, so that no page mixes
two languages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import ROUND_UP, Context, Decimal
from functools import cache, lru_cache
from gettext import GNUTranslations
from io import BytesIO
from pathlib import Path
from typing import Final

from babel import Locale, localedata
from babel.dates import format_date, format_time
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.numbers import NumberPattern, get_currency_symbol, parse_pattern

from checkout.domain.ground.languages import language_of
from checkout.domain.ground.money import minor_unit_digits, rate_of
from open_payments.models import Amount

FOLDER: Final = Path(__file__).parent / "locale"
# These marks isolate inserted text, which may have another direction (Unicode TR 9, first-strong
# isolate).
_ISOLATED: Final = "\u2068{}\u2069"


class Texts:
    """The texts of one language. Values replace `{…}`, in their own direction of writing."""

    def __init__(self, messages: GNUTranslations) -> None:
        self._messages = messages
        self._plain: dict[str, str] = {}

    def __getitem__(self, name: str) -> str:
        """Return the text `name`, which takes no values. Raise KeyError."""
        found = self._plain.get(name)
        if found is None:
            found = self._plain[name] = self.text(name)
        return found

    def __contains__(self, name: str) -> bool:
        return self._messages.gettext(name) != name

    def text(self, name: str, **values: str) -> str:
        """Return the text `name` with `values` inserted. Raise KeyError."""
        found = self._messages.gettext(name)
        if found == name:
            raise KeyError(name)
        return found.format(**_isolated(values))

    def counted(self, name: str, number: int, **values: str) -> str:
        """Return the text `name` in the plural form for `number`. Raise KeyError."""
        found = self._messages.ngettext(name, "", number)
        if found in (name, ""):
            raise KeyError(name)
        return found.format(number=number, **_isolated(values))


@cache
def texts(language: str) -> Texts:
    """Return the texts in one of `domain.languages.LANGUAGES`."""
    compiled = BytesIO()
    with (FOLDER / f"{language}.po").open("rb") as file:
        write_mo(compiled, read_po(file, locale=language))
    compiled.seek(0)
    return Texts(GNUTranslations(compiled))


def _isolated(values: dict[str, str]) -> dict[str, str]:
    return {name: _ISOLATED.format(value) for name, value in values.items()}


DEFAULT: Final = "en"
HEADER_MAX: Final = 500  # characters of Accept-Language that are read
_CHOICE: Final = re.compile(
    r"\s*(?P<tag>[A-Za-z0-9-]+)\s*(?:;\s*q=(?P<q>0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)\s*)?"
)
_EXACT: Final = Context(prec=600)  # more digits than any amount has
_LEFT_TO_RIGHT: Final = "\u200e"
_DECIMALS: Final = re.compile(r"\.0+")


@dataclass(frozen=True, slots=True)
class Reader:
    """A reader's language and formats; `tag` and `direction` are the page's `lang` and `dir`."""

    tag: str
    direction: str
    locale: Locale
    texts: Texts

    def amount(self, amount: Amount) -> str:
        """Return the amount as text, for example "1,234.50 USD".

        The text has all significant digits, and at least the currency's number of decimals.
        """
        code = amount.asset_code
        digits = minor_unit_digits(code, wallet_scale=amount.asset_scale)
        return f"{_number(self.locale, Decimal(amount.decimal()), digits)}\u00a0{code}"

    def price(self, amount: Amount, *, rounding: str = ROUND_UP) -> str:
        """Return the amount with the currency's symbol and decimals, for example "$1,234.50".

        By default, further decimals are rounded up, so that nobody pays more than the page shows.
        """
        return _price(self.locale, self.direction, amount, rounding)

    def rate(self, debit: Amount, receive: Amount) -> str | None:
        """Return the exchange rate, such as "1 EUR = 1.0793 USD", or None if there is none."""
        found = rate_of(debit, receive)
        if found is None:
            return None
        return f"1\u00a0{found.one} = {_number(self.locale, found.rate, 0)}\u00a0{found.many}"

    def time(self, at: datetime) -> str:
        """Return the time of day."""
        return _time(self.locale, at)

    def date(self, at: datetime) -> str:
        """Return the date and the time of day."""
        return _date(self.locale, at)


def reader(*, wished: str | None, accepted: str, default: str | None) -> Reader:
    """Return the texts and the formats of numbers and dates for the person who reads the page.

    `wished` is the session's language tag, `accepted` the browser's Accept-Language, and `default`
    the merchant's language tag.
    """
    return _reader(_tag(wished or "", accepted[:HEADER_MAX], default or ""))


@lru_cache(maxsize=1024)
def _tag(wished: str, accepted: str, default: str) -> str:
    """Return the first language tag for which there are texts, or the default."""
    return next(filter(language_of, (wished, *_accepted(accepted), default)), DEFAULT)


def _accepted(header: str) -> Iterator[str]:
    """Yield the tags in an Accept-Language, preferred ones first (RFC 9110 section 12.5.4)."""
    found = [_CHOICE.fullmatch(part) for part in header.split(",")]
    weighed = [(float(one["q"] or 1), one["tag"]) for one in found if one]
    weighed.sort(key=lambda pair: -pair[0])
    return (tag for weight, tag in weighed if weight > 0)


@lru_cache(maxsize=64)
def _reader(tag: str) -> Reader:
    """Return texts and formats of the nearest known locale, such as "de-CH" for "de-CH-1901"."""
    parts = tag.split("-")
    names = ("_".join(parts[:length]) for length in range(len(parts), 0, -1))
    known = next(found for name in names if (found := localedata.normalize_locale(name)))
    locale = Locale.parse(known)
    return Reader(
        tag=known.replace("_", "-"),
        direction=locale.text_direction,
        locale=locale,
        texts=texts(language_of(tag) or DEFAULT),
    )


@lru_cache(maxsize=1024)
def _price(locale: Locale, direction: str, amount: Amount, rounding: str) -> str:
    """Return a price. The result is cached, because several pages in a row show the same price."""
    code = amount.asset_code
    digits = minor_unit_digits(code, wallet_scale=amount.asset_scale)
    number = Decimal(amount.decimal())
    if amount.asset_scale > digits:
        number = number.quantize(Decimal(1).scaleb(-digits), rounding, context=_EXACT)
    symbol = get_currency_symbol(code, locale)
    if symbol == code:  # the language has no symbol for this currency
        return f"{_number(locale, number, digits)}\u00a0{code}"
    text: str = _price_pattern(locale, digits).apply(
        number, locale, currency=code, currency_digits=False, decimal_quantization=False
    )
    if direction == "rtl":  # otherwise "US$" is shown as "$US"
        text = text.replace(symbol, f"{symbol}{_LEFT_TO_RIGHT}")
    return text


@lru_cache(maxsize=1024)
def _date(locale: Locale, at: datetime) -> str:
    return f"{format_date(at, 'long', locale=locale)}, {_time(locale, at)}"


@lru_cache(maxsize=1024)
def _time(locale: Locale, at: datetime) -> str:
    return str(format_time(at, "short", locale=locale))


def _number(locale: Locale, number: Decimal, digits: int) -> str:
    return str(_pattern(locale, digits).apply(number, locale, decimal_quantization=False))


@lru_cache(maxsize=256)
def _price_pattern(locale: Locale, digits: int) -> NumberPattern:
    """Return the locale's pattern for a price with at least `digits` decimals."""
    decimals = f".{'0' * digits}" if digits else ""
    return parse_pattern(_DECIMALS.sub(decimals, locale.currency_formats["standard"].pattern))


@lru_cache(maxsize=256)
def _pattern(locale: Locale, digits: int) -> NumberPattern:
    """Return the locale's number pattern with its grouping and at least `digits` decimals."""
    grouping = locale.decimal_formats[None].pattern.partition(".")[0]
    return parse_pattern(f"{grouping}.{'0' * digits}" if digits else grouping)
