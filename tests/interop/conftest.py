"""Node, with the packages that are not ours."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.support.node import with_packages

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def node() -> str:
    """Node with the packages installed; their versions are printed."""
    found = with_packages(HERE)
    for name in json.loads((HERE / "package.json").read_text())["dependencies"]:
        text = (HERE / "node_modules" / name / "package.json").read_text()
        print(f"{name} {json.loads(text)['version']}")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    print(f"node {version.stdout.strip()}")
    return found
