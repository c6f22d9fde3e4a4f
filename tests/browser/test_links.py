"""Payment links in a browser: made, printed, read from the paper, bought; judged by axe-core."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from checkout.domain.ground.addresses import Address
from checkout.domain.links import OpenAmount
from checkout.domain.session.collect import Collect, Detail, Question, QuestionKind
from checkout.domain.session.collect import Place as Asked
from checkout.domain.session.customer_details import CustomerDetails
from checkout.flows.session import details
from sandbox.place import Place
from tests.browser.judge import faults
from tests.browser.served import PICTURES, Served, new_context
from tests.browser.steps import PANEL, box, leave, sign_in, type_wallet

pytestmark = pytest.mark.browser

HERE = Path(__file__).parent
ASKING: dict[str, Any] = {"asked": tuple(Detail), "required": (Detail.EMAIL,)}


def create(page: Page, place: Place, name: str, stock: str = "") -> None:
    page.goto(f"{place.checkout}/dashboard/links")
    page.get_by_label("Item").fill(name)
    page.get_by_label("Price").fill("20.00")
    page.get_by_label("Stock").fill(stock)
    page.get_by_role("button", name="Create the link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)


def scanned(picture: Path, node: str) -> list[str]:
    """Return what a reader of QR codes sees in a picture."""
    command = [node, str(HERE / "read_qr.mjs"), str(picture)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    found: list[str] = json.loads(done.stdout)
    return found


def test_a_customer_buys_from_the_qr_code_of_the_printed_poster(
    page: Page, place: Place, node: str, tmp_path: Path
) -> None:
    sign_in(page, place)
    create(page, place, "A bag of beans", stock="1")
    address = page.locator("#secret").inner_text()
    page.get_by_role("link", name="Print a poster").click()
    page.emulate_media(media="print")
    expect(page.get_by_role("navigation")).to_be_hidden()
    expect(page.locator(".qr")).to_have_js_property("complete", True)
    paper = tmp_path / "poster.png"
    page.screenshot(path=paper, full_page=True)
    assert scanned(paper, node) == [address]
    page.emulate_media(media="screen")

    page.goto(address)
    page.get_by_role("button", name="Buy").click()
    expect(page).to_have_url(re.compile(rf"^{place.checkout}/pay/cs_[0-9A-Za-z]{{22}}$"))
    page.get_by_text("Another wallet", exact=True).click()
    page.locator("#wallet_address").fill(place.customer_wallet)
    page.locator("#wallet_address").press("Enter")
    page.get_by_role("link", name="Approve at").click()
    page.get_by_role("button", name="Approve").click()
    expect(page).to_have_url(re.compile("/success$"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("Paid")
    expect(page.locator("#continue")).to_have_count(0)  # the receipt is the end of it
    page.goto(address)
    expect(page.get_by_role("main")).to_contain_text("Sold out")


def test_axe_finds_nothing_on_the_merchants_pages_of_links(
    browser: Browser, place: Place, axe: str
) -> None:
    context = browser.new_context()
    page = context.new_page()
    sign_in(page, place)
    page.goto(f"{place.checkout}/dashboard/links")
    assert faults(page, axe) == []
    create(page, place, "Tea with a name that is much longer than a phone is wide" * 2, stock="4")
    assert faults(page, axe) == []
    page.get_by_role("link", name="Print a poster").click()
    assert faults(page, axe) == []
    page.goto(f"{place.checkout}/dashboard/links")
    assert faults(page, axe) == []
    context.close()


def test_axe_finds_nothing_on_the_page_of_a_link_in_any_state(
    browser: Browser, pages: Served, axe: str
) -> None:
    world = pages.world
    stopped = world.link(name="x" * 200)
    world.services.links.set_stopped(stopped, world.clock.now())
    context = new_context(browser)
    page = context.new_page()
    with pages.merchant(**PANEL):
        asks = world.link(left=3, **ASKING)
        goods = world.link(**PICTURED, **GOODS)
        gift = world.link(**GIFT, **ASKING)
        for link in (world.link(left=3), world.link(left=0), stopped, asks, goods, gift):
            page.goto(f"{pages.base}/buy/{link.id}")
            assert faults(page, axe) == []
        page.get_by_label("Another amount").fill("1,250")
        page.get_by_label("E-mail").fill("ana@example.com")
        page.get_by_role("button", name="Continue").click()
        expect(page.locator("#amount-error")).to_be_visible()
        assert faults(page, axe) == []
    for path in (f"/buy/{world.link().id}?again=1", "/"):
        page.goto(f"{pages.base}{path}")
        assert faults(page, axe) == []
    context.close()


def test_who_buys_is_asked_without_script_and_by_keyboard_alone(
    browser: Browser, pages: Served, axe: str
) -> None:
    world = pages.world
    page = new_context(browser, script=False, wide=False).new_page()
    page.set_viewport_size({"width": 375, "height": 667})
    page.goto(f"{pages.base}/buy/{world.link(**ASKING).id}")
    assert edges(page.get_by_role("button", name="Buy"))[1] <= 667
    page.get_by_label("E-mail").focus()
    for typed in ("ana@localhost", "Ana Bel", "call me"):
        page.keyboard.type(typed)
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_label("E-mail")).to_be_focused()
    expect(page.get_by_label("E-mail")).to_have_accessible_description(
        "This is not an e-mail address."
    )
    page.keyboard.press("Control+a")
    page.keyboard.type("ana@example.com")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+a")
    page.keyboard.type("+44 20 7946 0958")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"^{pages.base}/pay/cs_"))
    session = world.session(page.url.rpartition("/")[2])
    given = details.opened(world.services.vault, world.stored(), session)
    assert given == CustomerDetails("ana@example.com", "Ana Bel", "+44 20 7946 0958")


PICTURED: dict[str, Any] = {
    "name": "House beans, 1 kg",
    "description": "Roasted on Tuesdays, sent on Wednesdays. Whole beans, dark.",
    "image": f"{PICTURES}/sienna.svg",
    "most": 14,
}


GIFT: dict[str, Any] = {
    "name": "Thank you",
    "open_amount": OpenAmount(100, 500_000, (500, 1_000, 2_000, 5_000)),
    "unit_amount": 500,
}


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("language", ["ar", "de", "en", "es", "fr", "hi", "pt", "sw"])
def test_a_gift_is_one_click_or_an_own_amount(
    browser: Browser, pages: Served, language: str, script: bool
) -> None:
    link = pages.world.link(**GIFT)
    context = new_context(browser, script=script, wide=False, tag=language)
    page = context.new_page()
    for by_button, total in ((True, 1_000), (False, 1_250)):
        page.goto(f"{pages.base}/buy/{link.id}")
        expect(page.locator("html")).to_have_attribute("lang", language)
        expect(page.locator("#amount")).to_have_value("")
        if by_button:
            page.locator("[name=suggestion]").nth(1).click()
        else:
            page.locator("#amount").fill("12,50")
            page.locator("#amount").press("Enter")  # it presses no suggestion
        expect(page).to_have_url(re.compile("/pay/cs_"))
        session = pages.world.session(page.url.rpartition("/")[2])
        assert (session.amount_total, session.receive.value) == (total, total)
    context.close()


@pytest.mark.parametrize(
    ("asset", "currency", "typed", "units"),
    [
        (("JPY", 0), "jpy", "1250", 1_250),
        (("KWD", 3), "kwd", "1.250", 1_250),
        (("EUR", 9), "eur", "12.50", 12_500_000_000),
    ],
)
def test_a_gift_is_exact_in_other_currencies(
    browser: Browser,
    pages: Served,
    asset: tuple[str, int],
    currency: str,
    typed: str,
    units: int,
) -> None:
    context = new_context(browser, script=False, wide=False)
    page = context.new_page()
    with pages.merchant(asset_code=asset[0], asset_scale=asset[1]):
        pages.world.clock.pass_time(120)  # the merchant's record is kept for a minute
        link = pages.world.link(**GIFT, currency=currency)
        page.goto(f"{pages.base}/buy/{link.id}?amount={typed}")
        expect(page.locator("#amount")).to_have_value(typed)
        page.get_by_role("button", name="Continue").click()
        expect(page).to_have_url(re.compile("/pay/cs_"))
        session = pages.world.session(page.url.rpartition("/")[2])
        assert (session.amount_total, session.receive.value) == (1_250, units)
    pages.world.clock.pass_time(120)
    context.close()


def test_a_browser_itself_asks_for_the_amount_but_not_where_a_suggestion_was_pressed(
    browser: Browser, pages: Served
) -> None:
    link = pages.world.link(**GIFT)
    context = new_context(browser, wide=False)
    page = context.new_page()
    page.goto(f"{pages.base}/buy/{link.id}")
    page.get_by_role("button", name="Continue").click()
    expect(page.locator("#amount:invalid")).to_be_focused()
    expect(page).to_have_url(re.compile("/buy/plink_"))
    page.get_by_role("button", name="$50.00").click()
    expect(page).to_have_url(re.compile("/pay/cs_"))
    context.close()


def test_the_button_is_in_sight_on_a_phone_and_covers_no_field_that_has_the_focus(
    browser: Browser, pages: Served
) -> None:
    context = new_context(browser, script=False, wide=False)
    page = context.new_page()
    page.set_viewport_size({"width": 375, "height": 667})
    gift = pages.world.link(**GIFT, **ASKING)
    for link in (
        pages.world.link(**PICTURED, **ASKING),
        pages.world.link(**PICTURED, **GOODS),
        gift,
    ):
        page.goto(f"{pages.base}/buy/{link.id}")
        bar = page.locator(".pay")
        assert edges(bar)[1] <= 667
        last = page.locator("form .hint").last
        for _ in range(40):
            page.keyboard.press("Tab")
            focused = page.locator(":focus")
            if focused.evaluate("each => each.matches('.button')"):
                break
            top, bottom = edges(focused)
            assert top >= 0
            assert bottom <= edges(bar)[0], focused.get_attribute("id")
        else:
            pytest.fail("The button was never reached.")
        last.scroll_into_view_if_needed()
        assert edges(bar)[1] <= edges(last)[0]  # at the end it lies where the form ends
    context.close()


def edges(element: Locator) -> tuple[float, float]:
    """Return where an element begins and ends, from the top of the window."""
    found = box(element)
    return found["y"], found["y"] + found["height"]


def test_the_button_follows_the_number_that_is_chosen(browser: Browser, pages: Served) -> None:
    link = pages.world.link(**PICTURED)
    context = new_context(browser)
    page = context.new_page()
    page.goto(f"{pages.base}/buy/{link.id}")
    button = page.locator(".pay .button")
    for typed, said in (("3", "$60.00"), ("15", "Buy"), ("", "Buy"), ("14", "$280.00")):
        page.get_by_label("Quantity").fill(typed)
        expect(button).to_contain_text(said)
        if said == "Buy":
            expect(button).to_have_text(said)
    button.click()
    expect(page).to_have_url(re.compile("/pay/cs_"))
    assert "$280.00" in page.get_by_role("main").inner_text()
    context.close()


def test_one_more_and_one_fewer_are_a_press_away_within_what_is_offered(
    browser: Browser, pages: Served
) -> None:
    link = pages.world.link(**PICTURED | {"most": 3})
    context = new_context(browser, wide=False)
    page = context.new_page()
    page.goto(f"{pages.base}/buy/{link.id}")
    quantity = page.get_by_label("Quantity")
    fewer = page.get_by_role("button", name="One fewer")
    more = page.get_by_role("button", name="One more")
    expect(fewer).to_have_attribute("aria-disabled", "true")
    for step, number, total in (
        (more, "2", "$40.00"), (more, "3", "$60.00"), (more, "3", "$60.00"),
        (fewer, "2", "$40.00"), (fewer, "1", "$20.00"), (fewer, "1", "$20.00"),
    ):  # fmt: skip
        step.press("Enter")
        expect(quantity).to_have_value(number)
        expect(page.locator(".pay .button")).to_contain_text(total)
        expect(page.locator(".count [role=status]")).to_have_text(f"{number}: {total}")
        expect(step).to_be_focused()
    for typed, number in (("many", "1"), ("99", "3")):
        quantity.fill(typed)
        more.click()
        expect(quantity).to_have_value(number)
    assert [edges(each)[1] - edges(each)[0] for each in (fewer, quantity, more)] == [48, 48, 48]
    context.close()


def test_without_script_how_many_is_a_plain_field(browser: Browser, pages: Served) -> None:
    context = new_context(browser, script=False, wide=False)
    page = context.new_page()
    page.goto(f"{pages.base}/buy/{pages.world.link(**PICTURED).id}")
    expect(page.locator(".count button")).to_have_count(2)
    for step in page.locator(".count button").all():
        expect(step).to_be_hidden()
    page.get_by_label("Quantity").fill("4")
    page.get_by_label("Quantity").press("Enter")
    expect(page).to_have_url(re.compile("/pay/cs_"))
    expect(page.locator(".shop .total")).to_contain_text("$80.00")
    context.close()


def test_the_picture_is_the_shops_half_of_a_wide_page_and_comes_first_on_a_phone(
    browser: Browser, pages: Served
) -> None:
    link = pages.world.link(**PICTURED)
    for wide in (True, False):
        context = new_context(browser, wide=wide)
        page = context.new_page()
        page.goto(f"{pages.base}/buy/{link.id}")
        picture = box(page.locator("img.goods"))
        heading = box(page.get_by_role("heading", level=1))
        if wide:
            assert picture["width"] == picture["height"] >= 320
            assert picture["x"] + picture["width"] <= 640 <= heading["x"]
        else:
            assert picture["width"] == 375
            assert picture["y"] + picture["height"] <= heading["y"]
        context.close()


@pytest.mark.parametrize("tag", ["ar", "en"])
def test_a_text_in_another_direction_stands_at_the_edge_of_the_page(
    browser: Browser, pages: Served, tag: str
) -> None:
    name = "House beans" if tag == "ar" else "قهوة"
    asked = (Question("grind", name, QuestionKind.TEXT),)
    link = pages.world.link(name=name, description=name, **asking(asked))
    context = new_context(browser, wide=False, tag=tag)
    page = context.new_page()
    page.goto(f"{pages.base}/buy/{link.id}")
    start = page.evaluate(
        """() => [...document.querySelectorAll('h1, .lead, label')].map(each => {
            const range = document.createRange();
            range.selectNodeContents(each);
            const text = range.getBoundingClientRect(), whole = each.getBoundingClientRect();
            return document.dir === 'rtl' ? whole.right - text.right : text.left - whole.left;
        })"""
    )
    assert len(start) == 3
    assert max(start) <= 1
    context.close()


def asking(questions: tuple[Question, ...]) -> dict[str, str]:
    none: frozenset[Any] = frozenset()
    return {"collect_json": Collect(asked=none, required=none, questions=questions).to_json()}


@pytest.mark.parametrize("gift", [False, True])
def test_the_page_of_a_link_is_light(browser: Browser, pages: Served, gift: bool) -> None:
    page = new_context(browser).new_page()
    link = pages.world.link(left=3, **(GIFT if gift else {}))
    page.goto(f"{pages.base}/buy/{link.id}")
    loaded: list[int] = page.evaluate(
        """["navigation", "resource"].flatMap(kind => performance.getEntriesByType(kind))
            .map(one => one.transferSize)"""
    )
    assert len(loaded) <= 5
    assert 0 < sum(loaded) <= 20_000


GOODS: dict[str, Any] = {
    "collect_json": Collect(
        asked=frozenset({Detail.EMAIL, *Asked}),
        required=frozenset({Detail.EMAIL, *Asked}),
        ships_to=("DE", "JP", "US"),
        questions=(Question("size", "Size", QuestionKind.DROPDOWN, options=(("s", "Small"),)),),
    ).to_json()
}


def asks(pages: Served, at: str) -> str:
    """Return the address of a form that asks for goods' address: a link's, or a session's."""
    if at == "link":
        return f"{pages.base}/buy/{pages.world.link(**GOODS).id}"
    return pages.address(pages.world.create(**GOODS))


@pytest.mark.parametrize("at", ["link", "session"])
def test_a_form_follows_the_country_and_asks_for_nothing_of_the_one_before(
    browser: Browser, pages: Served, at: str
) -> None:
    """A German whose browser speaks English, with script: no button, no second press."""
    context = new_context(browser, wide=False, tag="en-US")
    page = context.new_page()
    page.goto(asks(pages, at))
    expect(page.locator("[name=turn]").first).to_be_hidden()
    expect(page.locator("#shipping_state")).to_have_attribute("required", "")
    page.get_by_label("E-mail").fill("ana@example.com")
    page.locator("#shipping_name").fill("Ana Bel")
    page.locator("#shipping_country").focus()
    page.locator("#shipping_country").select_option("DE")
    page.locator("#shipping_line1").fill("Am Weg 1")  # while the form is asked for
    expect(page.locator("#shipping_state")).to_have_count(0)
    expect(page.locator("label[for=shipping_postal_code]")).to_have_text("Postal code")
    expect(page.locator("#shipping_line1")).to_have_value("Am Weg 1")
    expect(page.locator("#shipping_country")).to_have_value("DE")
    expect(page.get_by_label("The billing address is the shipping address")).to_be_checked()
    page.locator("#shipping_postal_code").fill("1011")
    page.locator("#shipping_city").fill("Berlin")
    page.get_by_label("Size").select_option("s")
    page.locator("main form .button").click()
    expect(page.locator("#shipping_postal_code")).to_be_focused()
    mistake = box(page.locator("#shipping_postal_code-error"))
    assert mistake["width"] == box(page.locator("#shipping_country"))["width"], "a whole row"
    page.locator("#shipping_postal_code").fill("D-10115")
    page.locator("main form .button").click()
    expect(page.locator("#wallet_address")).to_be_attached()
    session = pages.world.session(page.url.rpartition("/")[2])
    given = details.opened(pages.world.services.vault, pages.world.stored(), session)
    assert given.shipping == Address(
        "DE", "Ana Bel", "Am Weg 1", city="Berlin", postal_code="10115"
    )
    context.close()


@pytest.mark.parametrize("at", ["link", "session"])
def test_without_script_an_empty_field_of_the_country_before_stops_nobody(
    browser: Browser, pages: Served, at: str
) -> None:
    context = new_context(browser, script=False, wide=False, tag="en-US")
    page = context.new_page()
    page.goto(asks(pages, at))
    page.get_by_label("E-mail").fill("ana@example.com")
    page.locator("#shipping_name").fill("Ana Bel")
    page.locator("#shipping_line1").fill("Am Weg 1")
    page.locator("#shipping_country").select_option("DE")
    page.locator("main form .button").click()
    expect(page.locator("#shipping_state")).to_have_count(0)
    expect(page.locator("#shipping_line1")).to_have_value("Am Weg 1")
    expect(page.locator("#shipping_country")).to_have_value("DE")
    assert page.locator(".alert").count() == 0, "nothing is judged yet"
    context.close()


def test_a_form_that_cannot_follow_its_country_shows_the_button(
    browser: Browser, pages: Served
) -> None:
    context = new_context(browser, tag="en-US")
    page = context.new_page()
    page.goto(asks(pages, "link"))
    page.route("**/buy/*", lambda route: route.abort())
    page.locator("#shipping_country").select_option("DE")
    expect(page.locator("[name=turn]").first).to_be_visible()
    page.unroute("**/buy/*")
    page.locator("[name=turn]").first.click()
    expect(page.locator("#shipping_state")).to_have_count(0)
    context.close()


HOMES = {
    "DE": Address("DE", "Ana Bel", "Am Weg 1", city="Berlin", postal_code="10115"),
    "JP": Address("JP", "Hana Sato", "1-1 Chiyoda", state="東京都", postal_code="100-0001"),
    "US": Address("US", "Ana Bel", "1 Main St", None, None, "Springfield", "IL", "62701"),
}


@pytest.mark.parametrize("wide", [False, True], ids=["375", "1280"])
@pytest.mark.parametrize("script", [True, False], ids=["script", "no script"])
@pytest.mark.parametrize("country", HOMES)
def test_goods_are_bought_from_each_country_with_a_browser_in_english(
    browser: Browser, pages: Served, country: str, script: bool, wide: bool
) -> None:
    home = HOMES[country]
    context = new_context(browser, script=script, wide=wide, tag="en-US")
    page = context.new_page()
    page.goto(asks(pages, "link"))
    page.get_by_label("E-mail").fill("ana@example.com")
    page.get_by_label("Size").select_option("s")
    page.locator("#shipping_country").select_option(country)
    if not script and country != "US":
        page.locator("[name=turn]").first.click()
    expect(page.locator("[name=shipping_form]")).to_have_value(country)
    for part in ("name", "line1", "city", "state", "postal_code"):
        field, text = page.locator(f"#shipping_{part}"), getattr(home, part)
        expect(field).to_have_count(int(text is not None))
        if text and part == "state":
            field.select_option(text)
        elif text:
            field.fill(text)
    page.locator("main form .button").click()
    expect(page.locator("#wallet_address")).to_be_attached()
    session = pages.world.session(page.url.rpartition("/")[2])
    given = details.opened(pages.world.services.vault, pages.world.stored(), session)
    assert given.shipping == home
    type_wallet(page)
    leave(page)
    pages.approve(page)
    expect(page.get_by_role("heading", level=1)).to_have_text("Paid. Thank you!")
    expect(page.get_by_role("main")).to_contain_text(str(home.line1))
    context.close()


def test_another_country_is_chosen_without_script_and_axe_finds_nothing(
    browser: Browser, pages: Served, axe: str
) -> None:
    link = pages.world.link(**GOODS)
    address = f"{pages.base}/buy/{link.id}"
    context = new_context(browser, script=False, wide=False, tag="de-DE")
    page = context.new_page()
    page.goto(address)
    code, city = page.locator("#shipping_postal_code"), page.locator("#shipping_city")
    assert edges(code) == edges(city)
    page.locator("#shipping_line1").fill("1 Main St")
    page.locator("#shipping_country").select_option("US")
    page.get_by_role("button", name="Formular dieses Landes").first.click()
    expect(page.locator("#shipping_state")).to_be_visible()
    expect(page.locator("#shipping_line1")).to_have_value("1 Main St")
    expect(page.locator("#shipping_country")).to_be_focused()
    expect(page.locator("#billing_line1")).to_be_hidden()
    page.get_by_label("Die Rechnungsadresse ist die Lieferadresse").uncheck()
    expect(page.locator("#billing_line1")).to_be_visible()
    context.close()
    context = new_context(browser, wide=False)
    page = context.new_page()
    page.goto(address)
    assert faults(page, axe) == []
    page.evaluate("document.querySelector('form').noValidate = true")
    page.get_by_role("button", name="Buy").click()
    expect(page.locator("#email")).to_be_focused()
    assert page.locator(".alert").count() > 4
    assert faults(page, axe) == []
    context.close()
