"""The computation behind docs/scaling.md, whose tables tests/house/test_docs.py compares."""

from __future__ import annotations

import pytest

from benchmarks.scaling import LIMITS, components, measured
from checkout.domain.ground.parts import PARTS


def test_ten_checkouts_a_second_need_no_setting() -> None:
    assert [each.name for each in components(measured()) if each.at < 10] == []


def test_a_thousand_checkouts_a_second_need_no_change_of_code() -> None:
    for each in components(measured()):
        assert each.at_most >= 1_000, each.name
        assert each.at_most == each.at or each.lifted, each.name


def test_each_session_has_one_entry_in_its_merchants_list() -> None:
    found = measured()
    for each in (found.paid, found.abandoned, found.left):
        assert each.writes["checkout_sessions/by_merchant"] == 1
    assert found.paid.writes["webhook_events/by_merchant"] == 1
    assert "checkout_sessions/due" not in found.abandoned.writes


def test_a_merchant_as_large_as_the_deployment_is_carried_by_its_shards() -> None:
    [one] = [each for each in components(measured()) if each.name.endswith("list of sessions")]
    assert one.at < 1_000 < one.at_most
    assert one.at_most == pytest.approx(max(PARTS) * one.at)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_names_its_source(name: str) -> None:
    assert LIMITS[name].source.startswith("docs.aws.amazon.com/")
