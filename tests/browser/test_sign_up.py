"""From sign-up to a paid session and its webhook in a real browser: no shell, no file.

The server of the shop needs its new API key, of course: the test is that server.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Page, expect

from sandbox.place import Place
from sandbox.rehearsal.developer import with_authenticator
from tests.browser.judge import Judge
from tests.browser.steps import home

pytestmark = pytest.mark.browser


@pytest.fixture
def inbox() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook receiver of the shop, and what it has got."""
    got: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Receiver)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}/hooks", got
    server.shutdown()
    server.server_close()


class Hand:
    """Clicks, and counts them."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.clicks = 0

    def click(self, name: str | re.Pattern[str], role: Any = "button") -> None:
        self.page.get_by_role(role, name=name).first.click()
        self.clicks += 1


def sign_up(hand: Hand, place: Place, wallet: str, judge: Judge | None = None) -> None:
    """Sign up with a wallet that nobody sells with yet, and confirm it there."""
    page = hand.page
    shown = judge or (lambda name: None)
    page.goto(f"{home(place)}/sign-in")
    hand.click("Sign up", "link")
    shown("sign-up")
    page.get_by_label("Your wallet address").fill(f"${wallet.removeprefix('https://')}")
    hand.click("Continue")
    expect(page.get_by_role("main")).to_contain_text("Belongs to")
    shown("sign-up, found")
    page.get_by_label("Name that your customers see").fill("Bob's Tea")
    hand.click("Continue with a passkey")
    expect(page.get_by_role("main")).to_contain_text("Confirm that the wallet is yours")
    hand.click("Confirm in your wallet")
    shown("to the wallet")
    hand.click("Go to your wallet", "link")
    hand.click("Approve")
    expect(page.get_by_role("heading", level=1)).to_have_text("Transactions")
    expect(page.get_by_role("main")).not_to_contain_text("Confirm that the wallet is yours")


def pay(hand: Hand, wallet: str) -> None:
    """Pay on the hosted page with a wallet of the listed provider."""
    field = hand.page.get_by_label("Your name or number at").first
    field.fill(wallet)
    field.press("Enter")
    hand.clicks += 1
    hand.click(re.compile("^Approve at"), "link")
    hand.click("Approve")
    expect(hand.page.get_by_role("main")).to_contain_text("Paid")


def test_from_sign_up_to_a_paid_session_and_a_webhook_without_shell_or_file(
    browser: Browser, place: Place, inbox: tuple[str, list[dict[str, Any]]], axe: str
) -> None:
    judge = Judge(browser, axe)
    page = judge.page
    with_authenticator(page)
    hand, begun = Hand(page), time.monotonic()
    sign_up(hand, place, place.bob, judge)

    hand.click("API keys", "link")
    page.get_by_label("Name", exact=True).fill("Server")
    hand.click("Create a key")
    key = page.locator("#secret").inner_text()
    hand.click("Webhooks", "link")
    page.get_by_label("URL on your server").fill(inbox[0])
    hand.click("Save")
    expect(page.locator("#secret")).to_be_visible()

    asked = {
        "mode": "payment",
        "line_items": [
            {"price_data": {"currency": "usd", "unit_amount": 500, "product_data": {"name": "Tea"}}}
        ],
        "success_url": f"{place.shop}/thanks",
        "cancel_url": f"{place.shop}/cart",
    }
    made = httpx2.post(
        f"{place.checkout}/api/checkout/sessions",
        json=asked,
        headers={"Authorization": f"Bearer {key}"},
        trust_env=False,
    )
    assert made.status_code < 300, made.text
    page.goto(made.json()["url"])
    expect(page.get_by_role("banner").or_(page.locator("header"))).to_contain_text("Payment to:")
    pay(hand, "alice")
    until = time.monotonic() + 30
    while not inbox[1] and time.monotonic() < until:
        time.sleep(0.2)
    seconds = time.monotonic() - begun
    assert "completed" in json.dumps(inbox[1])
    print(f"\nfrom sign-up to a webhook: {hand.clicks} clicks, {seconds:.0f} seconds")
    assert hand.clicks <= 20
    judge.done()


def test_from_sign_up_to_the_first_sale_by_link_with_the_first_steps_alone(
    browser: Browser, place: Place
) -> None:
    """The dashboard's first steps lead there: nothing is typed into the address bar."""
    page = browser.new_context().new_page()
    with_authenticator(page)
    hand, begun = Hand(page), time.monotonic()
    sign_up(hand, place, place.customer_wallet.replace("alice", "carol"))
    hand.click("Make a payment link", "link")
    page.get_by_label("Item").fill("Tea")
    page.get_by_label("Price").fill("5.00")
    hand.click("Create the link")
    expect(page.get_by_role("heading", level=1)).to_have_text("Tea")
    hand.click("Transactions", "link")
    hand.click("open the page on which your customers pay", "link")
    hand.click("Buy")
    pay(hand, "alice")
    seconds = time.monotonic() - begun
    print(f"\nfrom sign-up to the first sale: {hand.clicks} clicks, {seconds:.0f} seconds")
    assert hand.clicks <= 14
    page.goto(home(place))
    expect(page.get_by_role("main")).to_contain_text("Get paid for the first time Done")
    page.context.close()
