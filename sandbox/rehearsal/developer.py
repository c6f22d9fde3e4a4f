"""Rehearsal of a deployment: a developer tries a test stage with only a browser (Chromium)."""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from playwright.sync_api import Error, Page, expect, sync_playwright

from sandbox.rehearsal.stack import RehearsalFailed

_PATIENCE: Final = 120_000.0  # milliseconds for a page: its functions start on a busy machine
# No public authority has signed the certificates here, and passkeys need valid certificates.
_OPTIONS: Final = ("--no-sandbox", "--disable-gpu", "--ignore-certificate-errors")
_PASSKEYS: Final = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
_WORD: Final = re.compile("Test: no real money")


@dataclass(frozen=True, slots=True)
class SignedUp:
    """The values that a shop's server needs after the sign-up: an API key and a webhook secret."""

    api_key: str
    secret: str


class Developer:
    """A developer with a browser at the test stage `base`. `clicks` counts their clicks."""

    def __init__(self, page: Page, base: str) -> None:
        self._page = page
        self._base = base
        self.clicks = 0
        self.began = time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    def sign_up(self, hooks: str) -> SignedUp:
        """Open a wallet, sign up with it, create an API key and set the webhook URL `hooks`."""
        page = self._page
        page.goto(f"{self._base}/test-wallets")
        page.get_by_label("Name").fill("Rosa's Tea")
        self._click("Open a wallet")
        wallet = page.locator("dd code").first.inner_text()
        page.goto(f"{self._base}/dashboard/sign-up")
        self._marked()
        page.get_by_label("Your wallet address").fill(wallet)
        self._click("Continue")
        expect(page.get_by_role("main")).to_contain_text("Belongs to")
        page.get_by_label("Name that your customers see").fill("Rosa's Tea")
        self._click("Continue with a passkey")
        expect(page.get_by_role("main")).to_contain_text("Confirm that the wallet is yours")
        self._click("Confirm in your wallet")
        self._click("Go to your wallet", "link")
        self._click("Approve")
        expect(page.get_by_role("heading", level=1)).to_have_text("Transactions")
        self._marked()
        self._click("API keys", "link")
        page.get_by_label("Name", exact=True).fill("Server")
        self._click("Create a key")
        key = page.locator("#secret").inner_text()
        self._click("Webhooks", "link")
        page.get_by_label("URL on your server").fill(hooks)
        self._click("Save")
        return SignedUp(key, page.locator("#secret").inner_text())

    def pay(self, url: str) -> None:
        """Pay the session at `url` as the customer alice, and check that the page shows it."""
        page = self._page
        page.goto(url)
        self._marked()
        name = page.get_by_label("Your name or number at").first
        name.fill("alice")
        name.press("Enter")
        self.clicks += 1
        self._click(re.compile("^Approve at"), "link")
        self._click("Approve")
        expect(page.get_by_role("main")).to_contain_text("Paid")
        self._marked()

    def _click(self, name: str | re.Pattern[str], role: Any = "button") -> None:
        self._page.get_by_role(role, name=name).first.click()
        self.clicks += 1

    def _marked(self) -> None:
        """Check that the page shows the notice "Test: no real money"."""
        expect(self._page.locator("aside.test")).to_have_text(_WORD)


def with_authenticator(page: Page) -> None:
    """Add to the page a virtual device that stores passkeys and always verifies its user."""
    session = page.context.new_cdp_session(page)
    session.send("WebAuthn.enable")
    session.send("WebAuthn.addVirtualAuthenticator", {"options": _PASSKEYS})


@contextmanager
def at(base: str) -> Iterator[Developer]:
    """Yield a developer with a browser. Raises RehearsalFailed if a page is not as expected."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser")
    path = next((found for each in names if (found := shutil.which(each))), None)
    if path is None:
        raise RehearsalFailed("Chromium is needed, in PATH")
    expect.set_options(timeout=_PATIENCE)
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=[*_OPTIONS])
            page = browser.new_page(locale="en")
            page.set_default_timeout(_PATIENCE)
            with_authenticator(page)
            try:
                yield Developer(page, base)
            except (AssertionError, Error) as wrong:
                shown = page.locator("body").inner_text(timeout=1000)
                raise RehearsalFailed(f"{wrong}\nat {page.url}:\n{shown[:2000]}") from None
            finally:
                browser.close()
    except Error as wrong:
        raise RehearsalFailed(f"Chromium: {wrong}") from None
