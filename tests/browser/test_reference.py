"""The reference in a browser: nothing is cut off, axe finds nothing, and it can be searched."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.judge import Judge
from tests.support.merchant_api import MerchantApi

pytestmark = pytest.mark.browser

HOST = "http://localhost:4999"  # nothing listens there
FILES = ("/docs", "/docs/v1", "/docs/style.css", "/docs/script.js")


def served(page: Page) -> list[str]:
    """Serve the reference to the page. Return the paths that it asks for, as it asks."""
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

    page.route("**/*", answered)
    return asked


@pytest.mark.parametrize("path", ["/docs", "/docs#parameter_unknown", "/docs/v1"])
def test_it_is_readable_on_phones_and_desktops_in_both_schemes(
    browser: Browser, axe: str, path: str
) -> None:
    judge = Judge(browser, axe)
    asked = served(judge.page)
    judge.page.goto(HOST + path)
    judge(path)
    judge.done()
    assert set(asked) <= {path.partition("#")[0], "/docs/style.css", "/docs/script.js"}


def test_code_is_copied_and_a_name_is_found_by_a_part_of_it(browser: Browser) -> None:
    page = browser.new_page()
    served(page)
    page.goto(f"{HOST}/docs")
    page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text; }")
    start = page.locator("#start")
    start.get_by_role("button", name="Copy: curl").click()
    assert page.evaluate("window.copied").startswith("# The number of your order.")
    start.get_by_text("Python", exact=True).press("Enter")
    expect(start.get_by_role("button", name="Copy: Python")).to_be_visible()
    expect(start.get_by_role("button", name="Copy: curl")).to_be_hidden()
    page.get_by_label("Search this page").fill("KEY_REUSED")
    page.get_by_role("search").get_by_role("link", name="idempotency_key_reused").click()
    assert page.url == f"{HOST}/docs#idempotency_key_reused"
    page.get_by_label("Search this page").fill("no such word")
    expect(page.get_by_role("search")).to_contain_text("Nothing found.")
    page.close()
