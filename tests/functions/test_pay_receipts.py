"""Receipts by e-mail: what they say, to whom they go, and how often."""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest

from checkout.domain.ground.addresses import Address
from checkout.domain.ground.languages import LANGUAGES
from checkout.domain.ground.limits import RECEIPT
from checkout.domain.merchant.record import Footer
from checkout.domain.session.collect import Place
from checkout.domain.session.customer_details import CustomerDetails, Detail
from checkout.domain.session.record import Session
from checkout.flows.links import purchase
from checkout.flows.session import details
from checkout.flows.session.receipt_mail import OFFERED_FOR, RECEIPTS_MAX
from tests.functions.receipts import TO, ask, facts_of, paid
from tests.support import services
from tests.support.basics import NOW
from tests.support.dashboard_pages import dashboard_of
from tests.support.flows import CEDAR, PREFIX, World
from tests.support.hosted_pages import STAGES, Answer, Customer, customer, line
from tests.support.outbox import Outbox


def test_a_receipt_is_sent_once_with_the_order_number_first(
    buyer: Customer, outbox: Outbox
) -> None:
    foot = Footer(company="Harbor Coffee Ltd, VAT IE1234567")
    buyer.give(name="Harbor Coffee", contact="help@shop.example", footer=foot)
    session = paid(buyer)
    form = buyer.open(session, "/success").page.one("form")
    assert form.attributes["action"] == f"/pay/{session.id}/receipt"
    answer = ask(buyer, session)
    assert (answer.status, answer.headers["location"]) == (
        303,
        f"/pay/{session.id}/success?mailed=1",
    )
    after = buyer.get(answer.headers["location"])
    assert "The receipt has been sent." in after.page.main
    assert not [one for one in after.page.elements if "data-countdown" in one.attributes]
    (letter,) = outbox.letters
    assert letter.to == TO
    assert letter.subject == "Order B-42: receipt from Harbor Coffee"
    assert letter.reply_to == "help@shop.example"
    assert letter.text.splitlines() == [
        "Your payment to Harbor Coffee is complete.",
        "",
        "Order number: B-42",
        "You paid: €18.53",
        "Harbor Coffee received: $20.00",
        f"Completed: {shown_date(after)}",
        "From your wallet: https://wallet.example/alice",
        "Payment number in your wallet: 1",
        "Seller: Harbor Coffee Ltd, VAT IE1234567",
        "",
        "2 × House beans: $15.50",
        "1 × Filter papers: $20.00",
        "Total: $20.00",
        "",
        "Questions? Contact Harbor Coffee: help@shop.example",
        "You are receiving this e-mail because this address was entered on the payment page. "
        "It has not been stored.",
    ]
    for said in ("B-42", "€18.53", "$15.50", 'href="mailto:help@shop.example"', 'lang="en"'):
        assert said in letter.html
    assert letter.html.index("B-42") < letter.html.index("€18.53")
    assert "/pay/" not in letter.text + letter.html
    assert session.id not in letter.text + letter.html


def test_each_number_on_a_receipt_finds_the_payment(buyer: Customer, outbox: Outbox) -> None:
    world = buyer.world
    session = world.pay(world.create(client_reference_id="A-2026-770173"))
    slip = buyer.open(session, "/success").page
    assert ask(buyer, session).status == 303
    said = [*facts_of(outbox.letters[0], but=("Completed",)), *texts_of(slip.all("code"))]
    assert {"A-2026-770173", "€18.54", "$20.00", f"{CEDAR}/alice", session.id} <= set(said)
    with dashboard_of(world) as owner:
        for each in said:
            found = owner.get(f"?q={quote(each)}").page.links
            assert f"/dashboard/transactions/{session.id}" in found, each


def texts_of(elements: list[Any]) -> list[str]:
    return ["".join(each.text).strip() for each in elements]


def shown_date(answer: Answer) -> str:
    """Return the time on the page's receipt, with plain blanks."""
    return " ".join("".join(answer.page.one("time").text).split())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_receipt_is_in_the_language_of_the_page(
    buyer: Customer, outbox: Outbox, language: str
) -> None:
    assert ask(buyer, paid(buyer, locale=language)).status == 303
    (letter,) = outbox.letters
    assert f'lang="{language}"' in letter.html
    assert ('dir="rtl"' in letter.html) == (language == "ar")
    assert ("receipt from" in letter.subject) == (language == "en")
    assert "B-42" in letter.subject
    assert letter.subject.isprintable()


def test_without_an_order_number_the_subject_does_not_name_the_session(
    buyer: Customer, outbox: Outbox
) -> None:
    session = paid(buyer, metadata_json="{}")
    ask(buyer, session)
    assert outbox.letters[0].subject == "Your receipt from Shop"
    assert session.id not in outbox.letters[0].subject


def test_words_of_a_shop_are_text_on_one_line(buyer: Customer, outbox: Outbox) -> None:
    hostile = "<b>Shop</b>\r\nBcc: all@shop.example\u202e"
    buyer.give(name=hostile, contact="https://shop.example/ask")
    ask(buyer, paid(buyer, line_items=(line("<img src=x>\nTotal: 0", unit_amount=2000),)))
    (letter,) = outbox.letters
    assert "\n" not in letter.subject
    assert "\r" not in letter.subject + letter.text
    assert "\u202e" not in letter.subject + letter.text
    assert len([each for each in letter.text.splitlines() if each.startswith("Total:")]) == 1
    assert "<b>" not in letter.html
    assert "<img" not in letter.html
    assert letter.reply_to is None


@pytest.mark.parametrize(
    "email",
    [
        "", "eva", "eva@", "@customer.example", "eva@customer", "eva@@customer.example",
        "eva@customer.example\r\nBcc: all@shop.example", "eva@customer.example\n",
        "a@shop.example,b@shop.example", "a@shop.example b@shop.example", "Eva <eva@shop.example>",
        '"eva"@shop.example', "e..va@shop.example", ".eva@shop.example", "eva@[192.0.2.1]",
        "eva@k\u00e4\u202ese.example", "ev\u00e4@shop.example", "eva\u202e@shop.example",
        "x" * 65 + "@shop.example", "eva@" + "a." * 130 + "example",
        "=?utf-8?q?a?=@shop.example\x00",
    ],
)  # fmt: skip
def test_what_is_no_address_is_told_and_nothing_is_sent(
    buyer: Customer, outbox: Outbox, email: str
) -> None:
    answer = ask(buyer, paid(buyer), email)
    if email.strip() in (TO, "eva@customer.example"):  # a blank around it is taken away
        assert (answer.status, outbox.letters[0].to) == (303, "eva@customer.example")
        return
    assert answer.status == 400
    assert outbox.letters == []
    page = answer.page
    assert "This is not an e-mail address." in page.main
    field = page.one("input", id="email").attributes
    assert (field["aria-invalid"], "autofocus" in field) == ("true", True)
    details, alert = page.one("details", id="mail"), page.one("div", role="alert")
    assert "open" in details.attributes
    assert details.begin < alert.begin < (details.end or 0)


def test_a_host_in_another_script_is_written_as_mail_services_need_it(
    buyer: Customer, outbox: Outbox
) -> None:
    assert ask(buyer, paid(buyer), "eva@Käse.example").status == 303
    assert outbox.letters[0].to == "eva@xn--kse-qla.example"


def test_a_session_sends_three_receipts_and_no_more(buyer: Customer, outbox: Outbox) -> None:
    session, other = paid(buyer), paid(buyer)
    for number in range(RECEIPTS_MAX):
        assert ask(buyer, session, f"a{number}@shop.example").status == 303
    answer = ask(buyer, session)
    assert answer.status == 400
    assert "The receipt has already been sent three times." in answer.page.main
    assert len(outbox.letters) == RECEIPTS_MAX
    assert ask(buyer, other).status == 303, "another payment has its own"
    buyer.world.clock.pass_time((OFFERED_FOR - timedelta(hours=1)).total_seconds())
    assert ask(buyer, session).status == 400, "they count as long as receipts are offered"


def test_a_form_that_is_sent_twice_sends_one_receipt(buyer: Customer, outbox: Outbox) -> None:
    session = paid(buyer)
    field = buyer.open(session, "/success").page.one("input", name="form_name")
    form = {"email": TO, "form_name": field.attributes["value"]}
    for _ in range(2):
        sent = buyer.ask("POST", f"/pay/{session.id}/receipt", data=form)
        assert sent.headers["location"] == f"/pay/{session.id}/success?mailed=1"
    assert len(outbox.letters) == 1


def test_a_client_is_limited_as_well(outbox: Outbox) -> None:
    world = World()
    limits = services.limits(world.core.clock, world.dynamo, PREFIX, 30)
    world.services = replace(world.services, mail=outbox, limits=limits)
    with customer(world) as buyer:
        answers = [ask(buyer, paid(buyer)).status for _ in range(RECEIPT.burst + 1)]
    assert answers == [303] * RECEIPT.burst + [429]
    assert len(outbox.letters) == RECEIPT.burst


def test_a_refusal_of_the_mail_service_is_a_sentence(buyer: Customer, outbox: Outbox) -> None:
    outbox.broken = True
    answer = ask(buyer, paid(buyer))
    assert answer.status == 424
    assert "The receipt could not be sent." in answer.page.main
    assert answer.page.one("input", id="email").attributes["value"] == TO
    assert "Paid" in answer.page.main


@pytest.mark.parametrize("stage", [each for each in STAGES if each != "completed"])
def test_only_a_completed_session_has_a_receipt(
    buyer: Customer, outbox: Outbox, stage: str
) -> None:
    session = buyer.put_in(stage)
    assert ask(buyer, session).status == 404
    assert outbox.letters == []


def test_a_receipt_is_offered_for_thirty_days(buyer: Customer, outbox: Outbox) -> None:
    session = paid(buyer)
    buyer.world.clock.pass_time((OFFERED_FOR - timedelta(seconds=1)).total_seconds())
    assert ask(buyer, session).status == 303
    buyer.world.clock.pass_time(1)
    assert buyer.open(session).page.all("input", id="email") == []
    assert ask(buyer, session).status == 404
    assert len(outbox.letters) == 1


def test_without_a_sender_nothing_is_offered_or_sent(visitor: Customer) -> None:
    session = visitor.put_in("completed", completed_at=NOW)
    assert visitor.open(session).page.all("input", id="email") == []
    assert ask(visitor, session).status == 404


def test_the_address_is_in_no_record_and_no_log(
    buyer: Customer, outbox: Outbox, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        ask(buyer, paid(buyer))
        outbox.broken = True
        ask(buyer, paid(buyer))
    assert TO not in caplog.text
    assert "customer.example" not in repr(vars(buyer.world.dynamo))


def test_a_form_with_other_fields_is_refused(buyer: Customer, outbox: Outbox) -> None:
    session = paid(buyer)
    for data in ({}, {"email": TO, "bcc": TO}):
        answer = buyer.ask("POST", f"/pay/{session.id}/receipt", data=data)
        assert answer.status == 400
    assert outbox.letters == []


def bought_with(buyer: Customer, email: str) -> Session:
    """Return a paid purchase by a link that asks for the e-mail address and where to send it."""
    world = buyer.world
    link = world.link(asked=(Detail.EMAIL, Place.SHIPPING))
    given = CustomerDetails(email=email, shipping=Address("DE", "Eva", "Am Weg 1", city="Berlin"))
    begun = purchase.begin(world.services, link, "1" * 22, "203.0.113.7", given)
    return buyer.paid(world.session(begun.session_id))


def test_an_address_that_a_link_has_asked_for_stands_in_the_form(
    buyer: Customer, outbox: Outbox
) -> None:
    page = buyer.open(bought_with(buyer, TO), "/success").page
    assert page.one("input", id="email").attributes["value"] == TO
    assert outbox.letters == []


@pytest.mark.parametrize(
    ("of_order", "to", "kept"),
    [(TO, TO.upper(), True), (TO, "other@shop.example", False), (None, TO, False)],
)
def test_page_and_e_mail_say_whether_the_address_is_stored(
    buyer: Customer, outbox: Outbox, of_order: str | None, to: str, kept: bool
) -> None:
    session = bought_with(buyer, of_order) if of_order else paid(buyer)
    hint = "".join(buyer.open(session, "/success").page.one("p", id="email-hint").text)
    assert hint.startswith("Your order already has an e-mail address.") == bool(of_order)
    assert ask(buyer, session, to).status == 303
    (letter,) = outbox.letters
    why = letter.text.splitlines()[-1]
    assert ("It has not been stored." in why) != kept
    assert ("This address is stored with your order." in why) == kept
    merchant = buyer.world.stored()
    given = details.opened(buyer.world.services.vault, merchant, buyer.world.session(session.id))
    assert ((given.email or "").casefold() == to.casefold()) == kept, "what is said is so"


def test_a_receipt_stays_whole_while_a_form_on_it_is_wrong(buyer: Customer, outbox: Outbox) -> None:
    buyer.give(withdrawal_days=14)
    session = bought_with(buyer, TO)
    for rest in ("receipt", "wallet"):
        wrong = buyer.ask("POST", f"/pay/{session.id}/{rest}", data={"email": "eva@"})
        assert wrong.status == 400
        assert "Am Weg 1" in wrong.page.main
        assert f"/pay/{session.id}/withdrawal" in wrong.page.links
