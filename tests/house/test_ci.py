"""The workflows of .github run what .ci/run runs, with actions that nobody can move."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = (ROOT / ".ci" / "run").read_text("utf-8")
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
LANES: Final = re.findall(
    r"\(lowered \d+ ([a-z -]+)\)|\blane ([a-z][a-z -]+) &$", SCRIPT, re.MULTILINE
)
STEPS: Final = [step for lane in LANES for step in "".join(lane).split()]


def test_each_step_of_the_script_is_a_job_of_its_own() -> None:
    workflow: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/ci.yml").read_text())
    job = workflow["jobs"]["step"]
    assert sorted(job["strategy"]["matrix"]["step"]) == sorted(STEPS)
    assert job["steps"][-1]["run"] == '.ci/run "$STEP"'


def test_each_level_of_make_test_is_a_step() -> None:
    found = re.search(r"^test: ([a-z ]+?) ##", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE)
    assert found is not None
    levels = found[1].replace("unit", "coverage")  # the same tests, with branches counted
    assert {*levels.split()} <= {*STEPS}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_beside_their_version(workflow: Path) -> None:
    used = re.findall(r"uses: (?!\./)(.*)", workflow.read_text("utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
