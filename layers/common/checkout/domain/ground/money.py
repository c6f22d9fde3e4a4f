"""Exact money: merchants use ISO 4217 minor units, and wallets use their own asset scale.

An amount that cannot be represented exactly is refused. Amounts are never rounded and never floats
(decisions.md "Session object and amounts"). Only the exchange rate that pages show is rounded,
because no amount is computed from that rate.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Context, Decimal
from typing import Final

from checkout.domain.ground.errors import AmountNotRepresentable, AmountTooLarge, AmountTooSmall
from open_payments.models import Amount, Quote
from open_payments.urls import split

UNIT_AMOUNT_MAX: Final = 999_999_999_999
QUANTITY_MAX: Final = 1_000_000
TOTAL_MAX: Final = 999_999_999_999_999

# Wallets may round an amount by one unit. Below this number of units, one unit is more than a tenth
# of the price, so no difference is accepted as rounding.
ROUNDED_FROM: Final = 10

# ISO 4217 list one: the codes with two minor-unit digits, then those with another number of digits.
# fmt: off
_TWO_DIGITS: Final = frozenset("""
    AED AFN ALL AMD AOA ARS AUD AWG AZN BAM BBD BDT BMD BND BOB BRL BSD BTN BWP BYN BZD CAD CDF CHE
    CHF CHW CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD GTQ GYD
    HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD MDL MGA MKD
    MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP PKR PLN QAR RON
    RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS TMT TOP TRY TTD TWD
    TZS UAH USD UYU UZS VED VES WST XCD XCG YER ZAR ZMW ZWG
""".split())  # noqa: SIM905 - a table to read
_OTHER_DIGITS: Final = {
    "BIF": 0, "CLP": 0, "DJF": 0, "GNF": 0, "ISK": 0, "JPY": 0, "KMF": 0, "KRW": 0, "PYG": 0,
    "RWF": 0, "UGX": 0, "UYI": 0, "VND": 0, "VUV": 0, "XAF": 0, "XOF": 0, "XPF": 0,
    "BHD": 3, "IQD": 3, "JOD": 3, "KWD": 3, "LYD": 3, "OMR": 3, "TND": 3,
    "CLF": 4, "UYW": 4,
}
# fmt: on


def minor_unit_digits(currency: str, *, wallet_scale: int) -> int:
    """Return the number of decimal digits of the smallest unit of `currency`.

    For a code that is not in ISO 4217, this is the wallet's scale.
    """
    code = currency.upper()
    if code in _TWO_DIGITS:
        return 2
    return _OTHER_DIGITS.get(code, wallet_scale)


def total(lines: list[tuple[int, int]]) -> int:
    """Return the sum of unit_amount times quantity, in minor units.

    Raises AmountTooSmall and AmountTooLarge.
    """
    result = sum(unit_amount * quantity for unit_amount, quantity in lines)
    if result < 1:
        raise AmountTooSmall("The total of the line items must be at least 1.", param="line_items")
    if result > TOTAL_MAX:
        raise AmountTooLarge(
            f"The total of the line items must be at most {TOTAL_MAX}.", param="line_items"
        )
    return result


def to_wallet(amount_total: int, *, currency: str, asset_code: str, asset_scale: int) -> Amount:
    """Return `amount_total` minor units of `currency` in the wallet's scale, exactly.

    Raises AmountNotRepresentable if the wallet's scale is too coarse, and AmountTooLarge if the
    amount exceeds uint64, the protocol's type for amounts.
    """
    shift = asset_scale - minor_unit_digits(currency, wallet_scale=asset_scale)
    if shift >= 0:
        value = amount_total * 10**shift
    else:
        value, rest = divmod(amount_total, 10**-shift)
        if rest:
            raise AmountNotRepresentable(
                f"The wallet uses {asset_code} with {asset_scale} decimals, so it cannot represent "
                "the total exactly.",
                param="line_items",
            )
    if value > 2**64 - 1:
        raise AmountTooLarge("The total is too large for a wallet.", param="line_items")
    return Amount(value=value, asset_code=asset_code, asset_scale=asset_scale)


def from_minor_units(value: int, *, currency: str, wallet_scale: int) -> Amount:
    """Return minor units as an Amount for display: 2500 "usd" is 25.00 USD."""
    digits = minor_unit_digits(currency, wallet_scale=wallet_scale)
    return Amount(value=value, asset_code=currency.upper(), asset_scale=digits)


def minor_units(amount: Amount) -> int:
    """Return a wallet's amount in minor units of its asset, rounded down."""
    digits = minor_unit_digits(amount.asset_code, wallet_scale=amount.asset_scale)
    more: int = 10 ** max(digits - amount.asset_scale, 0)
    less: int = 10 ** max(amount.asset_scale - digits, 0)
    return amount.value * more // less


def least_accepted(amount: int, *, tolerance: int, converted: bool, ended: bool) -> int:
    """Return the smallest value that is accepted as payment of `amount`, in the units of `amount`.

    `converted` means that wallets may have converted the money (`may_be_converted`). If it is
    false, the whole amount has to arrive. If it is true, up to `tolerance`, the merchant's setting,
    may be missing, but no more than a hundredth of the amount, rounded down. The reason is that
    wallets that convert twice deliver one unit less than quoted (decisions.md "completed means
    paid"). `ended` means that the customer's wallet reports the end of the payment. In that case,
    if the amount has at least ROUNDED_FROM units, one unit may be missing even if that is more than
    a hundredth.
    """
    if not converted:
        return amount
    one = rounding(amount) if ended else 0
    return amount - min(tolerance, max(amount // 100, one))


def rounding(amount: int) -> int:
    """Return by how many units wallets may change `amount` when they round it: 1 or 0."""
    return 1 if amount >= ROUNDED_FROM else 0


def may_be_converted(quote: Quote, receiver: str) -> bool:
    """Return whether wallets may convert, and so round, a payment of `quote` on its way.

    `receiver` is the URL of the incoming payment. If the two amounts of the quote differ in asset
    or scale, the payment is converted. If they do not differ, but the two wallets have different
    providers, the providers may convert the amount into the asset of their connection and back.
    """
    if not quote.debit.same_asset(quote.receive):
        return True
    return split(quote.id).authority != split(receiver).authority


DIGITS: Final = 5  # significant digits
RATE_MAX: Final = 10**12
_ROUNDED: Final = Context(prec=DIGITS)


@dataclass(frozen=True, slots=True)
class ExchangeRate:
    """One unit of the currency `one` is worth `rate` (at least 1) units of the currency `many`."""

    one: str
    rate: Decimal
    many: str


def rate_of(debit: Amount, receive: Amount) -> ExchangeRate | None:
    """Return the rate in the direction in which it is at least 1, such as 1 EUR = 1.0793 USD.

    Returns None if nothing is exchanged, if an amount is 0, or if the rate is above RATE_MAX.
    """
    if debit.asset_code == receive.asset_code or 0 in (debit.value, receive.value):
        return None
    one, many = sorted((debit, receive), key=lambda amount: Decimal(amount.decimal()))
    rate = _ROUNDED.divide(Decimal(many.decimal()), Decimal(one.decimal()))
    return ExchangeRate(one.asset_code, rate, many.asset_code) if rate <= RATE_MAX else None
