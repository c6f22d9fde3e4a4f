"""Exchange rates and fees in exact arithmetic.

The customer's cost is rounded up to a whole unit, and the delivered amount is rounded down, so that
a provider never loses money by rounding.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from sandbox.wallets.state import Money

# Value of one major unit of an asset, in USD.
RATES: Final[Mapping[str, Fraction]] = {
    "USD": Fraction(1),
    "EUR": Fraction(109, 100),
    "GBP": Fraction(127, 100),
    "JPY": Fraction(67, 10_000),
    "KWD": Fraction(326, 100),
}


class NoRate(Exception):
    """No exchange rate is known for one of the two assets."""


@dataclass(frozen=True, slots=True)
class Fee:
    """Fee for a payment to another provider: `basis_points` (1/10000) and `fixed` units.

    `slippage` (1/10000) is held back in case the exchange rate gets worse, and is not sent either.
    """

    basis_points: int = 100
    fixed: int = 0
    slippage: int = 0

    @property
    def share(self) -> Fraction:
        return Fraction(self.basis_points + self.slippage, 10_000)

    def on(self, amount: int) -> int:
        """Return the fee, in units, that is added to an `amount` that is sent."""
        return math.ceil(amount * self.share) + self.fixed


FREE: Final = Fee(basis_points=0)


def cost(receive: Money, asset: Money, fee: Fee, rates: Mapping[str, Fraction]) -> tuple[int, int]:
    """Return the debit that delivers exactly `receive`, and the fee contained in the debit.

    Both are in units of `asset`. Raises NoRate.
    """
    before_fee = math.ceil(receive.value * _rate(receive, asset, rates))
    return before_fee + fee.on(before_fee), fee.on(before_fee)


def delivery(debit: Money, asset: Money, fee: Fee, rates: Mapping[str, Fraction]) -> int:
    """Return the most units of `asset` that `debit` can deliver after the fee, 0 for none.

    Raises NoRate.
    """
    after_fee = max(0, math.floor((debit.value - fee.fixed) / (1 + fee.share)))
    most = math.floor(after_fee * _rate(debit, asset, rates))
    while most > 0 and cost(asset.with_value(most), debit, fee, rates)[0] > debit.value:
        most -= 1
    return most


def _rate(source: Money, target: Money, rates: Mapping[str, Fraction]) -> Fraction:
    """Return the units of `target` for one unit of `source`."""
    try:
        worth = (
            Fraction(1) if source.code == target.code else rates[source.code] / rates[target.code]
        )
    except KeyError:
        raise NoRate from None
    return worth * Fraction(10) ** (target.scale - source.scale)
