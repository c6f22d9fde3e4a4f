"""Test the stores of people and challenges on every DynamoDB: each change is whole, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkout.domain.ground.errors import Unavailable
from checkout.domain.merchant.people import Role
from tests.support.basics import NOW
from tests.support.samples import MS, a_key, a_member, a_merchant, an_invitation
from tests.support.stores import Store

ADA, OPEN = a_member(), an_invitation()
BO = a_member(id="mbr_bo", name="Bo")
ACCEPTED = replace(OPEN, ended_at=NOW)


def joined(store: Store) -> None:
    """Ada and Bo, both owners."""
    for member, number in ((ADA, "1"), (BO, "2")):
        invitation = replace(OPEN, id=f"inv_{number}", hash=number * 64)
        store.people.invite(invitation)
        assert store.people.join(member, replace(invitation, ended_at=NOW))


def test_an_invitation_is_found_by_its_hash_and_listed_for_its_merchant_alone(store: Store) -> None:
    theirs = an_invitation(id="inv_9", hash="99" * 32, merchant="mer_2")
    for each in (OPEN, theirs, OPEN):
        store.people.invite(each)
    assert store.people.invitation(OPEN.hash) == OPEN
    assert store.people.invitation("0" * 64) is None
    assert store.people.invitations_of("mer_1") == (OPEN,)
    assert store.people.members_of("mer_1") == ()


def test_an_invitation_is_accepted_or_withdrawn_once(store: Store) -> None:
    store.people.invite(OPEN)
    assert store.people.member(ADA.id) is None
    assert store.people.join(ADA, ACCEPTED)
    assert store.people.member(ADA.id) == ADA
    assert store.people.members_of("mer_1") == (ADA,)
    assert store.people.invitation(OPEN.hash) == ACCEPTED
    assert not store.people.join(BO, replace(OPEN, ended_at=NOW + MS))
    assert not store.people.withdraw(replace(OPEN, ended_at=NOW + MS))
    assert store.people.member(BO.id) is None


def test_a_withdrawn_an_ended_or_an_unknown_invitation_makes_no_member(store: Store) -> None:
    store.people.invite(OPEN)
    assert not store.people.join(ADA, replace(OPEN, ended_at=OPEN.expires_at))
    assert store.people.withdraw(ACCEPTED)
    assert not store.people.join(ADA, replace(OPEN, ended_at=NOW + MS))
    assert not store.people.join(ADA, replace(ACCEPTED, hash="00" * 32))
    assert not store.people.withdraw(replace(ACCEPTED, hash="00" * 32))
    assert store.people.member(ADA.id) is None


def test_a_member_is_written_from_the_version_that_was_read(store: Store) -> None:
    joined(store)
    assert store.people.replace(ADA.changed(role=Role.DEVELOPER, last_used_at=NOW))
    assert not store.people.replace(ADA.changed(name="Too late"))
    assert not store.people.replace(a_member(id="mbr_nobody").changed(name="Nobody"))
    found = store.people.member(ADA.id)
    assert found == replace(ADA, role=Role.DEVELOPER, last_used_at=NOW, version=2)


def test_an_owner_leaves_only_if_the_other_one_stays(store: Store) -> None:
    joined(store)
    assert store.people.replace(BO.changed(revoked_at=NOW), ADA)
    assert not store.people.replace(ADA.changed(revoked_at=NOW), BO)
    assert not store.people.replace(ADA.changed(role=Role.SUPPORT), BO)
    found = store.people.member(ADA.id)
    assert found is not None
    assert found.owns
    people = {each.name: each.active for each in store.people.members_of("mer_1")}
    assert people == {"Ada Ñandú": True, "Bo": False}


def test_a_lost_answer_changes_nothing(store: Store) -> None:
    joined(store)
    store.client.lose = 1
    changed = ADA.changed(last_used_at=NOW)
    with pytest.raises(Unavailable):
        store.people.replace(changed)
    assert store.people.replace(changed), "it is our own write"
    assert store.people.member(ADA.id) == changed


def test_people_are_no_keys_and_keys_are_no_people(store: Store) -> None:
    store.merchants.add(a_merchant(), a_key())
    joined(store)
    assert store.api_keys.of("mer_1") == (a_key(),)
    assert store.api_keys.find(ADA.id) is None
    assert store.people.member(a_key().hash) is None


def test_a_challenge_is_taken_once_in_its_time(store: Store) -> None:
    store.challenges.put("place", b"\x00first", NOW + 2 * MS)
    store.challenges.put("place", b"\x00second", NOW + 2 * MS)
    for ask in (store.challenges.look, store.challenges.take):
        assert ask("elsewhere", NOW) is None
        assert ask("place", NOW + 2 * MS) is None
        assert ask("place", NOW + MS) == b"\x00second"
    for ask in (store.challenges.look, store.challenges.take):
        assert ask("place", NOW) is None
    store.challenges.put("place", b"third", NOW + 2 * MS)
    assert store.challenges.take("place", NOW) == b"third"
