from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkout.domain.ground.errors import AmountNotRepresentable, AmountTooLarge, AmountTooSmall
from checkout.domain.ground.money import (
    from_minor_units,
    least_accepted,
    minor_unit_digits,
    to_wallet,
    total,
)
from open_payments.models import Amount
from tests.support.protected import TOTAL_MAX


@pytest.mark.parametrize(
    ("currency", "scale", "minor", "value"),
    [
        ("usd", 2, 2000, 2000),
        ("eur", 9, 1, 10_000_000),
        ("jpy", 0, 500, 500),
        ("jpy", 2, 500, 50_000),
        ("kwd", 3, 1234, 1234),
        ("kwd", 2, 1230, 123),
        ("usd", 0, 500, 5),
        ("xrp", 6, 1, 1),  # no ISO 4217 code: the wallet's own scale is its smallest unit
    ],
)
def test_minor_units_become_the_wallets_units_exactly(
    currency: str, scale: int, minor: int, value: int
) -> None:
    amount = to_wallet(minor, currency=currency, asset_code=currency.upper(), asset_scale=scale)
    assert amount == Amount(value, currency.upper(), scale)


def test_what_a_coarse_wallet_cannot_hold_exactly_is_refused_not_rounded() -> None:
    with pytest.raises(AmountNotRepresentable):
        to_wallet(1235, currency="kwd", asset_code="KWD", asset_scale=2)


def test_an_amount_beyond_the_wires_integers_is_refused() -> None:
    with pytest.raises(AmountTooLarge):
        to_wallet(TOTAL_MAX, currency="usd", asset_code="USD", asset_scale=9)


@given(
    st.integers(1, TOTAL_MAX),
    st.sampled_from(["usd", "jpy", "kwd", "clf", "xrp"]),
    st.integers(0, 9),
)
def test_no_conversion_changes_what_the_money_is_worth(
    minor: int, currency: str, scale: int
) -> None:
    digits = minor_unit_digits(currency, wallet_scale=scale)
    try:
        amount = to_wallet(minor, currency=currency, asset_code="X", asset_scale=scale)
    except AmountNotRepresentable:
        assert digits > scale
        assert minor % 10 ** (digits - scale)
    except AmountTooLarge:
        assert minor * 10 ** (scale - digits) > 2**64 - 1
    else:
        assert Decimal(amount.value).scaleb(-scale) == Decimal(minor).scaleb(-digits)


@given(st.integers(0, 2**64 - 1), st.integers(0, 20))
def test_an_amount_reads_as_the_number_it_is(value: int, scale: int) -> None:
    text = Amount(value, "X", scale).decimal()
    assert Decimal(text) == Decimal(value).scaleb(-scale)
    assert len(text.partition(".")[2]) == scale


def test_a_total_is_the_sum_of_price_times_quantity() -> None:
    assert total([(1050, 2), (0, 5), (1, 1_000_000)]) == 1_002_100


def test_a_total_has_bounds() -> None:
    with pytest.raises(AmountTooSmall):
        total([(0, 5)])
    with pytest.raises(AmountTooLarge):
        total([(999_999_999_999, 1_000_000)])
    assert total([(TOTAL_MAX, 1)]) == TOTAL_MAX
    with pytest.raises(AmountTooLarge):
        total([(TOTAL_MAX, 1), (1, 1)])


def test_an_amount_is_shown_in_its_currencys_own_digits() -> None:
    assert str(from_minor_units(2000, currency="usd", wallet_scale=9)) == "20.00 USD"
    assert str(from_minor_units(2000, currency="jpy", wallet_scale=2)) == "2000 JPY"
    assert str(from_minor_units(5, currency="kwd", wallet_scale=3)) == "0.005 KWD"


@given(st.integers(1, 2**64 - 1), st.integers(0, 2**64), st.integers(0, 2**64))
def test_a_tolerance_never_gives_away_more_than_itself_or_a_hundredth(
    amount: int, tolerance: int, more: int
) -> None:
    least = least_accepted(amount, tolerance=tolerance, converted=True, ended=False)
    assert 0 <= amount - least <= min(tolerance, amount // 100)
    assert least > 0
    larger = least_accepted(amount, tolerance=tolerance + more, converted=True, ended=False)
    assert larger <= least  # a larger one allows more


@given(st.integers(1, 2**64 - 1), st.integers(0, 2**64))
def test_an_ended_payment_may_be_one_unit_short_of_ten_units_or_more_and_no_more(
    amount: int, tolerance: int
) -> None:
    running = least_accepted(amount, tolerance=tolerance, converted=True, ended=False)
    ended = least_accepted(amount, tolerance=tolerance, converted=True, ended=True)
    one = amount - 1 if tolerance and 10 <= amount < 100 else running
    assert ended == one


@given(st.integers(1, 2**64 - 1), st.integers(0, 2**64), st.booleans())
def test_nothing_may_be_missing_where_nothing_was_converted(
    amount: int, tolerance: int, ended: bool
) -> None:
    assert least_accepted(amount, tolerance=tolerance, converted=False, ended=ended) == amount


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 10**6)), max_size=8))
def test_a_total_is_exact_or_refused(lines: list[tuple[int, int]]) -> None:
    exact = sum(price * quantity for price, quantity in lines)
    try:
        assert total(lines) == exact
    except (AmountTooSmall, AmountTooLarge):
        assert not 1 <= exact <= TOTAL_MAX
