"""Costs and deliveries are exact: nobody gains or loses a unit by rounding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.wallets.money import FREE, RATES, Fee, NoRate, cost, delivery
from sandbox.wallets.state import Money

ASSETS = st.builds(
    Money, st.just(0), st.sampled_from(sorted(RATES)), st.integers(min_value=0, max_value=9)
)
FEES = st.builds(Fee, st.integers(0, 1000), st.integers(0, 500))


@given(ASSETS, ASSETS, FEES, st.integers(min_value=1, max_value=10**12))
def test_the_cost_of_an_amount_delivers_at_least_that_amount(
    target: Money, asset: Money, fee: Fee, value: int
) -> None:
    debit, kept = cost(target.with_value(value), asset, fee, RATES)
    assert 0 <= kept < debit
    assert delivery(asset.with_value(debit), target, fee, RATES) >= value


@given(ASSETS, ASSETS, FEES, st.integers(min_value=1, max_value=10**12))
def test_a_debit_never_delivers_more_than_it_pays_for(
    target: Money, asset: Money, fee: Fee, value: int
) -> None:
    delivered = delivery(asset.with_value(value), target, fee, RATES)
    if delivered:
        assert cost(target.with_value(delivered), asset, fee, RATES)[0] <= value


def test_the_figures_of_a_cross_provider_payment() -> None:
    euro = Money(0, "EUR", 2)
    # 20.00 USD at 1.09 is 18.348… EUR: 18.35 and a fee of 1 %, 0.1835, rounded up to 0.19.
    assert cost(Money(2000, "USD", 2), euro, Fee(), RATES) == (1854, 19)
    assert cost(Money(2000, "USD", 2), euro, FREE, RATES) == (1835, 0)
    assert cost(Money(2000, "USD", 2), Money(0, "USD", 2), FREE, RATES) == (2000, 0)


def test_scales_are_converted_without_loss() -> None:
    assert cost(Money(1_000_000_000, "USD", 9), Money(0, "USD", 2), FREE, RATES) == (100, 0)
    assert cost(Money(1, "USD", 0), Money(0, "USD", 9), FREE, RATES) == (10**9, 0)
    assert cost(Money(1, "USD", 9), Money(0, "USD", 2), FREE, RATES) == (1, 0)


def test_an_asset_without_a_rate_is_refused() -> None:
    with pytest.raises(NoRate):
        cost(Money(1, "XYZ", 2), Money(0, "USD", 2), FREE, RATES)


@pytest.mark.parametrize(
    ("money", "text"),
    [
        (Money(1854, "EUR", 2), "18.54 EUR"),
        (Money(5, "EUR", 2), "0.05 EUR"),
        (Money(-5, "KWD", 3), "-0.005 KWD"),
        (Money(3500, "JPY", 0), "3500 JPY"),
    ],
)
def test_an_amount_is_written_with_its_own_scale(money: Money, text: str) -> None:
    assert str(money) == text
