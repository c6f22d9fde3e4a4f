from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.ground.providers import Provider
from checkout.domain.merchant.record import Footer, Ownership
from checkout.domain.payment.events import Event
from checkout.domain.payment.in_flight import Attention, Problem
from checkout.domain.payment.machine import HistoryEntry
from checkout.domain.session.record import Status
from open_payments.models import Amount
from pay.language import reader, texts
from pay.view import shown
from tests.support.basics import NOW, a_session
from tests.support.cases import ORDER_NUMBERS
from tests.support.flows import World
from tests.support.hosted_pages import (
    AWAITING,
    INTERACT,
    QUOTE,
    STAGES,
    WALLET,
    Customer,
    Page,
    line,
)

pytestmark = pytest.mark.untraced

ENGLISH = texts("en")
CHARGED_NOT = ENGLISH.text("not_charged")
READER = reader(wished="en", accepted="", default=None)
MERCHANT = World().merchant


SAID = {
    "open": ("Pay with your wallet", "Your wallet address"),
    "preparing": ("Preparing your payment",),
    "awaiting_approval": ("You pay €18.53", "Shop receives $20.00.", "Use another wallet"),
    "continuing": ("Sending your payment", "Do not pay again"),
    "paying": ("Sending your payment", "Do not pay again"),
    "processing": ("Waiting for the money", "Do not pay again"),
    "completed": ("Paid", "You paid €18.53", "Shop received $20.00"),
    "expired": ("expired", CHARGED_NOT),
    "canceled": ("canceled", CHARGED_NOT),
}


@pytest.mark.parametrize("stage", STAGES)
def test_the_way_back_to_the_shop_is_at_the_top_unless_money_is_under_way(
    visitor: Customer, stage: str
) -> None:
    page = visitor.open(visitor.put_in(stage, cancel_url="https://shop.example/cart")).page
    at_the_top = page.all("a", href="https://shop.example/cart", **{"class": "back"})
    assert bool(at_the_top) is (stage in ("open", "awaiting_approval"))
    if at_the_top:
        assert page.main.startswith("Return to the shop without paying Shop")
        assert page.links.count("https://shop.example/cart") == 1
    moving = stage in ("preparing", "continuing", "paying", "processing")
    assert not (moving and "https://shop.example/cart" in page.links)


@pytest.mark.parametrize("stage", STAGES)
def test_every_state_has_a_page_with_the_way_on(visitor: Customer, stage: str) -> None:
    session = visitor.put_in(stage)
    answer = visitor.open(session)
    assert answer.status == 200
    page = answer.page
    for said in SAID[stage]:
        assert said in page.main
    assert page.one("html").attributes["lang"] == "en"
    assert "".join(page.one("title").text).endswith("– Shop")
    assert len(page.all("h1")) == 1
    assert len(page.all("p", role="status")) == 1
    assert session.id in page.main
    assert "Total $20.00" in page.main or stage == "completed"  # whose slip has the item
    assert page.links + page.all("form")
    waiting = stage in ("preparing", "continuing", "paying", "processing")
    assert bool(page.all("meta", **{"http-equiv": "refresh"})) is waiting
    for secret in ("SEALED", session.merchant, session.writer):
        assert secret not in answer.body
    assert ("SECRETNONCE" in answer.body) is (stage == "awaiting_approval")


@pytest.mark.parametrize("stage", ["continuing", "paying", "processing", "completed", "preparing"])
def test_not_charged_is_not_said_once_money_may_have_moved(visitor: Customer, stage: str) -> None:
    assert CHARGED_NOT not in visitor.open(visitor.put_in(stage)).body


@pytest.mark.parametrize("stage", ["open", "awaiting_approval", "expired", "canceled"])
def test_not_charged_is_not_said_after_a_failed_payment(visitor: Customer, stage: str) -> None:
    history = (HistoryEntry(NOW, Event.PAYMENT_DISPROVED.value),)
    problem = Problem.PAYMENT_FAILED if stage == "open" else None
    session = visitor.put_in(stage, history=history, problem=problem)
    back = "/grant/callback?result=grant_rejected" if stage == "awaiting_approval" else ""
    page = visitor.open(session, back).page
    assert CHARGED_NOT not in page.main


@pytest.mark.parametrize("stage", ["expired", "canceled"])
def test_money_that_came_late_is_told_with_what_to_do(visitor: Customer, stage: str) -> None:
    session = visitor.put_in(stage, received=700, attention=Attention.LATE_PAYMENT)
    page = visitor.open(session).page
    assert "Money arrived after this checkout had closed" in page.main
    assert "Shop has received $7.00. Do not pay again. Contact Shop" in page.main
    assert f"Reference {session.id}" in page.main
    for untrue in (CHARGED_NOT, ENGLISH.text("no_money"), ENGLISH.text("expired.lead")):
        assert untrue not in page.main


def test_a_session_that_was_given_up_says_what_the_shop_has(visitor: Customer) -> None:
    page = visitor.open(visitor.put_in("expired", received=700)).page
    assert heading(page).endswith("Only part of the money has arrived")
    assert "Arrived $7.00 Missing $13.00 Do not pay again" in page.main
    assert CHARGED_NOT not in page.main


def test_what_was_paid_from_outside_names_no_wallet_and_no_price(visitor: Customer) -> None:
    page = visitor.open(visitor.put_in("completed", outgoing_payment=None)).page
    assert "Shop received $20.00" in page.main
    assert "From your wallet" not in page.main
    assert "You paid" not in page.main


@pytest.mark.parametrize("problem", Problem)
def test_the_last_tries_problem_is_told_with_what_to_do(
    visitor: Customer, problem: Problem
) -> None:
    disproved = HistoryEntry(NOW, Event.PAYMENT_DISPROVED.value)
    history = (disproved,) if problem is Problem.PAYMENT_FAILED else ()
    page = visitor.open(visitor.put_in("open", problem=problem, history=history)).page
    alert = " ".join("".join(page.one("div", role="alert").text).split())
    assert ENGLISH.text(f"fault.{problem.value}") in alert
    assert ENGLISH.text(f"fault.{problem.value}.next") in alert
    assert (CHARGED_NOT in alert) is (problem is not Problem.PAYMENT_FAILED)


def test_a_wallet_is_offered_again_unless_it_was_not_found(visitor: Customer) -> None:
    for problem, offered in ((Problem.PRICE_CHANGED, True), (Problem.WALLET_INVALID, False)):
        session = visitor.put_in("open", problem=problem, customer=AWAITING["customer"])
        page = visitor.open(session).page
        value = page.one("input", name="wallet_address").attributes["value"]
        assert bool(value) is offered


def test_the_price_page_leaves_by_a_plain_link_and_names_where_to(visitor: Customer) -> None:
    page = visitor.open(visitor.put_in("awaiting_approval")).page
    (link,) = page.all("a", href=INTERACT)
    assert "You will approve at wallet.example auth.wallet.example" in page.main
    assert "".join(link.text) == "Approve at wallet.example"


def test_a_price_that_ran_out_is_told_and_can_be_renewed(visitor: Customer) -> None:
    for left, run_out in ((1, False), (0, True)):
        quote = replace(QUOTE, expires_at=NOW + timedelta(seconds=left))
        session = visitor.put_in("awaiting_approval", quote=quote)
        page = visitor.open(session).page
        assert ("This price has expired" in page.main) is run_out
        assert ("Price valid until" in page.main) is not run_out
        (button,) = [one for one in page.elements if one.attributes.get("class") == "button"]
        assert button.tag == ("button" if run_out else "a")
        hidden = {
            one.attributes["name"]: one.attributes["value"]
            for one in page.all("input", type="hidden")
        }
        assert hidden == {"wallet_address": AWAITING["customer"].id, "was": "1853"}


def test_a_payment_long_in_doubt_is_told(visitor: Customer) -> None:
    session = visitor.put_in("processing", attention=Attention.UNDECIDED)
    assert "is taking longer than usual" in visitor.open(session).page.main


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "http://shop.example/",
        "//shop.example/",
        "https:\\\\shop.example",
        "https://",
        "",
        "java\tscript:alert(1)",
        " https://shop.example",
        "http://localhost:9/",
        "https://[::1",
        "https://shop.example@evil.example/",
        "https://shop.example/\u202e",
    ],
)
def test_no_address_but_https_becomes_a_link_even_if_one_was_stored(url: str) -> None:
    session = a_session(Status.AWAITING_APPROVAL, **{**AWAITING, "interact_url": url})
    session = replace(session, success_url=url, cancel_url=url)
    seen = shown(session, MERCHANT, READER, base_url="https://pay.example", now=NOW)
    assert (seen.interact_url, seen.success_url, seen.cancel_url) == (None, None, None)


def test_a_stored_address_that_is_no_link_leaves_the_page_whole(visitor: Customer) -> None:
    bad = "javascript:alert(1)"
    for stage in STAGES:
        session = visitor.put_in(stage, interact_url=bad, success_url=bad, cancel_url=bad)
        for rest in ("", "/success", "/grant/callback?result=grant_rejected"):
            answer = visitor.open(session, rest)
            assert "javascript:" not in answer.body
            assert answer.status in (200, 303)


def test_addresses_of_this_machine_are_links_while_our_own_is_http() -> None:
    session = a_session(success_url="http://localhost:8000/thanks")
    seen = shown(session, MERCHANT, READER, base_url="http://localhost:4000", now=NOW)
    assert seen.success_url == "http://localhost:8000/thanks"


def test_a_price_that_a_wallet_counts_finely_is_told_rounded_and_exactly(
    visitor: Customer,
) -> None:
    quote = replace(QUOTE, debit=Amount(1_143_950_091_745, "EUR", 9))
    for stage, said in (("awaiting_approval", "You pay"), ("completed", "You paid")):
        page = visitor.open(visitor.put_in(stage, quote=quote)).page
        assert f"{said} €1,143.96" in page.main
        assert "Exactly 1,143.950091745 EUR." in page.main
    assert "Exactly" not in visitor.open(visitor.put_in("completed")).page.main


@pytest.mark.parametrize(
    ("reference", "metadata", "number"),
    [
        *((each[0], each[1], each[2] if each[3] else None) for each in ORDER_NUMBERS),
        (None, '{"order":"a\\nb","invoice":"7"}', None),
        (None, f'{{"order":"{"1" * 65}"}}', None),
    ],
)
def test_the_order_number_is_first_on_the_receipt_if_something_says_that_it_is_one(
    visitor: Customer, reference: str | None, metadata: str, number: str | None
) -> None:
    fields = {"client_reference_id": reference, "metadata_json": metadata}
    page = visitor.open(visitor.put_in("completed", **fields)).page
    first = "".join(page.all("dt")[0].text)
    assert first == ("Order number" if number else "Payment number in your wallet")
    assert number is None or "".join(page.all("dd")[0].text).strip() == number
    opened = visitor.open(visitor.put_in("open", **fields)).page
    assert (f"Order number {number} ·" in opened.main) is (number is not None)


def test_the_receipt_names_the_payment_as_the_customers_wallet_does(visitor: Customer) -> None:
    url = "https://wallet.example/outgoing-payments/b15b57"
    page = visitor.open(visitor.put_in("completed", outgoing_payment=url)).page
    assert "Payment number in your wallet b15b57" in page.main


CONTACTS = {
    "help@shop.example": ("mailto:help@shop.example", "help@shop.example"),
    "https://shop.example/help": ("https://shop.example/help", "shop.example/help"),
}


@pytest.mark.parametrize("contact", CONTACTS)
@pytest.mark.parametrize("stage", STAGES)
def test_every_state_says_whom_to_ask(visitor: Customer, stage: str, contact: str) -> None:
    visitor.give(contact=contact, website="shop.example")
    href, text = CONTACTS[contact]
    page = visitor.open(visitor.put_in(stage)).page
    assert f"Questions? Contact Shop: {text}" in page.main
    assert href in page.links
    assert "Shop shop.example" in page.main


FOOT = Footer(
    company="Harbor Coffee Ltd, VAT IE1234567",
    terms="https://shop.example/terms",
    refunds="https://shop.example/refunds",
    privacy="https://shop.example/privacy?a=1",
)


@pytest.mark.parametrize("stage", STAGES)
def test_the_foot_of_every_state_names_the_seller_and_leads_to_the_sellers_rules(
    visitor: Customer, stage: str
) -> None:
    session = visitor.put_in(stage)
    assert "Seller" not in visitor.open(session).page.main
    visitor.give(footer=FOOT)
    page = visitor.open(session).page
    assert page.main.count("Seller: Harbor Coffee Ltd, VAT IE1234567") == 1
    assert "Terms Refunds Privacy" in page.main
    assert {FOOT.terms, FOOT.refunds, FOOT.privacy} <= set(page.links)
    for url in (FOOT.terms, FOOT.refunds, FOOT.privacy):
        assert url
        link = page.one("a", href=url)
        assert (link.attributes["target"], link.attributes["rel"]) == (
            "_blank",
            "noopener noreferrer",
        )


def test_a_foot_shows_only_what_the_merchant_has_given(visitor: Customer) -> None:
    session = visitor.put_in("open")
    visitor.give(footer=Footer(company="Harbor Coffee Ltd"))
    footer = visitor.open(session).page
    assert "Seller: Harbor Coffee Ltd" in footer.main
    assert "Terms" not in footer.main
    visitor.give(footer=Footer(privacy="https://shop.example/privacy"))
    page = visitor.open(session).page
    assert "Seller" not in page.main
    assert "https://shop.example/privacy" in page.links


WITHOUT_A_CARD = {
    "en": "You pay with Open Payments. No card is needed. This page is run for Harbor Coffee.",
    "de": "Sie zahlen mit Open Payments. Eine Karte ist nicht nötig. "
    "Diese Seite wird für Harbor Coffee betrieben.",
    "fr": "Paiement par Open Payments, sans carte. Cette page est gérée pour Harbor Coffee.",
    "es": "Pago con Open Payments, sin tarjeta. Esta página se gestiona para Harbor Coffee.",
    "pt": "Pagamento por Open Payments, sem cartão. Esta página é mantida para Harbor Coffee.",
    "sw": "Malipo kupitia Open Payments, bila kadi. "
    "Ukurasa huu unaendeshwa kwa ajili ya Harbor Coffee.",
    "hi": "भुगतान Open Payments से, बिना कार्ड के। यह पेज Harbor Coffee के लिए चलाया जाता है।",
    "ar": "الدفع عبر Open Payments، بلا بطاقة. تُدار هذه الصفحة لصالح Harbor Coffee.",
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_foot_says_how_the_shop_is_paid_and_for_whom_the_page_is_run(
    visitor: Customer, language: str
) -> None:
    visitor.give(name="Harbor Coffee")
    pages = [visitor.open(visitor.put_in(stage, locale=language)).page for stage in STAGES]
    link = f"/buy/{visitor.world.link().id}"
    pages.append(visitor.ask("GET", link, headers={"accept-language": language}).page)
    for page in pages:
        assert page.main.endswith(WITHOUT_A_CARD[language])


@pytest.mark.parametrize("stage", STAGES)
def test_no_page_asks_for_a_password(visitor: Customer, stage: str) -> None:
    """The approval is at the wallet, to which a plain link leads."""
    page = visitor.open(visitor.put_in(stage)).page
    fields = [*page.all("input"), *page.all("textarea")]
    assert "password" not in {each.attributes.get("type") for each in fields}
    typed = {each.attributes.get("name", "") for each in fields if "required" in each.attributes}
    assert typed <= {"wallet_address", "second", "email"}


def test_one_line_stands_under_the_button(visitor: Customer) -> None:
    """After a failed payment it is what a customer who sees it as paid must know."""
    failed = {"problem": Problem.PAYMENT_FAILED, "customer": WALLET}
    for fields, said in (
        ({}, "You approve at your wallet. We never see your password."),
        (failed, "If your wallet shows the payment as completed, contact your wallet provider."),
    ):
        page = visitor.open(visitor.put_in("open", **fields)).page
        assert "".join(page.one("p", **{"class": "hint under"}).text) == said


PART: dict[str, dict[str, Any]] = {
    "processing": {"received": 999, "attention": Attention.PARTIAL_PAYMENT},
    "expired": {"received": 999},
    "canceled": {"received": 999, "attention": Attention.LATE_PAYMENT},
}


@pytest.mark.parametrize("stage", PART)
def test_after_a_part_a_customer_knows_whom_to_ask_what_to_say_and_the_way_back(
    visitor: Customer, stage: str
) -> None:
    stored = '{"order":"42"}'
    page = visitor.open(visitor.put_in(stage, metadata_json=stored, **PART[stage])).page
    assert (
        "Contact Shop and quote this number: Order number 42 Contact Shop Your order" in page.main
    )
    assert page.links.count("https://shop.example/") == 1
    visitor.give(contact="help@shop.example", website="www.shop.example")
    page = visitor.open(visitor.put_in(stage, metadata_json=stored, **PART[stage])).page
    assert "Order number 42 Contact Shop help@shop.example Return to the shop" in page.main
    (button,) = page.all("a", **{"class": "button"})
    assert button.attributes["href"] == "mailto:help@shop.example?subject=42"
    assert page.links.count("https://www.shop.example/") == 1
    for said in ("Order number", "Reference", "help@shop.example", "Contact Shop and"):
        assert page.main.count(said) == 1, said


@pytest.mark.parametrize("result", ["grant_rejected", "invalid_interaction"])
def test_no_price_is_said_to_hold_below_a_refused_approval(visitor: Customer, result: str) -> None:
    quote = replace(QUOTE, expires_at=NOW + timedelta(minutes=5))
    session = visitor.put_in("awaiting_approval", quote=quote)
    assert "Price valid" in visitor.open(session).page.main
    page = visitor.open(session, f"/grant/callback?result={result}").page
    assert "Price valid" not in page.main


def test_without_an_order_number_the_reference_is_the_number_to_quote(visitor: Customer) -> None:
    session = visitor.put_in("expired", received=999)
    page = visitor.open(session).page
    assert page.main.count(session.id) == 1
    assert page.one("code", id="reference").text == [session.id]


def test_money_that_came_too_late_is_the_title_and_the_button_writes_to_the_shop(
    visitor: Customer,
) -> None:
    late = {"received": 2000, "attention": Attention.LATE_PAYMENT}
    visitor.give(contact="help@shop.example")
    page = visitor.open(visitor.put_in("expired", **late)).page
    assert heading(page) == "Money arrived after this checkout had closed"
    assert "Shop has received $20.00. Do not pay again." in page.main
    (button,) = page.all("a", **{"class": "button"})
    assert button.attributes["href"].startswith("mailto:help@shop.example?subject=cs_")
    assert "Missing" not in page.main


def heading(page: Page) -> str:
    return " ".join("".join(page.one("h1").text).split())


def test_nobody_is_led_back_to_an_approval_that_is_over(visitor: Customer) -> None:
    session = visitor.put_in("awaiting_approval")
    for result, leads in (("grant_rejected", 0), ("invalid_interaction", 0), ("odd", 1)):
        page = visitor.open(session, f"/grant/callback?result={result}").page
        assert page.links.count(INTERACT) == leads


def test_the_steps_tell_where_the_customer_is(visitor: Customer) -> None:
    here = {
        "open": "Wallet",
        "preparing": "Price",
        "awaiting_approval": "Price",
        "processing": "Confirm",
    }
    for stage, name in here.items():
        page = visitor.open(visitor.put_in(stage)).page
        (step,) = page.all("li", **{"aria-current": "step"})
        assert "".join(step.text) == name
    session = visitor.put_in("awaiting_approval")
    page = visitor.open(session, "/grant/callback?result=grant_rejected").page
    assert "".join(page.one("li", **{"aria-current": "step"}).text) == "Approve"


def test_items_are_shown_with_quantity_price_and_line_total(visitor: Customer) -> None:
    items = (line("Tea", unit_amount=1050, quantity=3, description="Green"), line("Cup"))
    page = visitor.open(visitor.put(line_items=items, amount_total=5150)).page
    assert "Your order Tea 3 × $10.50 Green $31.50 Cup $20.00" in page.main


def test_the_wallet_field_has_a_label_and_a_hint(visitor: Customer) -> None:
    page = visitor.open(visitor.put_in("open")).page
    field = page.one("input", name="wallet_address").attributes
    assert page.one("label", **{"for": field["id"]}).text
    assert page.one("p", id=field["aria-describedby"]).text
    assert "aria-invalid" not in field


def test_an_address_that_is_none_is_a_404_page_without_a_way_back(visitor: Customer) -> None:
    unknown = "/pay/cs_0000000000000000000000"
    rest = "grant/callback?interact_ref=a&hash=b"
    paths = ("/pay/cs_unknown", "/pay/%00", "/pay/a/b/c", f"{unknown}/{rest}")
    for path in (unknown, *paths):
        answer = visitor.get(path)
        assert answer.status == 404
        assert "We could not find this checkout" in answer.page.main
        assert answer.page.links == []


@pytest.mark.parametrize("behind", [".", ",", ")", "/", ">.", "”"])
def test_an_address_with_the_signs_of_its_sentence_leads_to_the_page(
    visitor: Customer, behind: str
) -> None:
    for path in (f"/pay/{visitor.world.create().id}", f"/buy/{visitor.world.link().id}"):
        answer = visitor.get(path + behind)
        assert (answer.status, answer.headers["location"]) == (303, path)
        assert visitor.get(path).status == 200
        # Only to an address of ours, and only where it is read.
        elsewhere = visitor.get(f"//evil.example{path}{behind}")
        assert elsewhere.headers.get("location", path) == path
        assert visitor.ask("POST", path + behind).status in (404, 405)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_bare_address_leads_shops_and_developers_on_and_says_how_to_pay(
    visitor: Customer, language: str
) -> None:
    page = visitor.get("/", headers={"accept-language": language}).page
    assert page.links == ["/dashboard", "/docs", "/docs/v1"]
    assert ("open the link that the shop gave you" in page.main) == (language == "en")
    assert visitor.ask("POST", "/").status == 405


@pytest.mark.parametrize("stage", STAGES)
def test_a_title_has_no_isolates_which_some_lists_of_windows_show(
    visitor: Customer, stage: str
) -> None:
    title = visitor.open(visitor.put_in(stage)).body.partition("<title>")[2].partition("</title>")
    assert title[0].endswith(" – Shop")
    assert not set(title[0]) & {"\u2066", "\u2067", "\u2068", "\u2069"}


def test_a_price_names_the_provider_and_the_host_where_it_is_approved(visitor: Customer) -> None:
    bank = Provider("Cedar Bank", "https://wallet.example/{name}", "https://cedar.example/")
    visitor.give(providers=(bank,))
    page = visitor.open(visitor.put_in("awaiting_approval")).page
    assert "You will approve at Cedar Bank auth.wallet.example" in page.main


@pytest.mark.parametrize(
    ("wallet", "more", "shown"),
    [
        ("Harbor Holding", {}, "Payment to: Harbor Holding"),
        ("<b>Bank</b> & Co", {}, "Payment to: <b>Bank</b> & Co"),
        ("Eve\u202e\u2069 Trading\n", {}, "Payment to: w.example/shop"),
        ("\u2800", {}, "Payment to: w.example/shop"),
        ("علی\u200cرضا", {}, "Payment to: علی\u200cرضا"),
        ("x" * 2048, {}, f"Payment to: {'x' * 60}…"),
        (None, {"ownership": Ownership.PROVEN}, "Payment to: w.example/shop"),
        (None, {}, None),
        ("  tEa   shop ", {}, None),
    ],
)
def test_whoever_pays_sees_whose_wallet_it_is_if_it_has_another_name_than_the_shop(
    visitor: Customer, wallet: str | None, more: dict[str, Any], shown: str | None
) -> None:
    visitor.give(
        name="Tea Shop", wallet_name=wallet, wallet_address="https://w.example/shop", **more
    )
    page = visitor.open(visitor.put_in("open")).page
    found = ["".join(each.text) for each in page.all("small", **{"class": "payee"})]
    assert found == ([shown] if shown else [])
