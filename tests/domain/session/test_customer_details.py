"""Test what a payment link asks of its customer: which texts are taken, and in which form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from checkout.domain.ground.addresses import Address, Fault
from checkout.domain.session.collect import Collect, Detail, Place, Question, QuestionKind
from checkout.domain.session.customer_details import (
    MAX,
    Answer,
    CustomerDetails,
    checked,
    from_json,
)


def asks(*asked: Detail | Place, required: Sequence[Detail | Place] = (), **more: Any) -> Collect:
    return Collect(frozenset(asked), frozenset(required), **more)


ALL: dict[str, Any] = {"email": "ana@example.com", "name": "Ana Bel", "phone": "+44 20 7946 0958"}


def test_what_is_asked_is_taken_and_nothing_else() -> None:
    given, wrong = checked(ALL, Collect(frozenset(Detail)))
    assert (given, wrong) == (CustomerDetails(**ALL), {})
    given, wrong = checked(ALL, asks(Detail.NAME, required=[Detail.NAME]))
    assert (given, wrong) == (CustomerDetails(name="Ana Bel"), {})


def test_masked_they_are_initials_without_an_address_or_an_answer() -> None:
    home = Address("DE", name="Ana Bel", line1="Am Weg 1", city="Berlin", postal_code="10115")
    size = Answer("size", "Size", QuestionKind.TEXT, "L", "L")
    given = CustomerDetails(**ALL, shipping=home, billing=home, answers=(size,))
    assert given.masked == CustomerDetails(email="a…@e…", name="A. …")
    assert CustomerDetails(phone="+44 20 7946 0958").masked == CustomerDetails()


def test_only_what_is_required_may_not_be_empty() -> None:
    typed = {"email": " ", "name": "\t"}
    given, wrong = checked(typed, asks(*Detail, required=[Detail.NAME, Detail.PHONE]))
    assert given == CustomerDetails()
    assert wrong == {Detail.NAME: Fault.MISSING, Detail.PHONE: Fault.MISSING}


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("  Zoë   O’Neill-Łuć ", "Zoë O’Neill-Łuć"),
        ("李小龍", "李小龍"),
        ("a" * 100, "a" * 100),
        ("a" * 101, None),
        ("a\u202eb", None),  # turns the direction of what follows
        ("a\x00b", None),
    ],
)
def test_a_name_is_what_can_be_printed_on_a_label(typed: str, stored: str | None) -> None:
    given, wrong = checked({"name": typed}, asks(Detail.NAME))
    assert given.name == stored
    assert wrong == ({} if stored else {Detail.NAME: Fault.INVALID})


@pytest.mark.parametrize(
    ("typed", "stored"),
    [
        ("030/123 45-67", "030/123 45-67"),
        ("+1 (555) 010.9999", "+1 (555) 010.9999"),
        ("٠٥٠١٢٣٤٥٦٧", "0501234567"),  # digits of Arabic, which a phone cannot dial
        ("12345", "12345"),
        ("1234", None),
        ("1" * 15, "1" * 15),
        ("1" * 16, None),
        ("1" * 5 + " " * 2 + "-" * 40, None),
        ("12+345", None),
        ("call me 12345", None),
    ],
)
def test_a_phone_number_has_digits_and_what_people_write_between(
    typed: str, stored: str | None
) -> None:
    given, wrong = checked({"phone": typed}, asks(Detail.PHONE))
    assert given.phone == stored
    assert wrong == ({} if stored else {Detail.PHONE: Fault.INVALID})


def test_an_address_that_is_none_is_invalid() -> None:
    _, wrong = checked({"email": "ana@"}, asks(Detail.EMAIL))
    assert wrong == {Detail.EMAIL: Fault.INVALID}


def test_they_are_read_as_they_were_written() -> None:
    given = CustomerDetails(email="ana@example.com", name="Zoë")
    assert given.to_json() == '{"email":"ana@example.com","name":"Zoë"}'
    assert from_json(given.to_json()) == given


def test_they_show_nothing_in_a_log() -> None:
    assert repr(CustomerDetails(**ALL)) == "CustomerDetails()"


def test_each_detail_has_a_longest_text() -> None:
    assert dict(MAX) == {"email": 254, "name": 100, "phone": 40}


HOME = {
    "shipping_country": "DE",
    "shipping_name": "Ana Bel",
    "shipping_line1": "Am Weg 1",
    "shipping_city": "Berlin",
    "shipping_postal_code": "10115",
}
AT_HOME = Address("DE", name="Ana Bel", line1="Am Weg 1", city="Berlin", postal_code="10115")
SEND = asks(Place.SHIPPING, required=[Place.SHIPPING], ships_to=("DE", "US"))
SEND_AND_BILL = asks(*Place, required=list(Place))


def test_an_address_is_taken_with_the_name_of_its_customer() -> None:
    given, wrong = checked(HOME, SEND)
    assert (given, wrong) == (CustomerDetails(name="Ana Bel", shipping=AT_HOME), {})


def test_the_name_is_not_asked_twice() -> None:
    collect = asks(Detail.NAME, Place.SHIPPING)
    assert collect.details == ()
    assert asks(Detail.NAME).details == (Detail.NAME,)


def test_a_country_to_which_the_shop_does_not_ship_is_not_taken() -> None:
    given, wrong = checked({**HOME, "shipping_country": "FR"}, SEND)
    assert given.shipping is not None
    assert given.shipping.country == "DE"  # the first of the list, whose form it is judged by
    assert wrong == {}


def test_the_bill_goes_where_the_parcel_goes_if_the_customer_says_so() -> None:
    given, wrong = checked({**HOME, "billing_same": "1"}, SEND_AND_BILL)
    assert (given.billing, wrong) == (given.shipping, {})
    given, wrong = checked(HOME, SEND_AND_BILL)
    assert wrong["billing_line1"] is Fault.MISSING


def test_a_required_bill_without_a_parcel_is_asked_for() -> None:
    collect = asks(*Place, required=[Place.BILLING])
    given, wrong = checked({"billing_same": "1", "shipping_country": "DE"}, collect)
    assert given.shipping is None
    assert set(wrong) >= {"billing_name", "billing_line1"}
    given, wrong = checked({"billing_same": "1"}, asks(*Place))
    assert (given, wrong) == (CustomerDetails(), {})


SIZE = Question("size", "Size", QuestionKind.DROPDOWN, options=(("s", "Small"), ("l", "Large")))
NOTE = Question("note", "A note", QuestionKind.TEXT, required=False, least=3, most=10)
BADGE = Question("badge", "Number of your badge", QuestionKind.NUMERIC, required=False)
QUESTIONS = Collect(questions=(SIZE, NOTE, BADGE))


def test_answers_are_kept_with_their_questions() -> None:
    typed = {"answer_size": "l", "answer_note": " To  Ana ", "answer_badge": "٠٧"}
    given, wrong = checked(typed, QUESTIONS)
    assert wrong == {}
    assert given.answers == (
        Answer("size", "Size", QuestionKind.DROPDOWN, "l", "Large"),
        Answer("note", "A note", QuestionKind.TEXT, "To Ana", "To Ana"),
        Answer("badge", "Number of your badge", QuestionKind.NUMERIC, "07", "07"),
    )


def test_a_choice_with_two_spaces_in_a_row_can_be_chosen() -> None:
    wide = Question("size", "Size", QuestionKind.DROPDOWN, options=(("A  b", "A  b"), ("c", "C")))
    given, wrong = checked({"answer_size": "A  b"}, Collect(questions=(wide,)))
    assert (given.answers, wrong) == (
        (Answer("size", "Size", QuestionKind.DROPDOWN, "A  b", "A  b"),),
        {},
    )


@pytest.mark.parametrize(
    ("typed", "faults"),
    [
        ({}, {"answer_size": Fault.MISSING}),
        ({"answer_size": "Large"}, {"answer_size": Fault.INVALID}),
        ({"answer_size": "s", "answer_note": "Hi"}, {"answer_note": Fault.INVALID}),
        ({"answer_size": "s", "answer_note": "x" * 11}, {"answer_note": Fault.INVALID}),
        ({"answer_size": "s", "answer_note": "a\u202ebc"}, {"answer_note": Fault.INVALID}),
        ({"answer_size": "s", "answer_badge": "seven"}, {"answer_badge": Fault.INVALID}),
        ({"answer_size": "s", "answer_badge": "²"}, {"answer_badge": Fault.INVALID}),
        ({"answer_size": "s", "answer_badge": "1" * 256}, {"answer_badge": Fault.INVALID}),
    ],
)
def test_an_answer_that_cannot_be_one_is_not_taken(
    typed: dict[str, str], faults: dict[str, Fault]
) -> None:
    assert checked(typed, QUESTIONS)[1] == faults


def test_addresses_and_answers_are_read_as_they_were_written() -> None:
    given, _ = checked({**HOME, "answer_size": "s"}, SEND)
    full = CustomerDetails(
        email="ana@example.com",
        shipping=AT_HOME,
        billing=Address("US"),
        answers=(Answer("size", "Size", QuestionKind.DROPDOWN, "l", "Large"),),
    )
    for each in (given, full):
        assert from_json(each.to_json(), each.further_json()) == each
    assert "Weg" not in given.to_json()
    assert repr(full) == "CustomerDetails()"
    assert repr(AT_HOME) == "Address()"
    assert "Large" not in repr(full.answers)
