"""A customer declines, tries without funds, and pays: three attempts, as the wallets know them."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from sandbox.place import Place
from sandbox.wallets.state import State, decode
from tests.browser.judge import violations
from tests.browser.steps import choose, give_wallet, home, leave_for_the_wallet, sign_in
from tests.support.processes import call

pytestmark = pytest.mark.browser

FENCED_WITHIN = 180_000  # milliseconds: a payment that failed is certain to have failed
SAVED_WITHIN = 20_000


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = browser.new_context(locale="en-GB", timezone_id="Asia/Kolkata")
    yield context.new_page()
    context.close()


def pay_at_the_third_try(page: Page, place: Place) -> str:
    """Return the session's id."""
    empty = place.customer_wallet.replace("/alice", "/no-funds")
    choose(page, place)
    address = page.url
    give_wallet(page, place.customer_wallet)
    leave_for_the_wallet(page, place)
    page.get_by_role("button", name="Decline").click()
    expect(page.get_by_role("main")).to_contain_text("declined")
    other = page.locator("#wallet_address")
    if not other.is_visible():
        page.get_by_text("Other options").click()
        page.get_by_text("Another wallet", exact=True).click()
    other.fill(empty)
    other.press("Enter")
    leave_for_the_wallet(page, place)
    page.get_by_role("button", name="Approve").click()
    again = page.locator("#wallet_address")
    expect(again).to_be_attached(timeout=FENCED_WITHIN)
    if not again.is_visible():
        give_wallet(page, place.customer_wallet)
    else:
        again.fill(place.customer_wallet)
        again.press("Enter")
    leave_for_the_wallet(page, place)
    page.get_by_role("button", name="Approve").click()
    expect(page).to_have_url(re.compile("/success$"))
    return address.rsplit("/", 1)[-1]


def books(place: Place, outgoing: str, page: Page) -> State:
    """The providers' own books, once they tell of the last payment."""
    saved: Path = place.wallets_folder / "wallets.json"
    for _ in range(SAVED_WITHIN // 500):
        state = decode(json.loads(saved.read_text("utf-8"))["state"])
        if outgoing.rsplit("/", 1)[-1] in state.outgoing:
            return state
        page.wait_for_timeout(500)
    raise AssertionError(f"the wallets know nothing of {outgoing}")


def of_the_provider(attempt: dict[str, Any], state: State) -> None:
    """Each id that the attempt names is, at the provider that it names, of its wallet."""
    quote = state.quotes[attempt["quote"].rsplit("/", 1)[-1]]
    assert (quote.wallet, quote.receiver) == (
        attempt["customer_wallet"],
        attempt["incoming_payment"],
    )
    assert str(quote.debit.value) == attempt["customer_debit"]["value"]
    asked = httpx2.get(attempt["incoming_payment"], trust_env=False, verify=False)
    assert asked.status_code == 200, asked.text
    if attempt["outgoing_payment"] is not None:
        payment = state.outgoing[attempt["outgoing_payment"].rsplit("/", 1)[-1]]
        assert (payment.wallet, payment.receiver) == (quote.wallet, quote.receiver)
        assert payment.quote_id in attempt["quote"]
        assert payment.failed is (attempt["outcome"] == "failed")


def resources(chapter: Locator) -> set[str]:
    return set(chapter.locator("code").all_text_contents())


@pytest.mark.first
def test_three_tries_are_told_as_three_attempts_with_their_own_evidence(
    page: Page, place: Place, axe: str
) -> None:
    session = pay_at_the_third_try(page, place)
    listed = call(place, f"/{session}/attempts").json()
    attempts = listed["data"]
    assert [each["outcome"] for each in attempts] == ["declined", "failed", "paid"]
    assert [each["reported_by_browser"] for each in attempts] == ["declined", None, None]
    assert [each["outgoing_payment"] is None for each in attempts] == [True, False, False]
    assert listed["last_payment_error"] is None
    assert call(place, f"/{session}", expand="payment_attempts").json()["payment_attempts"] == (
        attempts
    )
    state = books(place, attempts[-1]["outgoing_payment"], page)
    for attempt in attempts:
        of_the_provider(attempt, state)

    sign_in(page, place)
    expect(page.locator(".shop small")).to_have_attribute("title", place.merchant_wallet)
    page.goto(f"{home(place)}/transactions/{session}")
    chapters = page.locator("section:has(#timeline) details.chapter")
    expect(chapters.locator("h3")).to_have_text(
        [
            "Attempt 1: declined (reported by the customer's browser, not proven)",
            "Attempt 2: failed",
            "Attempt 3: paid",
        ]
    )
    for number, attempt in enumerate(attempts):
        named = ("incoming_payment", "quote", "outgoing_payment")
        assert resources(chapters.nth(number)) == {attempt[name] for name in named} - {None}
        expect(chapters.nth(number)).to_contain_text(attempt["customer_wallet"])
    expect(chapters.first).to_contain_text("as far as their browser says")
    expect(page.locator("#zone")).to_contain_text("Times are of your zone, Asia/")
    page.get_by_role("button", name="Show UTC").click()
    expect(page.locator("#zone")).to_contain_text("Times are UTC.")
    assert violations(page, axe) == []

    exported = page.request.get(f"{home(place)}/export/attempts.csv?q={session}").text()
    rows = list(csv.DictReader(io.StringIO(exported, newline="")))
    for row, attempt in zip(rows, attempts, strict=True):
        for name in ("outcome", "quote", "outgoing_payment", "incoming_payment", "submitted_at"):
            assert row[name] == (attempt[name] or "")
