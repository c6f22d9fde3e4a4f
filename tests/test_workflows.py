"""Check the workflows of the forge: safe settings, and only commands and versions that exist."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

ROOT: Final = Path(__file__).parent.parent
WORKFLOWS: Final = sorted((ROOT / ".github/workflows").glob("*.yml"))
PINNED: Final = re.compile(r"[\w-]+/[\w-]+@(v\d+\.\d+\.\d+|[0-9a-f]{40})")


def loaded(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(path.read_text("utf-8"))
    return found


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_only_read_and_ends_in_time(path: Path) -> None:
    workflow = loaded(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]
    for job in workflow["jobs"].values():
        if "uses" in job:
            assert (ROOT / job["uses"]).is_file()
            continue
        assert job["timeout-minutes"] <= 45
        for step in job["steps"]:
            assert "uses" not in step or PINNED.fullmatch(step["uses"]), step
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False


def test_ci_runs_everything_and_each_supported_python() -> None:
    jobs = loaded(ROOT / ".github/workflows/ci.yml")["jobs"]
    assert ".ci/run" in [step.get("run") for step in jobs["everything"]["steps"]]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    language = "Programming Language :: Python :: "
    supported = [each.removeprefix(language) for each in project["classifiers"] if language in each]
    assert jobs["python"]["strategy"]["matrix"]["python"] == supported
    assert project["requires-python"] == f">={supported[0]}"


def test_every_target_that_a_workflow_makes_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    texts = [path.read_text("utf-8") for path in (*WORKFLOWS, ROOT / ".ci/run")]
    made = {name for text in texts for name in re.findall(r"(?:^|run: )make ([a-z-]+)", text, re.M)}
    assert {"lint", "test", "unit", "package"} <= made <= targets


def test_every_file_for_the_forge_is_yaml() -> None:
    for path in (*(ROOT / ".github").rglob("*.yml"), ROOT / ".pre-commit-config.yaml"):
        assert loaded(path), path.name
