"""A customer buys in a real browser: from the shop to the confirmation and back to the shop."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Request, expect

from sandbox.place import Place
from tests.browser.steps import choose, give_wallet, leave_for_the_wallet

pytestmark = pytest.mark.browser


@pytest.mark.smoke
def test_a_customer_buys_from_the_shop_to_the_confirmation(page: Page, place: Place) -> None:
    choose(page, place)
    give_wallet(page, place.customer_wallet)
    expect(page.get_by_role("heading", level=1)).to_contain_text("€")
    leave_for_the_wallet(page, place)
    page.get_by_role("button", name="Approve").click()
    expect(page).to_have_url(re.compile("/pay/cs_[0-9A-Za-z]{22}/success$"))
    expect(page.get_by_role("main")).to_contain_text("paid", ignore_case=True)
    page.locator("#continue").click()
    expect(page).to_have_url(re.compile(f"^{place.shop}/"))
    expect(page.locator("#status")).to_have_text("completed")


@pytest.mark.parametrize(
    ("page", "after"),
    [("with script", []), ("without script", ["GET"])],
    indirect=["page"],
)
def test_a_script_gets_the_price_in_the_answer_to_the_form(
    page: Page, place: Place, after: list[str]
) -> None:
    choose(page, place)
    session = page.url
    asked: list[Request] = []
    page.on("request", lambda each: asked.append(each))
    give_wallet(page, place.customer_wallet)
    expect(page.get_by_role("link", name="Approve at")).to_be_visible()
    # The line of a page without script, which is in a frame, and what an open page asks.
    beside = re.compile(r"/(watch\?.*|status)$")
    sent = [
        (each.method, each.url)
        for each in asked
        if each.resource_type != "image" and not beside.search(each.url)
    ]
    assert sent == [("POST", f"{session}/wallet"), *((each, session) for each in after)]
    assert page.url == session


def test_a_customer_has_the_receipt_sent(page: Page, place: Place) -> None:
    choose(page, place)
    give_wallet(page, place.customer_wallet)
    leave_for_the_wallet(page, place)
    page.get_by_role("button", name="Approve").click()
    expect(page).to_have_url(re.compile("/success$"))
    page.get_by_text("Send the receipt by e-mail").click()
    page.get_by_label("Your e-mail address").fill("eva@customer.example")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_role("main")).to_contain_text("The receipt has been sent.")
    expect(page.locator("#continue")).to_be_visible()
    number = page.locator("dd bdi").first.inner_text()
    page.goto(place.outbox)
    expect(page.get_by_role("heading", level=2).first).to_have_text(
        re.compile(f"^Order {number}: receipt from Harbor Coffee$")
    )
    expect(page.locator("pre").first).to_contain_text("You paid: €")
    page.get_by_role("link", name="as HTML").first.click()
    expect(page.get_by_role("heading")).to_have_text("Paid. Thank you!")


def test_a_customer_buys_with_a_name_at_a_provider(page: Page, place: Place) -> None:
    choose(page, place)
    page.get_by_text("Cedar Bank").first.wait_for()
    page.get_by_label("Your name or number at").first.fill("alice")
    page.get_by_label("Your name or number at").first.press("Enter")
    expect(page.get_by_role("link", name=re.compile("Approve at .Cedar Bank"))).to_be_visible()
    leave_for_the_wallet(page, place)
    expect(page.get_by_text("Cedar Bank").first).to_be_visible()
    page.get_by_role("button", name="Approve").click()
    expect(page).to_have_url(re.compile("/success$"))


def test_a_customer_who_declines_is_told_so_and_can_pay_after_all(page: Page, place: Place) -> None:
    choose(page, place)
    session = page.url
    give_wallet(page, place.customer_wallet)
    leave_for_the_wallet(page, place)
    page.get_by_role("button", name="Decline").click()
    expect(page).to_have_url(re.compile(r"grant_rejected"))
    expect(page.get_by_role("main")).to_contain_text(re.compile("declined|not approved", re.I))
    page.get_by_role("button").first.click()
    expect(page).to_have_url(re.compile(rf"^{session}(\?was=[0-9]+)?$"))
    leave_for_the_wallet(page, place)
    page.get_by_role("button", name="Approve").click()
    expect(page).to_have_url(re.compile("/success$"))
