"""Test how a stock is spread over rows."""

from __future__ import annotations

import re

import pytest

from checkout.domain.links import link_of, order_of, rows_for, shares
from tests.support.basics import a_link


@pytest.mark.parametrize(
    ("left", "rows"), [(None, 1), (0, 1), (1, 1), (15, 1), (16, 8), (1_000_000, 8)]
)
def test_a_stock_of_16_lies_in_eight_rows(left: int | None, rows: int) -> None:
    assert rows_for(left, most=None) == rows


def test_a_stock_of_which_several_are_taken_at_once_lies_in_one_row() -> None:
    assert rows_for(1_000_000, most=2) == 1


@pytest.mark.parametrize(
    ("most", "left", "offered"),
    [(None, None, 1), (None, 7, 1), (5, None, 5), (5, 9, 5), (5, 5, 5), (5, 3, 3), (5, 1, 1)],
)
def test_no_more_are_offered_than_are_left(
    most: int | None, left: int | None, offered: int
) -> None:
    assert a_link(most=most, left=left).offered == offered


@pytest.mark.parametrize(
    ("left", "parts"),
    [
        (0, [0, 0, 0, 0, 0, 0, 0, 0]),
        (1, [1, 0, 0, 0, 0, 0, 0, 0]),
        (16, [2, 2, 2, 2, 2, 2, 2, 2]),
        (23, [3, 3, 3, 3, 3, 3, 3, 2]),
    ],
)
def test_parts_differ_by_one_at_most_and_none_is_lost(left: int, parts: list[int]) -> None:
    assert shares(left, 8) == parts


def test_rows_bear_the_links_id() -> None:
    assert a_link(left=3).row_ids == (a_link().id,)
    rows = a_link(left=30, rows=3).row_ids
    assert rows == (a_link().id, f"{a_link().id}#1", f"{a_link().id}#2")
    assert {link_of(row) for row in rows} == {a_link().id}


def test_an_order_number_can_be_read_aloud_and_differs_between_purchases() -> None:
    numbers = {order_of(f"cs_{number:022d}") for number in range(1000)}
    assert len(numbers) == 1000
    assert all(re.fullmatch("[A-HJKMNP-Z1-9]{8}", each) for each in numbers)
    assert order_of("cs_0123456789abcdefABCDEF") == order_of("cs_0123456789abcdefABCDEF")
