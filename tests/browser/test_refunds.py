"""A merchant's refunds in Chromium, against the local world's wallets: with a budget and without.

Each journey runs on a phone and on a desk.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from playwright.sync_api import Browser, Page, expect

from sandbox.place import Place
from tests.browser.dev_server import local_world, own_key
from tests.browser.judge import violations

REPOSITORY: Final = Path(__file__).parents[2]
WIDTHS: Final = (375, 1280)

pytestmark = [pytest.mark.browser, pytest.mark.first]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with local_world(tmp_path_factory.mktemp("state")) as place:
        yield place


@pytest.fixture(params=WIDTHS)
def page(request: pytest.FixtureRequest, browser: Browser, place: Place) -> Iterator[Page]:
    """A page of this width, signed in, whose wallets have certificates of the local world's own."""
    size = {"width": request.param, "height": 800}
    context = browser.new_context(ignore_https_errors=True, viewport=size)  # type: ignore[arg-type]
    found = context.new_page()
    found.goto(f"{place.checkout}/dashboard")
    found.get_by_label("API key").fill(own_key(place))
    found.get_by_role("button", name="Sign in", exact=True).click()
    expect(found.get_by_role("heading", level=1)).to_have_text("Overview")
    yield found
    context.close()


def buy(place: Place, wallet: str | None = None) -> str:
    """Buy something for 20.00 USD at the shop; return the address of its page in the dashboard."""
    paths = [REPOSITORY / "layers/common", REPOSITORY / "functions", REPOSITORY]
    environment = {
        **os.environ,
        "SANDBOX_PORT": str(place.base),
        "SANDBOX_STATE": str(place.folder.parent),
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
    }
    command = [sys.executable, "-m", "sandbox", "demo"] + (["--wallet", wallet] if wallet else [])
    said = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    session = re.search(r"demo: completed (\w+) ", said.stdout)
    assert session is not None, said.stdout
    return f"{place.checkout}/dashboard/transactions/{session[1]}"


def judge(page: Page, axe: str, name: str) -> None:
    """Require that no rule of accessibility is broken and nothing is wider than the screen."""
    width = page.viewport_size["width"] if page.viewport_size else 0
    if folder := os.environ.get("REFUND_PICTURES"):
        page.screenshot(path=f"{folder}/{name}-{width}.png", full_page=True)
    assert violations(page, axe) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def approve(page: Page) -> None:
    """Approve in the merchant's wallet, and come back."""
    page.get_by_role("link", name="Approve in your wallet").click()
    page.get_by_role("button", name="Approve").click()


def approve_budget(page: Page, place: Place, amount: str) -> None:
    page.goto(f"{place.checkout}/dashboard/budget")
    if not page.get_by_label("Amount a month").is_visible():
        page.get_by_text("Another amount…").click()
    page.get_by_label("Amount a month").fill(amount)
    page.locator("form", has=page.get_by_label("Amount a month")).get_by_role("button").click()
    approve(page)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Active")


def end_budget(page: Page, place: Place) -> None:
    page.goto(f"{place.checkout}/dashboard/budget")
    if page.get_by_text("End the budget…").is_visible():
        page.get_by_text("End the budget…").click()
        page.get_by_role("button", name="End the budget").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Ended")


def refunded(page: Page) -> None:
    """Look again until the refund is made."""
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("Refund of")  # not the pause that the wallet may ask for
    for _ in range(30):
        if "Refunded" in heading.inner_text():
            return
        page.wait_for_timeout(1000)
        page.reload()
    raise AssertionError(heading.inner_text())


def test_a_budget_is_approved_and_a_whole_refund_takes_three_taps(
    page: Page, place: Place, axe: str
) -> None:
    end_budget(page, place)
    page.goto(f"{place.checkout}/dashboard/budget")
    judge(page, axe, "1-no-budget")
    approve_budget(page, place, "500")
    expect(page.get_by_text("of 500.00 USD a month")).to_be_visible()
    sale = buy(place)
    page.goto(sale)
    page.get_by_text("Refund…").click()
    judge(page, axe, "2-refund-now")
    page.goto(sale)
    taps = 0
    for press in (page.get_by_text("Refund…"), page.get_by_role("button", name="Refund now")):
        press.click()
        taps += 1
    refunded(page)
    assert taps <= 3
    judge(page, axe, "3-refunded")
    page.goto(f"{place.checkout}/dashboard/budget")
    judge(page, axe, "4-budget-spent")
    expect(page.get_by_text("Left this month")).to_be_visible()


def test_two_parts_one_at_once_and_one_at_the_price_that_was_shown(
    page: Page, place: Place, axe: str
) -> None:
    approve_budget(page, place, "500")
    sale = buy(place)
    page.goto(sale)
    page.get_by_text("Refund…").click()
    page.get_by_label("Amount in USD").fill("5.00")
    page.get_by_role("button", name="Refund now").click()
    refunded(page)
    page.goto(sale)
    expect(page.get_by_text("Left to refund: 15.00 USD.")).to_be_visible()
    page.get_by_text("Refund…").click()
    page.get_by_role("button", name="Show the price first").click()
    judge(page, axe, "5-price")
    page.get_by_role("button", name=re.compile("^Refund .* for ")).click()
    refunded(page)
    page.goto(sale)
    expect(page.get_by_text("Left to refund")).to_have_count(0)


def test_without_a_budget_each_refund_is_approved_in_the_wallet(
    page: Page, place: Place, axe: str
) -> None:
    end_budget(page, place)
    judge(page, axe, "6-ended")
    page.goto(buy(place))
    page.get_by_text("Refund…").click()
    page.get_by_role("button", name="Show the price").click()
    judge(page, axe, "7-approval")
    approve(page)
    refunded(page)


def test_a_refund_that_does_not_fit_says_why_and_is_approved_once(
    page: Page, place: Place, axe: str
) -> None:
    approve_budget(page, place, "500")
    said = page.locator("dl.figures").inner_text()
    [spent] = re.findall(r"Spent\s+([0-9.]+) USD", said)
    approve_budget(page, place, f"{float(spent) + 5:.2f}")
    page.goto(buy(place))
    page.get_by_text("Refund…").click()
    page.get_by_role("button", name="Refund now").click()
    expect(page.get_by_text("more than your refund budget has left")).to_be_visible()
    judge(page, axe, "8-over-budget")
    approve(page)
    refunded(page)


def test_a_refund_that_fails_is_told_and_can_be_tried_again(
    page: Page, place: Place, axe: str
) -> None:
    approve_budget(page, place, "500")
    page.goto(buy(place, place.customer_wallet.replace("alice", "refund-fails")))
    page.get_by_text("Refund…").click()
    page.get_by_role("button", name="Refund now").click()
    for _ in range(90):
        if "Waiting for your approval" in page.get_by_role("heading", level=1).inner_text():
            break
        page.wait_for_timeout(1000)
        page.reload()
    expect(page.get_by_text("Your wallet did not pay")).to_be_visible()
    judge(page, axe, "9-failed")
    page.get_by_role("button", name="Show the price and approve").click()
    expect(page.get_by_role("link", name="Approve in your wallet")).to_be_visible()
