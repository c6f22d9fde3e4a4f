"""Test that what a customer gives is sealed, for one session and one merchant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.addresses import Address
from checkout.domain.collect import Kind
from checkout.domain.customer_details import Answer, CustomerDetails
from checkout.domain.errors import Unavailable
from checkout.domain.session import Session
from checkout.flows.checkout import details
from checkout.ports.runtime import SecretUnreadable
from tests.product import World
from tests.support import SESSION_ID, a_session, seeded

HOME = Address("DE", name="Ana", line1="Am Weg 1", city="Berlin", postal_code="10115")
SIZE = Answer("size", "Size", Kind.DROPDOWN, "s", "Small")
GIVEN = CustomerDetails(email="ana@example.com", name="Ana", shipping=HOME, answers=(SIZE,))


def sold(sealed: details.Sealed, **fields: Any) -> Session:
    return a_session(customer_details=sealed.details, customer_further=sealed.further, **fields)


def test_what_was_given_is_sealed_and_read_again(world: World) -> None:
    vault = world.services.vault
    sealed = details.seal(vault, world.stored(), SESSION_ID, GIVEN)
    assert "ana@example.com" not in f"{sealed}"
    assert "Am Weg 1" not in f"{sealed}"
    assert details.opened(vault, world.stored(), sold(sealed)) == GIVEN


def test_without_addresses_and_answers_there_is_one_sealed_text(world: World) -> None:
    given = CustomerDetails(email="ana@example.com")
    sealed = details.seal(world.services.vault, world.stored(), SESSION_ID, given)
    assert sealed.further is None
    assert details.opened(world.services.vault, world.stored(), sold(sealed)) == given


def test_neither_text_takes_the_others_place(world: World) -> None:
    vault = world.services.vault
    sealed = details.seal(vault, world.stored(), SESSION_ID, GIVEN)
    with pytest.raises(SecretUnreadable):
        details.opened(vault, world.stored(), a_session(customer_details=sealed.further))


def test_it_opens_for_no_other_session_and_no_other_merchant(world: World) -> None:
    vault, merchant = world.services.vault, world.stored()
    sealed = details.seal(vault, merchant, SESSION_ID, GIVEN)
    moved = sold(sealed, id=f"cs_{'9' * 22}")
    with pytest.raises(SecretUnreadable):
        details.opened(vault, merchant, moved)
    other = replace(merchant, id="mer_2", details_key=details.new_key(vault, seeded(3), "mer_2"))
    with pytest.raises(SecretUnreadable):
        details.opened(vault, other, sold(sealed))


def test_nothing_given_is_nothing_stored(world: World) -> None:
    vault, merchant = world.services.vault, world.stored()
    assert details.seal(vault, merchant, SESSION_ID, CustomerDetails()) == details.Sealed()
    assert details.opened(vault, merchant, a_session()) == CustomerDetails()


def test_a_merchant_whose_key_is_not_known_yet_sells_in_a_minute(world: World) -> None:
    keyless = replace(world.stored(), details_key=None)
    with pytest.raises(Unavailable):
        details.seal(world.services.vault, keyless, SESSION_ID, GIVEN)
    session = a_session(customer_details="v1.00000000.eA")
    for unknown in (keyless, None):
        assert details.opened(world.services.vault, unknown, session) == CustomerDetails()
