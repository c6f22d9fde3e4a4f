"""A typed amount is the sum that was meant, or an error: never another sum."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal

import pytest
from babel import Locale, localedata
from babel.numbers import format_decimal
from hypothesis import given
from hypothesis import strategies as st

from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.typed_amount import said_amounts, typed_amount
from tests.support.protected import TOTAL_MAX

DIGITS = {"usd": 2, "jpy": 0, "kwd": 3, "clf": 4}
LOCALES = sorted(localedata.locale_identifiers())


def read(typed: str, currency: str = "usd") -> int:
    return typed_amount(typed, currency=currency, wallet_scale=2, param="amount")


@given(
    minor=st.one_of(st.integers(0, 10**9), st.integers(0, 10**6).map(lambda each: each * 1000)),
    currency=st.sampled_from(sorted(DIGITS)),
    locale=st.sampled_from(LOCALES),
    system=st.sampled_from(["latn", "default"]),
    cut=st.booleans(),
)
def test_in_every_style_of_the_cldr_it_is_what_was_meant_or_an_error(
    minor: int, currency: str, locale: str, system: str, cut: bool
) -> None:
    """`cut`: zeros at the end are not typed."""
    digits = DIGITS[currency]
    pattern = Locale.parse(locale).decimal_formats[None].pattern.partition(";")[0].partition(".")[0]
    decimals = "." + ("#" if cut else "0") * digits if digits else ""
    typed = format_decimal(
        Decimal(minor).scaleb(-digits), pattern + decimals, locale, numbering_system=system
    )
    if currency == "kwd" and typed.count(".") == 1 and "," not in typed and typed.isascii():
        return  # there, a point is the decimal sign (the next test)
    with suppress(ParameterInvalid):
        assert read(typed, currency) == minor


@pytest.mark.parametrize(
    ("typed", "currency", "minor"),
    [
        ("12", "usd", 1200),
        ("12.5", "usd", 1250),
        ("12,50", "usd", 1250),
        ("0.05", "usd", 5),
        ("1250.00", "usd", 125000),
        ("1,250.00", "usd", 125000),
        ("1.250,00", "usd", 125000),
        ("1’250.00", "usd", 125000),
        ("1 250,00", "usd", 125000),
        ("1\N{NARROW NO-BREAK SPACE}250", "usd", 125000),
        ("1.250.000", "usd", 125000000),
        ("1,00,000.50", "usd", 10000050),
        ("٥٠٫٢٥", "usd", 5025),
        ("१,२५०.५०", "usd", 125050),
        ("\N{RIGHT-TO-LEFT MARK} 12.50 \N{ZERO WIDTH SPACE}", "usd", 1250),
        ("1250", "jpy", 1250),
        ("1.250", "kwd", 1250),
        ("1 250,125", "kwd", 1250125),
        ("9" * 15, "usd", TOTAL_MAX + 1),
    ],
)
def test_it_is_read_exactly(typed: str, currency: str, minor: int) -> None:
    assert read(typed, currency) == minor


@pytest.mark.parametrize(
    ("typed", "currency", "clear"),
    [
        ("1,250", "usd", "Type 1250.00 or 1.25."),
        ("1.250", "usd", "Type 1250.00 or 1.25."),
        ("12.500", "usd", "Type 12500.00 or 12.50."),
        ("52.040", "usd", "Type 52040.00 or 52.04."),
        ("1,257", "usd", "Type 1257.00."),
        ("1,000", "jpy", "Type 1000 or 1."),
        ("1,250", "kwd", "Type 1250.000 or 1.250."),
    ],
)
def test_three_digits_behind_the_only_sign_are_a_question(
    typed: str, currency: str, clear: str
) -> None:
    with pytest.raises(ParameterInvalid, match=f"“{typed}” can be read in two ways. {clear}"):
        read(typed, currency)


@pytest.mark.parametrize(
    "typed",
    [
        " ",
        "much",
        "-1",
        "+1",
        "1e3",
        ".5",
        "5.",
        "1.999.99",
        "1250.000",
        "0,250",
        "1,2,3",
        "1,250.5.0",
        "1.005.0000",
        "1 250,000",
        "12 50",
        "1_000",
        "½",
        "0x10",
    ],
)
def test_anything_else_is_refused_with_an_example(typed: str) -> None:
    with pytest.raises(ParameterInvalid, match=r"not an amount of USD. Type it as in 12\.50"):
        read(typed)


@pytest.mark.parametrize(
    ("typed", "amounts"),
    [
        ("17.00", ["17"]),
        ("17,5", ["17.5"]),
        ("1.250,00", ["1250"]),
        ("1,250", ["1250", "1.25"]),
        ("€15.76", ["15.76"]),
        ("1250 JPY", ["1250"]),
        ("¥1250", ["1250"]),
        ("US$ 17", ["17"]),
        ("١٧٫٥٠", ["17.5"]),
        *(
            (text, [])
            for text in ("", "17", "A-17.00", "17.00 %", "JPY1250", "1.2.3", "2026-03-01")
        ),
        *((text, []) for text in ("Order 17.00", "$", "£1x.00", "$$$$17.00", "1" * 61)),
    ],
)
def test_a_said_amount_is_what_it_can_mean_or_nothing(typed: str, amounts: list[str]) -> None:
    assert said_amounts(typed) == frozenset(map(Decimal, amounts))
