"""The browser, the pages and Node, for all tests of this folder."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.launch import chromium, launched
from tests.browser.served import Served, served

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = chromium()
    if found is None:
        assert "CI" not in os.environ, "CI must have Chromium: these tests are not to be skipped"
        pytest.skip("Chromium is not installed")
    with launched(found) as browser:
        yield browser


@pytest.fixture(scope="module")
def pages() -> Iterator[Served]:
    with served() as found:
        yield found


@pytest.fixture(scope="session")
def node() -> str:
    """Node with axe-core and Lighthouse installed, as package-lock.json pins them."""
    found, npm = shutil.which("node"), shutil.which("npm")
    if found is None or npm is None:
        assert "CI" not in os.environ, "CI must have Node: these tests are not to be skipped"
        pytest.skip("Node is not installed")
    lock = HERE / "package-lock.json"
    installed = HERE / "node_modules" / ".package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([npm, "ci", "--no-audit", "--no-fund"], cwd=HERE, check=True, timeout=300)
    return found


@pytest.fixture(scope="session")
def axe(node: str) -> str:
    """axe-core's source, to be evaluated in a page."""
    return (HERE / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
