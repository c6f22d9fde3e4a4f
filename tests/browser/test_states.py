"""Every state under the judges: axe-core finds nothing, nothing is cut off, one way on is plain."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from checkout.domain.merchant import Logo
from pay.colors import contrast
from tests.browser.gallery import STATES, show
from tests.browser.launch import chromium
from tests.browser.served import Served, new_context

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent
WAYS_ON = "main .button:visible"
# What a merchant, a customer or a wallet may call themselves to get out of their text.
HOSTILE = (
    "<script>document.title='x'</script>",
    '"><img src=x onerror="document.title=\'x\'">',
    "</title></style></script><svg onload=\"document.title='x'\">",
    "' autofocus onfocus='document.title=1",
    "\u2069\u202etxt.exe",
)


def violations(page: Page, axe: str) -> list[str]:
    """What axe-core finds, best practices and what is folded away included."""
    page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
    page.evaluate(axe)
    found: dict[str, Any] = page.evaluate("axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found["violations"]
        for node in one["nodes"]
    ]


@pytest.mark.parametrize("tag", ["en", "ar"])
@pytest.mark.parametrize("wide", [False, True], ids=["375px", "1280px"])
def test_axe_finds_nothing_and_nothing_is_cut_off_in_any_state_and_scheme(
    browser: Browser, pages: Served, axe: str, tag: str, wide: bool
) -> None:
    context = new_context(browser, wide=wide, tag=tag)
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    for name in STATES:
        page.emulate_media(color_scheme="light")
        show(name, page, pages)
        assert violations(page, axe) == [], name
        page.emulate_media(color_scheme="dark")
        assert violations(page, axe) == [], f"{name} in the dark"
        wider = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert page.evaluate(wider) == 0, name
    context.close()
    refused = "the server responded with a status of"  # Chromium notes each 4xx that we answer
    assert [one for one in told if refused not in one] == []


def test_each_state_has_one_way_on_that_stands_out(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    for name in STATES:
        show(name, page, pages)
        assert page.locator(WAYS_ON).count() == 1, name


def test_each_state_can_be_left_with_the_keyboard(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    for name in STATES:
        show(name, page, pages)
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.classList.contains('button')"):
                break
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate("document.activeElement.className") == "button", name
        assert page.evaluate(outline) == "solid", name


@pytest.mark.parametrize("color", ["#ffff00", "#000000", "#ffffff", "#777777", "#ff0000"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_merchants_colour_and_logo_stay_readable(
    browser: Browser, pages: Served, axe: str, color: str, scheme: str
) -> None:
    world = pages.world
    before = world.merchant
    logo = Logo("image/svg+xml", b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>')
    world.merchant = before.changed(accent_color=color, logo=logo)
    world.services.merchants.replace(world.merchant)
    page = new_context(browser, scheme=scheme).new_page()
    for name in ("open", "price", "declined", "confirmation"):
        show(name, page, pages)
        assert violations(page, axe) == [], name
        style = page.locator(WAYS_ON).evaluate(
            "one => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor]"
        )
        assert contrast(*map(_hex, style)) >= 4.5
    assert page.locator(".shop img").evaluate("image => image.complete")
    world.merchant = world.merchant.changed(accent_color=None, logo=None)
    world.services.merchants.replace(world.merchant)


def _hex(rgb: str) -> str:
    red, green, blue = (int(part) for part in rgb.removeprefix("rgb(").rstrip(")").split(","))
    return f"#{red:02x}{green:02x}{blue:02x}"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_run_nothing_in_a_real_browser(
    browser: Browser, pages: Served, text: str
) -> None:
    world = pages.world
    name = world.merchant.name
    world.merchant = world.merchant.changed(name=text)
    world.services.merchants.replace(world.merchant)
    page = new_context(browser).new_page()
    for state in ("open", "price", "confirmation", "canceled"):
        show(state, page, pages)
        assert page.locator(".shop p").inner_text() == text
        assert text.strip() in page.title()
    show("open", page, pages)
    page.locator("#wallet_address").fill(f"https://{text}")
    page.locator("#wallet_address").press("Enter")
    page.get_by_role("alert").wait_for()
    assert page.locator("main img:not(.phone img), main svg, main script").count() == 0
    world.merchant = world.merchant.changed(name=name)
    world.services.merchants.replace(world.merchant)


@pytest.mark.parametrize("preset", ["mobile", "desktop"])
def test_lighthouse_gives_the_open_page_full_marks(
    pages: Served, node: str, tmp_path: Path, preset: str
) -> None:
    found = chromium()
    if found is None:
        assert "CI" not in os.environ, "CI must have Chromium: these tests are not to be skipped"
        pytest.skip("Chromium is not installed")
    report = tmp_path / "report.json"
    command = [
        node,
        str(HERE / "node_modules" / "lighthouse" / "cli" / "index.js"),
        pages.address(pages.world.create()),
        "--quiet",
        "--output=json",
        f"--output-path={report}",
        "--only-categories=accessibility,best-practices,performance",
        "--chrome-flags=--headless=new --no-sandbox --disable-gpu",
        *(["--preset=desktop"] if preset == "desktop" else []),
    ]
    environment = {**os.environ, "CHROME_PATH": found}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stderr
    told = json.loads(report.read_text())
    marks = {name: one["score"] for name, one in told["categories"].items()}
    poor = [
        (name, one.get("displayValue"))
        for name, one in told["audits"].items()
        if one["score"] is not None and one["score"] < 1
    ]
    weight = told["audits"]["total-byte-weight"]["numericValue"]
    print(preset, marks, f"{weight:.0f} bytes")
    assert marks == {"accessibility": 1, "best-practices": 1, "performance": 1}, poor
    assert weight <= 30 * 1024
    requests = told["audits"]["network-requests"]["details"]["items"]
    assert len([one for one in requests if one["url"].startswith("http")]) <= 4
