"""Test that what a customer gives is sealed, for one session and one merchant."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkout.domain.customer_details import CustomerDetails
from checkout.domain.errors import Unavailable
from checkout.flows.checkout import details
from checkout.ports.runtime import SecretUnreadable
from tests.product import World
from tests.support import SESSION_ID, a_session, seeded

GIVEN = CustomerDetails(email="ana@example.com", name="Ana")


def test_what_was_given_is_sealed_and_read_again(world: World) -> None:
    vault = world.services.vault
    sealed = details.seal(vault, world.stored(), SESSION_ID, GIVEN)
    assert sealed is not None
    assert "ana" not in sealed
    assert details.opened(vault, world.stored(), a_session(customer_details=sealed)) == GIVEN


def test_it_opens_for_no_other_session_and_no_other_merchant(world: World) -> None:
    vault, merchant = world.services.vault, world.stored()
    sealed = details.seal(vault, merchant, SESSION_ID, GIVEN)
    moved = a_session(id=f"cs_{'9' * 22}", customer_details=sealed)
    with pytest.raises(SecretUnreadable):
        details.opened(vault, merchant, moved)
    other = replace(merchant, id="mer_2", details_key=details.new_key(vault, seeded(3), "mer_2"))
    with pytest.raises(SecretUnreadable):
        details.opened(vault, other, a_session(customer_details=sealed))


def test_nothing_given_is_nothing_stored(world: World) -> None:
    vault, merchant = world.services.vault, world.stored()
    assert details.seal(vault, merchant, SESSION_ID, CustomerDetails()) is None
    assert details.opened(vault, merchant, a_session()) == CustomerDetails()


def test_a_merchant_whose_key_is_not_known_yet_sells_in_a_minute(world: World) -> None:
    keyless = replace(world.stored(), details_key=None)
    with pytest.raises(Unavailable):
        details.seal(world.services.vault, keyless, SESSION_ID, GIVEN)
    session = a_session(customer_details="v1.00000000.eA")
    for unknown in (keyless, None):
        assert details.opened(world.services.vault, unknown, session) == CustomerDetails()
