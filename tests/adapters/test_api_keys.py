"""Test the store of API keys on every DynamoDB: each change is whole, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest

from checkout.domain.ground.errors import Unavailable
from checkout.domain.merchant.record import ApiKey, Suspension
from checkout.ports import StaleMerchant
from tests.support.basics import NOW
from tests.support.samples import MS, a_key, a_merchant
from tests.support.services import put_key
from tests.support.stores import Store

FIRST, SECOND = a_key(), a_key(id="key_2", hash="ab" * 32, last_four="2222")
MERCHANT = a_merchant()


@pytest.fixture
def kept(store: Store) -> Store:
    """One merchant with one key, and another's key."""
    store.merchants.add(MERCHANT, FIRST)
    put_key(store.client, store.prefix, a_key(id="key_9", hash="99" * 32, merchant="mer_2"))
    return store


def found(store: Store, key: ApiKey) -> ApiKey:
    stored = store.api_keys.find(key.hash)
    assert stored is not None
    return stored


def test_a_key_is_added_and_listed_for_its_merchant_alone(kept: Store) -> None:
    assert kept.api_keys.add(SECOND, MERCHANT)
    assert sorted(kept.api_keys.of("mer_1"), key=lambda key: key.id) == [FIRST, SECOND]
    other = replace(SECOND, name="other")
    assert not kept.api_keys.add(other, MERCHANT.changed()), "there is one with this hash"


def test_of_two_keys_that_were_counted_for_at_once_one_is_added(kept: Store) -> None:
    third = a_key(id="key_3", hash="33" * 32)
    assert kept.api_keys.add(SECOND, MERCHANT)
    assert not kept.api_keys.add(third, MERCHANT)
    assert kept.api_keys.find(third.hash) is None
    assert kept.api_keys.add(third, MERCHANT.changed())


def test_a_key_made_from_settings_that_changed_meanwhile_is_not_added(kept: Store) -> None:
    kept.merchants.replace(MERCHANT.changed(return_hosts=("shop.example",)))
    assert not kept.api_keys.add(SECOND, MERCHANT)
    assert not kept.api_keys.roll(replace(FIRST, expires_at=NOW + MS), SECOND, MERCHANT)
    assert kept.api_keys.find(SECOND.hash) is None
    assert found(kept, FIRST) == FIRST


@pytest.mark.parametrize("end", [{"expires_at": NOW + MS}, {"revoked_at": NOW}])
def test_a_key_is_rolled_once(kept: Store, end: dict[str, object]) -> None:
    ended = replace(FIRST, **end)  # type: ignore[arg-type]
    assert kept.api_keys.roll(ended, SECOND, MERCHANT)
    assert (found(kept, FIRST), found(kept, SECOND)) == (ended, SECOND)
    third = a_key(id="key_3", hash="33" * 32)
    assert not kept.api_keys.roll(replace(FIRST, revoked_at=NOW + MS), third, MERCHANT)
    assert kept.api_keys.find(third.hash) is None


def test_a_key_is_revoked_while_another_one_lasts(kept: Store) -> None:
    put_key(kept.client, kept.prefix, SECOND)
    gone = replace(FIRST, revoked_at=NOW)
    assert kept.api_keys.revoke(gone, SECOND)
    assert found(kept, FIRST) == gone
    again = replace(FIRST, revoked_at=NOW + MS)
    assert not kept.api_keys.revoke(again, SECOND), "it is revoked already"
    assert not kept.api_keys.revoke(replace(SECOND, revoked_at=NOW), FIRST), "it would be the last"
    assert found(kept, SECOND) == SECOND


def test_a_key_that_ends_soon_is_none_that_lasts(kept: Store) -> None:
    put_key(kept.client, kept.prefix, replace(SECOND, expires_at=NOW + MS))
    assert not kept.api_keys.revoke(replace(FIRST, revoked_at=NOW), SECOND)
    assert found(kept, FIRST) == FIRST


def test_return_hosts_and_shards_reach_the_merchant_and_its_keys_or_neither(kept: Store) -> None:
    put_key(kept.client, kept.prefix, SECOND)
    settled = MERCHANT.changed(return_hosts=("shop.example",), parts=8)
    kept.api_keys.settle(settled, [FIRST, SECOND])
    assert kept.merchants.get("mer_1") == settled
    for key in (FIRST, SECOND):
        assert found(kept, key) == replace(key, return_hosts=("shop.example",), parts=8)
    with pytest.raises(StaleMerchant) as lost:
        kept.api_keys.settle(MERCHANT.changed(return_hosts=()), [FIRST, SECOND])
    assert lost.value.current == settled
    assert found(kept, FIRST).return_hosts == ("shop.example",)


def test_a_suspension_reaches_the_keys_and_leaves_them(kept: Store) -> None:
    suspended = MERCHANT.changed(suspended=Suspension.ALONE, key_sign_in_off_at=NOW)
    kept.api_keys.settle(suspended, [FIRST])
    assert found(kept, FIRST) == replace(FIRST, suspended=Suspension.ALONE, key_sign_in_off_at=NOW)
    kept.api_keys.settle(suspended.changed(suspended=None, key_sign_in_off_at=None), [FIRST])
    assert found(kept, FIRST) == FIRST


def test_settling_again_after_a_lost_answer_is_no_lost_race(kept: Store) -> None:
    settled = MERCHANT.changed(return_hosts=("shop.example",))
    kept.client.lose = 1
    with pytest.raises(Unavailable):
        kept.api_keys.settle(settled, [FIRST])
    kept.api_keys.settle(settled, [FIRST])
    assert kept.merchants.get("mer_1") == settled
