"""The exchange rate of a quote, as people read it. It is rounded: no sum is computed from it."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Final

from checkout.open_payments.models import Amount

DIGITS: Final = 5  # significant digits
RATE_MAX: Final = 10**12
_ROUNDED: Final = Context(prec=DIGITS)


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """A unit of the currency `one` is `rate` units of the currency `many`, at least 1."""

    one: str
    rate: Decimal
    many: str


def rate_of(debit: Amount, receive: Amount) -> ExchangeRate | None:
    """Return the rate in the direction in which it is at least 1, such as 1 EUR = 1.0793 USD.

    Return None without an exchange, or if the number would be meaningless.
    """
    if debit.asset_code == receive.asset_code or 0 in (debit.value, receive.value):
        return None
    one, many = sorted((debit, receive), key=lambda amount: Decimal(amount.decimal()))
    rate = _ROUNDED.divide(Decimal(many.decimal()), Decimal(one.decimal()))
    return ExchangeRate(one.asset_code, rate, many.asset_code) if rate <= RATE_MAX else None
