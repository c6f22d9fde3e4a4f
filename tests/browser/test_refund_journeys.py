"""A shopkeeper refunds in the local world, on a phone and on a desk: whole, in parts, again.

A customer whose wallet is gone names another one. The balances come from the wallets' books.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from sandbox.demo import Demo
from sandbox.place import Place
from sandbox.wallets.state import decode
from tests.browser.dev_server import call, local_world, own_key
from tests.browser.judge import Judge, faults
from tests.browser.test_dashboard import home, sign_in

pytestmark = pytest.mark.browser

SAVED_WITHIN = 20_000  # milliseconds
PRICE = 1854  # of 20.00 USD for the customer, in cents of euros


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    with local_world(tmp_path_factory.mktemp("refunds")) as place:
        yield place


@pytest.fixture(params=[375, 1280])
def judge(request: pytest.FixtureRequest, browser: Browser, axe: str) -> Judge:
    return Judge(browser, axe, request.param)


def wallet(place: Place, name: str) -> str:
    return place.customer_wallet.replace("/alice", f"/{name}")


def sold(place: Place, name: str = "alice") -> str:
    """Let this customer buy for 20.00 USD; return the session's id."""
    said: list[str] = []
    Demo(place, api_key=own_key(place), wallet=wallet(place, name), say=said.append).run()
    found = re.search(r"completed (cs_\w+)", said[-1])
    assert found is not None
    return found[1]


def balance(place: Place, page: Page, address: str) -> int:
    """Return the balance in the provider's books, once they are saved."""
    page.wait_for_timeout(2_500)
    saved: Path = place.wallets_folder / "wallets.json"
    return decode(json.loads(saved.read_text("utf-8"))["state"]).accounts[address].balance


def ask(page: Page, place: Place, session: str, amount: str = "") -> None:
    """Ask for a refund on the page of the payment, and see its price."""
    page.goto(f"{home(place)}/transactions/{session}")
    page.get_by_text("Refund…").click()
    if amount:
        page.get_by_label(re.compile("^Amount in")).fill(amount)
    page.get_by_role("button", name="Show the price").click()


def approve(page: Page, place: Place) -> None:
    page.get_by_role("link", name="Approve in your wallet").click()
    expect(page).to_have_url(re.compile(f"^{place.wallets}/interact/"))
    page.get_by_role("button", name="Approve").click()
    expect(page).to_have_url(re.compile(rf"^{home(place)}/refunds/re_\w+$"))


def test_a_whole_refund_and_two_parts(judge: Judge, place: Place) -> None:
    page = judge.page
    sign_in(page, place)
    before = balance(place, page, place.customer_wallet)
    session = sold(place)
    page.goto(f"{home(place)}/transactions/{session}")
    judge("a payment that can be refunded")
    ask(page, place, session)
    expect(page.get_by_role("main")).to_contain_text("The customer gets")
    judge("the price")
    approve(page, place)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Refunded")
    judge("refunded")
    parts = sold(place)
    for amount in ("5.00", "15.00"):
        ask(page, place, parts, amount)
        approve(page, place)
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"{amount} USD Refunded")
    for each in (session, parts):
        assert call(place, f"/{each}").json()["amount_refunded"] == 2000
        page.goto(f"{place.checkout}/pay/{each}/success")
        expect(page.get_by_role("main")).to_contain_text("Refunded")
    judge("what the customer sees")
    assert balance(place, page, place.customer_wallet) == before
    judge.done()


def test_one_that_fails_is_approved_again_and_comes_to_nothing(judge: Judge, place: Place) -> None:
    page = judge.page
    sign_in(page, place)
    session = sold(place, "refund-fails")
    before = balance(place, page, wallet(place, "refund-fails"))
    ask(page, place, session)
    for _ in range(2):
        approve(page, place)
        waits = page.get_by_text("Your wallet did not pay")
        for _ in range(60):  # the wallet's word counts when it has stood for half a minute
            if waits.is_visible():
                break
            page.wait_for_timeout(1_000)
            page.reload()
        expect(waits).to_be_visible()
        page.get_by_role("button", name="Show the price and approve").click()
    judge("asked again")
    assert balance(place, page, wallet(place, "refund-fails")) == before
    judge.done()


@pytest.mark.parametrize(
    ("width", "script", "payer"),
    [
        (375, True, "refund-gone"),  # it pays once, and is gone for good
        (375, False, "alice"),
        (1280, True, "alice"),
        (1280, False, "alice"),
    ],
)
def test_a_customer_names_another_wallet(
    browser: Browser, axe: str, place: Place, width: int, script: bool, payer: str
) -> None:
    judge = Judge(browser, axe, width)
    page = judge.page
    sign_in(page, place)
    session = sold(place, payer)
    carol = wallet(place, "carol")
    before = balance(place, page, carol)
    ask(page, place, session)
    gone = page.get_by_text("There is no wallet at the customer's address any more.")
    expect(gone).to_be_visible(visible=payer == "refund-gone")
    page.goto(f"{home(place)}/transactions/{session}")
    page.locator("#refunds + ul a").click()
    judge("the wallet is gone")  # it unfolds what is folded
    page.get_by_role("button", name="Make a link for the customer").click()
    link = page.locator("#secret").inner_text()
    refund = page.url.removesuffix("/claim")
    judge("the link")
    viewport = ViewportSize(width=width, height=800)
    context = browser.new_context(java_script_enabled=script, viewport=viewport)
    customer = context.new_page()
    customer.goto(link)
    expect(customer.get_by_role("heading", level=1)).to_have_text("Your refund")
    field = customer.locator("#wallet_address")
    field.fill("4111 1111 1111 1111")
    field.press("Enter")
    expect(customer.get_by_role("alert")).to_be_visible()
    expect(field).to_be_focused()
    expect(field).to_have_value("")
    field.fill(carol)
    field.press("Enter")
    expect(customer.get_by_role("main")).to_contain_text("has your wallet address")
    context.close()
    theirs = browser.new_page()
    theirs.goto(link)
    assert faults(theirs, axe) == []
    theirs.close()
    page.goto(refund)
    expect(page.get_by_role("main")).to_contain_text("Your customer has named this wallet")
    judge("named")
    page.get_by_role("button", name=re.compile("price")).click()
    approve(page, place)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Refunded")
    assert balance(place, page, carol) == before + PRICE
    judge.done()


@pytest.mark.parametrize("state", ["open", "refused", "over"])
def test_the_customers_page_breaks_no_rule_of_accessibility(
    browser: Browser, axe: str, place: Place, state: str
) -> None:
    page = browser.new_page()
    sign_in(page, place)
    session = sold(place)
    ask(page, place, session)
    expect(page).to_have_url(re.compile(r"/refunds/re_\w+$"))
    page.get_by_text("The customer's wallet cannot take it…").click()
    page.get_by_role("button", name="Make a link for the customer").click()
    link = page.locator("#secret").inner_text()
    refund = page.url.removesuffix("/claim")
    if state == "over":
        page.goto(refund)
        page.get_by_text("Cancel this refund…").click()
        page.get_by_role("button", name="Cancel the refund").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Canceled")
    page.goto(link)
    if state == "refused":
        page.locator("#wallet_address").fill(place.merchant_wallet)
        page.get_by_role("button", name="Send it to this wallet").click()
        expect(page.get_by_role("alert")).to_contain_text("another currency")
    assert faults(page, axe) == []
    page.close()
