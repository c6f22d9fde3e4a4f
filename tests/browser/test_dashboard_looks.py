"""A browser shows what of the dashboard's pages is cut, covered, or too small for a finger."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

import pytest
from playwright.sync_api import Browser, Locator, Page, ViewportSize, expect

from checkout.domain.ground.addresses import Address
from checkout.domain.merchant.failed_requests import FailedRequest, FailedRequests
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Problem
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Status
from dashboard.app import app
from tests.browser.steps import box
from tests.support.attempts import PAID, after, awaiting, processing, refused
from tests.support.basics import NOW, a_link, a_session
from tests.support.dashboard_pages import Dashboard, dashboard
from tests.support.processes import free_base
from tests.support.serving import serving
from tests.support.shop_records import flag, mark, paid, put, stored

SESSION: Final = f"cs_{'p' * 22}"
THREE: Final = f"cs_{'q' * 22}"
PHONE: Final = ViewportSize(width=375, height=667)
DESK: Final = ViewportSize(width=1280, height=800)
MARGIN: Final = 16  # below the last sheet of a column
# The words of `select` that are wider than the room for them, arrow left out.
CUT = """all => all.flatMap(one => {
  const style = getComputedStyle(one), pen = document.createElement('canvas').getContext('2d');
  pen.font = `${style.fontWeight} ${style.fontSize} ${style.fontFamily}`;
  const edges = parseFloat(style.paddingLeft) + parseFloat(style.paddingRight) + 16;
  const room = one.clientWidth - edges;
  return [...one.options].map(each => each.text).filter(text => pen.measureText(text).width > room);
})"""
FITS = """one => {
  const style = getComputedStyle(one), pen = document.createElement('canvas').getContext('2d');
  pen.font = `${style.fontSize} ${style.fontFamily}`;
  const room = one.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
  return pen.measureText(one.placeholder).width < room;
}"""
# Of the element with the focus: what a finger on its lower edge would touch in place of it.
COVERED = """() => {
  const one = document.activeElement, box = one.getBoundingClientRect();
  if (one === document.body || one.closest('.bar, .save, .skip') || !box.height) return null;
  const at = [box.left + Math.min(box.width / 2, 20), Math.min(box.bottom, innerHeight) - 2];
  const found = document.elementFromPoint(...at);
  const free = box.bottom <= innerHeight + 1 || box.height > innerHeight / 2;
  const seen = found && (one === found || one.contains(found) || found.contains(one));
  return free && seen ? null : `${one.outerHTML.slice(0, 90)} ${Math.round(box.bottom)}`;
}"""
UNFOLD = "document.querySelectorAll('main details').forEach(one => { one.open = true; })"
ASK = "document.querySelectorAll('main dialog').forEach(one => one.show())"
SMALL = """all => all.filter(one => one.checkVisibility() && !one.closest('.skip'))
  .filter(one => one.getBoundingClientRect().height < 24)
  .map(one => one.outerHTML.slice(0, 120))"""

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def shop() -> Iterator[Dashboard]:
    port = free_base()
    with dashboard(f"http://localhost:{port}") as shop, serving(app, port):
        shop.signed_in().post("/webhooks", {"url": "https://shop.example/hooks"})
        event = stored(shop)
        paid(shop, id=SESSION, event=event.id, client_reference_id="A-1")
        shop.store(status=Status.CANCELED)
        shop.services.links.add(a_link())
        refused = FailedRequest(
            shop.clock.now(),
            "POST",
            "/api/checkout/sessions/{session_id}/accept_as_paid",
            400,
            "parameter_invalid",
            "A message of the length that such messages have, about a parameter.",
            "req_0123456789abcdefABCDEF",
            "line_items[0][unit_amount]",
        )
        shop.services.failed_requests.put(FailedRequests(key=shop.key.id).with_one(refused))
        yield shop


def signed_in(page: Page, shop: Dashboard) -> Page:
    page.goto(f"{shop.base}/dashboard")
    page.get_by_label("API key").fill(shop.secret)
    page.get_by_role("button", name="Sign in", exact=True).click()
    page.get_by_role("heading", level=1).wait_for()
    return page


@pytest.fixture
def page(browser: Browser, shop: Dashboard) -> Iterator[Page]:
    context = browser.new_context(viewport=PHONE, timezone_id="Europe/Berlin")
    yield signed_in(context.new_page(), shop)
    context.close()


def show(page: Page, shop: Dashboard, path: str) -> None:
    page.goto(f"{shop.base}/dashboard{path}")


def every_page(shop: Dashboard) -> list[str]:
    return [
        "?status=all",
        f"/transactions/{SESSION}",
        "/overview?period=week",
        "/links",
        f"/links/{a_link().id}",
        "/webhooks",
        "/keys",
        f"/keys/{shop.key.id}/refused",
        "/people",
        "/notices",
        "/settings",
        "/audit",
        "/statement",
        "/export",
        "/needs",
    ]


def test_each_filter_has_a_name_that_is_seen_and_the_search_says_what_it_finds(
    page: Page, shop: Dashboard
) -> None:
    show(page, shop, "?status=all")
    assert page.locator("#q").evaluate(FITS)
    page.get_by_text("Filters").click()
    for name in ("Status", "Created from", "Created to", "Amount from", "Amount to"):
        label, field = box(page.locator("label", has_text=name)), box(page.get_by_label(name))
        assert 0 < label["height"] <= field["y"] - label["y"]


@pytest.mark.parametrize("path", ["/links", "/settings"])
def test_nothing_that_has_the_focus_is_covered_by_a_bar(
    page: Page, shop: Dashboard, path: str
) -> None:
    show(page, shop, path)
    if path == "/settings":
        page.get_by_label("Display name").fill("Another name")
        expect(page.locator("#save")).to_be_visible()
    page.locator("#main").evaluate("one => one.focus()")
    covered, steps = [], 0
    while steps < 120:
        page.keyboard.press("Tab")
        steps += 1
        if page.evaluate("document.activeElement === document.body"):
            break
        if found := page.evaluate(COVERED):
            covered.append(found)
    assert covered == []
    assert steps > 15


def test_no_word_of_a_choice_and_no_line_of_the_button_is_cut(page: Page, shop: Dashboard) -> None:
    for size in (PHONE, DESK):
        page.set_viewport_size(size)
        for path in every_page(shop):
            show(page, shop, path)
            page.evaluate(UNFOLD)
            page.evaluate(ASK)
            assert page.locator("main select").evaluate_all(CUT) == [], (size, path)
            snippet = page.locator(".snippet")
            if snippet.count():
                assert snippet.evaluate("one => one.scrollHeight <= one.clientHeight + 1"), size


def test_no_table_scrolls_sideways_and_on_a_phone_no_target_is_too_small(
    page: Page, shop: Dashboard
) -> None:
    for path in every_page(shop):
        show(page, shop, path)
        page.evaluate(UNFOLD)
        for size in (DESK, PHONE):
            page.set_viewport_size(size)
            wide = page.locator(".wide").evaluate_all(
                "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
            )
            assert wide == 0, (size, path)
        targets = "main :is(a, button, summary, select, label:has(input[type=checkbox])), nav a"
        assert page.locator(targets).evaluate_all(SMALL) == [], path


def test_escape_folds_what_lies_over_the_page_and_a_press_beside_more_does_too(
    page: Page, shop: Dashboard
) -> None:
    show(page, shop, "")
    more, filters = page.locator(".more"), page.locator(".find details")
    for each in (more, filters):
        each.locator("summary").click()
        expect(each).to_have_attribute("open", "")
        page.keyboard.press("Escape")
        expect(each).not_to_have_attribute("open", "")
        assert each.locator("summary").evaluate("one => one === document.activeElement")
    more.locator("summary").click()
    page.get_by_role("heading", level=1).click()
    expect(more).not_to_have_attribute("open", "")


@pytest.mark.parametrize("size", [PHONE, DESK])
def test_a_row_of_the_list_is_its_link(page: Page, shop: Dashboard, size: ViewportSize) -> None:
    page.set_viewport_size(size)
    show(page, shop, "?status=all")
    row = page.get_by_role("row").filter(has_text="Paid").last
    assert row.get_by_role("link").count() == 1
    row.get_by_text("20.00 USD").click(force=True)  # the link lies over it
    expect(page.get_by_role("heading", level=1)).to_contain_text("20.00 USD")


@pytest.mark.parametrize(
    ("later", "shown"),
    [
        ({"seconds": 20}, "just now"),
        ({"minutes": 14}, "14 min ago"),
        ({"hours": 3}, "today 13:00"),
        ({"hours": 14}, "yesterday 13:00"),
        ({"days": 9}, "1 Mar, 13:00"),
        ({"days": 365}, "1 Mar 2026, 13:00"),
    ],
)
def test_a_list_says_how_long_ago_and_the_exact_time_on_hover(
    page: Page, shop: Dashboard, later: dict[str, int], shown: str
) -> None:
    """In Berlin, where it is an hour later; it was 12:00 UTC."""
    page.clock.set_fixed_time(NOW + timedelta(**later))
    show(page, shop, f"?q={SESSION}")
    time = page.locator("tbody time")
    expect(time).to_have_text(shown)
    expect(time).to_have_attribute("title", "1 Mar 2026, 13:00:00, in UTC 1 Mar 2026, 12:00:00")
    page.get_by_role("button", name="Show UTC").click()
    expect(time).to_have_text("1 Mar 2026, 12:00:00")
    show(page, shop, f"/transactions/{SESSION}")
    expect(page.locator("main time").first).to_have_text("1 Mar 2026, 13:00:00")


def lower_edge(element: Locator) -> float:
    return box(element)["y"] + box(element)["height"]


def three_attempts(shop: Dashboard) -> str:
    """Store a session that was paid with its third attempt, and return its id."""
    first = shop.services.sessions.get(SESSION)
    assert first is not None
    session = after(
        processing(refused(refused(), 2), 3),
        Event.RECONCILED,
        received=2000,
        completed_at=shop.clock.now(),
    )
    session = replace(
        session, id=THREE, merchant="mer_1", event=first.event, client_reference_id="A-2026-044203"
    )
    shop.services.sessions.create(session, None)
    return session.id


def test_a_payment_of_three_attempts_is_understood_within_one_screen(
    page: Page, shop: Dashboard
) -> None:
    page.set_viewport_size(DESK)
    show(page, shop, f"/transactions/{three_attempts(shop)}")
    expect(page.locator(".story h3")).to_have_text(
        [
            "Attempt 1: refused by the wallet",
            "Attempt 2: refused by the wallet",
            "Attempt 3: paid",
            "Webhook",
        ]
    )
    for found in (
        page.locator(".sums"),
        page.get_by_text("Attempt 3: paid"),
        page.get_by_text("because every attempt failed"),
        page.get_by_text("2 × Tea"),
        page.get_by_role("button", name="Refund…"),
        page.get_by_role("button", name="Save the note"),
    ):
        expect(found).to_be_visible()
        assert lower_edge(found) <= DESK["height"], found
    page.set_viewport_size(PHONE)
    assert lower_edge(page.locator(".sums")) <= PHONE["height"]


ANA: Final = CustomerDetails(
    email="zoe@quinn.example",
    name="Zoë Quinn",
    shipping=Address("DE", "Zoë Quinn", "Am Weg 12", None, None, "Berlin", None, "10969"),
)
_WAITS: Final = processing(refused())
_PART: Final = after(_WAITS, Event.PART_ARRIVED, received=1000, attention=Attention.PARTIAL_PAYMENT)
_FENCED: Final[dict[str, Any]] = {"closing_at": NOW, "closed_at": NOW - timedelta(days=1)}
_ENDED: Final = replace(after(awaiting(), Event.CANCEL_REQUESTED), check_at=None)
STATES: Final = {
    "open": a_session(),
    "awaiting": awaiting(),
    "processing": _WAITS,
    "failed": after(
        replace(processing(), **_FENCED),
        Event.PAYMENT_DISPROVED,
        problem=Problem.PAYMENT_FAILED,
    ),
    "part": _PART,
    "part for good": replace(_PART, check_at=None),
    "undecided": replace(_WAITS, attention=Attention.UNDECIDED),
    "paid": PAID,
    "overpaid": replace(PAID, received=2100),
    "canceled": _ENDED,
    "late": replace(_ENDED, received=700, attention=Attention.LATE_PAYMENT),
}


@pytest.mark.parametrize("state", STATES)
def test_a_payment_in_any_state_is_one_screen_with_one_alert(
    page: Page, shop: Dashboard, state: str
) -> None:
    """Other things need somebody, too, and the customer has given an address."""
    flag(shop)
    given = shop.store_with(ANA)
    event = stored(shop)
    sealed = {each: getattr(given, each) for each in ("customer_details", "customer_further")}
    made = STATES[state]
    session = replace(made, id=given.id, merchant="mer_1", **sealed)
    put(shop, replace(session, event=event.id if made.terminal else None))
    if made.needs_attention:
        mark(shop, session)
    page.set_viewport_size(DESK)
    show(page, shop, f"/transactions/{session.id}")
    expect(page.get_by_text("zoe@quinn.example")).to_be_visible()
    assert lower_edge(page.locator(".columns.payment")) - MARGIN <= DESK["height"]
    assert page.locator(".alert, .needs").count() == 1
    alert = page.locator(".alert" if made.needs_attention else ".needs")
    expect(alert).to_be_visible()


def asked(page: Page) -> list[Locator]:
    return page.locator("main button[aria-haspopup=dialog]").all()


def test_what_cannot_be_undone_is_asked_in_a_dialog_and_left_by_keyboard(
    page: Page, shop: Dashboard
) -> None:
    found = []
    for path in (f"/transactions/{SESSION}", "/keys", "/webhooks"):
        show(page, shop, path)
        for button in asked(page):
            found.append(button.inner_text())
            for leave in ("Escape", "Enter"):
                button.press("Enter")
                dialog = page.get_by_role("dialog")
                expect(dialog).to_be_visible()
                expect(dialog).to_have_accessible_name(re.compile(r"\w"))
                back = dialog.get_by_role("button", name="Go back")
                if not dialog.locator("input:not([type=hidden]), select").count():
                    expect(back).to_be_focused()
                (back if leave == "Enter" else dialog).press(leave)
                expect(dialog).to_be_hidden()
                expect(button).to_be_focused()
    assert found == [
        "Refund…",
        "Paid back elsewhere…",
        "Roll",
        "Revoke",
        "Remove the URL…",
        "Create a new secret…",
    ]


def test_a_dialog_repeats_what_it_is_about_with_the_sum_in_both_currencies(
    page: Page, shop: Dashboard
) -> None:
    show(page, shop, f"/transactions/{SESSION}")
    page.get_by_role("button", name="Refund…").click()
    expect(page.get_by_role("dialog")).to_contain_text(
        "Order A-1, 20.00\N{NO-BREAK SPACE}USD, 18.53\N{NO-BREAK SPACE}EUR for the customer"
    )


def test_without_script_the_same_questions_unfold_in_the_page(
    browser: Browser, shop: Dashboard
) -> None:
    context = browser.new_context(viewport=PHONE, java_script_enabled=False)
    page = signed_in(context.new_page(), shop)
    show(page, shop, f"/transactions/{SESSION}")
    expect(page.get_by_label("Amount in USD").first).to_be_hidden()
    page.get_by_text("Refund…").press("Enter")
    expect(page.get_by_label("Amount in USD").first).to_have_value("20.00")
    expect(page.get_by_role("button", name="Show the price")).to_be_visible()
    context.close()
