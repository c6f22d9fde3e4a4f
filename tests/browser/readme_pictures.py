"""`make readme-pictures`: write the two pictures of README.md into docs/images/.

Both are taken in a local world with some purchases: the hosted page at the step that shows the
price, and the dashboard.
"""

from __future__ import annotations

import base64
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

import httpx2
from playwright.sync_api import Browser, Page

from sandbox.place import Place
from tests.browser.dev_server import local_world
from tests.browser.launch import chromium, launched

FOLDER: Final = Path(__file__).parents[2] / "docs" / "images"
BYTES_MAX: Final = 60_000
_PAID: Final = (("House beans", 775, 2), ("Espresso cups", 2400, 1), ("Filter papers", 450, 3))


def main() -> None:
    """Take both pictures. Exit with a message if Chromium is missing or a picture is too large."""
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
    session = _create(place, ("House beans", 775, 2), ("Filter papers", 450, 1))
    _submit_wallet(page, place, session)
    _take(page, "hosted-page.webp")


def _dashboard(browser: Browser, place: Place) -> None:
    page = _page(browser, width=1140, height=830)
    for item in _PAID:
        _submit_wallet(page, place, _create(place, item))
        page.locator("#leave").click()
        page.get_by_role("button", name="Approve").click()
        page.get_by_role("heading", name="Paid. Thank you!").wait_for()
    _end(place, _create(place, ("Gift card", 5000, 1)), "cancel")
    page.goto(f"{place.checkout}/dashboard")
    page.get_by_label("API key").fill(place.api_key_file.read_text("utf-8").strip())
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("heading", name="Transactions", exact=True).wait_for()
    _take(page, "dashboard.webp")


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
    page.locator("#wallet_address").fill(place.customer_wallet)
    page.locator("#wallet_address").press("Enter")
    page.locator("#leave").wait_for()


def _create(place: Place, *items: tuple[str, int, int]) -> dict[str, Any]:
    lines = [
        {
            "price_data": {
                "currency": "usd",
                "unit_amount": unit_amount,
                "product_data": {"name": name},
            },
            "quantity": quantity,
        }
        for name, unit_amount, quantity in items
    ]
    return _api(
        place,
        "",
        {
            "mode": "payment",
            "line_items": lines,
            "success_url": "https://shop.example/thanks",
            "cancel_url": "https://shop.example/basket",
        },
    )


def _end(place: Place, session: dict[str, Any], how: str) -> None:
    _api(place, f"/{session['id']}/{how}")


def _api(place: Place, path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    key = place.api_key_file.read_text("utf-8").strip()
    answer = httpx2.post(
        f"{place.checkout}/api/checkout/sessions{path}",
        json=body,
        headers={"Authorization": f"Bearer {key}"},
        trust_env=False,
    )
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


if __name__ == "__main__":
    main()
