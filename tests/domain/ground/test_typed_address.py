"""Test which texts customers type in place of a wallet address, and what they read."""

from __future__ import annotations

import pytest

from checkout.domain.ground.typed_address import (
    AddressMistake,
    NotAnAddress,
    mistake_in,
    wallet_url,
)
from open_payments.wallet_address import Mistake
from tests.support.cases import MISTYPED


@pytest.mark.parametrize(
    ("typed", "mistake"), [(each, mistake) for mistake, typed in MISTYPED.items() for each in typed]
)
def test_what_cannot_be_a_wallet_address_is_refused_with_the_mistake(
    typed: str, mistake: AddressMistake
) -> None:
    with pytest.raises(NotAnAddress) as caught:
        wallet_url(typed, allow_ports=False)
    assert caught.value.mistake is mistake
    assert str(caught.value).endswith(".")
    assert "{" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_each_mistake_has_an_example_and_there_are_forty() -> None:
    assert set(MISTYPED) == set(AddressMistake)
    assert sum(map(len, MISTYPED.values())) >= 40


@pytest.mark.parametrize("typed", MISTYPED[AddressMistake.NAME])
def test_development_refuses_plain_names_too(typed: str) -> None:
    with pytest.raises(NotAnAddress):
        wallet_url(typed, allow_ports=True)


def test_each_mistake_of_the_grammar_has_its_kind_here() -> None:
    assert {each.value for each in Mistake} <= {each.value for each in AddressMistake}


def test_a_text_that_grows_beyond_the_limit_is_left_to_the_grammar() -> None:
    """One character of 18, when it is normalized, is in none of these patterns."""
    for text in ("ﷺ" * 200, "㎯" * 700, "a" * 2049):
        assert mistake_in(text) is None
        with pytest.raises(NotAnAddress, match="too long"):
            wallet_url(text, allow_ports=False)
