"""Every state under the judges: axe-core finds nothing, nothing is cut off, one way on is plain.

Lighthouse is in test_lighthouse.py.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page, Request, ViewportSize, expect

from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.merchant.record import Logo
from checkout.domain.session.record import Status
from open_payments.models import Amount
from pay.looks import contrast
from tests.browser.gallery import PICTURED, STATES, show, with_pictures
from tests.browser.judge import violations
from tests.browser.served import PICTURES, Served, new_context
from tests.browser.steps import DOT, OFFER, PANEL, box, leave
from tests.support.hosted_pages import ISOLATES, QUOTE, WALLET, line
from tests.support.sample import sample

pytestmark = [pytest.mark.browser, pytest.mark.first]

HERE = Path(__file__).parent
WAYS_ON = "main .button:visible"
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# Width and height in CSS pixels; at 200 % a desktop has half of its own.
LOOKS: dict[str, tuple[int, int]] = {
    "320": (320, 640),
    "375 dark": (375, 667),
    "1280": (1280, 800),
    "1280 dark": (1280, 800),
    "1280 forced colors": (1280, 800),
    "375 Arabic": (375, 667),
    "200 %": (640, 450),
}
REMEMBERED = '["https://cedar.example/alice", "https://wallet.example/bob"]'
# If there is none, no shop is known; while a wallet is asked, there is nothing to do.
LEFT = [name for name, state in STATES.items() if not state.gone and not state.silent]
# Names of a merchant, a customer or a wallet that try to break out of their text.
HOSTILE = (
    "<script>window.ran=1</script>",
    '"><img src=x onerror="window.ran=1">',
    "</title></style></script></main><svg onload=window.ran=1>",
    "' autofocus onfocus='window.ran=1",
    "\u2069\u202etxt.exe",
)


@pytest.mark.parametrize(
    ("wide", "tag"),
    [pytest.param(False, "en", marks=pytest.mark.smoke), (True, "en"), (False, "ar")],
)
def test_axe_finds_nothing_and_nothing_is_cut_off_in_any_state_and_scheme(
    browser: Browser, pages: Served, axe: str, wide: bool, tag: str
) -> None:
    context = new_context(browser, wide=wide, tag=tag)
    page = context.new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    page.on("pageerror", lambda error: told.append(str(error)))
    for name in sample(STATES, of=2):
        page.emulate_media(color_scheme="light")
        show(name, page, pages)
        assert violations(page, axe) == [], name
        page.emulate_media(color_scheme="dark")
        assert violations(page, axe) == [], f"{name} in the dark"
        assert page.evaluate(WIDER) == 0, name
    context.close()
    refused = "the server responded with a status of"  # Chromium notes each 4xx that we answer
    assert [one for one in told if refused not in one] == []


@pytest.mark.parametrize("script", [True, False])
@pytest.mark.parametrize("name", LOOKS)
def test_a_purchase_is_made_in_every_look(
    browser: Browser, pages: Served, axe: str, name: str, script: bool
) -> None:
    scheme, tag = "dark" if "dark" in name else "light", "ar" if "Arabic" in name else "en"
    context = new_context(browser, script=script, scheme=scheme, tag=tag)
    page = context.new_page()
    page.set_viewport_size(ViewportSize(width=LOOKS[name][0], height=LOOKS[name][1]))
    page.emulate_media(forced_colors="active" if "forced" in name else "none")

    def judge() -> None:
        if script:
            assert violations(page, axe) == [], page.url
            assert page.evaluate(WIDER) == 0, page.url

    with pages.merchant(**PANEL, providers=(OFFER,)):
        session = pages.world.create()
        page.goto(pages.address(session))
        judge()
        page.reload()  # axe has unfolded the other ways to pay
        page.locator("#name-1").fill("alice")
        page.locator("#name-1").press("Enter")
        expect(page.locator("#leave")).to_be_visible()
        judge()
        leave(page)
        pages.approve(page)
        expect(page.locator("[data-status=completed]")).to_be_visible()
        judge()
        assert pages.world.session(session.id).status is Status.COMPLETED
    context.close()


@pytest.mark.parametrize("tag", LANGUAGES)
def test_no_language_is_cut_off_on_the_smallest_phone(
    browser: Browser, pages: Served, tag: str
) -> None:
    page = new_context(browser, tag=tag).new_page()
    page.set_viewport_size({"width": 320, "height": 640})  # WCAG 2.2, 1.4.10
    for name in ("open", "price", "declined", "partial", "confirmation", "details-long-labels"):
        show(name, page, pages)
        assert (
            page.evaluate(
                """[document.documentElement, ...document.querySelectorAll("main *")]
                .filter(one => one.clientWidth && one.scrollWidth > one.clientWidth + 1)
                .filter(one => !one.matches(".unseen, input"))
                .map(one => one.outerHTML.slice(0, 100))"""
            )
            == []
        ), name


def test_each_state_has_one_way_on_that_stands_out(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    for name in LEFT:
        show(name, page, pages)
        assert page.locator(WAYS_ON).count() == 1, name


def test_each_state_can_be_left_with_the_keyboard(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    for name in LEFT:
        show(name, page, pages)
        for _ in range(12):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.classList.contains('button')"):
                break
        outline = "getComputedStyle(document.activeElement).outlineStyle"
        way_on = "document.activeElement.classList.contains('button')"
        assert page.evaluate(way_on), name
        assert page.evaluate(outline) == "solid", name


@pytest.mark.parametrize("color", ["#ffff00", "#000000", "#ffffff", "#777777", "#ff0000"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_merchants_color_and_logo_stay_readable(
    browser: Browser, pages: Served, axe: str, color: str, scheme: str
) -> None:
    logo = Logo("image/png", DOT)
    page = new_context(browser, scheme=scheme).new_page()
    with pages.merchant(accent_color=color, logo=logo):
        for name in ("declined", "confirmation"):
            show(name, page, pages)
            assert violations(page, axe) == [], name
            style = page.locator(WAYS_ON).evaluate(
                "one => [getComputedStyle(one).color, getComputedStyle(one).backgroundColor]"
            )
            assert contrast(*map(_hex, style)) >= 4.5
            assert _hex(style[1]) == color, "the merchant's own"
        assert page.locator(".shop img").evaluate("image => image.complete")


def _hex(rgb: str) -> str:
    red, green, blue = (int(part) for part in rgb.removeprefix("rgb(").rstrip(")").split(","))
    return f"#{red:02x}{green:02x}{blue:02x}"


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_words_of_shop_wallet_and_customer_run_nothing_in_a_real_browser(
    browser: Browser, pages: Served, text: str
) -> None:
    page = new_context(browser).new_page()
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    words = {
        "line_items": (line(text, description=text),),
        "customer": replace(WALLET, id=f"https://wallet.example/{text}"),
        "quote": replace(QUOTE, debit=Amount(1853, text, 2), receive=Amount(2000, text, 2)),
    }
    with pages.merchant(name=text):
        for state in ("open", "price", "declined", "no-money", "confirming", "confirmation"):
            show(state, page, pages, **words)
            assert page.locator(".shop p").first.inner_text() == text
            assert page.locator(".item span").inner_text() == text
            assert text.strip() in page.title()
            assert nothing_ran(page), state
        show("open", page, pages, **words)
        page.locator("#wallet_address").fill(f"https://{text}")
        page.locator("#wallet_address").press("Enter")
        page.get_by_role("alert").wait_for()
        assert nothing_ran(page)
    assert not [one for one in told if "Content Security Policy" in one], "nor was it tried"


def nothing_ran(page: Page) -> bool:
    strangers = page.locator(
        "main img:not(.phone img), main svg:not(.tick), main script, [onload], [onerror]"
    )
    return strangers.count() == 0 and page.evaluate("window.ran === undefined")


@pytest.mark.parametrize(("tag", "known"), [("en", False), ("en", True), ("de", True)])
def test_the_way_on_is_above_the_fold_of_a_small_phone(
    browser: Browser, pages: Served, tag: str, known: bool
) -> None:
    """With `known`, the purchase has an order number and the browser two remembered wallets."""
    page = new_context(browser, wide=False, tag=tag).new_page()
    page.set_viewport_size({"width": 375, "height": 667})
    if known:
        page.add_init_script(f"localStorage.setItem('checkout.wallets', {REMEMBERED!r})")
    low = {}
    with pages.merchant(**PANEL):
        for name in LEFT:
            if name == "details-long-labels":  # a form is as long as the shop's questions
                continue
            show(name, page, pages, client_reference_id="A-2026-044203" if known else None)
            way_on = box(page.locator(WAYS_ON))
            if way_on["y"] + way_on["height"] > 667:
                low[name] = way_on["y"] + way_on["height"]
    assert low == {}


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_while_a_wallet_is_asked_what_was_pressed_stays_in_its_place(
    browser: Browser, pages: Served, motion: Literal["no-preference", "reduce"]
) -> None:
    page = new_context(browser, wide=False).new_page()
    page.emulate_media(reduced_motion=motion)
    show("open", page, pages)
    page.evaluate("void (window.fetch = () => new Promise(() => {}))")
    page.locator("#wallet_address").fill("https://wallet.example/alice")
    before = page.locator(WAYS_ON).bounding_box()
    page.locator(WAYS_ON).click()
    status = page.locator(".status:not(:empty)")
    assert "Asking your wallet provider" in status.inner_text(), "for screen readers"
    clipped = status.evaluate("one => getComputedStyle(one).clipPath")
    assert (clipped == "none") is (motion == "reduce"), "the spinner says it, where it turns"
    assert page.locator(WAYS_ON).bounding_box() == before


@pytest.mark.parametrize(("tag", "width"), [("en", 1280), ("de", 1280), ("en", 320), ("de", 320)])
def test_no_sum_breaks_and_a_long_one_is_smaller(
    browser: Browser, pages: Served, tag: str, width: int
) -> None:
    page = new_context(browser, tag=tag).new_page()
    page.set_viewport_size({"width": width, "height": 800})
    for value in (2000, 123_456_789, 999_999_999_999_999):
        for name in ("open", "price"):
            quote = replace(QUOTE, debit=Amount(value, "EUR", 2))
            show(name, page, pages, amount_total=value, quote=quote)
            for found in page.locator(".sum bdi, bdi.sum").all():
                assert found.evaluate("one => one.getClientRects().length") == 1, (name, value)
            assert page.evaluate(WIDER) == 0, (name, value)
            over = """one => one.getBoundingClientRect().width
                - one.closest("section, header").clientWidth"""
            assert all(one.evaluate(over) < 1 for one in page.locator(".sum").all())


def test_the_copy_button_stands_beside_its_number_on_a_phone(
    browser: Browser, pages: Served
) -> None:
    page = new_context(browser, wide=False).new_page()
    for name in ("partial", "confirmation"):
        show(name, page, pages)
        number, button = box(page.locator("#reference")), box(page.locator("#reference + .copy"))
        assert number["height"] < 30, "one line"
        assert abs(number["y"] + number["height"] / 2 - button["y"] - button["height"] / 2) < 2


def test_small_links_are_large_enough_to_hit(browser: Browser, pages: Served) -> None:
    page = new_context(browser, wide=False).new_page()
    with pages.merchant(**PANEL):
        show("details-given", page, pages)
        for place in (".ask a", ".back", ".given a"):
            assert box(page.locator(place))["height"] >= 24, place


def test_the_button_back_to_the_shop_is_one_line_on_a_desktop(
    browser: Browser, pages: Served
) -> None:
    page = new_context(browser).new_page()
    show("confirmation", page, pages)
    for button in ("#stay", "#continue"):
        assert box(page.locator(button))["height"] < 52, button


def test_a_dark_page_is_printed_light(browser: Browser, pages: Served) -> None:
    page = new_context(browser, scheme="dark").new_page()
    with pages.merchant(accent_color="#ffdd00"):
        show("confirmation", page, pages)
        ground = "getComputedStyle(document.querySelector('.receipt')).backgroundColor"
        dark = page.evaluate(ground)
        page.emulate_media(media="print", color_scheme="dark")
        assert page.evaluate(ground) != dark
        assert page.evaluate(ground) == "rgb(255, 255, 255)"


HALVES = (
    "details", "open", "price", "confirming", "closing", "failed", "declined", "no-money",
    "partial", "expired", "canceled", "paid-late",
)  # fmt: skip


def test_the_shops_half_is_tinted_from_top_to_bottom_of_a_wide_page(
    browser: Browser, pages: Served
) -> None:
    page = new_context(browser).new_page()
    ground = "getComputedStyle(document.body).backgroundImage"
    whole = "document.body.offsetHeight >= innerHeight"
    for name in HALVES:
        show(name, page, pages)
        tint = page.evaluate(HALF)
        assert page.evaluate(ground).startswith("linear-gradient(to right, color(srgb"), name
        assert page.evaluate(whole), name
        parts = [round(float(part) * 255) for part in re.findall(r"0\.\d+", tint)]
        assert parts == [234, 239, 245], "95 % of #f6f7f9 and 5 % of #0b5cad"
        for place, left in ((".shop", True), (".action", False), (".foot", True)):
            part = box(page.locator(place))
            assert (part["x"] + part["width"] <= 640) is left, (name, place)
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(HALF) == "rgb(16, 21, 27)", "the neutral ground"
    page.set_viewport_size({"width": 767, "height": 800})
    assert page.evaluate(ground) == "none"


@pytest.mark.parametrize("tag", ["en", "ar"])
def test_a_receipt_lies_in_the_middle_of_a_wide_page_with_the_foot_below(
    browser: Browser, pages: Served, tag: str
) -> None:
    page = new_context(browser, tag=tag).new_page()
    page.set_viewport_size({"width": 1280, "height": 800})
    for name in ("confirmation", "receipt-offered"):
        show(name, page, pages)
        slip, foot = box(page.locator(".slip")), box(page.locator(".foot"))
        assert abs(slip["x"] + slip["width"] / 2 - 640) < 1
        assert slip["width"] >= 400
        assert foot["y"] >= slip["y"] + slip["height"]
        assert (foot["x"], foot["width"]) == (slip["x"], slip["width"])
        color = "one => getComputedStyle(one).backgroundColor"
        assert page.evaluate("getComputedStyle(document.body).backgroundImage") == "none"
        grounds = [page.locator(each).evaluate(color) for each in ("body", ".pay", ".slip")]
        assert grounds[0] == grounds[1] != grounds[2], "the bar is of the page, not of the slip"


def test_an_error_page_of_no_shop_is_one_card(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    show("no-such-checkout", page, pages)
    style = page.locator(".action").evaluate(
        "one => [getComputedStyle(one).borderStyle, getComputedStyle(one).backgroundColor]"
    )
    assert style == ["solid", "rgb(255, 255, 255)"]
    assert page.evaluate("getComputedStyle(document.body).backgroundImage") == "none"


# A custom property is not computed to a color; what is drawn with it is.
HALF = """() => {
    const probe = document.body.appendChild(document.createElement("i"));
    probe.style.setProperty("color", "var(--half)");
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
}"""


def test_the_receipt_is_a_slip_with_one_big_sum_and_the_whole_order(
    browser: Browser, pages: Served
) -> None:
    page = new_context(browser, wide=False).new_page()
    with pages.merchant(contact="help@shop.example"):
        show("confirmation", page, pages, client_reference_id="A-2026-044203")
    assert page.locator("main .sum").all_inner_texts() == ["€18.53"]
    mistake = page.locator(".slip")
    for said in (
        "Harbor Coffee received $20.00", "House beans", "$15.50", "Filter papers", "Total",
        "A-2026-044203", "Harbor Coffee Ltd, 1 Quay Street", "help@shop.example",
    ):  # fmt: skip
        assert said in mistake.inner_text().translate(ISOLATES), said
    assert mistake.locator(".copy:visible").count() == 3
    edge = "one => getComputedStyle(one, '::after').backgroundImage"
    assert mistake.evaluate(edge).startswith("conic-gradient")
    page.emulate_media(forced_colors="active")
    assert mistake.evaluate("one => getComputedStyle(one).borderStyle") == "solid"
    page.emulate_media(forced_colors="none", media="print")
    shown = [one for one in page.locator("main > *, .action > *").all() if one.is_visible()]
    names = [one.get_attribute("class") for one in shown]
    assert names == ["shop", "action", "receipt slip"], "the letterhead and the slip"


@pytest.mark.parametrize("tag", ["en", "de", "ar"])
def test_the_button_back_to_the_shop_stays_in_sight_and_hides_nothing_that_has_the_focus(
    browser: Browser, pages: Served, tag: str
) -> None:
    page = new_context(browser, wide=False, tag=tag).new_page()
    page.set_viewport_size({"width": 375, "height": 667})
    show("confirmation", page, pages)
    bar = page.locator(".pay")
    for where in (0, 150, 300):
        page.evaluate("top => scrollTo(0, top)", where)
        button = box(page.locator("#continue"))
        assert 600 < button["y"] + button["height"] <= 667
    page.evaluate("scrollTo(0, 0)")
    for _ in range(30):
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        if focused.evaluate("one => one.matches('#stay')"):
            break
        low = box(focused)
        assert low["y"] + low["height"] <= box(bar)["y"], focused.inner_text()
    else:
        pytest.fail("The button was never reached.")
    page.evaluate("scrollTo(0, document.body.scrollHeight)")
    bottom = box(bar)
    assert box(page.locator("#print"))["y"] >= bottom["y"] + bottom["height"]


def test_text_of_twice_the_size_does_not_push_a_sum_off_a_phone(
    browser: Browser, pages: Served
) -> None:
    page = new_context(browser, wide=False).new_page()
    beyond = """one => {
        const text = document.createRange(), around = one.closest("section, header, .slip");
        text.selectNodeContents(one);
        return text.getBoundingClientRect().right - around.getBoundingClientRect().right;
    }"""
    for name in ("open", "price", "confirmation"):
        show(name, page, pages)
        page.evaluate("document.documentElement.style.fontSize = '200%'")
        for each in page.locator(".sum").all():
            assert each.evaluate(beyond) < 1, name


def test_the_tick_of_a_finished_payment_draws_itself_once(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    moves = """() => document.querySelector(".tick path").getAnimations().map(each => {
        const {duration, iterations} = each.effect.getComputedTiming();
        return [duration, iterations, each.effect.getKeyframes()[0].strokeDashoffset];
    })"""
    page.emulate_media(reduced_motion="no-preference")
    # Long enough to be looked at: its end is as short as the design says.
    page.add_init_script(
        "addEventListener('animationstart', e => e.target.getAnimations()[0].pause())"
    )
    show("confirmation", page, pages)
    page.wait_for_timeout(200)
    assert page.evaluate(moves) == [[360, 1, "1px"]]
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    assert page.evaluate(moves) == []
    still = "getComputedStyle(document.querySelector('.tick path')).strokeDashoffset"
    assert page.evaluate(still) == "0px"


def test_the_foot_stands_in_the_column_of_a_desktop(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    show("open", page, pages)
    left = "place => document.querySelector(place).getBoundingClientRect().left"
    assert page.evaluate(left, ".foot p") == page.evaluate(left, ".order h2")


def test_a_bar_of_what_has_arrived_is_read_without_color(browser: Browser, pages: Served) -> None:
    page = new_context(browser, scheme="dark").new_page()
    show("partial", page, pages)
    bar = page.locator("progress")
    assert bar.evaluate("one => one.offsetHeight") == 10
    style = bar.evaluate(
        "one => [getComputedStyle(one).backgroundImage, getComputedStyle(one).borderStyle]"
    )
    assert (style[0].partition("(")[0], style[1]) == ("repeating-linear-gradient", "solid")


def test_only_the_opened_tiles_own_line_has_room_below(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    show("open-providers", page, pages)
    page.locator("#typed > summary").click()
    inner = page.locator("#typed details > summary")
    assert inner.evaluate("one => getComputedStyle(one).marginBottom") == "0px"


def test_a_pause_that_a_wallet_wants_is_counted_without_script(
    browser: Browser, pages: Served
) -> None:
    page = new_context(browser).new_page()
    show("asked-to-wait", page, pages)
    left = "Number(getComputedStyle(document.querySelector('.fence')).getPropertyValue('--left'))"
    first = page.evaluate(left)
    page.wait_for_timeout(1500)
    assert page.evaluate(left) < first


def test_a_purchase_begun_elsewhere_names_one_sum_to_pay(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    show("begun-elsewhere", page, pages)
    asked = page.locator("h1").inner_text().translate(ISOLATES)
    assert asked.startswith("Pay €18.54 to ")
    assert page.locator(WAYS_ON).inner_text().translate(ISOLATES) == "Pay €18.54"


def test_a_page_that_looks_by_itself_has_its_small_button_below_the_course(
    browser: Browser, pages: Served
) -> None:
    page = new_context(browser, wide=False).new_page()
    for name in ("sending", "confirming", "closing"):
        show(name, page, pages)
        course, button = box(page.locator(".course")), box(page.locator(WAYS_ON))
        assert button["y"] >= course["y"] + course["height"], name
        assert button["width"] < course["width"] / 2, name


@pytest.mark.parametrize("forced", [True, False])
def test_axe_finds_nothing_in_forced_colors_and_at_200_percent(
    browser: Browser, pages: Served, axe: str, forced: bool
) -> None:
    page = new_context(browser).new_page()
    if forced:
        page.emulate_media(forced_colors="active")
    else:
        page.set_viewport_size({"width": 640, "height": 450})
    with pages.merchant(**PANEL):
        for name in ("open", "unreadable", "price", "declined", "partial", "confirmation"):
            show(name, page, pages)
            assert violations(page, axe) == [], name


def test_no_state_weighs_more_than_25_kb_in_5_requests(browser: Browser, pages: Served) -> None:
    with pages.merchant(**PANEL):
        weigh(browser, pages)


def weigh(browser: Browser, pages: Served) -> None:
    page = new_context(browser).new_page()
    weights: dict[str, int] = {}
    for name in STATES:
        # The gallery's grant is not sealed: the QR code would fail.
        show(name, page, pages, grant=None, **with_pictures(name))
        folded = page.locator(".phone summary")
        if folded.count():
            folded.click()
            expect(page.locator(".phone img")).to_have_js_property("complete", True)
        loaded: list[int] = page.evaluate(
            """["navigation", "resource"].flatMap(kind => performance.getEntriesByType(kind))
                .map(one => one.transferSize)"""
        )
        weights[name] = sum(loaded)
        assert len(loaded) <= 5, name
        assert 0 < weights[name] <= 25_000, name
    print(weights)


def test_pictures_of_items_load_without_a_trace_of_the_session(
    browser: Browser, pages: Served
) -> None:
    page = new_context(browser).new_page()
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))
    told: list[str] = []
    page.on("console", lambda message: told.append(message.text))
    session = show("open-pictures", page, pages)
    for picture in page.locator(".item img").all():
        expect(picture).to_have_js_property("complete", True)
        assert picture.evaluate("one => one.naturalWidth > 0")
        assert picture.evaluate("one => one.getBoundingClientRect().width") == 96
    elsewhere = [one for one in asked if not one.url.startswith(pages.base)]
    assert [one.url for one in elsewhere] == [each.image for each in PICTURED if each.image]
    for one in elsewhere:
        headers = one.all_headers()
        assert "referer" not in headers
        assert session.id not in f"{headers}{one.url}"
    stranger = "void document.querySelector('main').append(Object.assign(new Image(), {src: %r}))"
    page.evaluate(stranger % "https://shop.example/elsewhere.png")
    page.wait_for_function("() => document.querySelector('main > img').complete")
    assert [one for one in asked if "elsewhere" in one.url and one.failure is None] == []
    assert any("img-src" in one for one in told), "the policy names the items' host only"


def test_a_picture_shifts_nothing_and_leaves_no_hole_if_it_is_missing(
    browser: Browser, pages: Served
) -> None:
    page = new_context(browser).new_page()
    places = "[...document.querySelectorAll('.item')].map(one => one.getBoundingClientRect().top)"
    show("open-pictures", page, pages)
    with_them = page.evaluate(places)
    page.route(f"{PICTURES}/**", lambda route: route.abort())
    page.reload()
    assert page.evaluate(places) == with_them
    covered = "one => [one.naturalWidth, getComputedStyle(one, '::after').content]"
    found = [one.evaluate(covered) for one in page.locator(".item img").all()]
    assert found == [[0, '"H" / ""'], [0, '"F" / ""']], "its letter covers the broken picture"


@pytest.mark.parametrize(
    ("name", "moving", "still"),
    [
        ("asking", {"turn"}, set()),
        ("confirming", {"turn"}, set()),
        ("closing", {"fence", "turn"}, {"fence"}),
        ("confirmation", {"done"}, set()),
        ("price", set(), set()),
    ],
)
def test_only_what_means_something_moves_and_with_reduced_motion_only_the_seconds(
    browser: Browser, pages: Served, name: str, moving: set[str], still: set[str]
) -> None:
    page = new_context(browser).new_page()
    # An animation that is over is not listed, so those that began are remembered.
    page.add_init_script("""
        window.began = [];
        addEventListener("animationstart", event => began.push(event.animationName), true);
    """)
    for motion, expected in ((None, moving), ("reduce", still)):
        page.emulate_media(reduced_motion="no-preference" if motion is None else "reduce")
        show(name, page, pages)
        page.wait_for_timeout(300)
        assert set(page.evaluate("window.began")) == expected, motion
