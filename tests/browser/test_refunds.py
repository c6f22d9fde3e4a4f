"""A shopkeeper refunds in the local world, on a phone and on a desk: from a budget and without,
whole, in parts, again after a failure, and money that came late.

A customer whose wallet takes nothing names another one. The balances come from the wallets' books.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import httpx2
import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from sandbox.demo import Demo
from sandbox.place import Place
from sandbox.wallets.state import decode
from tests.browser.judge import Judge
from tests.browser.steps import box, home, sign_in
from tests.support.merchant_api import a_body
from tests.support.processes import call, own_key

WIDTHS: Final = (375, 1280)
PRICE: Final = 1854  # of 20.00 USD for the customer, in cents of euros
FAILED_WITHIN: Final = 90  # seconds; the wallet's word counts when it has stood for half a minute

pytestmark = [pytest.mark.browser, pytest.mark.first]


@pytest.fixture(scope="module", autouse=True)
def failing(place: Place, browser: Browser) -> dict[int, str]:
    """A refund for each width that the wallet will fail, half a minute after the first test began.

    Returns the address of its page.
    """
    page = browser.new_page()
    sign_in(page, place)
    found = {}
    for width in WIDTHS:
        ask(page, place, sold(place, "refund-fails"))
        approve(page, place)
        found[width] = page.url
    page.context.close()
    return found


@pytest.fixture(params=WIDTHS)
def judge(request: pytest.FixtureRequest, browser: Browser, axe: str, place: Place) -> Judge:
    """A page of this width, signed in, that is judged in the dark and the light."""
    found = Judge(browser, axe, request.param, widths=(request.param,))
    sign_in(found.page, place)
    return found


def wallet(place: Place, name: str) -> str:
    return place.customer_wallet.replace("/alice", f"/{name}")


def sold(place: Place, name: str = "alice") -> str:
    """Let this customer buy for 20.00 USD; return the session's id."""
    said: list[str] = []
    Demo(place, api_key=own_key(place), wallet=wallet(place, name), say=said.append).run()
    found = re.search(r"completed (cs_\w+)", said[-1])
    assert found is not None
    return found[1]


def paid_late(place: Place) -> str:
    """Cancel a session whose incoming payment somebody has paid meanwhile; return its id."""
    session = call(place, "", a_body()).json()
    chosen = {"wallet_address": wallet(place, "paid-from-outside")}
    answer = httpx2.post(f"{session['url']}/wallet", json=chosen, trust_env=False, timeout=30)
    assert answer.status_code == 200, answer.text
    assert call(place, f"/{session['id']}/cancel", {}).json()["status"] == "canceled"
    return str(session["id"])


def balance(place: Place, page: Page, address: str) -> int:
    """Return the balance in the provider's books, once they are saved."""
    page.wait_for_timeout(2_500)
    saved: Path = place.wallets_folder / "wallets.json"
    return decode(json.loads(saved.read_text("utf-8"))["state"]).accounts[address].balance


def sent(place: Place, page: Page) -> int:
    """Return how many outgoing payments are in the providers' books, once they are saved."""
    page.wait_for_timeout(2_500)
    saved: Path = place.wallets_folder / "wallets.json"
    return len(decode(json.loads(saved.read_text("utf-8"))["state"]).outgoing)


def opened(page: Page, place: Place, session: str) -> None:
    page.goto(f"{home(place)}/transactions/{session}")


def ask(page: Page, place: Place, session: str, amount: str = "", button: str = "price") -> None:
    """Ask for a refund on the page of the payment: "price" shows its price, "now" pays it."""
    opened(page, place, session)
    page.get_by_text("Refund…").click()
    if amount:
        page.locator("#refund-amount").fill(amount)
    page.get_by_role("button", name=re.compile(f"^(Show the|Refund) {button}")).click()


def approve(page: Page, place: Place) -> None:
    """Approve in the merchant's wallet, and come back."""
    page.get_by_role("link", name="Approve in your wallet").click()
    expect(page).to_have_url(re.compile(f"^{place.wallets}/interact/"))
    page.get_by_role("button", name="Approve").click()
    expect(page).to_have_url(re.compile(rf"^{home(place)}/(refunds/re_\w+|budget)$"))


def approve_budget(page: Page, place: Place, amount: str) -> None:
    page.goto(f"{home(place)}/budget")
    if not page.get_by_label("Amount a month").is_visible():
        page.get_by_text("Another amount…").click()
    page.get_by_label("Amount a month").fill(amount)
    page.get_by_label("Per cent of the amount").fill("5")  # two fees, and their rounding
    page.locator("form", has=page.get_by_label("Amount a month")).get_by_role("button").click()
    approve(page, place)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Active")


def end_budget(page: Page, place: Place) -> None:
    page.goto(f"{home(place)}/budget")
    if page.get_by_text("End the budget…").is_visible():
        page.get_by_text("End the budget…").click()
        page.get_by_role("button", name="End the budget", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Ended")


def shows(page: Page, text: str, within: int = 30) -> None:
    """Look again each second until the page shows this."""
    for _ in range(within):
        if page.get_by_role("main").get_by_text(text).first.is_visible():
            return
        page.wait_for_timeout(1000)
        page.reload()
    raise AssertionError(f"{text}: {page.get_by_role('main').inner_text()}")


def refunded(page: Page) -> None:
    heading = page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("Refund of")  # not the pause that the wallet may ask for
    shows(page, "Refunded")


def test_a_budget_is_approved_and_a_whole_refund_takes_three_taps(
    judge: Judge, place: Place
) -> None:
    page = judge.page
    end_budget(page, place)
    judge("no budget")
    approve_budget(page, place, "500")
    expect(page.get_by_text("of 500.00 USD a month")).to_be_visible()
    session = sold(place)
    opened(page, place, session)
    judge("a payment that can be refunded at once")
    opened(page, place, session)
    presses = [page.get_by_text("Refund…"), page.get_by_role("button", name="Refund now")]
    for each in presses:
        each.click()
    refunded(page)
    assert len(presses) <= 3
    judge("refunded")
    page.goto(f"{home(place)}/budget")
    judge("a part of the budget is spent")
    expect(page.get_by_text("Left this month")).to_be_visible()
    judge.done()


@pytest.fixture
def phone(browser: Browser, place: Place) -> Iterator[tuple[Page, list[str]]]:
    """A phone of 375 pixels, signed in, and each press on it: by a finger, or by something else."""
    context = browser.new_context(
        viewport={"width": 375, "height": 800}, has_touch=True, is_mobile=True
    )
    presses: list[str] = []
    context.expose_function("pressed", lambda kind: presses.append(kind))
    context.add_init_script(
        "addEventListener('pointerdown', (event) => pressed(event.pointerType), true);"
        "addEventListener('keydown', () => pressed('key'), true);"
    )
    page = context.new_page()
    sign_in(page, place)
    yield page, presses
    context.close()


def test_a_finger_refunds_from_the_budget_in_at_most_three_taps(
    phone: tuple[Page, list[str]], place: Place
) -> None:
    page, presses = phone
    approve_budget(page, place, "900")
    session = sold(place)
    opened(page, place, session)
    presses.clear()
    page.get_by_text("Refund…").tap()
    page.get_by_role("button", name="Refund now").tap()
    refunded(page)
    assert presses == ["touch"] * len(presses)
    assert 1 <= len(presses) <= 3
    assert call(place, f"/{session}").json()["amount_refunded"] == 2000


def test_without_a_budget_a_finger_is_at_the_merchants_wallet_after_three_taps(
    phone: tuple[Page, list[str]], place: Place
) -> None:
    page, presses = phone
    end_budget(page, place)
    opened(page, place, sold(place))
    presses.clear()
    page.get_by_text("Refund…").tap()
    page.get_by_role("button", name="Show the price").tap()
    page.get_by_role("link", name="Approve in your wallet").tap()
    expect(page).to_have_url(re.compile(f"^{place.wallets}/interact/"))
    assert presses == ["touch"] * 3


@pytest.mark.parametrize(("script", "pause"), [(False, 0), (False, 180), (False, 400), (True, 180)])
def test_a_form_that_is_pressed_twice_and_again_after_back_refunds_once(
    browser: Browser, place: Place, script: bool, pause: int
) -> None:
    """Press again after `pause` milliseconds.

    Without script, both presses reach the service, and "Back" shows a new form.
    """
    owner = browser.new_page()
    sign_in(owner, place)
    approve_budget(owner, place, "500")
    owner.context.close()
    page = browser.new_context(java_script_enabled=script).new_page()
    sign_in(page, place)
    session = sold(place)
    before = sent(place, page)
    opened(page, place, session)
    page.get_by_text("Refund…").click()
    page.locator("#refund-amount").fill("5.00")
    at = box(page.get_by_role("button", name="Refund now"))
    for wait in (pause, 0):
        page.mouse.click(at["x"] + at["width"] / 2, at["y"] + at["height"] / 2)
        page.wait_for_timeout(wait)
    refunded(page)
    refund = page.url
    assert call(place, f"/{session}").json()["amount_refunded"] == 500
    if script:
        page.go_back()
        page.get_by_text("Refund…").click()
        page.locator("#refund-amount").fill("5.00")
        page.get_by_role("button", name="Refund now").click()
        expect(page).to_have_url(refund)
    assert call(place, f"/{session}").json()["amount_refunded"] == 500
    assert sent(place, page) == before + 1
    ask(page, place, session, "5.00", "now")  # a visit of its own
    refunded(page)
    assert page.url != refund
    page.context.close()


def test_two_parts_one_at_once_and_one_at_the_price_that_was_shown(
    judge: Judge, place: Place
) -> None:
    page = judge.page
    approve_budget(page, place, "500")
    session = sold(place)
    ask(page, place, session, "5.00", "now")
    refunded(page)
    opened(page, place, session)
    expect(page.get_by_role("heading", name="Refunds 15.00 USD left")).to_be_visible()
    ask(page, place, session)
    judge("the price")
    page.get_by_role("button", name=re.compile("^Refund .* for ")).click()
    refunded(page)
    opened(page, place, session)
    expect(page.get_by_text("Left to refund")).to_have_count(0)
    judge("two refunds")
    judge.done()


def test_without_a_budget_each_refund_is_approved_in_the_wallet(judge: Judge, place: Place) -> None:
    page = judge.page
    end_budget(page, place)
    before = balance(place, page, place.customer_wallet)
    session = sold(place)
    ask(page, place, session)
    expect(page.get_by_role("main")).to_contain_text("The customer gets")
    judge("the price")
    approve(page, place)
    refunded(page)
    assert call(place, f"/{session}").json()["amount_refunded"] == 2000
    assert balance(place, page, place.customer_wallet) == before
    page.goto(f"{place.checkout}/pay/{session}/success")
    expect(page.get_by_role("main")).to_contain_text("Refunded")
    judge("what the customer sees")
    judge.done()


def test_a_refund_that_does_not_fit_says_why_and_is_approved_once(
    judge: Judge, place: Place
) -> None:
    page = judge.page
    approve_budget(page, place, "500")
    [spent] = re.findall(r"Spent\s+([0-9.]+)\s+USD", page.locator("dl.figures").inner_text())
    approve_budget(page, place, f"{float(spent) + 5:.2f}")
    ask(page, place, sold(place), button="now")
    expect(page.get_by_text("more than your refund budget has left")).to_be_visible()
    judge("over the budget")
    approve(page, place)
    refunded(page)
    judge.done()


def test_late_money_is_sent_back_to_the_wallet_that_the_customer_names(
    judge: Judge, place: Place
) -> None:
    page = judge.page
    end_budget(page, place)
    session = paid_late(place)
    carol = wallet(place, "carol")
    before = balance(place, page, carol)
    opened(page, place, session)
    shows(page, "Send 20.00 USD back", within=90)  # the fence takes 35 s
    page.get_by_text("Send 20.00 USD back…").click()
    field = box(page.get_by_label("Wallet address that it came from"))
    button = box(page.get_by_role("button", name="Send 20.00 USD back", exact=True))
    assert button["y"] - field["y"] - field["height"] >= 8, "the button touches the field"
    judge("late money")
    page.get_by_label("Wallet address that it came from").fill(carol)
    page.get_by_role("button", name="Send 20.00 USD back", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("It costs you exactly the amount")
    judge("the price of late money")
    approve(page, place)
    refunded(page)
    assert call(place, f"/{session}").json()["amount_refunded"] == 2000
    assert balance(place, page, carol) > before
    opened(page, place, session)
    expect(page.get_by_role("button", name=re.compile("back$"))).to_have_count(0)
    judge("late money was sent back")
    judge.done()


def test_one_that_fails_is_tried_again_and_goes_to_another_wallet(
    judge: Judge, browser: Browser, axe: str, place: Place, failing: dict[int, str]
) -> None:
    """The customer's page works with a script on the phone, and without one on the desk."""
    page = judge.page
    width = page.viewport_size["width"] if page.viewport_size else 0
    refund = failing[width]
    payer, carol = wallet(place, "refund-fails"), wallet(place, "carol")
    before = balance(place, page, payer), balance(place, page, carol)
    page.goto(refund)
    shows(page, "Your wallet did not pay", FAILED_WITHIN)
    page.get_by_role("button", name="Show the price and approve").click()
    expect(page.get_by_role("link", name="Approve in your wallet")).to_be_visible()
    judge("it can be approved again")
    page.get_by_text("The customer's wallet cannot take it…").click()
    page.get_by_role("button", name="Make a link for the customer").click()
    link = page.locator("#secret").inner_text()
    judge("the link")

    viewport = ViewportSize(width=width, height=800)
    context = browser.new_context(java_script_enabled=width == 375, viewport=viewport)
    customer = context.new_page()
    customer.goto(link)
    expect(customer.get_by_role("heading", level=1)).to_have_text("Your refund")
    field = customer.locator("#wallet_address")
    for typed in ("4111 1111 1111 1111", place.merchant_wallet):
        field.fill(typed)
        field.press("Enter")
        expect(customer.get_by_role("alert")).to_be_visible()
        expect(field).to_be_focused()
        expect(field).to_have_value("" if typed.startswith("4") else typed)
    expect(customer.get_by_role("alert")).to_contain_text("another currency")
    theirs = Judge(browser, axe, width, widths=(width,))
    theirs.page.goto(link)
    theirs("the customer's page")
    field.fill(carol)
    field.press("Enter")
    expect(customer.get_by_role("main")).to_contain_text("has your wallet address")
    context.close()
    theirs.page.reload()
    expect(theirs.page.locator("dt").first).to_have_text("Your wallet address")
    theirs("another wallet was named")

    page.goto(refund)
    expect(page.get_by_role("main")).to_contain_text("Your customer has named this wallet")
    judge("named")
    page.get_by_role("button", name=re.compile("price")).click()
    approve(page, place)
    refunded(page)
    after = balance(place, page, payer), balance(place, page, carol)
    assert after == (before[0], before[1] + PRICE)
    theirs.page.reload()
    theirs("the customer's page is over")
    theirs.done()
    judge.done()
