"""Node, with the packages that are not ours."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def node() -> str:
    """Node with the packages installed, as package-lock.json pins them."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found is None or npm is None:
        assert "CI" not in os.environ, "CI must have Node: the interop tests are not to be skipped"
        pytest.skip("Node is not installed")
    lock = HERE / "package-lock.json"
    installed = HERE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=HERE, check=True, timeout=300)
    for name in json.loads((HERE / "package.json").read_text())["dependencies"]:
        text = (HERE / "node_modules" / name / "package.json").read_text()
        print(f"{name} {json.loads(text)['version']}")
    version = subprocess.run([found, "--version"], capture_output=True, text=True, check=True)
    print(f"node {version.stdout.strip()}")
    return found
