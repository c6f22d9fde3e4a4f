"""Test customers' journeys in Chromium, with the clock in the test's hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from checkout.domain.session.record import Session, Status
from checkout.flows.session import reconcile
from tests.browser.judge import faults, violations
from tests.browser.served import Served, new_context, without_fetch_metadata, without_origin
from tests.browser.steps import OFFER, begin, focus, leave, type_wallet
from tests.support.flows import CEDAR
from tests.support.hosted_pages import PAID, PHONE, orders

pytestmark = pytest.mark.browser


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    context = new_context(browser)
    yield context.new_page()
    context.close()


def paid(page: Page, pages: Served, session: Session) -> None:
    expect(page.get_by_role("heading", level=1)).to_have_text("Paid. Thank you!")
    assert pages.world.session(session.id).status is Status.COMPLETED


def test_a_price_that_runs_out_renews_and_shows_the_difference(page: Page, pages: Served) -> None:
    page.clock.install()
    session = begin(page, pages, "expensive-renewal")
    expect(page.locator("dl")).to_contain_text("1 EUR = 1.0787 USD")
    expect(page.locator("[data-left]")).to_have_text(re.compile("valid for .?[45]:[0-9][0-9].?$"))
    first = pages.world.session(session.id).quote
    pages.world.clock.pass_time(300)
    page.clock.run_for(301_000)
    said = page.get_by_role("status")
    expect(said).to_have_text(
        re.compile(r"The price went up from .€18\.54. to .€20\.40.: .€1\.86. more\.")
    )
    expect(page.get_by_role("heading", level=1)).to_contain_text("20.40")
    expect(page.locator("[data-left]")).to_have_text(re.compile("valid for"))
    assert pages.world.session(session.id).quote != first


def test_a_price_is_not_renewed_while_the_customer_approves(page: Page, pages: Served) -> None:
    page.clock.install()
    session = begin(page, pages)
    with page.context.expect_page():
        page.locator("#leave").click(modifiers=["Control"])
    before = pages.world.session(session.id)
    pages.world.clock.pass_time(300)
    page.clock.run_for(301_000)
    expect(page.locator(".alert")).to_contain_text("This price has expired.")
    assert pages.world.session(session.id).interact_url == before.interact_url


def test_a_phones_code_counts_as_shown_with_the_click_that_opens_it(
    page: Page, pages: Served
) -> None:
    """The element's own event comes later: after a reload between the two, the price is renewed."""
    session = begin(page, pages)
    clicked = page.evaluate(
        """() => {
            document.querySelector(".phone summary").click();
            return localStorage.getItem("checkout.away");
        }"""
    )
    assert clicked == f"/pay/{session.id}"


@pytest.mark.parametrize(
    "order",
    list(orders(("reload", "wait"), PHONE)),
    ids=lambda order: " ".join(s for _, s in order),
)
def test_the_phones_approval_is_used_in_every_order_of_steps(
    browser: Browser, page: Page, pages: Served, order: list[tuple[str, str]]
) -> None:
    """The script renews no price by itself under the approval, with ten minutes of its clock."""
    page.clock.install()
    session = begin(page, pages)
    page.get_by_text("Continue on your phone").click()
    expect(page.locator(".phone")).to_have_attribute("open", "")
    asked = pages.world.session(session.id).interact_url
    assert asked is not None
    before = pages.world.received()
    context = new_context(browser, wide=False)
    phone = context.new_page()
    for _, step in order:
        if step == "reload":
            pages.reopen(page, session)
        elif step == "wait":
            pages.world.clock.pass_time(301)
            page.clock.run_for(301_000)
        elif step == "scan":
            phone.goto(pages.hand_over(pages.world.session(session.id)))
        elif step == "go":
            way = phone.locator(f'a[href="{asked}"]')
            if not way.is_visible():  # the price has expired: it is one of the other options
                expect(phone.locator(".alert")).to_contain_text("This price has expired.")
                phone.get_by_text("Other options", exact=True).click()
            way.click()
            expect(phone.get_by_role("heading")).to_have_text("A wallet")
        else:
            assert pages.world.session(session.id).interact_url == asked, "it still counts"
            pages.approve(phone)
            paid(phone, pages, session)
        if pages.world.received() == before:
            expect(page.get_by_role("main")).not_to_contain_text("Paid. Thank you!")
    assert pages.world.received() == before + 2000
    pages.reopen(page, session)
    paid(page, pages, session)
    context.close()


def test_a_second_window_does_not_renew_the_price_under_the_firsts_approval(
    page: Page, pages: Served
) -> None:
    page.clock.install()
    session = begin(page, pages)
    other = page.context.new_page()
    other.goto(pages.address(session))
    leave(other)
    before = pages.world.session(session.id)
    pages.world.clock.pass_time(300)
    page.bring_to_front()
    page.clock.run_for(301_000)
    expect(page.locator(".alert")).to_contain_text("This price has expired.")
    assert pages.world.session(session.id).interact_url == before.interact_url
    pages.approve(other)
    paid(other, pages, session)


def test_a_price_is_not_renewed_over_what_a_customer_types(page: Page, pages: Served) -> None:
    page.clock.install()
    session = begin(page, pages)
    page.get_by_text("Other options", exact=True).click()
    page.locator("#wallet_address").fill(f"{CEDAR}/car")
    before = pages.world.session(session.id)
    pages.world.clock.pass_time(300)
    page.clock.run_for(301_000)
    expect(page.locator("[data-left]")).to_have_text("This price has expired.")
    expect(page.locator("#wallet_address")).to_have_value(f"{CEDAR}/car")
    assert pages.world.session(session.id).interact_url == before.interact_url


def test_a_hidden_page_asks_nothing_until_it_is_seen_again(page: Page, pages: Served) -> None:
    asked, answered = [], []
    follows = re.compile("/status$")
    page.on("request", lambda each: asked.append(each) if follows.search(each.url) else None)
    for end in ("requestfinished", "requestfailed"):
        page.on(end, lambda each: answered.append(each) if each in asked else None)
    page.clock.install()
    session = pages.world.create()
    page.goto(pages.address(session))
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.clock.run_for(120_000)
    assert not asked
    with page.expect_response(follows):
        page.evaluate(
            "delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))"
        )
    for _ in range(20):  # the page waits for an answer before it sets its next time
        while len(answered) < len(asked):
            page.wait_for_timeout(10)
        page.clock.run_for(30_000)
    assert 2 <= len(asked) < 30


def test_a_customer_who_closed_the_tab_goes_on_where_they_left(
    browser: Browser, page: Page, pages: Served
) -> None:
    session = begin(page, pages)
    leave(page)
    page.close()
    again = new_context(browser).new_page()
    again.goto(pages.address(session))
    again.get_by_text("Other options", exact=True).click()
    expect(again.get_by_role("button", name="Get a new price")).to_be_visible()
    expect(again.get_by_text("Use another wallet", exact=True)).to_be_visible()
    leave(again)
    pages.approve(again)
    expect(again.get_by_role("main")).to_contain_text("begun in another browser")
    again.get_by_role("button", name="Pay").click()
    paid(again, pages, session)


# How a page of another site may open an address without its visitor's wish.
OPENED = {
    "pop-up": "open(ADDRESS)",
    "frame": "add('iframe', {src: ADDRESS})",
    "picture": "add('img', {src: ADDRESS})",
    "fetch": "fetch(ADDRESS, {mode: 'no-cors', credentials: 'include'})",
    "prefetch": "add('link', {rel: 'prefetch', href: ADDRESS})",
    "prerender": "add('script', {type: 'speculationrules', textContent: JSON.stringify("
    "{prerender: [{source: 'list', urls: [ADDRESS], eagerness: 'immediate'}]})})",
    "navigation": "location.href = ADDRESS",
    "form": "add('form', {action: 'PAGE', innerHTML: `<input name=device value='PROOF'>`})"
    ".submit()",
}


@pytest.mark.parametrize("way", OPENED)
def test_a_link_that_another_site_opens_hands_nothing_over(
    browser: Browser, page: Page, pages: Served, way: str
) -> None:
    session = begin(page, pages)
    address = pages.hand_over(pages.world.session(session.id))
    opening = OPENED[way].replace("ADDRESS", json.dumps(address))
    opening = opening.replace("PAGE", pages.address(session))
    opening = opening.replace("PROOF", address.rpartition("=")[2])
    add = "const add = (tag, what) => document.body.appendChild("
    add += "Object.assign(document.createElement(tag), what));"
    html = f"<!doctype html><body><button onclick='run()'>Win</button><script>{add}"
    html += f"function run() {{ {opening} }}</script>"
    context = new_context(browser)
    context.route(
        "http://evil.example/", lambda route: route.fulfill(content_type="text/html", body=html)
    )
    victim = context.new_page()
    victim.goto("http://evil.example/")
    victim.get_by_role("button").click()
    victim.wait_for_timeout(500)  # whatever it opened has loaded, as far as it may
    tab = context.new_page()
    tab.goto(pages.world.network.approve(str(pages.world.session(session.id).interact_url)))
    expect(tab.get_by_role("main")).to_contain_text("begun in another browser")
    assert pages.world.session(session.id).status is Status.AWAITING_APPROVAL
    context.close()


def test_a_customer_who_goes_back_is_told_how_to_go_on(page: Page, pages: Served) -> None:
    begin(page, pages)
    expect(page.locator("#came-back")).to_be_hidden()
    leave(page)
    page.go_back()
    expect(page.locator("#came-back")).to_contain_text("We have not heard from your wallet yet.")


def test_an_address_is_remembered_on_this_device_if_wanted(page: Page, pages: Served) -> None:
    page.goto(pages.address(pages.world.create()))
    field, box = page.locator("#wallet_address"), page.locator("#remember")
    expect(field).to_have_value("")
    expect(box).not_to_be_checked()
    field.fill(f"  {CEDAR}/ alice\u200b ")
    box.check()
    field.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("You pay")
    for wallet in ("carol", "alice"):
        page.goto(pages.address(pages.world.create()))
        expect(box).to_be_checked()
        field.fill(f"{CEDAR}/{wallet}")
        field.press("Enter")
        expect(page.get_by_role("heading", level=1)).to_contain_text("You pay")
    session = pages.world.create()
    page.goto(pages.address(session))
    expect(page.locator("#kept li")).to_have_count(2)
    page.get_by_role("button", name="Forget: localhost:4101/alice").click()
    expect(page.locator("#kept li")).to_have_count(1)
    page.reload()
    page.get_by_role("button", name="localhost:4101/carol", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("You pay")
    customer = pages.world.session(session.id).customer
    assert customer is not None
    assert customer.id == f"{CEDAR}/carol"
    page.goto(pages.address(pages.world.create()))
    page.get_by_role("button", name="Forget: localhost:4101/carol").click()
    expect(page.locator("#kept")).to_be_hidden()
    expect(box).not_to_be_checked()


def test_an_address_that_is_none_is_not_remembered(page: Page, pages: Served) -> None:
    page.goto(pages.address(pages.world.create()))
    page.locator("#remember").check()
    page.locator("#wallet_address").fill("4242 4242 4242 4242")
    page.locator("#wallet_address").press("Enter")
    page.get_by_role("alert").wait_for()
    expect(page.locator("#wallet_address")).to_have_value("")
    assert page.evaluate("localStorage.length") == 0


def test_only_one_way_in_is_open_at_a_time(page: Page, pages: Served, axe: str) -> None:
    with pages.merchant(providers=(OFFER, replace(OFFER, name="Harbor"))):
        page.goto(pages.address(pages.world.create()))
        expect(page.locator("main .button:visible")).to_have_count(1)
        page.get_by_text("Another wallet", exact=True).click()
        expect(page.locator("main .button:visible")).to_have_count(1)
        expect(page.locator("#wallet_address")).to_be_visible()
        assert violations(page, axe) == []


def test_a_slow_wallet_is_told_of_after_ten_seconds(page: Page, pages: Served) -> None:
    page.clock.install()
    session = pages.world.create()
    page.goto(pages.address(session))
    page.evaluate("void (window.fetch = () => new Promise(() => {}))")  # it never answers
    type_wallet(page)
    status = page.get_by_role("status")
    expect(status).to_have_text("Asking your wallet provider for the price…")
    expect(page.locator("[aria-current=step]")).to_have_text("Price")
    page.clock.run_for(11_000)
    expect(status).to_have_text("Still waiting for your wallet provider.")
    expect(page.locator("form button").first).to_be_disabled()


def test_a_payment_that_takes_long_says_what_it_waits_for(page: Page, pages: Served) -> None:
    page.clock.install()
    session = begin(page, pages, "never-credits")
    leave(page)
    pages.approve(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Waiting for the money")
    expect(page.get_by_role("status")).to_have_text("")
    page.clock.run_for(11_000)
    expect(page.get_by_role("status")).to_have_text(
        "Still waiting for the money to reach the shop."
    )
    assert pages.world.session(session.id).status is Status.PROCESSING


def told(page: Page, title: str) -> None:
    """Require the title after the 3 s within which an open page with script asks again."""
    page.clock.run_for(3_000)
    expect(page.get_by_role("heading", level=1)).to_have_text(title)


def known(pages: Served, session: Session, what: Callable[[Session], bool]) -> None:
    """Let time pass until another process knows `what` of the session."""
    for _ in range(600):
        if what(reconcile.advance_pending(pages.world.services, session.id)):
            return
        pages.world.clock.pass_time(1)
    raise AssertionError("it never became known")


def test_an_open_page_tells_each_step_of_a_payment_that_fails(page: Page, pages: Served) -> None:
    page.clock.install()
    session = begin(page, pages, "no-funds")
    leave(page)
    pages.approve(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("The payment has not arrived")
    known(pages, session, lambda now: now.closed_at is not None)
    told(page, "The payment has not arrived")
    expect(page.get_by_role("main")).to_contain_text("Wait before you pay again.")
    expect(page.get_by_role("main")).not_to_contain_text("accepted")
    pages.world.clock.pass_time(8)
    page.clock.run_for(3_000)
    left = "getComputedStyle(document.querySelector('.fence')).getPropertyValue('--left')"
    page.wait_for_function(f"() => {left} > 0 && {left} < 28")
    known(pages, session, lambda now: now.status is Status.OPEN)
    page.clock.run_for(3_000)
    expect(page.get_by_role("alert")).to_contain_text("The shop has received no money")


def test_a_page_whose_code_a_phone_has_scanned_tells_in_three_seconds_that_it_paid(
    page: Page, pages: Served
) -> None:
    page.clock.install()
    session = begin(page, pages)
    page.get_by_text("Continue on your phone").click()
    expect(page.locator(".phone img")).to_have_js_property("complete", True)
    page.clock.run_for(60_000)
    pages.world.pay(pages.world.session(session.id))
    told(page, "Paid. Thank you!")


def test_a_lost_connection_is_told_and_the_form_sent_again(page: Page, pages: Served) -> None:
    page.goto(pages.address(pages.world.create()))
    page.route("**/wallet", lambda route: route.abort())
    type_wallet(page)
    expect(page.get_by_role("status")).to_contain_text("No response. Check your connection")
    page.unroute("**/wallet")
    page.locator("form .button").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("You pay")


def crowd(page: Page, times: int) -> None:
    """Have the gateway refuse the next wallets with its own answer, which is no page of ours."""
    left = [1] * times

    def answer(route: Route) -> None:
        if not left:
            route.continue_()
            return
        left.pop()
        body = '{"message":"Too Many Requests"}'
        headers = {"content-type": "application/json", "retry-after": "1"}
        route.fulfill(status=429, body=body, headers=headers)

    page.route("**/wallet", answer)


@pytest.mark.parametrize(
    ("refusals", "says"), [(2, "Trying again automatically"), (4, "Try again in a moment")]
)
def test_a_crowded_gateway_is_told_and_asked_again_by_script_or_at_last_by_hand(
    page: Page, pages: Served, refusals: int, says: str
) -> None:
    page.goto(pages.address(pages.world.create()))
    crowd(page, refusals)
    type_wallet(page)
    expect(page.get_by_role("status")).to_contain_text(says)
    if refusals == 4:
        page.locator("form .button").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("You pay")


def test_the_countdown_leads_to_the_shop_unless_stopped(page: Page, pages: Served) -> None:
    page.clock.install()
    session = pages.world.pay(pages.world.create())
    success = pages.address(session, "/success")
    page.goto(success)
    expect(page.locator("[data-countdown]")).to_have_text(
        "You will return to the shop in 20 seconds."
    )
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.clock.run_for(1_100)
    expect(page.get_by_role("status")).to_have_text("You will return to the shop in 19 seconds.")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.clock.run_for(60_000)
    page.evaluate("delete document.hidden")
    page.clock.run_for(18_000)
    expect(page.locator("[data-countdown]")).to_have_text(
        "You will return to the shop in 1 second."
    )
    page.get_by_role("button", name="Stay on this page").click()
    page.clock.run_for(60_000)
    expect(page).to_have_url(success)
    page.reload()
    page.clock.run_for(21_000)
    expect(page).to_have_url(session.success_url)


def test_a_receipt_is_printed_as_one_and_its_numbers_are_copied(page: Page, pages: Served) -> None:
    session = pages.world.pay(pages.world.create(client_reference_id="B-42"))
    page.goto(pages.address(session))
    page.evaluate("navigator.clipboard.writeText = async text => { window.copied = text; }")
    page.get_by_role("button", name="Copy").first.click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("window.copied") == "B-42"
    page.evaluate("window.print = () => { window.printed = document.title; }")
    page.get_by_role("button", name="Print or save as PDF").click()
    assert page.evaluate("window.printed") == "Receipt – Harbor Coffee"
    assert page.title() == "Paid. Thank you! – Harbor Coffee"
    page.emulate_media(media="print")
    expect(page.get_by_text("Receipt", exact=True)).to_be_visible()
    for text in ("Your order", session.id, "$20.00"):
        expect(page.get_by_text(text).first).to_be_visible()
    expect(page.get_by_text("Paid. Thank you!")).to_be_hidden()
    for hidden in (".copy", ".button", "#print", ".steps"):
        expect(page.locator(hidden).first).to_be_hidden()


def test_the_countdown_stops_for_who_wants_the_receipt_by_e_mail(page: Page, pages: Served) -> None:
    page.clock.install()
    session = pages.world.pay(pages.world.create())
    with pages.mail():
        page.goto(pages.address(session, "/success"))
        page.get_by_text("Send the receipt by e-mail").click()
        expect(page.locator("[data-countdown]")).to_have_text("You stay on this page.")
        page.clock.run_for(60_000)
        page.get_by_label("Your e-mail address").fill("eva@customer.example")
        page.get_by_role("button", name="Send", exact=True).click()
        expect(page.get_by_role("main")).to_contain_text("The receipt has been sent.")
        page.clock.run_for(60_000)
        expect(page).to_have_url(re.compile("/success"))


def test_a_page_is_one_request_and_its_qr_code_another(page: Page, pages: Served) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    session = pages.world.create()
    page.goto(pages.address(session))
    page.wait_for_load_state("networkidle")
    assert [one for one in asked if one.startswith("http")] == [pages.address(session)]
    page.get_by_text("Continue on your phone").click()
    picture = page.locator(".phone img")
    expect(picture).to_have_js_property("complete", True)
    assert picture.evaluate("image => image.naturalWidth") > 0
    assert asked[-1] == pages.address(session, "/qr")


def test_the_keyboard_alone_pays(page: Page, pages: Served) -> None:
    session = pages.world.create()
    page.goto(pages.address(session))

    focus(page, "#wallet_address")
    page.keyboard.type(f"{CEDAR}/alice")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    focus(page, "#leave")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading")).to_have_text("A wallet")
    pages.approve(page)
    paid(page, pages, session)
    focus(page, "#stay")
    page.keyboard.press("Enter")
    expect(page.get_by_text("You stay on this page.")).to_be_focused()


# --- a browser of before 2023, or behind a proxy that strips the headers it does not know


@pytest.fixture(params=["with script", "without script"])
def old(request: pytest.FixtureRequest, browser: Browser, pages: Served) -> Iterator[Page]:
    """A page of a browser that sends no Fetch Metadata."""
    context = new_context(browser, script=request.param == "with script")
    with pages.behind(without_fetch_metadata):
        yield context.new_page()
    context.close()


def test_an_old_browser_pays(old: Page, pages: Served) -> None:
    session = begin(old, pages)
    leave(old)
    pages.approve(old)
    paid(old, pages, session)


def come_back_elsewhere(page: Page, pages: Served) -> Session:
    """Come back from the wallet in another browser than the one that began."""
    session = pages.world.submit(pages.world.create())
    page.goto(pages.world.network.approve(str(session.interact_url)))
    expect(page.get_by_role("main")).to_contain_text("begun in another browser")
    page.get_by_role("button", name="Pay").click()
    return session


def buy_at_a_link(page: Page, pages: Served) -> None:
    page.goto(f"{pages.base}/buy/{pages.world.link().id}")
    page.get_by_role("button", name="Buy").click()


def withdraw(page: Page, pages: Served) -> Session:
    pages.customer.give(withdrawal_days=14)
    at = pages.world.clock.now()
    session = pages.customer.put(Status.COMPLETED, **PAID, received=2000, completed_at=at)
    page.goto(pages.address(session, "/withdrawal"))
    page.get_by_label("E-mail").fill("eva@customer.example")
    page.get_by_label("Name").fill("Eva Muster")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("button", name="Confirm withdrawal").click()
    return session


def test_an_old_browser_pays_what_another_one_began(old: Page, pages: Served) -> None:
    paid(old, pages, come_back_elsewhere(old, pages))


@pytest.mark.smoke
def test_an_old_browser_buys_at_a_link(old: Page, pages: Served) -> None:
    buy_at_a_link(old, pages)
    expect(old).to_have_url(re.compile(r"/pay/cs_[0-9A-Za-z]{22}$"))


def test_an_old_browser_withdraws_and_keeps_the_proof(old: Page, pages: Served) -> None:
    withdraw(old, pages)
    expect(old.get_by_role("status")).to_contain_text("has received your withdrawal")
    expect(old.get_by_role("main")).to_contain_text("eva@customer.example")


JOURNEYS = (come_back_elsewhere, buy_at_a_link, withdraw)


@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_browser_that_hides_where_its_forms_come_from_is_told_what_to_do(
    old: Page, pages: Served, journey: Callable[[Page, Served], Session | None]
) -> None:
    with pages.behind(without_origin):
        session = journey(old, pages)
    expect(old.get_by_role("alert")).to_contain_text("Nothing has been done.")
    expect(old.get_by_role("alert")).to_contain_text("open this page in another browser")
    if journey is come_back_elsewhere and session is not None:
        assert pages.world.session(session.id).status is Status.AWAITING_APPROVAL
    if journey is withdraw and session is not None:
        assert pages.world.services.withdrawals.get(session.id) is None


@pytest.mark.parametrize("journey", JOURNEYS)
def test_what_it_is_told_can_be_read_in_every_look(
    page: Page, pages: Served, axe: str, journey: Callable[[Page, Served], Session | None]
) -> None:
    with pages.behind(without_origin):
        journey(page, pages)
    expect(page.get_by_role("alert")).to_contain_text("Nothing has been done.")
    assert faults(page, axe) == []
