"""Amounts between pretix, which has decimals, and the checkout, which has units of ISO 4217.

Nothing is rounded, and there are no floats. pretix's own table of decimal places is not ISO 4217's
(it gives ISK two places and MGA none), so it is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

# The codes of ISO 4217 list one with another number of digits than two.
# fmt: off
_DIGITS: Final = {
    "BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0,
    "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
    "BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
    "CLF": 4, "UYW": 4,
}
# fmt: on
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


def shown(amount: Mapping[str, Any]) -> str:
    """Return a wallet's amount, as the checkout's API has it, for people: "15.33 USD"."""
    return f"{Decimal(amount['value']).scaleb(-amount['asset_scale']):f} {amount['asset_code']}"


def decimal(value: int, currency: str) -> Decimal:
    """Return units of the currency as pretix stores them."""
    return Decimal(value).scaleb(-_DIGITS.get(currency, 2)).quantize(Decimal("0.01"))
