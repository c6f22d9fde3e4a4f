"""The simulated sale of one payment link's stock."""

from __future__ import annotations

import pytest

from benchmarks import stock
from benchmarks.stock import refused_share


@pytest.mark.parametrize("seed", range(3))
def test_an_item_sells_100_times_a_second(seed: int) -> None:
    assert refused_share(100, 8, seed) == 0
    assert refused_share(200, 8, seed) < 0.005


def test_one_row_does_not(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused_share(30, 1) == 0
    assert refused_share(100, 1) > 0.25
    stock.main()
    assert capsys.readouterr().out.count("\n") == 2 + len(stock.RATES)


def test_nobody_is_refused_who_meets_nobody() -> None:
    assert refused_share(1, 1) == 0
