"""A till and its customer's phone, side by side in a browser, through all wallets of the sandbox.

The till is read each second beside the wallets' own books. It shows "Paid" only for a completed
sale, and within 3 s; and "Nothing was charged." only if no money arrived and none can.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from checkout.domain.links import OpenAmount
from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Session, Status
from tests.browser.judge import faults
from tests.browser.recording import SOON, Recording, Second
from tests.browser.served import Served, new_context
from tests.browser.steps import leave, type_wallet

pytestmark = pytest.mark.browser

TILL: dict[str, Any] = {
    "name": "Market stall",
    "open_amount": OpenAmount(100, 500_000, (250, 300)),
    "unit_amount": 250,
}
NOTHING = "Nothing was charged."
# What is approved, and whether the sale is paid within a minute.
APPROVED: dict[str, bool] = {
    **dict.fromkeys(("alice", "redirects", "dies-after-create", "late", "one-short"), True),
    **dict.fromkeys(("one-over", "boasts", "quote-expired", "expensive-renewal"), True),
    **dict.fromkeys(("no-funds", "fails", "never-credits", "partial", "held"), False),
    **dict.fromkeys(("closed-from-outside", "receiver-away", "stops-midway"), False),
    **dict.fromkeys(("never-closes", "no-return"), False),
}
NOT_APPROVED = ("decline", "unpeered", "too-small", "nobody")


class AtTill(Recording):
    """The screen of a sale, second by second, with the sale's own session."""

    def run(self, seconds: int, *, until: Callable[[Second], bool] = lambda now: False) -> None:
        for _ in range(seconds):
            self.pages.world.clock.pass_time(1)
            if self.script:
                self.page.clock.run_for(1_000)
                self._wait_for_answers()
            elif len(self.seconds) % 3 == 0 and self.page.locator("meta[http-equiv]").count():
                self.page.reload()
            self.seconds.append(self._look())
            if until(self.seconds[-1]):
                return

    def judge(self, within: int = SOON) -> None:
        false, late, since = [], [], 0
        for at, now in enumerate(self.seconds):
            completed = now.session.status is Status.COMPLETED
            since = since if completed else at
            if now.title.startswith("Paid") and not completed:
                false.append((at, now.title))
            if NOTHING in now.text and (now.received or now.can_arrive):
                false.append((at, NOTHING))
            if completed and not now.title.startswith("Paid") and at - since > within:
                late.append((at, now.title))
        assert (false, late) == ([], [])


Sale = Callable[[str], tuple[AtTill, Page]]  # of an amount: the till, and the customer's phone


@pytest.fixture(params=["with script", "without script"])
def sale(request: pytest.FixtureRequest, browser: Browser, pages: Served) -> Iterator[Sale]:
    script = request.param == "with script"
    contexts = [new_context(browser, script=script, wide=False) for _ in range(2)]
    till, phone = (each.new_page() for each in contexts)

    def begun(amount: str) -> tuple[AtTill, Page]:
        if script:
            till.clock.install()
        session = asked(till, pages, amount, script=script)
        phone.goto(pages.address(session))
        return AtTill(till, pages, session, script=script), phone

    yield begun
    for each in contexts:
        each.close()


def asked(till: Page, pages: Served, amount: str, *, script: bool = True) -> Session:
    """Type an amount at the till, and ask for it."""
    till.goto(f"{pages.base}/buy/{pages.world.link(**TILL).id}/till")
    if script:
        for key in amount.replace(".", ""):
            till.locator(".keys").get_by_role("button", name=key, exact=True).click()
        expect(till.locator("#ask")).to_contain_text(f"${amount}")
    else:
        till.locator("#amount").fill(amount)
    till.locator("#ask").click()
    expect(till).to_have_url(re.compile("/till/cs_"))
    return pages.world.session(till.url.rpartition("/")[2])


def approve(phone: Page, pages: Served, wallet: str) -> None:
    """Approve at the wallet; the browser is closed as soon as it is back."""
    type_wallet(phone, wallet)
    expect(phone.get_by_role("heading", level=1)).to_contain_text("You pay")
    leave(phone)
    if wallet == "no-return":
        return
    pages.approve(phone)
    phone.close()


@pytest.mark.parametrize("wallet", APPROVED)
def test_the_till_shows_what_is_so_after_the_customer_has_closed_the_browser(
    sale: Sale, pages: Served, wallet: str
) -> None:
    recording, phone = sale("12.50")
    recording.run(3)
    approve(phone, pages, wallet)
    recording.run(60, until=lambda now: now.title.startswith("Paid"))
    recording.judge()
    last = recording.seconds[-1]
    assert last.title.startswith("Paid") == APPROVED[wallet], last.text


@pytest.mark.parametrize("wallet", NOT_APPROVED)
def test_a_wallet_that_cannot_pay_charges_nothing_and_the_same_code_is_scanned_again(
    sale: Sale, pages: Served, wallet: str
) -> None:
    recording, phone = sale("12.50")
    type_wallet(phone, wallet)
    if wallet == "decline":
        leave(phone)
        pages.decline(phone)
    recording.run(12)
    recording.judge()
    assert recording.seconds[-1].received == 0
    expect(recording.page.get_by_role("img")).to_be_visible()
    pages.world.pay(pages.world.session(recording.id))  # another phone scans it
    recording.run(20, until=lambda now: now.title.startswith("Paid"))
    recording.judge()
    assert recording.seconds[-1].title.startswith("Paid")


def test_a_sale_is_canceled_until_the_customer_has_approved(sale: Sale, pages: Served) -> None:
    recording, _ = sale("3.00")
    till = recording.page
    till.get_by_role("button", name="Cancel this sale").click()
    expect(till.get_by_role("heading", level=1)).to_contain_text("This sale has ended")
    expect(till.get_by_role("main")).to_contain_text(NOTHING)
    till.get_by_role("link", name="Next sale").click()
    expect(till).to_have_url(re.compile("/till$"))

    recording, phone = sale("3.00")
    approve(phone, pages, "never-credits")
    recording.run(4)
    assert "Do not hand over yet" in recording.seconds[-1].text
    assert recording.page.get_by_role("button", name="Cancel this sale").count() == 0


def test_ten_coffees_are_sold_one_after_the_other(browser: Browser, pages: Served) -> None:
    context = new_context(browser, wide=False)
    till, phone = context.new_page(), context.new_page()
    till.clock.install()
    for number in range(10):
        session = asked(till, pages, "2.50")
        phone.goto(pages.address(session))
        type_wallet(phone)
        leave(phone)
        pages.approve(phone)
        till.clock.run_for(3_000)
        expect(till.get_by_role("heading", level=1)).to_contain_text("Paid")
        expect(till.get_by_role("heading", level=1)).to_be_focused()  # screen readers read it
        till.get_by_role("link", name="Next sale").click()
        assert pages.world.session(session.id).status is Status.COMPLETED, number
    context.close()


def test_the_keypad_adds_up_and_follows_a_keyboard(browser: Browser, pages: Served) -> None:
    context = new_context(browser, wide=False)
    till = context.new_page()
    till.goto(f"{pages.base}/buy/{pages.world.link(**TILL).id}/till")
    total = till.locator("output")
    expect(total).to_have_text("$0.00")
    expect(till.locator("#amount")).to_be_hidden()
    for key in ("2", "5", "0", "Add another amount", "3", "00"):
        till.get_by_role("button", name=key, exact=True).click()
    expect(total).to_have_text("$5.50")
    expect(till.locator("#parts")).to_have_text("$2.50 + $3.00")
    till.keyboard.press("Backspace")
    expect(total).to_have_text("$2.80")
    till.get_by_role("button", name="Delete the last digit").click()
    till.keyboard.type("0")
    till.keyboard.type("0")
    expect(till.locator("#ask")).to_contain_text("$5.50")
    till.locator("#ask").press("Enter")
    expect(till.get_by_role("heading", level=1)).to_contain_text("$5.50")
    context.close()


@pytest.mark.parametrize("amount", ["0.50", "9999.99"])
def test_an_amount_beyond_the_bounds_stays_on_the_keypad_with_its_reason(
    browser: Browser, pages: Served, amount: str
) -> None:
    context = new_context(browser, wide=False)
    till = context.new_page()
    till.goto(f"{pages.base}/buy/{pages.world.link(**TILL).id}/till")
    till.keyboard.type(amount.replace(".", ""))
    till.locator("#ask").click()
    expect(till.get_by_role("alert")).to_contain_text("Give an amount from")
    expect(till.locator("output")).to_contain_text(amount)
    context.close()


def test_without_a_connection_the_screen_shows_it_and_comes_back(
    browser: Browser, pages: Served
) -> None:
    context = new_context(browser, wide=False)
    till = context.new_page()
    till.clock.install()
    session = asked(till, pages, "4.00")
    context.set_offline(True)
    till.clock.run_for(10_000)
    expect(till.get_by_role("status")).to_contain_text("No connection.")
    pages.world.pay(session)
    context.set_offline(False)
    till.clock.run_for(3_000)
    expect(till.get_by_role("heading", level=1)).to_contain_text("Paid")
    context.close()


SCREENS: dict[str, dict[str, Any]] = {
    "open": {},
    "awaiting_approval": {},
    "processing": {},
    "completed": {},
    "expired": {},
    "canceled": {"received": 700, "attention": Attention.LATE_PAYMENT},
}


@pytest.mark.parametrize("stage", SCREENS)
def test_axe_finds_nothing_on_a_screen_of_the_till(
    browser: Browser, pages: Served, axe: str, stage: str
) -> None:
    link = pages.world.link(**TILL)
    metadata = f'{{"payment_link": "{link.id}", "order_number": "AB12CD34"}}'
    session = pages.customer.put_in(stage, metadata_json=metadata, **SCREENS[stage])
    context = new_context(browser)
    page = context.new_page()
    page.goto(f"{pages.base}/buy/{link.id}/till/{session.id}")
    assert faults(page, axe) == []
    context.close()


@pytest.mark.parametrize("language", ["ar", "de", "en", "es", "fr", "hi", "pt", "sw"])
def test_axe_finds_nothing_on_the_keypad_in_any_language(
    browser: Browser, pages: Served, axe: str, language: str
) -> None:
    context = new_context(browser, tag=language)
    page = context.new_page()
    page.goto(f"{pages.base}/buy/{pages.world.link(**TILL).id}/till")
    assert faults(page, axe) == []
    page.keyboard.type("1250")
    page.locator("#ask").click()
    expect(page).to_have_url(re.compile("/till/cs_"))
    session = pages.world.session(page.url.rpartition("/")[2])
    assert session.amount_total == 1_250
    context.close()
