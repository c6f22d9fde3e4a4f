"""Amounts between pretix, which has decimals, and the checkout, which has units of ISO 4217.

Nothing is rounded, and there are no floats. pretix's own table of decimal places is not ISO 4217's
(it gives ISK two places and MGA none), so it is not used.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

# The codes of ISO 4217 list one with another number of digits than two.
_DIGITS: Final = {
    **dict.fromkeys("BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF".split(), 0),
    **dict.fromkeys("BHD IQD JOD KWD LYD OMR TND".split(), 3),
    **dict.fromkeys("CLF UYW".split(), 4),
}
_STORED: Final = 2  # decimal places of an amount in pretix's database


class NotExact(ValueError):
    """An amount cannot be said exactly on the other side."""


def supported(currency: str) -> bool:
    """Return whether pretix can store every amount of this currency."""
    return _DIGITS.get(currency, 2) <= _STORED and currency != "XXX"


def units(amount: Decimal, currency: str) -> int:
    """Return the amount in the currency's smallest unit. Raises NotExact."""
    found = amount.scaleb(_DIGITS.get(currency, 2))
    if found != found.to_integral_value():
        raise NotExact(f"{amount} {currency} is not a whole number of the smallest unit.")
    return int(found)


def decimal(value: int, currency: str) -> Decimal:
    """Return units of the currency as pretix stores them."""
    return Decimal(value).scaleb(-_DIGITS.get(currency, 2)).quantize(Decimal("0.01"))
