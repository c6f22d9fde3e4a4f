"""Test the page of a payment link: looking writes nothing, buying leads to the checkout page."""

from __future__ import annotations

import gzip
import re
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.links import PaymentLink
from checkout.domain.merchant.record import Logo
from checkout.domain.reports import search_terms
from checkout.domain.session.collect import Collect, Detail, Place, Question, QuestionKind
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session, Status
from checkout.flows.session import details
from tests.support import services
from tests.support.cases import PICTURES
from tests.support.flows import CEDAR
from tests.support.hosted_pages import Answer, Customer, customer
from tests.support.merchant_api import PREFIX
from tests.support.rows import row_text


def page_of(visitor: Customer, link: PaymentLink, **options: object) -> Answer:
    return visitor.get(f"/buy/{link.id}", **options)


def visit_on(answer: Answer) -> str:
    return answer.page.one("input", name="visit").attributes["value"]


def buy(visitor: Customer, link: PaymentLink, visit: str, **typed: str) -> Answer:
    return visitor.ask("POST", f"/buy/{link.id}", data={"visit": visit, **typed})


def bought(visitor: Customer, answer: Answer) -> Session:
    """Return the session to which the answer to a purchase leads."""
    return visitor.world.session(answer.location.removeprefix("/pay/"))


def answered(visitor: Customer, link: PaymentLink, **typed: str) -> Answer:
    """Open the page, fill in the form, and press its button."""
    return buy(visitor, link, visit_on(page_of(visitor, link)), **typed)


def rows(visitor: Customer) -> int:
    tables = ("checkout_sessions", "idempotency_keys")
    return sum(len(visitor.world.dynamo.rows(f"{PREFIX}-{table}")) for table in tables)


def test_the_page_shows_item_price_and_shop(visitor: Customer) -> None:
    link = visitor.world.link(name="Tea & cake")
    visitor.give(website="shop.example", contact="help@shop.example", accent_color="#aa0000")
    answer = page_of(visitor, link)
    assert answer.status == 200
    page = answer.page
    assert page.one("h1").text == ["Tea & cake"]
    assert page.one("title").text == ["Tea & cake – Shop"]
    assert "Buy for $20.00" in page.main
    assert "Sold out" not in page.main
    assert "30 minutes" not in page.main  # nothing is held
    assert "mailto:help@shop.example" in page.links
    assert "--brand: #aa0000" in answer.body
    assert [each.attributes["name"] for each in page.all("input")] == ["visit"]
    assert "gets this for your order" not in page.main
    assert page.all("script") == []
    assert "set-cookie" not in answer.headers


HELD = "After you press the button, the item is kept for you for 30 minutes."
FOR = "Shop gets this for your order. Your wallet provider does not."


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "You approve at your wallet. We never see your password."),
        ({"left": 3}, HELD),
        ({"asked": (Detail.EMAIL,)}, FOR),
        ({"asked": (Detail.EMAIL,), "left": 3}, f"{FOR} {HELD}"),
    ],
)
def test_one_line_stands_under_the_button(
    visitor: Customer, fields: dict[str, Any], said: str
) -> None:
    page = page_of(visitor, visitor.world.link(**fields)).page
    [line] = page.all("p", **{"class": "hint under"})
    assert " ".join("".join(line.text).split()) == said


def test_looking_writes_nothing(visitor: Customer) -> None:
    link = visitor.world.link(left=1)
    before = rows(visitor)
    visitor.world.forget()
    page_of(visitor, link)
    assert set(visitor.world.aws_calls()) == {"get_item"}
    assert page_of(visitor, link, headers={"sec-purpose": "prefetch"}).status == 204
    assert visitor.ask("HEAD", f"/buy/{link.id}").body == ""
    assert rows(visitor) == before
    assert visitor.world.left(link) == 1


def test_buying_leads_to_an_ordinary_checkout(visitor: Customer) -> None:
    link = visitor.world.link(left=1)
    shown = page_of(visitor, link)
    assert "kept for you for 30 minutes" in shown.page.main
    answer = buy(visitor, link, visit_on(shown))
    assert answer.status == 303
    found = re.fullmatch(r"/pay/(cs_[0-9A-Za-z]{22})", answer.location)
    assert found
    session = visitor.world.session(found[1])
    page = visitor.open(session).page
    assert "Total $20.00" in page.main
    assert f"http://localhost:4000/buy/{link.id}" in page.links  # the way back
    awaiting = visitor.submitted(session=session)
    assert awaiting.interact_url is not None
    back = visitor.back_from(visitor.world.network.approve(awaiting.interact_url))
    assert back.location == f"/pay/{session.id}/success"
    receipt = visitor.open(session, "/success").page
    assert "Paid. Thank you!" in receipt.main
    assert receipt.links == []  # nothing leads away from the receipt, and nothing counts down
    assert visitor.world.session(session.id).status is Status.COMPLETED


def test_the_receipt_leads_to_the_page_of_the_link(visitor: Customer) -> None:
    link = visitor.world.link(success_url="https://shop.example/thanks")
    paid = visitor.world.pay(bought(visitor, answered(visitor, link)))
    assert "https://shop.example/thanks" in visitor.open(paid, "/success").page.links


def test_sending_the_form_twice_makes_one_session(visitor: Customer) -> None:
    link = visitor.world.link(left=1)
    visit = visit_on(page_of(visitor, link))
    first = buy(visitor, link, visit)
    assert buy(visitor, link, visit).location == first.location
    cookie = {name: value for name, value in visitor.cookies.items() if link.id in name}
    assert cookie == {f"buy-{link.id}": visit}


def test_who_holds_the_last_item_finds_the_way_back_to_it(visitor: Customer) -> None:
    link = visitor.world.link(left=1)
    first = answered(visitor, link)
    assert visitor.world.left(link) == 0
    assert answered(visitor, link).location == first.location
    with customer(visitor.world) as other:
        assert "Sold out" in page_of(other, link).page.main
    visitor.world.pay(bought(visitor, first))
    assert "Sold out" in page_of(visitor, link).page.main


def test_who_has_bought_may_buy_again(visitor: Customer) -> None:
    link = visitor.world.link(left=5)
    first = answered(visitor, link)
    visitor.world.pay(bought(visitor, first))
    answer = answered(visitor, link)
    assert answer.location == f"/buy/{link.id}?again=1"
    told = visitor.get(answer.location)
    assert "Your last checkout here has ended" in told.page.main
    second = buy(visitor, link, visit_on(told)).location
    assert second.startswith("/pay/cs_")
    assert second != first.location
    assert visitor.world.left(link) == 3


def test_who_comes_too_late_is_told_before_anything_is_paid(visitor: Customer) -> None:
    link = visitor.world.link(left=1)
    visit = visit_on(page_of(visitor, link))
    assert visitor.world.services.links.set_left(link, 0)
    answer = buy(visitor, link, visit)
    assert answer.status == 409
    assert answer.page.one("div", role="alert")
    assert "Sold out" in answer.page.main
    assert "You have not been charged." in answer.page.main
    assert answer.page.all("form") == []
    only_looked = page_of(visitor, link).page.main
    assert "Sold out" in only_looked
    assert "charged" not in only_looked


@pytest.mark.parametrize("left", [0, 1])  # sold out, or stopped
def test_who_finds_nothing_to_buy_is_told_whom_to_ask(visitor: Customer, left: int) -> None:
    link = visitor.world.link(left=left)
    visitor.world.services.links.set_stopped(link, visitor.world.clock.now() if left else None)
    nobody = page_of(visitor, link).page
    assert "Ask Shop whether it will be on sale again." in nobody.main
    assert nobody.links == []
    visitor.give(website="shop.example", contact="help@shop.example")
    page = page_of(visitor, link).page
    assert page.links == ["mailto:help@shop.example", "https://shop.example/"]
    assert "Go to Shop" in page.main
    there = visitor.world.link(left=0, success_url="https://shop.example/thanks")
    visitor.give(website=None, contact=None)
    assert page_of(visitor, there).page.links == ["https://shop.example/"]


def test_a_stopped_link_says_so(visitor: Customer) -> None:
    link = visitor.world.link(left=1)
    visit = visit_on(page_of(visitor, link))
    visitor.world.services.links.set_stopped(link, visitor.world.clock.now())
    for answer in (page_of(visitor, link), buy(visitor, link, visit)):
        assert "This offer has ended" in answer.page.main
        assert answer.page.all("form") == []


UNPROVEN = "It is not certain that this form was sent from this page. Nothing has been done."


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_a_form_of_another_site_begins_nothing(visitor: Customer, site: str) -> None:
    link = visitor.world.link(left=1)
    visit = visit_on(page_of(visitor, link))
    before = rows(visitor)
    headers = {"sec-fetch-site": site}
    typed = {"visit": visit, "email": "planted@evil.example"}
    answer = visitor.ask("POST", f"/buy/{link.id}", data=typed, headers=headers)
    assert answer.status == 403
    assert UNPROVEN in answer.page.main
    assert "planted" not in answer.body
    assert rows(visitor) == before


@pytest.mark.parametrize("visit", ["", "x", "é" * 22])
def test_a_form_without_a_visit_begins_nothing(visitor: Customer, visit: str) -> None:
    link = visitor.world.link(left=1)
    answer = buy(visitor, link, visit)
    assert answer.status == 403
    assert UNPROVEN in answer.page.main
    assert visitor.world.left(link) == 1
    assert buy(visitor, link, visit_on(answer)).status == 303, "pressing the button again helps"


@pytest.mark.parametrize("path", ["/buy/plink_none", "/buy/plink_0123456789abcdefABCDEX/logo"])
def test_an_unknown_link_is_not_found(visitor: Customer, path: str) -> None:
    assert visitor.get(path).status == 404


def test_the_logo_of_the_shop_is_shown(visitor: Customer) -> None:
    link = visitor.world.link()
    assert visitor.get(f"/buy/{link.id}/logo").status == 404
    visitor.give(logo=Logo("image/png", PICTURES["image/png"]))
    visitor.world.clock.pass_time(120)
    picture = page_of(visitor, link).page.one("img").attributes["src"]
    assert picture.startswith(f"/buy/{link.id}/logo?v=")
    assert visitor.get(picture).headers["content-type"] == "image/png"


def test_a_client_with_too_many_purchases_is_refused_and_holds_no_more(visitor: Customer) -> None:
    world = visitor.world
    limits = services.limits(world.core.clock, world.dynamo, PREFIX, 6)
    world.services = replace(world.services, limits=limits)
    link = world.link(left=9)
    answers = [buy(visitor, link, f"{number:022d}") for number in range(3)]
    assert [answer.status for answer in answers] == [303, 303, 429]
    assert "Too many requests from your network" in answers[-1].page.main
    assert world.left(link) == 7


def test_the_page_speaks_the_customers_language(visitor: Customer) -> None:
    link = visitor.world.link(left=1)
    answer = page_of(visitor, link, headers={"accept-language": "de"})
    assert answer.page.one("html").attributes["lang"] == "de"
    assert "Für 20,00 $ kaufen" in answer.page.main
    assert f"{CEDAR}" not in answer.body


ASKING = {"asked": tuple(Detail), "required": (Detail.EMAIL,)}
TYPED: dict[str, Any] = {"email": "ana@example.com", "name": "Ana", "phone": "+44 20 7946 0958"}


def test_a_link_asks_in_its_form_as_browsers_fill_it_in(visitor: Customer) -> None:
    page = page_of(visitor, visitor.world.link(**ASKING)).page
    fields = {each: page.one("input", id=each).attributes for each in TYPED}
    names = {each: (found["type"], found["autocomplete"]) for each, found in fields.items()}
    assert names == {
        "email": ("email", "email"),
        "name": ("text", "name"),
        "phone": ("tel", "tel"),
    }
    assert [each for each, found in fields.items() if "required" in found] == ["email"]
    assert "Phone (optional)" in page.main
    assert "Shop gets this for your order. Your wallet provider does not." in page.main


def test_what_was_typed_goes_to_the_merchant_and_to_no_wallet(visitor: Customer) -> None:
    world = visitor.world
    session = visitor.paid(bought(visitor, answered(visitor, world.link(**ASKING), **TYPED)))
    given = details.opened(world.services.vault, world.stored(), session)
    assert given == CustomerDetails(**TYPED)
    heard = repr(world.network.__dict__)
    assert all(text not in heard for text in TYPED.values())
    receipt = visitor.open(session, "/success").page
    assert "Name Ana" in receipt.main


def test_a_wrong_form_is_shown_again_with_what_was_typed(visitor: Customer) -> None:
    link = visitor.world.link(left=1, **ASKING)
    answer = answered(visitor, link, email="", name="Ana <b>", phone="call me")
    assert answer.status == 400
    page = answer.page
    assert page.one("input", id="name").attributes["value"] == "Ana <b>"
    assert page.one("p", id="email-error").text == ["Please fill in this field."]
    assert page.one("p", id="phone-error").text == ["This is not a phone number."]
    assert "autofocus" in page.one("input", id="email").attributes
    assert "autofocus" not in page.one("input", id="phone").attributes
    assert page.one("input", id="phone").attributes["aria-describedby"] == "phone-error"
    assert visitor.world.left(link) == 1


def test_a_corrected_form_is_remembered_by_the_browser(visitor: Customer) -> None:
    link = visitor.world.link(**ASKING)
    first = answered(visitor, link, **TYPED).location
    corrected = {**TYPED, "name": "Anna"}
    second = answered(visitor, link, **corrected).location
    assert first != second
    assert answered(visitor, link, **corrected).location == second


SHIPPING: dict[str, Any] = {
    "collect_json": Collect(
        asked=frozenset({Detail.EMAIL, *Place}),
        required=frozenset({Detail.EMAIL, *Place}),
        ships_to=("DE", "US", "JP"),
        questions=(
            Question("size", "Size <b>", QuestionKind.DROPDOWN, options=(("s", "Small & neat"),)),
        ),
    ).to_json()
}
TO_BERLIN = {
    "email": "ana@example.com",
    "shipping_form": "DE",
    "shipping_country": "DE",
    "shipping_name": "Ana Bel",
    "shipping_line1": "Am Weg 1",
    "shipping_city": "Berlin",
    "shipping_postal_code": "10115",
    "billing_same": "1",
    "answer_size": "s",
}
TO_TOKYO = {
    "shipping_form": "JP",
    "shipping_country": "JP",
    "shipping_name": "山田",
    "shipping_line1": "千代田1-1",
    "shipping_state": "東京都",
    "shipping_postal_code": "100-0001",
}


def fields_of(answer: Answer) -> dict[str, str]:
    """Return the autofill names of the fields, in their order."""
    page = answer.page
    return {
        each.attributes["name"]: each.attributes["autocomplete"]
        for each in [*page.all("input"), *page.all("select")]
        if each.attributes.get("autocomplete", "off") != "off"
    }


def test_an_address_is_asked_in_the_form_of_the_browsers_country(visitor: Customer) -> None:
    link = visitor.world.link(**SHIPPING)
    german = page_of(visitor, link, headers={"accept-language": "de-DE,de;q=0.9"})
    assert fields_of(german)["shipping_postal_code"] == "shipping postal-code"
    assert "shipping_state" not in fields_of(german)
    assert german.page.one("input", id="shipping_postal_code").attributes["inputmode"] == "numeric"
    american = page_of(visitor, link, headers={"accept-language": "en-US"})
    assert fields_of(american) == {
        "email": "email",
        "shipping_name": "shipping name",
        "shipping_line1": "shipping address-line1",
        "shipping_line2": "shipping address-line2",
        "shipping_city": "shipping address-level2",
        "shipping_state": "shipping address-level1",
        "shipping_postal_code": "shipping postal-code",
        "shipping_country": "shipping country",
        **{
            name.replace("shipping", "billing"): token.replace("shipping", "billing")
            for name, token in fields_of(american).items()
            if name.startswith("shipping")
        },
    }
    assert "ZIP code" in american.page.main
    japanese = page_of(visitor, link, headers={"accept-language": "en-JP"})
    assert "Prefecture" in japanese.page.main
    elsewhere = page_of(visitor, link, headers={"accept-language": "fr"})
    assert "Code postal" in elsewhere.page.main  # France is none of the three: the first is used


def test_another_country_changes_the_form_and_keeps_what_was_typed(visitor: Customer) -> None:
    link = visitor.world.link(**SHIPPING)
    turned = {**TO_BERLIN, "shipping_country": "US"}
    for typed in ({**turned, "turn": "shipping"}, turned):  # by its button, or by "Buy"
        answer = answered(visitor, link, **typed)
        assert answer.status == 200
        page = answer.page
        assert page.one("input", name="shipping_form").attributes["value"] == "US"
        assert page.one("select", id="shipping_state")
        assert page.one("input", id="shipping_line1").attributes["value"] == "Am Weg 1"
        assert page.one("input", id="email").attributes["value"] == "ana@example.com"
        assert page.all("p", role="alert") == []
    american = {**turned, "shipping_form": "US", "shipping_state": "NY"}
    wrong = answered(visitor, link, **{**american, "shipping_postal_code": "1"})
    assert wrong.status == 400
    said = wrong.page.one("p", id="shipping_postal_code-error").text
    assert said == ["This is not a postal code of this country. Example: 95014"]
    assert answered(visitor, link, **american).status == 303


def test_what_was_typed_into_a_part_that_a_country_lacks_is_there_again_on_the_way_back(
    visitor: Customer,
) -> None:
    link = visitor.world.link(**SHIPPING)
    city = "Berlin & <b>"
    there = answered(visitor, link, **{**TO_BERLIN, "shipping_city": city, "turn": "shipping"})
    assert there.page.all("input", type="hidden", name="shipping_city") == []
    turned = {**TO_BERLIN, "shipping_city": city, "shipping_country": "JP"}
    page = answered(visitor, link, **turned).page
    assert page.one("input", name="shipping_city").attributes == {
        "type": "hidden",
        "name": "shipping_city",
        "value": city,
    }
    assert page.all("input", type="hidden", name="billing_city") == []
    back = answered(visitor, link, **{**turned, "shipping_form": "JP", "shipping_country": "DE"})
    assert back.page.one("input", name="shipping_city").attributes["value"] == city
    assert back.page.one("input", name="shipping_city").attributes["type"] == "text"


@pytest.mark.parametrize("address", [TO_BERLIN, {**TO_BERLIN, **TO_TOKYO}])
def test_goods_are_sent_where_the_customer_says(visitor: Customer, address: dict[str, str]) -> None:
    world = visitor.world
    session = visitor.paid(bought(visitor, answered(visitor, world.link(**SHIPPING), **address)))
    given = details.opened(world.services.vault, world.stored(), session)
    assert given.shipping is not None
    assert given.shipping == given.billing
    assert given.shipping.name == given.name == address["shipping_name"]
    assert [(each.label, each.shown) for each in given.answers] == [("Size <b>", "Small & neat")]
    typed = [address[name] for name in ("shipping_line1", "shipping_name")]
    stored = "".join(row_text(row) for row in world.dynamo.rows(f"{PREFIX}-checkout_sessions"))
    for secret in typed:
        assert secret not in stored
        assert b64encode(secret.encode()).decode() not in stored
        assert secret not in repr(world.network.__dict__)
    receipt = visitor.open(session, "/success").page
    assert address["shipping_line1"] in receipt.main


def test_an_order_number_is_on_the_page_and_finds_the_purchase(visitor: Customer) -> None:
    link = visitor.world.link()
    session = bought(visitor, answered(visitor, link))
    number = session.metadata["order_number"]
    assert f"Order number {number}" in visitor.open(session).page.main
    assert search_terms.order_parts(session) == [number.lower()]
    assert search_terms.texts_of_a_cart(session) == [link.id.lower()]


def test_a_link_shows_its_picture_and_its_description(visitor: Customer) -> None:
    link = visitor.world.link(description="One <kilo>", image="https://shop.example/tea.webp")
    answer = page_of(visitor, link)
    assert "One <kilo>" in answer.page.main
    assert answer.page.one("img").attributes["src"] == "https://shop.example/tea.webp"
    assert "img-src" in answer.headers["content-security-policy"]
    assert "https://shop.example" in answer.headers["content-security-policy"]
    [item] = bought(visitor, buy(visitor, link, visit_on(answer))).line_items
    assert (item.description, item.image) == ("One <kilo>", "https://shop.example/tea.webp")


@pytest.mark.parametrize("language", ["en", "de", "ar", "hi"])
def test_the_largest_form_is_a_small_page(visitor: Customer, language: str) -> None:
    everything = Collect(asked=frozenset({*Detail, *Place}), required=frozenset({*Place}))
    link = visitor.world.link(collect_json=everything.to_json())
    answer = page_of(visitor, link, headers={"accept-language": language})
    assert len(gzip.compress(answer.body.encode(), 6)) <= 25_000


HOSTILE = {
    "shipping_country": "'; DROP",
    "shipping_name": "<script>alert(1)</script>",
    "shipping_line1": "a\u202e\x00b",
    "shipping_state": "x" * 5000,
    "shipping_postal_code": "9" * 5000,
    "answer_size": "<b>",
    "email": "ana@localhost",
}


def test_markup_controls_and_bombs_are_shown_again_as_text(
    visitor: Customer, caplog: pytest.LogCaptureFixture
) -> None:
    link = visitor.world.link(left=1, **SHIPPING)
    before = rows(visitor)
    answer = answered(visitor, link, **HOSTILE)
    assert answer.status == 400
    assert "<script>alert" not in answer.body
    assert len(answer.body) < 60_000
    assert rows(visitor) == before
    assert all(text not in caplog.text for text in HOSTILE.values())
    bomb = answered(visitor, link, shipping_line1="x" * 40_000)
    assert bomb.status == 413
    assert visitor.world.left(link) == 1


def test_a_form_for_another_link_asks_what_that_link_asks(visitor: Customer) -> None:
    """The fields of one link are nothing to another, which stores only what it has asked."""
    session = bought(visitor, answered(visitor, visitor.world.link(), **TO_BERLIN))
    assert (session.customer_details, session.customer_further) == (None, None)


def test_a_customer_chooses_how_many(visitor: Customer) -> None:
    link = visitor.world.link(most=5)
    page = page_of(visitor, link).page
    field = page.one("input", id="quantity").attributes
    assert (field["value"], field["inputmode"]) == ("1", "numeric")
    assert "gets this for your order" not in page.main
    first = answered(visitor, link, quantity="3")
    session = bought(visitor, first)
    assert (session.amount_total, session.line_items[0].quantity) == (6000, 3)
    assert session.receive.value == 6000
    assert answered(visitor, link, quantity="3").location == first.location
    assert bought(visitor, answered(visitor, link, quantity=" ٢ ")).amount_total == 4000
    assert visitor.world.pay(session).status is Status.COMPLETED


def test_where_a_number_is_chosen_the_price_is_of_one_and_the_script_knows_all_sums(
    visitor: Customer,
) -> None:
    page = page_of(visitor, visitor.world.link(most=5, left=3)).page
    assert "$20.00 each" in page.main
    assert "Buy for" not in page.main  # without script nobody knows the sum
    assert "at most 3" in page.main
    assert page.one("input", id="quantity").attributes["aria-describedby"] == "quantity-hint"
    [button] = page.all("button", **{"class": "button"})
    assert button.attributes["data-sums"] == "$20.00|$40.00|$60.00"


def test_what_a_country_writes_on_one_line_stands_side_by_side(visitor: Customer) -> None:
    link = visitor.world.link(**SHIPPING)
    german = page_of(visitor, link, headers={"accept-language": "de-DE"}).body
    assert rows_of(german)[0] == ["shipping_postal_code", "shipping_city"]
    american = page_of(visitor, link, headers={"accept-language": "en-US"}).body
    assert rows_of(american)[0] == ["shipping_city", "shipping_state", "shipping_postal_code"]
    assert rows_of(page_of(visitor, link, headers={"accept-language": "en-JP"}).body) == []


def rows_of(body: str) -> list[list[str]]:
    """Return the names of the fields in each row that has several."""
    found = re.findall(r'<div class="row">(.*?</div>)\s*</div>', body, re.DOTALL)
    return [re.findall(r'<(?:input|select) id="(\w+)"', each) for each in found]


@pytest.mark.parametrize("typed", ["0", "6", "-1", "1.5", "", "many", "1e1", "²", "9" * 30])
def test_a_number_that_is_not_offered_is_asked_again(visitor: Customer, typed: str) -> None:
    link = visitor.world.link(most=5)
    before = rows(visitor)
    answer = answered(visitor, link, quantity=typed)
    assert answer.status == 400
    said = answer.page.one("p", id="quantity-error").text
    assert said == ["Choose a number from 1 to 5."]
    assert rows(visitor) == before


def test_no_more_can_be_chosen_than_are_left(visitor: Customer) -> None:
    link = visitor.world.link(left=3, most=5)
    first = answered(visitor, link, quantity="2")
    assert first.status == 303
    assert visitor.world.left(link) == 1
    again = answered(visitor, link, quantity="2")  # the same form: the same purchase
    assert again.location == first.location
    more = answered(visitor, link, quantity="3")
    assert more.status == 409
    said = more.page.one("p", id="quantity-error").text
    assert said == ["Not that many are left. Available: 1."]
    assert more.page.one("input", id="quantity").attributes["value"] == "3"
    assert visitor.world.left(link) == 1
    assert answered(visitor, link, quantity="1").status == 303
    assert visitor.world.left(link) == 0
    gone = answered(visitor, link, quantity="4")
    assert gone.status == 409
    assert "Sold out" in gone.page.main


def test_a_link_without_a_choice_sells_one(visitor: Customer) -> None:
    link = visitor.world.link(left=5)
    assert page_of(visitor, link).page.all("input", id="quantity") == []
    assert answered(visitor, link, quantity="2").status == 400
    assert bought(visitor, answered(visitor, link)).amount_total == 2000
    assert visitor.world.left(link) == 4
