"""A customer withdraws from a purchase in Chromium: by keyboard, without script, in every look."""

from __future__ import annotations

import pytest
from playwright.sync_api import Browser, Page, expect

from checkout.domain.session.collect import Detail
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.flows.links import purchase
from tests.browser.judge import faults, violations
from tests.browser.served import Served, new_context
from tests.support.hosted_pages import PAID, line

pytestmark = pytest.mark.browser

WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


@pytest.fixture
def paid(pages: Served) -> Session:
    pages.customer.give(withdrawal_days=14)
    at = pages.world.clock.now()
    items = (line("House beans", unit_amount=2000),)
    fields = {**PAID, "received": 2000, "completed_at": at, "line_items": items}
    return pages.customer.put(Status.COMPLETED, **fields)


def judged(page: Page, axe: str) -> None:
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        assert violations(page, axe) == []
    assert page.evaluate(WIDER) == 0


@pytest.mark.parametrize("wide", [False, True])
def test_a_customer_withdraws_with_the_keyboard_only(
    browser: Browser, pages: Served, paid: Session, axe: str, wide: bool
) -> None:
    page = new_context(browser, wide=wide).new_page()
    page.goto(pages.address(paid, "/success"))
    page.get_by_role("link", name="Withdraw from this purchase").press("Enter")
    judged(page, axe)
    page.get_by_label("E-mail").press_sequentially("eva@customer.example")
    page.get_by_label("Name").press_sequentially("Eva Muster")
    page.keyboard.press("Enter")
    expect(page.get_by_text("I withdraw from this purchase")).to_be_visible()
    judged(page, axe)
    page.get_by_role("button", name="Confirm withdrawal").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("has received your withdrawal")
    judged(page, axe)
    page.get_by_role("link", name="Back to the receipt").press("Enter")
    expect(page.get_by_text("You have withdrawn from this purchase:")).to_be_visible()
    judged(page, axe)


def test_without_script_and_in_arabic_nothing_is_cut_off(
    browser: Browser, pages: Served, paid: Session, axe: str
) -> None:
    page = new_context(browser, tag="ar").new_page()
    page.goto(pages.address(paid, "/withdrawal"))
    assert page.locator("html").get_attribute("dir") == "rtl"
    assert page.locator("script").count() == 0
    page.locator("main .button").click()
    judged(page, axe)
    page.locator("#email").fill("eva@")
    page.locator("#name").fill("Eva")
    page.locator("form").evaluate("form => { form.noValidate = true }")
    page.locator("main .button").click()
    expect(page.locator("[role=alert]")).to_be_visible()
    judged(page, axe)


def test_what_is_hidden_from_a_stranger_is_told_in_every_look(
    browser: Browser, pages: Served, axe: str
) -> None:
    pages.customer.give(withdrawal_days=14)
    world, given = pages.world, CustomerDetails(email="eva@customer.example", name="Eva Muster")
    link = world.link(asked=(Detail.EMAIL, Detail.NAME))
    begun = purchase.begin(world.services, link, "7" * 22, "203.0.113.7", given)
    session = world.pay(world.session(begun.session_id))
    page = new_context(browser).new_page()
    page.goto(pages.address(session, "/success"))
    expect(page.locator(".receipt")).to_contain_text("e…@c…")
    expect(page.get_by_text("Your details are hidden here.")).to_be_visible()
    assert faults(page, axe) == []
    page.goto(pages.address(session, "/withdrawal"))
    expect(page.get_by_text("Your details are hidden here.")).to_be_visible()
    assert faults(page, axe) == []
