"""A merchant's pages on a phone and on a desk: first steps, the list, and several endpoints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from checkout.domain.payment.in_flight import Attention
from checkout.domain.session.record import Status
from checkout.domain.webhooks.record import EventStatus, GivenUp
from dashboard.app import app
from open_payments.models import Amount
from tests.browser.judge import Judge
from tests.browser.steps import box
from tests.support.attempts import PAID
from tests.support.dashboard_pages import Dashboard, dashboard
from tests.support.processes import free_base
from tests.support.serving import serving
from tests.support.shop_records import flag, paid, refund_of, set_endpoint, stored

URL = "https://shop.example/hooks"
BOOKS = "https://books.example/hooks/of-a-very-long-path-that-has-to-be-broken-somewhere"

# The cells whose text is wider than they are, and the first words that the style adds to each.
CUT = "all => [...all.querySelectorAll('*')].filter(one => one.scrollWidth > one.clientWidth + 1)"
NAMES = "all => all.map(one => getComputedStyle(one, '::before').content.split(' /')[0])"

pytestmark = pytest.mark.browser


@contextmanager
def served() -> Iterator[Dashboard]:
    """Serve the dashboard of one merchant, who has nothing yet."""
    port = free_base()
    with dashboard(f"http://localhost:{port}") as shop, serving(app, port):
        yield shop


@pytest.fixture(scope="module")
def shop() -> Iterator[Dashboard]:
    with served() as shop:
        yield shop


def fill(shop: Dashboard) -> None:
    """Give the merchant payments of every look, and events of two endpoints."""
    for number, status in enumerate(Status):
        shop.clock.pass_time(1)
        shop.store(status=status, client_reference_id=f"Order {number}" if number % 2 else None)
    shop.store(
        status=Status.PROCESSING,
        attention=Attention.PARTIAL_PAYMENT,
        received=700,
        client_reference_id="an-order-number-that-is-far-longer-than-a-phone-is-wide-" * 2,
    )


def sign_in(page: Page, shop: Dashboard) -> None:
    page.goto(f"{shop.base}/dashboard")
    page.get_by_label("API key").fill(shop.secret)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("link", name="Transactions").click()


def test_nothing_is_cut_and_no_rule_of_accessibility_is_broken(browser: Browser, axe: str) -> None:
    with served() as shop:
        judge = Judge(browser, axe)
        page = judge.page
        sign_in(page, shop)
        expect(page.get_by_role("heading", name="First steps")).to_be_visible()
        judge("first steps")
        page.goto(f"{shop.base}/dashboard/webhooks")
        judge("no endpoint")
        page.get_by_label("URL on your server").fill(URL)
        page.get_by_role("button", name="Save").click()
        page.get_by_role("link", name="Add another endpoint").click()
        judge("new endpoint")
        page.get_by_label("URL on your server").fill(BOOKS)
        page.get_by_label("Part of a payment arrived").check()
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("status")).to_contain_text("Your new signing secret")
        judge("second endpoint")
        fill(shop)
        shop.clock.pass_time(61)
        for event_status in EventStatus:
            ended = event_status is EventStatus.EXHAUSTED
            event = stored(shop, status=event_status, given_up=GivenUp.ATTEMPTS if ended else None)
            copy = replace(
                event,
                id=f"{event.id}~{shop.merchant().endpoints[1].id}",
                endpoint=shop.merchant().endpoints[1].id,
            )
            shop.services.events.add(copy)
        page.goto(f"{shop.base}/dashboard/webhooks/{event.id}")
        expect(page.get_by_role("link", name=BOOKS)).to_be_visible()
        judge("event")
        page.goto(f"{shop.base}/dashboard")
        judge("transactions")
        page.goto(f"{shop.base}/dashboard/webhooks")
        page.get_by_label("Failed since").fill(
            (shop.clock.now() - timedelta(days=1)).date().isoformat()
        )
        page.get_by_role("button", name="Send all failed again").click()
        expect(page.get_by_text("Send 1 event again to")).to_be_visible()
        judge("asked")
        page.get_by_role("button", name="Send it again").click()
        expect(page.get_by_text("1 event will be sent again")).to_be_visible()
        judge.done()


def test_no_tab_is_cut_and_each_row_names_somebody_on_a_phone(browser: Browser) -> None:
    with served() as shop:
        for number in range(12):
            flag(shop, client_reference_id=f"A-{number}")
        paid(shop)
        page = browser.new_page(viewport={"width": 375, "height": 667})
        sign_in(page, shop)
        page.goto(f"{shop.base}/dashboard?status=all")
        for tab in page.locator(".tabs a").all():
            edges = box(tab)
            assert edges["x"] >= 0, tab
            assert edges["x"] + edges["width"] <= 375, tab
        assert page.locator(".tabs").evaluate("one => one.scrollWidth <= one.clientWidth")
        rows = page.locator(".payments tbody tr")
        expect(rows).to_have_count(13)
        for row in rows.all():
            expect(row.get_by_text("wallet.example/alice")).to_be_visible()
        page.close()


def test_what_needs_somebody_and_a_payment_of_two_attempts_are_read_on_a_phone(
    browser: Browser, axe: str
) -> None:
    with served() as shop:
        late = flag(shop)
        set_endpoint(shop, disabled_at=shop.clock.now())
        session = replace(PAID, id="cs_0123456789abcdefABCDEX", merchant="mer_1")
        shop.services.sessions.create(session, None)
        judge = Judge(browser, axe, 375)
        page = judge.page
        sign_in(page, shop)
        decide = page.get_by_role("link", name="Send it back or deliver")
        expect(decide).to_be_hidden()
        page.locator(".needs summary").press("Enter")
        expect(decide).to_be_visible()
        judge("strip")
        page.get_by_role("link", name="See all 2").press("Enter")
        expect(page.get_by_role("heading", name="What needs you")).to_be_visible()
        judge("needs")
        page.goto(f"{shop.base}/dashboard/transactions/{session.id}")
        tops = {
            name: page.get_by_role("heading", name=name, exact=True).evaluate(
                "each => each.getBoundingClientRect().top"
            )
            for name in ("Payment", "History", "Order")
        }
        assert tops["Payment"] < tops["Order"] < tops["History"]
        attempts = page.locator("details.chapter")
        assert attempts.evaluate_all("all => all.map(each => each.open)") == [False, False]
        judge("payment")
        page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text; }")
        page.get_by_role("button", name="Copy").first.click()
        assert page.evaluate("window.copied") == session.id
        page.goto(f"{shop.base}/dashboard/transactions/{late.id}")
        page.get_by_label("Private note").fill("Phoned")
        page.get_by_label("Tags").fill("vip, late")
        page.get_by_label("Tags").press("Enter")
        expect(page.get_by_role("list", name="Tags").get_by_role("listitem")).to_have_text(
            ["vip", "late"]
        )
        judge("note")
        page.get_by_role("button", name="Mark as dealt with").press("Enter")
        expect(page.get_by_text("The webhook endpoint")).to_be_visible()
        judge("dealt with")
        judge.done()


def heights(page: Page, selector: str) -> list[float]:
    found: list[float] = page.locator(selector).evaluate_all(
        "rows => rows.map(row => row.getBoundingClientRect().height)"
    )
    return found


def test_a_phone_shows_two_lines_for_each_payment_and_folds_the_filters(
    browser: Browser, axe: str, shop: Dashboard
) -> None:
    for number in range(3):
        shop.clock.pass_time(1)
        shop.store(client_reference_id=f"A-{number}")
    judge = Judge(browser, axe, 375)
    page = judge.page
    sign_in(page, shop)
    rows = page.locator(".list tbody tr")
    expect(rows).to_have_count(3)
    line = float(page.evaluate("parseFloat(getComputedStyle(document.body).lineHeight)"))
    assert all(2 * line < height < 3.5 * line for height in heights(page, ".list tbody tr"))
    for words in ("A-", "USD", "Open"):
        expect(rows.first).to_contain_text(words)
    assert rows.first.get_by_role("cell").count() == 3, "it is still a table to a screen reader"
    expect(page.get_by_label("Created from")).to_be_hidden()
    page.get_by_text("Filters").click()
    expect(page.get_by_label("Created from")).to_be_visible()
    judge("filters")
    page.get_by_label("Amount from").fill("1")
    page.get_by_text("Filters").press("Enter")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("Filters (1)")).to_be_visible()
    expect(page.get_by_label("Created from")).to_be_hidden()
    judge.done()


def test_a_statement_is_read_on_a_phone_as_a_list_of_its_days(browser: Browser, axe: str) -> None:
    with served() as shop:
        million = {"received": 987_654_321, "amount_total": 987_654_321}
        session = paid(shop, **million, receive=Amount(987_654_321, "USD", 2))
        refund_of(shop, session, 350)
        paid(shop, received=1200, updated_at=shop.clock.now() - timedelta(days=2))
        judge = Judge(browser, axe, 375)
        page = judge.page
        sign_in(page, shop)
        page.goto(f"{shop.base}/dashboard/statement?from=2026-02-27")
        judge("statement")
        page.set_viewport_size({"width": 375, "height": 800})
        region = page.get_by_role("region", name="Statement", exact=True)
        assert region.locator("tbody").evaluate(CUT) == []
        rows = region.locator("tbody").get_by_role("row")
        moved = ("Payments", "Paid", "Difference", "Received", "Refunds", "Refunded")
        cells = (*moved, "Refund cost", "Net")
        for number in (2, 3):  # the day on which money moved, and the sum
            names = rows.nth(number).get_by_role("cell").evaluate_all(NAMES)
            assert names == [f'"{each} "' for each in cells]
            day = box(rows.nth(number).get_by_role("rowheader"))
            net = box(rows.nth(number).get_by_role("cell").last)
            assert day["y"] == net["y"]
            assert day["x"] < net["x"]
        expect(rows.nth(3).get_by_role("cell").nth(1)).to_have_text("9,876,555.21")
        expect(rows.nth(1).get_by_role("cell")).to_have_text(["0.00"])  # a day at rest
        page.set_viewport_size({"width": 1280, "height": 800})
        assert rows.nth(1).get_by_role("cell").count() == len(cells)
        assert region.locator("td").first.evaluate_all(NAMES) == ["none"]
        judge.done()


def test_the_rooms_are_at_the_thumb_and_beside_the_page_on_a_desk(
    browser: Browser, axe: str, shop: Dashboard
) -> None:
    judge = Judge(browser, axe, 375)
    page = judge.page
    sign_in(page, shop)
    nav = page.get_by_role("navigation", name="Dashboard")
    tops = nav.locator("> *").evaluate_all("all => all.map(each => each.offsetTop)")
    assert len(set(tops)) == 1, "one line"
    people = page.get_by_role("link", name="People", exact=True)
    expect(people).to_be_hidden()
    nav.get_by_text("More").click()
    expect(people).to_be_visible()
    judge("more")
    people.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("People")
    judge.done()
    desk = Judge(browser, axe)
    sign_in(desk.page, shop)
    rooms = desk.page.get_by_role("navigation", name="Dashboard").get_by_role("link")
    assert rooms.count() == 9
    boxes = rooms.evaluate_all("all => all.map(each => each.getBoundingClientRect().height)")
    assert max(boxes) < 48, "no name of a room takes two lines"
    desk.done()
