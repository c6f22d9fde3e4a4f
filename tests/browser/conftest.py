"""The browser, the pages and Node, for all tests of this folder."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from sandbox.place import Place
from tests.browser.launch import chromium, launched
from tests.browser.served import Served, served
from tests.support.node import with_packages
from tests.support.processes import local_world

HERE = Path(__file__).parent
# Milliseconds, for which a page may take to become what a test expects. A busy machine needs them.
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = chromium()
    if found is None:
        assert "CI" not in os.environ, "CI must have Chromium: these tests are not to be skipped"
        pytest.skip("Chromium is not installed: apt-get install chromium")
    with launched(found) as browser:
        yield browser


@pytest.fixture(params=["with script", "without script"])
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    context = browser.new_context(java_script_enabled=request.param == "with script")
    yield context.new_page()
    context.close()


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """A local world of all tests that do not disturb each other; a few have one of their own."""
    with local_world(tmp_path_factory.mktemp("state")) as place:
        yield place


@pytest.fixture(scope="module")
def pages() -> Iterator[Served]:
    with served() as found:
        yield found


@pytest.fixture(scope="session")
def node() -> str:
    """Node with axe-core and Lighthouse."""
    return with_packages(HERE)


@pytest.fixture(scope="session")
def axe(node: str) -> str:
    """axe-core's source, to be evaluated in a page."""
    return (HERE / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")
