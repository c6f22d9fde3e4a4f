"""Test addresses in the form of their country, against what postal services print as examples."""

from __future__ import annotations

import re

import pytest

from checkout.domain.ground.addresses import (
    Address,
    Fault,
    Part,
    checked,
    countries,
    label,
    parts_asked,
)

US = {
    "a_name": "Ana Bel",
    "a_line1": "1 Main St",
    "a_line2": "Apt 4",
    "a_city": "Springfield",
    "a_state": "IL",
    "a_postal_code": "62701",
}


def order(country: str) -> list[str]:
    return [each.part.value for each in parts_asked(country)]


def test_each_country_asks_in_its_own_order() -> None:
    street = ["line1", "line2"]
    assert order("US") == ["name", *street, "city", "state", "postal_code"]
    assert order("DE") == ["name", *street, "postal_code", "city"]
    assert order("JP") == ["postal_code", "state", *street, "name"]
    assert order("BR") == ["name", *street, "district", "city", "state", "postal_code"]
    assert order("AG") == ["name", *street, "city"]  # the data have no form of its own


def test_what_a_country_writes_on_one_line_is_told() -> None:
    def beside(country: str) -> list[str]:
        return [each.part.value for each in parts_asked(country) if each.beside]

    assert beside("DE") == ["city"]
    assert beside("US") == ["state", "postal_code"]
    assert beside("GB") == beside("JP") == []
    for country in countries():  # a name or a street needs a line of its own
        assert not {"name", "line1", "line2"} & set(beside(country))


def test_parts_are_called_as_they_are_there() -> None:
    def called(country: str) -> dict[str, str]:
        return {each.part.value: each.called for each in parts_asked(country)}

    assert (called("US")["state"], called("US")["postal_code"]) == ("state", "zip")
    assert called("JP")["state"] == "prefecture"
    assert called("DE")["postal_code"] == "postal"
    assert called("IE")["postal_code"] == "eircode"
    assert called("GB")["city"] == "post_town"


def test_every_country_has_a_form_that_can_be_filled_in() -> None:
    assert len(countries()) > 240
    assert {"DE", "US", "JP", "KE", "IN"} <= set(countries())
    for country in countries():
        assert re.fullmatch("[A-Z]{2}", country)
        asked = parts_asked(country)
        assert {Part.NAME, Part.LINE1} <= {each.part for each in asked}
        typed = {f"a_{each.part}": _right(each.regions, each.example) for each in asked}
        address, wrong = checked(typed, "a_", country=country, required=True)
        assert wrong == {}, country
        assert address is not None
        assert label(address)[-1].isupper() or label(address)[-1]


def _right(regions: tuple[tuple[str, str], ...], example: str | None) -> str:
    return regions[0][1] if regions else example or "Text"


def test_a_complete_address_is_taken() -> None:
    address, wrong = checked(US, "a_", country="US", required=True)
    assert wrong == {}
    assert address == Address(
        "US",
        name="Ana Bel",
        line1="1 Main St",
        line2="Apt 4",
        city="Springfield",
        state="IL",
        postal_code="62701",
    )


def test_the_name_of_a_region_is_as_good_as_its_code() -> None:
    address, _ = checked({**US, "a_state": "illinois"}, "a_", country="US", required=True)
    assert address is not None
    assert address.state == "IL"


def test_what_is_missing_is_named() -> None:
    _, wrong = checked({"a_name": " "}, "a_", country="US", required=True)
    names = ("name", "line1", "city", "state", "postal_code")
    assert wrong == {f"a_{name}": Fault.MISSING for name in names}
    _, wrong = checked({}, "a_", country="JP", required=True)
    first = ("postal_code", "state", "line1", "name")
    assert wrong == {f"a_{name}": Fault.MISSING for name in first}


def test_an_optional_address_is_left_out_as_a_whole() -> None:
    assert checked({"a_name": "Ana"}, "a_", country="US", required=False) == (None, {})
    _, wrong = checked({"a_city": "Springfield"}, "a_", country="US", required=False)
    assert "a_line1" in wrong


@pytest.mark.parametrize(
    ("country", "typed", "stored"),
    [
        ("DE", "10115", "10115"),
        ("DE", "1011", None),
        ("DE", "٠١٢٣٤", "01234"),
        ("GB", "sw1a 1aa", "SW1A 1AA"),
        ("JP", "１００-０００１", "100-0001"),
        ("US", "62701-1234", "62701-1234"),
        ("US", "6270", None),
        ("US", "62701-12", None),
        ("US", "627011234", "62701-1234"),
        ("CA", "K1A 0B1", "K1A 0B1"),
        ("CA", "k1a-0b1", "K1A 0B1"),
        ("DE", "D-26133", "26133"),
        ("DE", "DE 26 133", "26133"),
        ("SE", "SE-114 55", "114 55"),
        ("PT", "1000205", "1000-205"),
        ("PL", "00950", "00-950"),
        ("IN", "110 034", "110034"),
        ("LV", "LV 1073", "LV-1073"),
        ("MT", "NXR-01", "NXR 01"),
        ("DE", "26133" * 4, None),
        ("IE", "", None),
    ],
)
def test_postal_codes_have_the_form_of_the_country(
    country: str, typed: str, stored: str | None
) -> None:
    address, wrong = checked(
        {"a_line1": "1 Main St", "a_postal_code": typed}, "a_", country=country, required=True
    )
    assert address is not None
    assert address.postal_code == stored
    assert (wrong.get("a_postal_code") is Fault.INVALID) == bool(typed and not stored)


@pytest.mark.parametrize("text", ["x" * 101, "a\x00b", "a\u202eb", "a\u200bb"])
def test_what_cannot_be_printed_on_a_label_is_not_taken(text: str) -> None:
    for name in ("name", "line1", "line2", "city", "state", "postal_code"):
        _, wrong = checked({**US, f"a_{name}": text}, "a_", country="US", required=True)
        assert wrong == {f"a_{name}": Fault.INVALID}


def test_a_state_that_is_none_of_the_list_is_not_taken() -> None:
    _, wrong = checked({**US, "a_state": "Bavaria"}, "a_", country="US", required=True)
    assert wrong == {"a_state": Fault.INVALID}


@pytest.mark.parametrize(
    ("address", "lines"),
    [
        (
            Address("US", "Ana", "1 Main St", "Apt 4", None, "Springfield", "IL", "62701"),
            ["Ana", "1 Main St", "Apt 4", "SPRINGFIELD, IL 62701", "UNITED STATES"],
        ),
        (
            Address("DE", "Ana", "Am Weg 1", None, None, "Berlin", None, "10115"),
            ["Ana", "Am Weg 1", "10115 BERLIN", "GERMANY"],
        ),
        (
            Address("JP", "山田", "千代田1-1", None, None, None, "東京都", "100-0001"),
            ["〒100-0001", "東京都", "千代田1-1", "山田", "JAPAN"],
        ),
        (
            Address("JP", "Ana", "1-1 Chiyoda", None, None, None, "東京都", "100-0001"),
            ["Ana", "1-1 Chiyoda, TOKYO", "100-0001", "JAPAN"],
        ),
        (
            Address("BR", "Ana", "Rua 1", None, "Centro", "Rio", "RJ", "20000-000"),
            ["Ana", "Rua 1", "Centro", "RIO-RJ", "20000-000", "BRAZIL"],
        ),
        (
            Address("BR", "Ana", "Rua 1", None, None, "Rio", None, None),
            ["Ana", "Rua 1", "RIO", "BRAZIL"],
        ),
        (
            Address("SG", "Ana", "1 Rd", None, None, None, None, "123456"),
            ["Ana", "1 Rd", "SINGAPORE 123456", "REP. OF SINGAPORE"],
        ),
    ],
)
def test_a_label_is_written_as_its_country_writes_it(address: Address, lines: list[str]) -> None:
    assert label(address) == lines
