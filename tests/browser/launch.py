"""Chromium, as every browser test and the screenshots start it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

_QUIET = ("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run")
_ALONE = ("--disable-background-networking", "--disable-component-update", "--disable-sync")


def chromium() -> str | None:
    """Return its path, if it is installed.

    The headless shell draws the same pages with less work for the processor.
    """
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    return next((path for name in names if (path := shutil.which(name))), None)


@contextmanager
def launched(path: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*_QUIET, *_ALONE])
        yield browser
        browser.close()
