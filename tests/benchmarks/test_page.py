from __future__ import annotations

import pytest

from benchmarks import page


def test_the_first_byte_comes_within_one_and_a_half_times_a_bare_jinja_page() -> None:
    ours, least = page.measured()
    assert ours <= page.LIMIT * least, f"{ours:.2f} ms, {least:.2f} ms"


def test_it_prints_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    page.main()
    told = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in told] == [
        "first byte",
        "---",
        "the hosted page",
        "a bare Jinja page",
        f"times (at most {page.LIMIT})",
    ]
