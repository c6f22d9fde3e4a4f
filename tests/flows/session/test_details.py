"""Test that what a customer gives is sealed, for one session and one merchant."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.ground.addresses import Address
from checkout.domain.ground.errors import Unavailable
from checkout.domain.session.collect import QuestionKind
from checkout.domain.session.customer_details import Answer, CustomerDetails
from checkout.domain.session.record import Session
from checkout.flows.session import details
from checkout.ports import SecretUnreadable
from tests.support.basics import SESSION_ID, a_session, seeded
from tests.support.flows import World

HOME = Address("DE", name="Ana", line1="Am Weg 1", city="Berlin", postal_code="10115")
SIZE = Answer("size", "Size", QuestionKind.DROPDOWN, "s", "Small")
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
    other = replace(merchant, id="mer_2", **details.new_keys(vault, None, seeded(3), "mer_2"))
    with pytest.raises(SecretUnreadable):
        details.opened(vault, other, sold(sealed))


def test_nothing_given_is_nothing_stored(world: World) -> None:
    vault, merchant = world.services.vault, world.stored()
    assert details.seal(vault, merchant, SESSION_ID, CustomerDetails()) == details.Sealed()
    assert details.opened(vault, merchant, a_session()) == CustomerDetails()


def test_of_an_unknown_merchant_nothing_is_opened(world: World) -> None:
    session = a_session(customer_details="v1.00000000.eA")
    assert details.opened(world.services.vault, None, session) == CustomerDetails()


def test_a_browsers_proof_is_of_one_act_in_one_session_at_one_merchant(world: World) -> None:
    vault, merchant = world.services.vault, world.stored()
    other = replace(merchant, id="mer_2", **details.new_keys(vault, None, seeded(3), "mer_2"))
    made = [
        details.browser_proof(vault, merchant, SESSION_ID, "attempt 1"),
        details.browser_proof(vault, merchant, SESSION_ID, "attempt 2"),
        details.browser_proof(vault, merchant, f"cs_{'9' * 22}", "attempt 1"),
        details.browser_proof(vault, other, SESSION_ID, "attempt 1"),
    ]
    assert len(set(made)) == 4
    assert made[0] == details.browser_proof(vault, merchant, SESSION_ID, "attempt 1")
    unreadable = replace(merchant, details_key="v1.not-a-key")
    assert details.browser_proof(vault, unreadable, SESSION_ID, "attempt 1") is None


def ours(world: World, sealed: details.Sealed, **fields: Any) -> Session:
    return sold(sealed, **{"merchant": world.merchant.id, **fields})


def known_by_api(world: World, *sessions: Session) -> list[CustomerDetails]:
    """Read as functions/api does, which has no vault."""
    found = details.known(world.core, sessions)
    return [found[each.id] for each in sessions]


def test_the_api_reads_what_was_given_through_kms(world: World) -> None:
    sealed = details.seal(world.services.vault, world.stored(), SESSION_ID, GIVEN)
    assert known_by_api(world, ours(world, sealed)) == [GIVEN]


def test_the_api_seals_as_the_page_does(world: World) -> None:
    vault, merchant = world.services.vault, world.stored()
    sealed = details.seal_by_api(world.core, merchant, SESSION_ID, GIVEN)
    assert details.opened(vault, merchant, sold(sealed)) == GIVEN
    assert sealed.mark == details.seal(vault, merchant, SESSION_ID, GIVEN).mark


def test_the_api_seals_nothing_for_a_merchant_whose_key_it_has_not(world: World) -> None:
    merchant = world.stored()
    without_kms = replace(world.core, details_keys=None)
    with pytest.raises(Unavailable):
        details.seal_by_api(without_kms, merchant, SESSION_ID, GIVEN)
    for unusable in (None, "AAAA"):
        changed = replace(merchant, details_key_kms=unusable)
        with pytest.raises(Unavailable):
            details.seal_by_api(world.core, changed, SESSION_ID, GIVEN)


def test_a_list_asks_kms_once_and_the_store_once_for_its_merchant(world: World) -> None:
    ids = [f"cs_{number:022d}" for number in range(3)]
    vault, merchant = world.services.vault, world.stored()
    sessions = [ours(world, details.seal(vault, merchant, each, GIVEN), id=each) for each in ids]
    world.kms.calls.clear()
    before = world.dynamo.calls["get_item"]
    assert known_by_api(world, *sessions) == [GIVEN] * 3
    assert world.kms.calls == ["decrypt"]
    assert world.dynamo.calls["get_item"] == before + 1


def test_nothing_is_asked_for_sessions_without_details(world: World) -> None:
    world.kms.calls.clear()
    before = world.dynamo.calls["get_item"]
    assert known_by_api(world, a_session()) == [CustomerDetails()]
    assert (world.kms.calls, world.dynamo.calls["get_item"]) == ([], before)


def test_the_api_shows_no_details_of_a_merchant_whose_key_it_has_not(world: World) -> None:
    sealed = details.seal(world.services.vault, world.stored(), SESSION_ID, GIVEN)
    world.services.merchants.replace(world.stored().changed(details_key_kms=None))
    assert known_by_api(world, ours(world, sealed)) == [CustomerDetails()]
    without_kms = replace(world.core, details_keys=None)
    assert details.known(without_kms, [ours(world, sealed)])[SESSION_ID] == CustomerDetails()
    unknown = ours(world, sealed, merchant="mer_none")
    assert known_by_api(world, unknown) == [CustomerDetails()]


def test_details_that_do_not_open_leave_the_rest_of_a_list(world: World) -> None:
    vault, merchant = world.services.vault, world.stored()
    sealed = details.seal(vault, merchant, SESSION_ID, GIVEN)
    moved = ours(world, sealed, id=f"cs_{'9' * 22}")
    assert known_by_api(world, moved, ours(world, sealed)) == [CustomerDetails(), GIVEN]
    world.services.merchants.replace(merchant.changed(details_key_kms="AAAA"))
    assert known_by_api(world, ours(world, sealed), ours(world, sealed)) == [CustomerDetails()] * 2


def test_while_kms_does_not_answer_the_api_says_so_and_nothing_untrue(world: World) -> None:
    sealed = details.seal(world.services.vault, world.stored(), SESSION_ID, GIVEN)
    world.kms.error = "ThrottlingException"
    with pytest.raises(Unavailable):
        known_by_api(world, ours(world, sealed))


@pytest.mark.parametrize("lost", [None, "AAAA"])
def test_the_wrapping_is_made_again_from_the_sealed_key(world: World, lost: str | None) -> None:
    merchant = world.stored().changed(details_key_kms=lost)
    sealed = details.seal(world.services.vault, merchant, SESSION_ID, GIVEN)
    keys = world.services.details_keys
    again = details.wrapped_again(world.services.vault, keys, merchant)
    world.services.merchants.replace(merchant)
    world.services.merchants.replace(world.stored().changed(details_key_kms=again))
    assert known_by_api(world, ours(world, sealed)) == [GIVEN]
    assert details.wrapped_again(world.services.vault, keys, world.stored()) == again


def test_a_deployment_without_kms_keeps_what_a_merchant_has(world: World) -> None:
    vault, merchant = world.services.vault, world.stored()
    assert details.wrapped_again(vault, None, merchant) == merchant.details_key_kms
    made = details.new_keys(vault, None, seeded(3), "mer_2")
    assert made["details_key_kms"] is None
