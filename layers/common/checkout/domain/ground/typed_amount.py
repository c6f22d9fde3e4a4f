"""Amounts as people type them: digits of any script, with the separators of any country.

An amount is never guessed. For example, "1,250" means 1250 in New York and 1.25 in Berlin, so this
text is refused, and the error message asks which of the two amounts is meant.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.money import TOTAL_MAX, minor_unit_digits

_TYPED_MAX: Final = 60  # characters
_DIGITS: Final = re.compile("[0-9]{1,15}")
_DECIMALS: Final = re.compile("(.+)([.,\N{ARABIC DECIMAL SEPARATOR}])([0-9]{1,15})")
_SAID: Final = re.compile("([^0-9]*)([0-9](?:.*[0-9])?)([^0-9]*)")
_CODE: Final = re.compile("[A-Za-z]{3}")
_BETWEEN_GROUPS: Final = ".,٬ '’"  # the separators that the CLDR lists


def typed_amount(typed: str, *, currency: str, wallet_scale: int, param: str) -> int:
    """Convert the decimal amount that a person typed to minor units of `currency`.

    The result is exact. An amount above TOTAL_MAX is returned as TOTAL_MAX + 1. Raises
    ParameterInvalid with `param` if the text is not an amount or can be read in two ways. If the
    currency has three decimals, a point is always read as the decimal sign, because the pages write
    amounts in this way.
    """
    digits = minor_unit_digits(currency, wallet_scale=wallet_scale)
    text = _plain(typed)
    if clear := " or ".join(clear_spellings(typed, currency=currency, wallet_scale=wallet_scale)):
        raise ParameterInvalid(f"“{text}” can be read in two ways. Type {clear}.", param=param)
    readings = list(_readings(text))
    whole, fraction = readings[-1] if readings else ("", "")
    if not readings or len(fraction) > digits:
        example = f"12.{'50000'[:digits]}" if digits else "12"
        raise ParameterInvalid(
            f"This is not an amount of {currency.upper()}. Type it as in {example}.", param=param
        )
    return min(int(whole + fraction.ljust(digits, "0")), TOTAL_MAX + 1)


def clear_spellings(typed: str, *, currency: str, wallet_scale: int) -> tuple[str, ...]:
    """Return how to type each amount that an ambiguous text can mean; () if it is not ambiguous."""
    digits = minor_unit_digits(currency, wallet_scale=wallet_scale)
    text = _plain(typed)
    readings = [(whole, fraction.rstrip("0")) for whole, fraction in _readings(text)]
    if len(readings) < 2 or (digits == 3 and "." in text):
        return ()
    return tuple(
        f"{whole}.{cut.ljust(digits, '0')}" if digits else whole
        for whole, cut in readings
        if len(cut) <= digits
    )


def said_amounts(typed: str) -> frozenset[Decimal]:
    """Return the amounts that a text such as "17.00", "$17" or "17,00 EUR" can mean.

    For other texts the result is empty. A whole number without a currency is no amount, because it
    may be an order number.
    """
    found = _SAID.fullmatch(_plain(typed))
    if found is None:
        return frozenset()
    before, number, behind = found.groups()
    around = before + behind
    mark = around.strip()
    signed = len(mark) <= len("US$") and any(unicodedata.category(each) == "Sc" for each in mark)
    coded = _CODE.fullmatch(mark) is not None
    if mark and not signed and not coded:
        return frozenset()
    readings = list(_readings(number))
    if not signed and not (coded and mark != around) and not any(cut for _, cut in readings):
        return frozenset()
    return frozenset(Decimal(f"{whole}.{cut or 0}") for whole, cut in readings)


def _plain(typed: str) -> str:
    """Return the text with digits from 0 to 9 and plain blanks, without invisible marks."""
    if len(typed) > _TYPED_MAX:
        return ""
    seen = (each for each in typed.strip() if unicodedata.category(each) != "Cf")
    return "".join(
        str(unicodedata.decimal(each)) if each.isdecimal() else " " if each.isspace() else each
        for each in seen
    ).strip()


def _readings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the digits before and after the decimal sign, for each way to read the text.

    The reading without decimals comes first.
    """
    if whole := _whole(text):
        yield whole, ""
    if found := _DECIMALS.fullmatch(text):
        whole = "" if found[2] in found[1] else _whole(found[1])
        if whole:
            yield whole, found[3]


def _whole(text: str) -> str:
    """Return the digits of a whole number, with or without groups; "" for other texts.

    Groups have three digits; in India, the groups before the last one have two.
    """
    sign = next((each for each in text if each in _BETWEEN_GROUPS), None)
    first, *groups = text.split(sign) if sign else [text]
    if not all(map(_DIGITS.fullmatch, (first, *groups))):
        return ""
    if groups:
        *others, last = map(len, groups)
        even = {*others} <= {3} or ({*others} == {2} and len(first) < 3)
        if last != 3 or not even or len(first) > 3 or first[0] == "0":
            return ""
    return first + "".join(groups)
