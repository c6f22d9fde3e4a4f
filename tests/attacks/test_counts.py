"""The counts of attacks: each case is counted once, and each success is named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.attack_counts import COUNTED, SCANNED, Attack, lines


def report(
    name: str, outcome: Any = "passed", when: Any = "call", **properties: Any
) -> pytest.TestReport:
    found = pytest.TestReport(
        nodeid=f"tests/attacks/test_{name}.py::test_x",
        location=("", 0, ""),
        keywords={},
        outcome=outcome,
        longrepr=None,
        when=when,
    )
    found.user_properties = list(properties.items())
    return found


def attempt(case: Any) -> None:
    if case is LookupError:
        raise LookupError
    assert case != "bad"


def test_a_table_counts_each_case_and_names_what_was_let_through() -> None:
    attack = Attack()
    with pytest.raises(pytest.fail.Exception, match=r"(?s)2 of 3 were let through:.*'b'.*'c'"):
        attack.each({"a": "good", "b": "bad", "c": LookupError}, attempt)
    assert (attack.counts["cases"], attack.counts["let through"]) == (3, 2)


def test_an_empty_table_is_no_attack() -> None:
    with pytest.raises(AssertionError):
        Attack().each([], attempt)


def test_another_error_ends_the_test() -> None:
    def bug(case: str) -> None:
        raise RuntimeError(case)

    with pytest.raises(RuntimeError):
        Attack().each(["a"], bug)


def test_each_5xx_is_counted() -> None:
    attack = Attack()
    assert [attack.answered(status) for status in (200, 404, 500, 503)] == [200, 404, 500, 503]
    assert (attack.counts["answers"], attack.counts["5xx"]) == (4, 2)


def counted(*reports: pytest.TestReport) -> Iterator[list[str]]:
    for line in lines(reports)[1:]:
        yield line.split()


def test_the_summary_has_a_line_for_each_suite_and_their_total() -> None:
    table = {"cases": 10, "let through": 1, "answers": 12, "5xx": 2}
    passed = {"cases": 5, "let through": 0, "answers": 0, "5xx": 0}
    found = counted(
        report("texts"),
        report("texts", outcome="failed"),
        report("texts", when="setup"),
        report("tokens", outcome="failed", when="setup"),
        report("ids_and_cursors", outcome="failed", **{COUNTED: table}),
        report("ids_and_cursors", **{COUNTED: passed}),
        report("ids_and_cursors", outcome="failed", **{COUNTED: passed}),
        report("seeded_bugs"),
        report("secrets", **{SCANNED: "secrets: 1 searched"}),
    )
    assert list(found) == [
        ["ids", "and", "cursors", "20", "18", "2", "2"],
        ["secrets", "1", "1", "0", "0"],
        ["texts", "2", "1", "1", "0"],
        ["tokens", "1", "0", "1", "0"],
        ["all", "24", "20", "4", "2"],
        ["secrets:", "1", "searched"],
    ]


def test_a_run_without_attacks_has_no_summary() -> None:
    other = report("x")
    other.nodeid = "tests/domain/test_x.py::test_x"
    assert lines([other]) == []
