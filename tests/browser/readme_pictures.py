"""`make screenshots`: write the pictures of README.md and the guides into docs/images/, too.

They are taken in a local world with some purchases: the hosted page at the step that shows the
price, the dashboard, and a till.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page

from sandbox.place import Place
from tests.browser.launch import chromium, launched
from tests.support.merchant_api import a_body, an_item
from tests.support.processes import call, local_world, own_key

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
BYTES_MAX: Final = 60_000
_BEANS: Final = an_item(name="House beans", unit_amount=775, quantity=2)
_PAID: Final = (
    _BEANS,
    an_item(name="Espresso cups", unit_amount=2400, quantity=1),
    an_item(name="Filter papers", unit_amount=450, quantity=3),
)


def main() -> None:
    """Take the pictures. Exit with a message if Chromium is missing or a picture is too large."""
    found = chromium()
    if found is None:
        sys.exit("Chromium is not installed.")
    FOLDER.mkdir(exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as state,
        local_world(Path(state)) as place,
        launched(found) as browser,
    ):
        _hosted_page(browser, place)
        _dashboard(browser, place)
    for picture in sorted(FOLDER.glob("*.webp")):
        size = picture.stat().st_size
        print(f"{picture.name}: {size} bytes")
        if size > BYTES_MAX:
            sys.exit(f"{picture.name} is larger than {BYTES_MAX} bytes.")


def _hosted_page(browser: Browser, place: Place) -> None:
    page = _page(browser, width=900, height=680)
    beans = an_item(name="House beans", unit_amount=775, image=f"{place.shop}/pictures/beans.svg")
    papers = an_item(
        name="Filter papers",
        unit_amount=450,
        quantity=1,
        image=f"{place.shop}/pictures/filter.svg",
    )
    session = _create(place, beans, papers)
    _submit_wallet(page, place, session)
    _take(page, "hosted-page.webp")


def _dashboard(browser: Browser, place: Place) -> None:
    page = _page(browser, width=1140, height=830)
    for item in _PAID:
        _submit_wallet(page, place, _create(place, item))
        page.locator("#leave").click()
        page.get_by_role("button", name="Approve").click()
        page.get_by_role("heading", name="Paid. Thank you!").wait_for()
    canceled = _create(place, an_item(name="Gift card", unit_amount=5000, quantity=1))
    call(place, f"/{canceled['id']}/cancel", {}).raise_for_status()
    page.goto(f"{place.checkout}/dashboard")
    page.get_by_label("API key").fill(own_key(place))
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("heading", name="Overview", exact=True).wait_for()
    page.goto(f"{place.checkout}/dashboard/webhooks")  # the last of the first steps, which then go
    page.get_by_label("URL on your server").fill(f"{place.shop}/hooks")
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Your new signing secret").wait_for()
    page.goto(f"{place.checkout}/dashboard/overview")
    _take(page, "dashboard.webp")
    page.goto(f"{place.checkout}/dashboard/links")
    page.get_by_label("Item").fill("Market stall")
    page.get_by_text("Customers choose the amount", exact=True).click()
    page.get_by_label("Smallest amount").fill("1.00")
    page.get_by_role("button", name="Create the link").click()
    _till(browser, page.locator("#secret").inner_text())


def _till(browser: Browser, link: str) -> None:
    page = _page(browser, width=375, height=640)
    page.goto(f"{link}/till")
    page.keyboard.type("1250")
    page.locator("#ask").click()
    page.get_by_role("heading", name="Waiting for your customer").wait_for()
    _take(page, "till.webp")


def _take(page: Page, name: str) -> None:
    """Write what is visible as WebP, which Playwright's own `screenshot` cannot."""
    devtools = page.context.new_cdp_session(page)
    taken = devtools.send("Page.captureScreenshot", {"format": "webp", "quality": 75})
    (FOLDER / name).write_bytes(base64.b64decode(taken["data"]))


def _page(browser: Browser, *, width: int, height: int) -> Page:
    """Return a page whose browser trusts the local wallets' certificates."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        device_scale_factor=1.5,
        locale="en",
        reduced_motion="reduce",
        ignore_https_errors=True,
    )
    return context.new_page()


def _submit_wallet(page: Page, place: Place, session: dict[str, Any]) -> None:
    page.goto(session["url"])
    page.get_by_text("Another wallet", exact=True).click()
    page.locator("#wallet_address").fill(place.customer_wallet)
    page.locator("#wallet_address").press("Enter")
    page.locator("#leave").wait_for()


def _create(place: Place, *items: dict[str, Any]) -> Any:
    return call(place, body=a_body(line_items=items)).raise_for_status().json()


if __name__ == "__main__":
    main()
