from __future__ import annotations

import tomllib
from pathlib import Path

from checkout.version import VERSION


def test_the_version_told_is_the_version_of_the_project() -> None:
    project = Path(__file__).parents[1] / "pyproject.toml"
    assert tomllib.loads(project.read_text())["project"]["version"] == VERSION
