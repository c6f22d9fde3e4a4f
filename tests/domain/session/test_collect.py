"""Test what a shop can ask: it is read as it was written, by this release and by the next."""

from __future__ import annotations

import pytest

from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.session.collect import (
    NOTHING_ASKED,
    Collect,
    Detail,
    Place,
    Question,
    QuestionKind,
    from_json,
    known_countries,
)

FULL = Collect(
    asked=frozenset({Detail.EMAIL, Place.SHIPPING, Place.BILLING}),
    required=frozenset({Place.SHIPPING}),
    ships_to=("DE", "US"),
    questions=(
        Question("size", "Size", QuestionKind.DROPDOWN, options=(("s", "Small"),)),
        Question("note", "Note", QuestionKind.TEXT, required=False, least=1, most=300),
    ),
)
KNOWN = Collect(asked=frozenset({Detail.EMAIL}), email_known=True)


@pytest.mark.parametrize("collect", [FULL, NOTHING_ASKED, Collect(frozenset({Detail.NAME})), KNOWN])
def test_it_is_read_as_it_was_written(collect: Collect) -> None:
    assert from_json(collect.to_json()) == collect


def test_nothing_stored_is_nothing_asked() -> None:
    assert from_json(None) == NOTHING_ASKED
    assert not NOTHING_ASKED
    assert FULL
    assert NOTHING_ASKED.to_json() == "{}"


def test_what_a_later_release_asks_is_not_asked() -> None:
    assert from_json('{"asked":["email","shoe_size"],"required":["shoe_size"]}') == Collect(
        frozenset({Detail.EMAIL})
    )


def test_only_shipping_is_bound_to_countries() -> None:
    assert FULL.countries(Place.SHIPPING) == ("DE", "US")
    assert len(FULL.countries(Place.BILLING)) > 200
    assert len(NOTHING_ASKED.countries(Place.SHIPPING)) > 200


def test_an_answer_is_never_longer_than_255_characters() -> None:
    assert [each.longest for each in FULL.questions] == [255, 255]
    assert Question("n", "N", QuestionKind.TEXT, most=10).longest == 10


def test_countries_are_written_in_two_letters() -> None:
    assert known_countries(["de", " US", "", "DE"], param="ships_to") == ("DE", "US")
    for wrong in ("Germany", "XX", "ZZ", "x" * 1000):
        with pytest.raises(ParameterInvalid) as refusal:
            known_countries(["DE", wrong], param="ships_to")
        assert refusal.value.param == "ships_to"
        assert len(str(refusal.value)) < 100
