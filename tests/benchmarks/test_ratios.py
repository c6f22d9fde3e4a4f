"""Ratios of CPU are compared with their bounds: two runs of three decide, since one may be off."""

from __future__ import annotations

import pytest

from benchmarks.ratios import Row, beyond, rows, tables, written

PRINTED = """| cold start | ms | ratio | at most |
|---|---|---|---|
| Bare | 660 | 1.00 |  |
| Page | 829 | 1.36 | 1.35 |

| memory | peak | ratio | at most |
|---|---|---|---|
| Page | 90 | 0.35 | 0.6 |

A line of text.
"""


def test_rows_are_read_by_the_names_of_the_columns() -> None:
    start, memory = tables(PRINTED)
    assert list(rows(start)) == [
        Row("cold start: Bare", 1.0, None),
        Row("cold start: Page", 1.36, 1.35),
    ]
    assert list(rows(memory)) == [Row("memory: Page", 0.35, 0.6)]


@pytest.mark.parametrize(
    ("ratios", "found"),
    [
        ((1.35, 1.35, 1.35), []),
        ((1.36, 1.35, 1.35), []),
        ((1.36, 1.35, 1.4), ["Page: 1.36, 1.35, 1.4 (at most 1.35)"]),
        ((1.36, 1.36, 1.36), ["Page: 1.36, 1.36, 1.36 (at most 1.35)"]),
    ],
)
def test_a_row_fails_if_two_of_three_runs_are_beyond_its_bound(
    ratios: tuple[float, ...], found: list[str]
) -> None:
    runs = [[Row("Bare", 9.0, None), Row("Page", each, 1.35)] for each in ratios]
    assert beyond(runs) == found


def test_the_tables_are_written_between_their_marks() -> None:
    page = "a\n<!-- cold -->\nold\n<!-- /cold -->\nb\n"
    assert written(page, "cold", ["| x |", "| y |"]) == (
        "a\n<!-- cold -->\n| x |\n\n| y |\n<!-- /cold -->\nb\n"
    )


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="one place for the table cold"):
        written("a\n", "cold", ["| x |"])
