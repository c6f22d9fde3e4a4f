"""docs/security.md names a test for each promise, and each named test exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.sources import REPOSITORY, functions_of

PAGE = (REPOSITORY / "docs" / "security.md").read_text("utf-8")
PROMISES = PAGE.split("<!-- promises -->")[1].split("<!-- /promises -->")[0]
# A promise, in one or more lines, and the list of its tests.
ROWS = re.findall(r"^- ((?:[^\n]|\n  (?!- ))+)((?:\n  - [^\n]+)*)", PROMISES, re.MULTILINE)
NAMED = re.findall(
    r"^  - `((?:packages/open-payments/)?tests/[\w/]+\.py)::(test_\w+)`$", PROMISES, re.MULTILINE
)
NO_SUITES = {"test_documented", "test_seeded_bugs", "test_counts"}
SUITES = [path for path in Path(__file__).parent.glob("test_*.py") if path.stem not in NO_SUITES]


@pytest.mark.parametrize(("promise", "tests"), ROWS)
def test_each_promise_names_its_tests(promise: str, tests: str) -> None:
    assert promise.endswith(".")
    assert len(re.findall(r"\btests/", tests)) == tests.count("\n") > 0


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_each_named_test_exists(path: str, name: str) -> None:
    assert name in functions_of(REPOSITORY / path)


@pytest.mark.parametrize("suite", SUITES, ids=lambda path: path.stem)
def test_each_suite_of_attacks_holds_a_promise(suite: Path) -> None:
    assert str(suite.relative_to(REPOSITORY)) in {path for path, _ in NAMED}


def test_every_line_is_a_promise_or_one_of_its_tests() -> None:
    assert len(ROWS) == len(re.findall(r"^- ", PROMISES, re.MULTILINE)) > 20
    assert len(NAMED) == len(re.findall(r"\btests/", PROMISES))
