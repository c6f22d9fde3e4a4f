"""The reference in a browser: nothing is cut off, and axe finds nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Route

from tests.browser.judge import Judge
from tests.support.merchant_api import MerchantApi

pytestmark = pytest.mark.browser

HOST = "http://localhost:4999"  # nothing listens there
FILES = ("/docs", "/docs/v1", "/docs/style.css")


@pytest.mark.parametrize("path", ["/docs", "/docs#parameter_unknown", "/docs/v1"])
def test_it_is_readable_on_phones_and_desktops_in_both_schemes(
    browser: Browser, axe: str, path: str
) -> None:
    api = MerchantApi()
    # In a thread of its own, because the browser's loop runs in this one.
    with ThreadPoolExecutor(1) as thread:
        files = {each: thread.submit(api.send, "GET", each, key=None).result() for each in FILES}
    asked: list[str] = []

    def answered(route: Route) -> None:
        address = urlsplit(route.request.url).path
        asked.append(address)
        if address in files:
            found = files[address]
            route.fulfill(status=200, headers=dict(found.headers), body=found.body)
        else:
            route.abort()

    judge = Judge(browser, axe)
    judge.page.route("**/*", answered)
    judge.page.goto(HOST + path)
    judge(path)
    judge.done()
    assert set(asked) <= {path.partition("#")[0], "/docs/style.css"}
