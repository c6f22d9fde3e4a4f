"""Fixtures of tests in more than one folder."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
from hypothesis import core

from checkout import telemetry
from sandbox import cloud
from tests.support import attack_counts as counts
from tests.support import aws_calls

NEEDS_SOCKETS = ("cloud", "browser", "interop", "artifacts")
IN_OWN_FOLDER = ("browser", "interop", "artifacts")
UNTRACED = ("benchmarks", "fakes", "house", "operations", "sandbox", "template")  # folders

# Examples take as long as the machine needs for them and differ from run to run; one that fails is
# printed so that it can be repeated. Hypothesis has other settings for CI, and none holds there.
hypothesis.settings.register_profile("tests", deadline=None, derandomize=False, print_blob=True)
hypothesis.settings.load_profile("tests")


def pytest_configure() -> None:
    """Draw Hypothesis' examples from SAMPLE (sample.py), if the environment has it.

    And have every process that a test starts print its stacks if it is aborted (processes.py).
    """
    os.environ["PYTHONFAULTHANDLER"] = "1"
    if turn := os.environ.get("SAMPLE"):
        core.global_force_seed = int(turn)  # type: ignore[assignment]  # it begins as None


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by markers
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let tests with a world around them open sockets, and begin with those that take long.

    Unit tests may open none. A slow test that begins last has no other test beside it. The Makefile
    looks for the tests of IN_OWN_FOLDER in folders of these names. Tests in the folders UNTRACED
    reach no line of the product that the others do not.
    """
    items.sort(key=lambda item: item.get_closest_marker("first") is None)
    for item in items:
        for name in IN_OWN_FOLDER:
            if item.get_closest_marker(name) and not item.nodeid.startswith(f"tests/{name}/"):
                raise pytest.UsageError(f"{item.nodeid} must be in tests/{name}/")
        marked = any(item.get_closest_marker(each) for each in ("browser", "lighthouse"))
        if item.nodeid.startswith("tests/browser/") and not marked:
            raise pytest.UsageError(f"{item.nodeid} needs the marker of its folder")
        if item.nodeid.split("/")[1] in UNTRACED:
            item.add_marker(pytest.mark.untraced)
        if any(item.get_closest_marker(name) for name in NEEDS_SOCKETS):
            item.add_marker(pytest.mark.enable_socket)


def pytest_assertrepr_compare(op: str, left: object, right: object) -> list[str] | None:
    """Name the fields that differ where both sides print alike: secrets are not printed."""
    if op != "==" or repr(left) != repr(right):
        return None
    return [
        "both sides print alike, and differ in",
        *(each or "itself" for each in _unlike(left, right)),
    ]


def _unlike(left: Any, right: Any, at: str = "") -> Iterator[str]:
    """Yield the paths of the innermost parts that differ."""
    inner: list[tuple[object, Any, Any]] = []
    if type(left) is type(right) and dataclasses.is_dataclass(left):
        names = [each.name for each in dataclasses.fields(left) if each.compare]
        inner = [(each, getattr(left, each), getattr(right, each)) for each in names]
    elif isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        inner = [(each, left[each], right[each]) for each in left]
    elif isinstance(left, list | tuple) and type(left) is type(right) and len(left) == len(right):
        inner = list(zip(range(len(left)), left, right, strict=True))
    if not inner and left != right:
        yield at
    for name, one, other in inner:
        yield from _unlike(one, other, f"{at}.{name}".removeprefix("."))


def pytest_sessionfinish() -> None:
    aws_calls.keep()
    _keep_coverage()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the attacks of this run by suite."""
    groups = terminalreporter.stats.values()
    reports = [each for group in groups for each in group if isinstance(each, pytest.TestReport)]
    if found := counts.lines(reports):
        terminalreporter.section("attacks")
        for line in found:
            terminalreporter.write_line(line)


def _keep_coverage() -> None:
    """Save what was counted in this process, if anything counts.

    It would be saved at the end of the process. But xdist kills a worker that takes more than ten
    seconds to end, which happens on a busy machine.
    """
    counting = sys.modules["coverage"].Coverage.current() if "coverage" in sys.modules else None
    if counting is not None:
        with warnings.catch_warnings(
            action="ignore"
        ):  # xdist's own process imports nothing of ours
            counting.save()


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], list[dict[str, Any]]]]:
    """Return the JSON lines on standard output since the last call, for tests of `telemetry`."""
    yield lambda: [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    telemetry.stop()


@pytest.fixture(scope="session")
def emulator() -> Iterator[str]:
    """The endpoint of an AWS emulator that all tests share; each makes tables under a prefix of its
    own.
    """
    with cloud.running_emulator(cloud.free_port()) as endpoint:
        yield endpoint
