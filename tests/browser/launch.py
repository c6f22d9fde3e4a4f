"""Chromium, as every browser test and the screenshots start it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
_ALONE = ("--disable-background-networking", "--disable-component-update", "--disable-sync")


def chromium() -> str | None:
    """Return its path, if it is installed."""
    return shutil.which("chromium") or shutil.which("chromium-browser")


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_QUIET, *_ALONE])
        yield browser
        browser.close()
