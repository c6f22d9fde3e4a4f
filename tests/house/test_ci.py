"""The workflows of .github run what .ci/run runs, with actions that nobody can move."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = (ROOT / ".ci" / "run").read_text("utf-8")
WORKFLOWS: Final = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
DEEP, COMMIT = SCRIPT.partition("step setup-deep\n")[2].split("else\n", 1)


def steps(script: str) -> list[str]:
    """Return the steps of the script's lanes."""
    found = re.findall(r"(?:lowered \d+|lane) ([a-z][a-z -]+)", script)
    return sorted(step for lane in found for step in lane.split())


def listed(name: str) -> list[str]:
    """Return the steps that the Makefile lists under a name."""
    makefile = (ROOT / "Makefile").read_text("utf-8").replace("\\\n", "")
    found = re.search(rf"^{name} := (.*)", makefile, re.MULTILINE)
    assert found is not None
    return sorted(found[1].split())


def test_the_script_runs_the_steps_of_make_check_and_of_make_deep() -> None:
    commit, _, alone = COMMIT.partition("\nfi\n")
    assert steps(commit) == listed("COMMIT")
    assert sorted(steps(DEEP) + steps(alone)) == listed("DEEP")


def test_each_step_is_a_job_of_its_own() -> None:
    folder = ROOT / ".github" / "workflows"
    commit = yaml.safe_load((folder / "ci.yml").read_text())["jobs"]["commit"]
    deep = yaml.safe_load((folder / "deep.yml").read_text())["jobs"]["step"]
    assert sorted(commit["strategy"]["matrix"]["step"]) == listed("COMMIT")
    found = re.search(r"'(\[.*\])'", deep["strategy"]["matrix"]["step"])
    assert found is not None
    assert sorted(json.loads(found[1])) == listed("DEEP")
    for job in (commit, deep):
        assert job["steps"][-1]["run"] == '.ci/run "$STEP"'


def test_all_green_waits_for_every_job() -> None:
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())["jobs"]
    assert {*jobs["all-green"]["needs"]} == {*jobs} - {"all-green"}


@pytest.mark.parametrize(
    ("paths", "needed"),
    [
        ("README.md\nlayers/common/checkout/web.py\n", []),
        ("plugins/pretix/README.md\n", ["pretix"]),
        ("template.yaml\noperations/deploy.py\n", ["artifacts", "rehearse"]),
        ("layers/pay/requirements.txt\n", ["artifacts", "interop", "pretix", "rehearse"]),
    ],
)
def test_a_change_brings_its_deep_steps(paths: str, needed: list[str]) -> None:
    done = subprocess.run(
        [ROOT / ".ci" / "deep-steps"], input=paths, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == needed
    assert {*needed} <= {*listed("DEEP")}


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_actions_are_pinned_by_commit_beside_their_version(workflow: Path) -> None:
    used = re.findall(r"uses: (?!\./)(.*)", workflow.read_text("utf-8"))
    assert used
    for action in used:
        assert re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action)
