"""Test the payment links in the dashboard: what a merchant makes, copies, prints and changes."""

from __future__ import annotations

import pytest

from checkout.domain.links import OpenAmount, PaymentLink
from checkout.domain.session.customer_details import Detail
from checkout.flows.links.manage import PAGE
from tests.support.basics import a_link
from tests.support.dashboard_pages import Browser, Dashboard
from tests.support.dashboard_routes import paths
from tests.support.hosted_pages import Answer

FORM = {"name": "Tea", "amount": "20.00", "stock": "", "success_url": ""}


def create(browser: Browser, **fields: str) -> Answer:
    return browser.post("/links", {**FORM, **fields})


def made(browser: Browser, **fields: str) -> str:
    """Create a link; return its path under the dashboard."""
    answer = create(browser, **fields)
    assert answer.status == 303, answer.page.main
    return answer.location.removeprefix("/dashboard")


def link_at(shop: Dashboard, path: str) -> PaymentLink:
    found = shop.services.links.get(path.rpartition("/")[2])
    assert found is not None
    return found


def test_without_links_the_page_says_what_they_are_for(browser: Browser) -> None:
    page = browser.get("/links").page
    assert "There are no payment links yet" in page.main
    assert page.all("table") == []
    assert "Price (USD)" in page.main


def test_a_link_has_an_address_a_button_and_a_qr_code(browser: Browser) -> None:
    path = made(browser, name='Tea "<b>" & cake', stock="3")
    page = browser.get(path).page
    link_id = path.rpartition("/")[2]
    url = f"https://pay.example/buy/{link_id}"
    assert page.one("code", id="secret").text == [url]
    button = page.one("textarea", id="button").text[0]
    assert f'<a href="{url}" style="' in button
    assert button.strip().endswith(">Tea &quot;&lt;b&gt;&quot; &amp; cake – 20.00 USD</a>")
    assert "<script" not in button
    assert "background:#0b5cad;color:#ffffff" in button
    assert "Left 3" in page.main
    assert "After the payment The receipt" in page.main
    picture = browser.get(f"{path}/qr")
    assert picture.headers["content-type"] == "image/svg+xml"
    listed = browser.get("/links").page
    assert 'Tea "<b>" & cake Active 3 left 20.00 USD' in listed.main
    log = browser.get("/audit").page
    assert "Created a payment link" in log.main
    assert f"/dashboard/links/{link_id}" in log.links


def test_the_name_the_price_and_the_questions_of_a_link_stay_whatever_is_sent(
    shop: Dashboard, browser: Browser
) -> None:
    path = made(browser, stock="3")
    before = link_at(shop, path)
    forms = [each for each in paths("POST") if each.startswith("/links/{link_id}/")]
    for form in forms:
        sent = {**FORM, "name": "Gold", "amount": "1.00", "ask_email": "required", "read": "3"}
        browser.post(form.replace("/links/{link_id}", path), {**sent, "left": "5"})
    after = link_at(shop, path)
    assert (after.left, len(forms)) == (5, 3), "the stock can be changed"
    assert (after.name, after.unit_amount) == (before.name, before.unit_amount)
    assert after.collect_json == before.collect_json


def test_of_a_link_whose_customers_choose_the_amount_the_bounds_stay_too(
    shop: Dashboard, browser: Browser
) -> None:
    path = made(browser, amount="", smallest="2", suggestion_1="5")
    before = link_at(shop, path)
    for form in [each for each in paths("POST") if each.startswith("/links/{link_id}/")]:
        sent = {"amount": "1", "smallest": "1", "largest": "9", "suggestion_1": "3"}
        browser.post(form.replace("/links/{link_id}", path), sent)
    assert link_at(shop, path).open_amount == before.open_amount == OpenAmount(200, 1000000, (500,))


def test_customers_may_choose_the_amount(shop: Dashboard, browser: Browser) -> None:
    path = made(
        browser,
        name="Tip",
        amount="",
        smallest="1",
        largest="500",
        suggestion_1="10",
        suggestion_2="",
        suggestion_3="2.50",
        suggestion_4="10.00",
        stock="3",
    )
    link = link_at(shop, path)
    assert link.open_amount == OpenAmount(100, 50_000, (250, 1_000))
    assert link.unit_amount == 250  # at which the last release sells
    page = browser.get(path).page
    assert "Price From 1.00 USD" in page.main
    assert "Largest amount 500.00 USD" in page.main
    assert "Suggestions 2.50 USD, 10.00 USD" in page.main
    assert page.one("textarea", id="button").text[0].strip().endswith(">Tip</a>")
    assert "Tip Active 3 left From 1.00 USD" in browser.get("/links").page.main
    poster = browser.get(f"{path}/poster").page.main
    assert "You choose the amount" in poster
    assert "USD" not in poster


@pytest.mark.parametrize(
    ("asset", "largest"),
    [(("USD", 2), 1_000_000), (("JPY", 0), 1_000_000), (("KWD", 3), 10_000_000)],
)
def test_without_a_largest_amount_there_is_a_usual_one(
    shop: Dashboard, browser: Browser, asset: tuple[str, int], largest: int
) -> None:
    code, scale = asset
    shop.services.merchants.replace(shop.merchant().changed(asset_code=code, asset_scale=scale))
    path = made(browser, amount="", smallest="20")
    smallest = 20 * 10**scale
    assert link_at(shop, path).open_amount == OpenAmount(smallest, largest, ())
    assert link_at(shop, path).unit_amount == smallest
    assert "Suggestions None" in browser.get(path).page.main


def test_the_button_has_the_merchants_color(browser: Browser) -> None:
    fields = {"name": "Shop", "accent_color": "#ffee00", "locale": "en"}
    assert browser.post("/settings", fields).status == 303
    button = browser.get(made(browser)).page.one("textarea", id="button").text[0]
    assert "background:#ffee00;color:#000000" in button


def test_the_poster_has_all_that_a_passer_by_needs(browser: Browser) -> None:
    path = made(browser)
    page = browser.get(f"{path}/poster").page
    url = f"https://pay.example/buy/{path.rpartition('/')[2]}"
    for words in ("Tea", "20.00 USD", url):
        assert words in page.main
    assert page.one("img", **{"class": "qr"}).attributes["src"] == f"/dashboard{path}/qr"
    assert page.all("img", **{"class": "goods"}) == []


def test_the_poster_shows_the_picture_of_the_item_and_may_load_no_other(browser: Browser) -> None:
    path = made(browser, image="https://cdn.shop.example/tea.webp")
    poster = browser.get(f"{path}/poster")
    picture = poster.page.one("img", **{"class": "goods"}).attributes
    assert picture["src"] == "https://cdn.shop.example/tea.webp"
    policy = poster.headers["content-security-policy"]
    assert "img-src 'self' data: https://cdn.shop.example;" in policy
    assert "cdn.shop.example" not in browser.get(path).headers["content-security-policy"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"name": " "}, "Give the item a name"),
        ({"name": "x" * 201}, "1 to 200 printable characters"),
        ({"name": "a\x07b"}, "1 to 200 printable characters"),
        ({"amount": ""}, "This is not an amount of USD. Type it as in 12.50"),
        ({"amount": "1.999"}, "“1.999” can be read in two ways. Type 1999.00."),
        ({"amount": "-1"}, "This is not an amount of USD"),
        ({"amount": "99999999999999"}, "at most 9999999999.99 USD"),
        ({"amount": "0.00"}, "more than zero"),
        ({"stock": "many"}, "whole number from 0 to 1000000"),
        ({"stock": "1000001"}, "whole number from 0 to 1000000"),
        ({"success_url": "http://shop.example/"}, "must start with https://"),
        ({"ask_shipping": "required", "ships_to": "Germany"}, "GERMANY is not a country code"),
        ({"ships_to": "DE"}, "Countries apply only to a shipping address"),
        ({"question_1": "x" * 101}, "A question must be 1 to 100 printable characters"),
        ({"question_1": "a\u202eb"}, "A question must be 1 to 100 printable characters"),
        ({"question_1": "Size", "kind_1": "colour"}, "Choose the kind of answer"),
        ({"question_1": "Size", "kind_1": "dropdown"}, "Give 1 to 200 choices"),
        ({"question_1": "Size", "kind_1": "dropdown", "options_1": "x" * 101}, "Give 1 to 200"),
        ({"at_once": "100"}, "from 1 to 99"),
        ({"description": "x" * 501}, "The description must be at most 500"),
        ({"image": "http://shop.example/tea.webp"}, "https"),
        ({"smallest": "1"}, "leave the price and the largest quantity empty"),
        ({"smallest": "1", "amount": "", "at_once": "2"}, "leave the price and the largest quant"),
        ({"largest": "5", "amount": ""}, "This is not an amount of USD"),
        ({"suggestion_4": "5", "amount": ""}, "This is not an amount of USD"),
        ({"smallest": "0.00", "amount": ""}, "The smallest amount must be more than zero"),
        ({"smallest": "0.09", "amount": ""}, "The smallest amount must be at least 0.10 USD"),
        ({"smallest": "5", "largest": "4.99", "amount": ""}, "largest amount is below the small"),
        ({"smallest": "20000", "amount": ""}, "The largest amount is below the smallest"),
        ({"smallest": "5", "largest": "99999999999", "amount": ""}, "The largest amount must be"),
        ({"smallest": "5", "suggestion_1": "4", "amount": ""}, "is not between the smallest"),
        ({"smallest": "5", "suggestion_2": "10000.01", "amount": ""}, "is not between the small"),
        ({"smallest": "5", "suggestion_3": "six", "amount": ""}, "This is not an amount of USD"),
    ],
)
def test_what_is_wrong_is_said_and_what_was_typed_stays(
    browser: Browser, fields: dict[str, str], said: str
) -> None:
    answer = create(browser, **{"stock": "5", **fields})
    assert answer.status == 400
    assert said in answer.page.one("div", role="alert").text[0]
    for name, value in ({"stock": "5"} | fields).items():
        if not name.startswith(("ask_", "kind_", "options_")):
            assert answer.page.one("input", id=name).attributes["value"] == value
    assert "There are no payment links yet" in answer.page.main


def test_the_return_hosts_bind_links_too(browser: Browser) -> None:
    browser.post("/settings", {"return_hosts": "shop.example"})
    assert create(browser, success_url="https://other.example/thanks").status == 400
    path = made(browser, success_url="https://shop.example/thanks?s={CHECKOUT_SESSION_ID}")
    page = browser.get(path).page
    assert "https://shop.example/thanks?s={CHECKOUT_SESSION_ID}" in page.main


def test_a_link_is_stopped_and_started_once(browser: Browser) -> None:
    path = made(browser)
    for act, status in (("stop", "Stopped"), ("stop", "Stopped"), ("start", "Active")):
        assert browser.post(f"{path}/{act}").location == f"/dashboard{path}"
        assert f"Status {status}" in browser.get(path).page.main
    assert browser.post(f"{path}/start").status == 303
    log = browser.get("/audit").page.main
    assert log.count("Stopped a payment link") == 1
    assert log.count("Restarted a payment link") == 1


class TestStock:
    def test_is_set_from_what_was_seen(self, browser: Browser) -> None:
        path = made(browser, stock="3")
        assert browser.post(f"{path}/stock", {"read": "3", "left": "8"}).status == 303
        assert "Left 8" in browser.get(path).page.main
        assert "Set the stock of a payment link" in browser.get("/audit").page.main
        browser.post(f"{path}/stock", {"read": "8", "left": "0"})
        assert "Status Sold out" in browser.get(path).page.main

    def test_is_not_set_over_a_sale(self, shop: Dashboard, browser: Browser) -> None:
        path = made(browser, stock="3")
        shop.services.links.set_left(link_at(shop, path), 2)  # as a sale does
        answer = browser.post(f"{path}/stock", {"read": "3", "left": "10"})
        assert answer.status == 409
        assert "An item was taken or returned to the stock" in answer.page.main
        assert "Left 2" in answer.page.main

    def test_that_has_been_sold_between_is_not_set(
        self, shop: Dashboard, browser: Browser, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = made(browser, stock="3")
        monkeypatch.setattr(type(shop.services.links), "set_left", lambda *_: False)
        assert browser.post(f"{path}/stock", {"read": "3", "left": "10"}).status == 409

    @pytest.mark.parametrize("typed", ["", "-1", "1.5", "1000001", "x"])
    def test_must_be_a_number(self, browser: Browser, typed: str) -> None:
        path = made(browser, stock="3")
        answer = browser.post(f"{path}/stock", {"read": "3", "left": typed})
        assert answer.status == 400
        assert "Left 3" in answer.page.main

    def test_is_not_given_to_a_link_without_one(self, browser: Browser) -> None:
        path = made(browser)
        assert "No limit" in browser.get(path).page.main
        answer = browser.post(f"{path}/stock", {"read": "None", "left": "4"})
        assert answer.status == 400
        assert "has no stock limit" in answer.page.main


def test_more_links_than_a_page_has_are_behind_it(shop: Dashboard, browser: Browser) -> None:
    for number in range(PAGE + 1):
        shop.services.links.add(a_link(id=f"plink_{number:022d}", name=f"Item {number}"))
    page = browser.get("/links").page
    assert len(page.all("tr")) == PAGE + 1
    (older,) = (link for link in page.links if "cursor=" in link)
    assert "Item 0" in browser.get(older.removeprefix("/dashboard")).page.main


@pytest.mark.parametrize("rest", ["", "/qr", "/poster"])
def test_there_is_no_page_of_a_link_that_is_none(browser: Browser, rest: str) -> None:
    assert browser.get(f"/links/plink_none{rest}").status == 404


def test_a_link_says_what_its_customers_are_asked(shop: Dashboard, browser: Browser) -> None:
    path = made(browser, ask_email="required", ask_phone="optional", ask_name="")
    assert "Customers are asked for E-mail, Phone (optional)" in browser.get(path).page.main
    link = link_at(shop, path)
    assert (link.asked, link.required) == ((Detail.EMAIL, Detail.PHONE), (Detail.EMAIL,))
    assert "Customers are asked for Nothing" in browser.get(made(browser)).page.main


def test_what_was_chosen_stays_in_a_refused_form(browser: Browser) -> None:
    page = create(browser, amount="none", ask_name="required").page
    chosen = [each for each in page.all("option") if "selected" in each.attributes]
    assert [each.text for each in chosen] == [
        *(["Not asked"], ["Required"], ["Not asked"]),  # e-mail, name, phone
        *(["Not asked"], ["Not asked"]),  # addresses
    ]
    assert create(browser, ask_name="perhaps").status == 400


def test_a_key_for_details_is_wrapped_for_the_api_once_it_can_be(
    shop: Dashboard, browser: Browser
) -> None:
    before = shop.merchant()
    shop.services.merchants.replace(before.changed(details_key_kms=None))
    made(browser, ask_email="optional")
    after = shop.merchant()
    assert (after.details_key, after.details_key_kms) == (
        before.details_key,
        before.details_key_kms,
    )


def test_a_link_that_sends_goods_says_what_it_asks(shop: Dashboard, browser: Browser) -> None:
    path = made(
        browser,
        ask_email="required",
        ask_shipping="required",
        ask_billing="optional",
        ships_to="de, us",
        question_1=" Your  size ",
        kind_1="dropdown",
        answer_1="required",
        options_1="Small, Large,, Small",
        question_3="A note",
        kind_3="text",
        answer_3="optional",
        description="One kilo",
        image="https://shop.example/tea.webp",
        at_once="10",
        stock="20",
    )
    page = browser.get(path).page
    asked = "E-mail, Shipping address, Billing address (optional)"
    assert f"Customers are asked for {asked}" in page.main
    assert "Ships to DE, US" in page.main
    assert "Quantity Up to 10" in page.main
    assert "Question 1 Your size (one of a list: Small, Large)" in page.main
    assert "Question 2 A note (text, optional)" in page.main
    assert "One kilo" in page.main
    assert "https://shop.example/tea.webp" in page.main
    link = link_at(shop, path)
    assert link.collect.ships_to == ("DE", "US")
    assert [each.key for each in link.collect.questions] == ["question1", "question3"]
    only = browser.get(made(browser, question_1="A note")).page
    assert "Customers are asked for Only your questions" in only.main
