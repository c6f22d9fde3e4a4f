"""Do what customers and merchants do in a browser, step by step."""

from __future__ import annotations

import re
from base64 import b64decode
from typing import Any

from playwright.sync_api import FloatRect, Locator, Page, expect

from checkout.domain.ground.providers import Provider
from checkout.domain.merchant.record import Logo
from checkout.domain.session.record import Session
from sandbox.place import Place
from tests.browser.served import Served
from tests.support.flows import CEDAR
from tests.support.processes import own_key

OFFER = Provider("Cedar Bank", f"{CEDAR}/{{name}}", "https://cedar.example/")
# A PNG of one pixel.
DOT = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR4nGNgAAAAAgABSK+kcQAAAABJRU5ErkJggg=="
)
# All of the shop's panel.
PANEL: dict[str, Any] = {
    "logo": Logo("image/png", DOT),
    "contact": "help@shop.example",
    "website": "shop.example",
    "accent_color": "#ffdd00",
}


def home(place: Place) -> str:
    return f"{place.checkout}/dashboard"


def sign_in(page: Page, place: Place) -> None:
    page.goto(home(place))
    page.get_by_label("API key").fill(own_key(place))
    page.get_by_role("button", name="Sign in", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
    page.get_by_role("link", name="Transactions").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Transactions")


def search(page: Page, typed: str) -> None:
    page.get_by_label("Search").fill(typed)
    page.get_by_role("button", name="Show").click()


def focus(page: Page, selector: str) -> None:
    """Press Tab until this element has the focus."""
    for _ in range(40):
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"{selector} is not reached by Tab")


def invited(owner: Page, place: Place, name: str, role: str) -> str:
    """Return the link that the owner's page shows once."""
    owner.goto(f"{home(place)}/people")
    owner.get_by_label("Name", exact=True).fill(name)
    owner.locator("#role").select_option(role)
    owner.get_by_role("button", name="Create a link").click()
    return owner.locator("#secret").inner_text()


def joined(page: Page, link: str) -> None:
    page.goto(link)
    page.get_by_role("button", name="Create a passkey").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def choose(page: Page, place: Place) -> None:
    """Go from the shop's page to the hosted page of the session."""
    page.goto(place.shop)
    page.get_by_role("button", name="Buy").first.click()
    expect(page).to_have_url(re.compile(rf"^{place.checkout}/pay/cs_[0-9A-Za-z]{{22}}$"))


def give_wallet(page: Page, wallet: str) -> None:
    folded = page.get_by_text("Use another wallet", exact=True)  # where one was tried already
    if folded.is_visible():
        folded.click()
    page.get_by_text("Another wallet", exact=True).click()
    field = page.locator("#wallet_address")
    field.fill(wallet)
    field.press("Enter")


def leave_for_the_wallet(page: Page, place: Place) -> None:
    page.get_by_role("link", name="Approve at").click()
    expect(page).to_have_url(re.compile(f"^{place.wallets}/interact/"))


def begin(page: Page, pages: Served, wallet: str = "alice") -> Session:
    """Create a session, and go up to the price."""
    session = pages.world.create()
    page.goto(pages.address(session))
    type_wallet(page, wallet)
    expect(page.get_by_role("heading", level=1)).to_contain_text("You pay")
    return session


def type_wallet(page: Page, wallet: str = "alice") -> None:
    page.locator("#wallet_address").fill(f"{CEDAR}/{wallet}")
    page.locator("#wallet_address").press("Enter")


def box(element: Locator) -> FloatRect:
    """Return where a visible element is."""
    found = element.bounding_box()
    assert found is not None
    return found


def leave(page: Page) -> None:
    page.locator("#leave").click()
    expect(page.get_by_role("heading")).to_have_text("A wallet")
