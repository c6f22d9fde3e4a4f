"""Test what a payment link asks of its customer: which texts are taken, and in which form."""

from __future__ import annotations

import pytest

from checkout.domain.customer_details import (
    MAX,
    CustomerDetails,
    Detail,
    Fault,
    checked,
    from_json,
)

ALL = {"email": "ana@example.com", "name": "Ana Bel", "phone": "+44 20 7946 0958"}


def test_what_is_asked_is_taken_and_nothing_else() -> None:
    given, wrong = checked(ALL, asked=tuple(Detail), required=())
    assert (given, wrong) == (CustomerDetails(**ALL), {})
    given, wrong = checked(ALL, asked=[Detail.NAME], required=[Detail.NAME])
    assert (given, wrong) == (CustomerDetails(name="Ana Bel"), {})


def test_only_what_is_required_may_not_be_empty() -> None:
    typed = {"email": " ", "name": "\t"}
    given, wrong = checked(typed, asked=tuple(Detail), required=[Detail.NAME, Detail.PHONE])
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
    given, wrong = checked({"name": typed}, asked=[Detail.NAME], required=())
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
    given, wrong = checked({"phone": typed}, asked=[Detail.PHONE], required=())
    assert given.phone == stored
    assert wrong == ({} if stored else {Detail.PHONE: Fault.INVALID})


def test_an_address_that_is_none_is_invalid() -> None:
    _, wrong = checked({"email": "ana@"}, asked=[Detail.EMAIL], required=())
    assert wrong == {Detail.EMAIL: Fault.INVALID}


def test_they_are_read_as_they_were_written() -> None:
    given = CustomerDetails(email="ana@example.com", name="Zoë")
    assert given.to_json() == '{"email":"ana@example.com","name":"Zoë"}'
    assert from_json(given.to_json()) == given


def test_they_show_nothing_in_a_log() -> None:
    assert repr(CustomerDetails(**ALL)) == "CustomerDetails()"


def test_each_detail_has_a_longest_text() -> None:
    assert dict(MAX) == {"email": 254, "name": 100, "phone": 40}
