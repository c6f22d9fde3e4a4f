from __future__ import annotations

import pytest

from benchmarks import page


def test_both_show_the_same_page_and_a_table_says_how_fast(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "ROUNDS", 1)
    page.main()
    printed = capsys.readouterr().out.splitlines()
    assert [line.split("|")[1].strip() for line in printed] == [
        "first byte",
        "---",
        "the hosted page",
        "a bare Jinja page",
        f"times (at most {page.LIMIT})",
    ]
