"""Install Node packages for tests."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest


def with_packages(folder: Path) -> str:
    """Return Node's path, with the packages that the folder's package-lock.json pins installed."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found is None or npm is None:
        assert "CI" not in os.environ, "CI must have Node: these tests are not to be skipped"
        pytest.skip("Node 20 or newer is not installed: apt-get install nodejs npm")
    pinned, installed = folder / "package-lock.json", folder / "node_modules/.package-lock.json"
    with pinned.open() as one_at_a_time:  # of the workers
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not installed.exists() or installed.stat().st_mtime < pinned.stat().st_mtime:
            command = [npm, "ci", "--no-audit", "--no-fund"]
            subprocess.run(command, cwd=folder, check=True, timeout=300)
    return found
