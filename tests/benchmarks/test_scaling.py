"""The computation behind docs/scaling.md, whose tables tests/house/test_docs.py compares."""

from __future__ import annotations

import pytest

from benchmarks import scaling
from benchmarks.scaling import LIMITS, Scene, components, measured
from checkout.domain.parts import PARTS


def test_ten_checkouts_a_second_need_no_setting() -> None:
    assert [each.name for each in components(measured()) if each.at < 10] == []


def test_a_thousand_checkouts_a_second_need_no_change_of_code() -> None:
    for each in components(measured()):
        assert each.at_most >= 1_000, each.name
        assert each.at_most == each.at or each.lifted, each.name


def test_what_the_places_use_adds_up_to_what_is_billed() -> None:
    scene = Scene()
    scene.paid()
    for make in (scene.paid, lambda: scene.abandoned(wallet=True)):
        scene.meter.forget()
        billed = sum(each.writes + each.index_writes for each in make().values())
        assert sum(scene.meter.writes.values()) == billed
        assert billed > 0


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


def test_what_is_full_first_comes_first() -> None:
    found = [each.at for each in components(measured())]
    assert found == sorted(found)


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_names_its_source(name: str) -> None:
    assert LIMITS[name].source.startswith("docs.aws.amazon.com/")


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (0.064, "0.064"), (2.5834, "2.58"), (10, "10"), (1137, "1 140"), (99.96, "100")],
)
def test_numbers_have_three_digits(value: float, text: str) -> None:
    assert scaling._number(value) == text


def test_the_tables_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    scaling.main()
    printed = capsys.readouterr().out
    for table in (scaling.rates(), scaling.breaks(), scaling.units(), scaling.limits()):
        assert table in printed
