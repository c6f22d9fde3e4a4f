"""Count the attacks of a test run by suite, and print them at its end.

Each test of a suite is a case, unless it tries a table of them with `Attack.each`. The counts
travel in the tests' reports, so that they arrive from every process of pytest-xdist.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import pytest

Case = TypeVar("Case")
COUNTED: Final = "attacks"
SCANNED: Final = "secrets"
NO_SUITES: Final = ("test_documented", "test_seeded_bugs", "test_counts")
_SHOWN: Final = 10  # of the cases that succeeded


class Attack:
    """The cases that one test tries, and their results."""

    def __init__(self) -> None:
        self.counts = {"cases": 0, "let through": 0, "answers": 0, "5xx": 0}  # plain: it is sent
        self._through: list[str] = []

    def answered(self, status: int) -> int:
        """Count an answer, and return its status. None may be a 5xx."""
        self.counts["answers"] += 1
        self.counts["5xx"] += status >= 500
        return status

    def each(
        self, cases: Mapping[str, Case] | Iterable[Case], attempt: Callable[[Case], object]
    ) -> None:
        """Try every case, and fail at the end if an attack succeeded.

        A case fails by an AssertionError, or by a LookupError: an answer without the expected
        error. A case of a mapping is named by its key.
        """
        named = cases.items() if isinstance(cases, Mapping) else ((each, each) for each in cases)
        for name, case in named:
            self.counts["cases"] += 1
            try:
                attempt(case)
            except (AssertionError, LookupError) as error:
                self.counts["let through"] += 1
                self._through.append(f"{name!r:.120}: {str(error) or error!r:.400}")
        assert self.counts["cases"]
        if self._through:
            pytest.fail(
                f"{len(self._through)} of {self.counts['cases']} were let through:\n"
                + "\n".join(self._through[:_SHOWN]),
                pytrace=False,
            )


def of_report(report: pytest.TestReport) -> tuple[str, Counter[str]] | None:
    """Return the suite of a test that has run, and its counts; None if it is no attack."""
    folder, _, name = report.nodeid.partition("::")[0].rpartition("/")
    suite = name.removesuffix(".py")
    ended = report.when == "call" or (report.when == "setup" and not report.passed)
    if not folder.endswith("tests/attacks") or suite in NO_SUITES or not ended:
        return None
    found: Counter[str] = Counter(properties(report).get(COUNTED, {}))
    if not found["cases"]:
        found["cases"] = 1
        found["let through"] = 0 if report.passed else 1
    elif not report.passed and not found["let through"]:
        found["let through"] = 1
    return suite.removeprefix("test_").replace("_", " "), found


def properties(report: pytest.TestReport) -> dict[str, Any]:
    return dict(report.user_properties)


def lines(reports: Iterable[pytest.TestReport]) -> list[str]:
    """Return the summary of a run: a line for each suite, their total, and the scan for secrets."""
    suites: dict[str, Counter[str]] = {}
    scans: list[str] = []
    for report in reports:
        if counted := of_report(report):
            suite, counts = counted
            suites.setdefault(suite, Counter()).update(counts)
            if scan := properties(report).get(SCANNED):
                scans.append(scan)
    if not suites:
        return []
    total = sum(suites.values(), Counter[str]())
    rows = [*sorted(suites.items()), ("all", total)]
    width = max(len(suite) for suite, _ in rows)
    head = f"{'suite':{width}}  {'cases':>6}  {'refused':>7}  {'let through':>11}  {'5xx':>4}"
    return [
        head,
        *(
            f"{suite:{width}}  {found['cases']:6}  {found['cases'] - found['let through']:7}"
            f"  {found['let through']:11}  {found['5xx']:4}"
            for suite, found in rows
        ),
        *scans,
    ]
