from __future__ import annotations

from checkout.adapters.dynamo import DynamoMerchants
from tests.support.flows import PREFIX, World


def test_a_merchant_is_read_once_a_minute() -> None:
    world = World()
    merchants = world.services.merchants
    merchants.get(world.merchant.id)
    world.dynamo.calls.clear()
    for _ in range(5):
        assert merchants.get(world.merchant.id) == world.merchant
    assert not world.dynamo.calls
    world.clock.pass_time(61)
    merchants.get(world.merchant.id)
    assert list(world.dynamo.calls) == ["get_item"]


def test_what_this_process_writes_it_sees_at_once() -> None:
    world = World()
    merchants = world.services.merchants
    merchants.get(world.merchant.id)
    changed = world.merchant.changed(name="New name")
    merchants.replace(changed)
    assert merchants.get(world.merchant.id) == changed


def test_an_identity_that_is_newer_than_the_one_remembered_is_read_again() -> None:
    world = World()
    merchants = world.services.merchants
    assert merchants.get(world.merchant.id) == world.merchant
    moved = world.merchant.changed_identity(key_id="new-key")
    DynamoMerchants(world.dynamo, PREFIX).replace(moved)  # as another process does
    assert merchants.get(world.merchant.id, world.merchant.identity) == world.merchant
    assert merchants.get(world.merchant.id, moved.identity) == moved
    assert merchants.get(world.merchant.id) == moved


def test_a_merchant_that_does_not_exist_is_not_remembered() -> None:
    world = World()
    assert world.services.merchants.get("mer_nobody") is None
    world.dynamo.calls.clear()
    assert world.services.merchants.get("mer_nobody") is None
    assert world.dynamo.calls
