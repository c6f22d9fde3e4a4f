"""Test the page of a payment link whose customers choose the amount."""

from __future__ import annotations

import pytest

from checkout.domain.links import OpenAmount, PaymentLink
from checkout.domain.session.collect import Detail
from checkout.domain.session.record import Session, Status
from tests.support.gifts import gift, rows
from tests.support.hosted_pages import Answer, Customer

UNCLEAR = "This amount can be read in two ways. Write 1250.00 / 1.25."
BETWEEN = "Give an amount from $1.00 to $5,000.00."


def sent(visitor: Customer, link: PaymentLink, **typed: str) -> Answer:
    """Open the page, and send its form."""
    page = visitor.get(f"/buy/{link.id}").page
    visit = page.one("input", name="visit").attributes["value"]
    return visitor.ask("POST", f"/buy/{link.id}", data={"visit": visit, **typed})


def begun(visitor: Customer, answer: Answer) -> Session:
    assert answer.status == 303, answer.page.main
    return visitor.world.session(answer.location.removeprefix("/pay/"))


def test_the_page_offers_the_suggestions_and_an_empty_field(visitor: Customer) -> None:
    link = gift(visitor)
    before = rows(visitor)
    visitor.world.forget()
    page = visitor.get(f"/buy/{link.id}").page
    buttons = {
        each.attributes["value"]: each.text
        for each in page.all("button")
        if each.attributes.get("name") == "suggestion"
    }
    assert buttons == {"500": ["$5.00"], "1000": ["$10.00"]}
    field = page.one("input", id="amount").attributes
    assert (field["value"], field["inputmode"], "required" in field) == ("", "decimal", True)
    assert "Another amount" in page.main
    assert "From $1.00 to $5,000.00" in page.main
    assert "Buy for" not in page.main
    assert page.all("script") == []
    assert rows(visitor) == before
    assert set(visitor.world.aws_calls()) == {"get_item"}


def test_enter_in_the_field_presses_no_suggestion(visitor: Customer) -> None:
    first, *_ = visitor.get(f"/buy/{gift(visitor).id}").page.all("button")
    assert "name" not in first.attributes  # a browser presses a form's first button


def test_without_suggestions_the_field_is_just_the_amount(visitor: Customer) -> None:
    main = visitor.get(f"/buy/{gift(visitor, OpenAmount(100, 200, ())).id}").page.main
    assert "Amount" in main
    assert "Another amount" not in main


@pytest.mark.parametrize(
    ("typed", "amount"),
    [
        ({"suggestion": "1000", "amount": ""}, 1_000),
        ({"suggestion": "500", "amount": "7"}, 500),  # the button that was pressed
        ({"amount": "12.50"}, 1_250),
        ({"amount": "12,50"}, 1_250),
        ({"amount": " 12.5 "}, 1_250),
        ({"amount": "1"}, 100),
        ({"amount": "5000"}, 500_000),
        ({"amount": "5,000.00"}, 500_000),
        ({"amount": "٥٠٫٢٥"}, 5_025),
    ],
)
def test_the_session_is_of_the_amount_that_the_form_held(
    visitor: Customer, typed: dict[str, str], amount: int
) -> None:
    session = begun(visitor, sent(visitor, gift(visitor), **typed))
    assert (session.amount_total, session.receive.value) == (amount, amount)
    assert [(each.unit_amount, each.quantity) for each in session.line_items] == [(amount, 1)]


def test_the_chosen_amount_is_shown_and_paid(visitor: Customer) -> None:
    session = begun(visitor, sent(visitor, gift(visitor), amount="7.30"))
    assert "Total $7.30" in visitor.open(session).page.main
    paid = visitor.world.pay(session)
    assert (paid.status, paid.received) == (Status.COMPLETED, 730)
    assert visitor.world.received() == 730


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ({}, "Please fill in this field."),
        ({"amount": ""}, "Please fill in this field."),
        ({"amount": "0.99"}, BETWEEN),
        ({"amount": "5000.01"}, BETWEEN),
        ({"amount": "-5"}, BETWEEN),
        ({"amount": "1e3"}, BETWEEN),
        ({"amount": "NaN"}, BETWEEN),
        ({"amount": "٫5"}, BETWEEN),
        ({"amount": "five"}, BETWEEN),
        ({"amount": "12.505,0"}, BETWEEN),
        ({"amount": "9" * 400}, BETWEEN),
        ({"amount": "1,250"}, UNCLEAR),
        ({"suggestion": "1"}, "Please fill in this field."),
        ({"suggestion": "-500"}, "Please fill in this field."),
        ({"suggestion": "9" * 400, "amount": "x"}, BETWEEN),
    ],
)
def test_another_amount_is_refused_and_nothing_is_written(
    visitor: Customer, typed: dict[str, str], said: str
) -> None:
    link = gift(visitor, left=1)
    before = rows(visitor)
    answer = sent(visitor, link, **typed)
    assert answer.status == 400
    field = answer.page.one("input", id="amount").attributes
    assert field["aria-invalid"] == "true"
    assert field["aria-describedby"] == "amount-hint amount-error"
    assert field["value"] == typed.get("amount", "")[:31]
    assert said in answer.page.main
    assert rows(visitor) == before
    assert visitor.world.left(link) == 1


def test_the_same_amount_again_is_the_same_purchase_and_another_is_another(
    visitor: Customer,
) -> None:
    link = gift(visitor)
    page = visitor.get(f"/buy/{link.id}").page
    visit = page.one("input", name="visit").attributes["value"]
    first, again, other = (
        visitor.ask("POST", f"/buy/{link.id}", data={"visit": visit, "amount": amount})
        for amount in ("2", "2.00", "3")
    )
    assert first.location == again.location != other.location
    assert begun(visitor, first).status is Status.OPEN
    assert [begun(visitor, each).amount_total for each in (first, other)] == [200, 300]
    assert sent(visitor, link, amount="3").location == other.location  # the browser's own visit


def test_an_amount_changes_nothing_where_the_price_is_fixed(visitor: Customer) -> None:
    link = visitor.world.link()
    session = begun(visitor, sent(visitor, link, amount="1", suggestion="1"))
    assert session.amount_total == 2_000
    assert visitor.get(f"/buy/{link.id}?amount=1").page.all("input", id="amount") == []


@pytest.mark.parametrize(
    ("wished", "shown"),
    [
        ("12.50", "12.50"),
        ("12,5", "12,5"),
        ("", ""),
        ("0.50", ""),
        ("1,250", ""),
        ("Call+us", ""),
        ("9" * 999, ""),
    ],
)
def test_an_amount_in_the_address_fills_the_field_and_does_nothing_else(
    visitor: Customer, wished: str, shown: str
) -> None:
    link = gift(visitor)
    before = rows(visitor)
    answer = visitor.get(f"/buy/{link.id}?amount={wished}")
    assert answer.status == 200
    assert answer.page.one("input", id="amount").attributes["value"] == shown
    assert "aria-invalid" not in answer.page.one("input", id="amount").attributes
    assert rows(visitor) == before


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("ar", "مبلغ آخر"),
        ("de", "Von 1,00 $ bis 5.000,00 $"),
        ("en", "From $1.00 to $5,000.00"),
        ("es", "Otro importe"),
        ("fr", "Autre montant"),
        ("hi", "कोई और राशि"),
        ("pt", "Outro valor"),
        ("sw", "Kiasi kingine"),
    ],
)
def test_it_is_asked_in_eight_languages(visitor: Customer, language: str, words: str) -> None:
    answer = visitor.get(f"/buy/{gift(visitor).id}", headers={"accept-language": language})
    assert answer.page.one("html").attributes["lang"] == language
    assert words in answer.page.main.replace("\N{NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("asset", "currency", "typed", "total", "units"),
    [
        (("JPY", 0), "jpy", "1250", 1_250, 1_250),
        (("KWD", 3), "kwd", "1.250", 1_250, 1_250),
        (("EUR", 9), "eur", "12.50", 1_250, 12_500_000_000),
        (("USD", 0), "usd", "12.00", 1_200, 12),
    ],
)
def test_it_is_exact_in_each_currency_and_scale(
    visitor: Customer, asset: tuple[str, int], currency: str, typed: str, total: int, units: int
) -> None:
    visitor.give(asset_code=asset[0], asset_scale=asset[1])
    link = gift(visitor, currency=currency)
    session = begun(visitor, sent(visitor, link, amount=typed))
    assert (session.amount_total, session.receive.value) == (total, units)


def test_an_amount_that_the_wallet_cannot_represent_is_refused(visitor: Customer) -> None:
    visitor.give(asset_code="USD", asset_scale=0)
    link = gift(visitor)
    before = rows(visitor)
    answer = sent(visitor, link, amount="12.50")
    assert answer.status == 400
    assert BETWEEN in answer.page.main
    assert rows(visitor) == before


def test_what_else_is_asked_is_asked_first_and_required_as_on_every_link(
    visitor: Customer,
) -> None:
    link = gift(visitor, asked=(Detail.EMAIL,), required=(Detail.EMAIL,))
    refused = sent(visitor, link, suggestion="500")
    assert refused.status == 400
    inputs = refused.page.all("input")
    assert [each.attributes["name"] for each in inputs] == ["visit", "email", "amount"]
    assert "aria-invalid" in refused.page.one("input", id="email").attributes
    assert "aria-invalid" not in refused.page.one("input", id="amount").attributes
    session = begun(visitor, sent(visitor, link, suggestion="500", email="ana@example.com"))
    assert session.amount_total == 500


def test_what_is_sold_out_takes_no_amount(visitor: Customer) -> None:
    link = gift(visitor, left=1)
    page = visitor.get(f"/buy/{link.id}").page
    visit = page.one("input", name="visit").attributes["value"]
    assert visitor.world.services.links.set_left(link, 0)
    for typed in ({"amount": "5"}, {"amount": ""}):
        answer = visitor.ask("POST", f"/buy/{link.id}", data={"visit": visit, **typed})
        assert answer.status == 409
        assert "Sold out" in answer.page.main
