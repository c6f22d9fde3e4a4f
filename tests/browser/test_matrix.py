"""The whole purchase, begun in every way, in every look; axe-core judges each page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from checkout.domain.providers import Provider
from checkout.domain.session import Status
from tests.browser.judge import violations
from tests.browser.served import Served, new_context
from tests.browser.test_states import PANEL
from tests.support.flows import CEDAR
from tests.support.sample import sample

pytestmark = pytest.mark.browser

OFFER = Provider("Cedar Bank", f"{CEDAR}/{{name}}", "https://cedar.example/")
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
SESSION = re.compile(r"/pay/(cs_[0-9A-Za-z]{22})(?:[/?]|$)")


@dataclass(frozen=True)
class Look:
    """`width` and `height` in CSS pixels; at 200 % a desktop has half of its own."""

    width: int
    height: int = 800
    scheme: Literal["light", "dark"] = "light"
    forced: bool = False
    tag: str = "en"


LOOKS = {
    "320": Look(320, 640),
    "375 dark": Look(375, 667, scheme="dark"),
    "1280": Look(1280),
    "1280 dark": Look(1280, scheme="dark"),
    "forced colors": Look(1280, forced=True),
    "Arabic 375": Look(375, 667, tag="ar"),
    "200 %": Look(640, 450),
}


def dressed(browser: Browser, look: Look, *, script: bool = True) -> BrowserContext:
    context = new_context(browser, script=script, scheme=look.scheme, tag=look.tag)
    context.on("page", lambda page: _dress(page, look))
    return context


def _dress(page: Page, look: Look) -> None:
    page.set_viewport_size({"width": look.width, "height": look.height})
    if look.forced:
        page.emulate_media(forced_colors="active")


def from_a_tile(page: Page, pages: Served) -> None:
    page.goto(pages.address(pages.world.create()))
    page.locator("#name-1").fill("alice")
    page.locator("#name-1").press("Enter")


def from_a_typed_address(page: Page, pages: Served) -> None:
    page.goto(pages.address(pages.world.create()))
    _type(page)


def from_a_link(page: Page, pages: Served) -> None:
    """As the QR code of its poster leads to it (test_links.py reads one)."""
    page.goto(f"{pages.base}/buy/{pages.world.link(left=3).id}")
    page.locator("form .button").click()
    _type(page)


def from_a_remembered_one(page: Page, pages: Served) -> None:
    page.goto(pages.address(pages.world.create()))
    page.locator("#typed summary").first.click()
    page.locator("#remember").check()
    _fill(page)
    expect(page.locator("#leave")).to_be_visible()
    page.goto(pages.address(pages.world.create()))
    page.locator("#kept .quiet").click()


def _type(page: Page) -> None:
    page.locator("#typed summary").first.click()
    _fill(page)


def _fill(page: Page) -> None:
    page.locator("#wallet_address").fill(f"{CEDAR}/alice")
    page.locator("#wallet_address").press("Enter")


def bought(page: Page, pages: Served, judge: Callable[[], None]) -> None:
    """From the price to the receipt; `judge` looks at each page."""
    expect(page.locator("#leave")).to_be_visible()
    found = SESSION.search(page.url)
    assert found is not None
    judge()
    page.locator("#leave").click()
    expect(page.get_by_role("heading")).to_have_text("A wallet")
    pages.approve(page)
    expect(page.locator("[data-status=completed]")).to_be_visible()
    judge()
    assert pages.world.session(found[1]).status is Status.COMPLETED


WAYS: dict[str, Callable[[Page, Served], None]] = {
    "tile": from_a_tile,
    "typed": from_a_typed_address,
    "remembered": from_a_remembered_one,
    "link": from_a_link,
}


@pytest.mark.parametrize(("way", "name"), sample(product(WAYS, LOOKS), of=2))
def test_a_purchase_in_every_way_and_look(
    browser: Browser, pages: Served, axe: str, name: str, way: str
) -> None:
    context = dressed(browser, LOOKS[name])
    page = context.new_page()
    seen: list[str] = []

    def judge(*_: Any) -> None:
        assert violations(page, axe) == [], page.url
        assert page.evaluate(WIDER) == 0, page.url
        seen.append(page.url)

    with pages.merchant(**PANEL, providers=(OFFER,)):
        page.goto(pages.address(pages.world.create()))
        judge()
        WAYS[way](page, pages)
        bought(page, pages, judge)
    assert len(seen) == 3
    context.close()


@pytest.mark.parametrize("way", [each for each in WAYS if each != "remembered"])  # which is script
@pytest.mark.parametrize("name", LOOKS)
def test_a_purchase_without_script_in_every_way_and_look(
    browser: Browser, pages: Served, name: str, way: str
) -> None:
    context = dressed(browser, LOOKS[name], script=False)
    page = context.new_page()
    with pages.merchant(**PANEL, providers=(OFFER,)):
        WAYS[way](page, pages)
        bought(page, pages, lambda: None)
    context.close()
