"""The benchmark of growth: its steps beside few sessions, and that it notices one that grows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks import growth
from benchmarks.growth import Counts
from tests.fakes.dynamodb import InMemoryDynamoDb

SIZES = (1_000, 4_000)


def test_no_step_costs_more_beside_more_sessions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = growth.measured(SIZES)
    monkeypatch.setattr(growth, "SIZES", SIZES)
    monkeypatch.setattr(growth, "measured", lambda: found)
    assert growth.main() == 0
    printed = capsys.readouterr().out
    assert "| step | 1 000 | 4 000 | change, % |" in printed
    assert "| list of 100 | 3, 202, " in printed  # the key, 101 entries, 100 sessions
    for name in ("create", "get", "search: a payment's id", "a round of the sweep"):
        assert f"| {name} | " in printed
    found[1]["get"] = replace(found[1]["get"], reads=found[0]["get"].reads * 1.06)
    assert growth.main() == 1
    assert "By more than 5 %: get\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("other", "per_cent"),
    [
        (Counts(3, 100, 50, 0), 0),
        (Counts(3, 104, 51, 0), 4),
        (Counts(3, 104, 40, 0), -20),
        (Counts(3, 100, 50, 1), 100),
    ],
)
def test_the_change_is_that_of_the_count_that_changes_most(other: Counts, per_cent: float) -> None:
    assert growth.change(Counts(3, 100, 50, 0), other) == pytest.approx(per_cent)


def test_a_query_that_reads_its_whole_partition_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a list without a limit would, or a search that filters."""
    limited = InMemoryDynamoDb.query

    def unlimited(self: InMemoryDynamoDb, **request: object) -> object:
        return limited(self, **request | {"Limit": None})

    monkeypatch.setattr(InMemoryDynamoDb, "query", unlimited)
    assert "list of 10" in growth.grows(growth.measured((300, 600)))
