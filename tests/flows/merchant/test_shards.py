"""A merchant gets more shards: from then on new sessions are spread, and all are listed as one."""

from __future__ import annotations

import pytest

from checkout.domain.ground.errors import ParameterInvalid, ResourceMissing
from checkout.domain.session.record import Session, Status
from checkout.domain.webhooks.event_types import COMPLETED
from checkout.flows import reports
from checkout.flows.merchant import api_keys, settings
from checkout.flows.session import close, lists
from checkout.flows.session.lists import ListQuery
from checkout.flows.webhooks import endpoints, event_log
from checkout.flows.webhooks.event_log import EventQuery
from tests.support.flows import CEDAR, World


def spread(world: World, shards: int) -> None:
    settings.spread(world.endpoints, world.merchant.id, shards)


def grown(world: World) -> list[Session]:
    """Return 36 sessions, newest first, of a merchant who got more shards twice meanwhile."""
    made = []
    for shards in (1, 2, 8):
        spread(world, shards)
        for _ in range(12):
            world.clock.pass_time(1)
            made.append(world.create(metadata_json='{"shop":"main"}'))
    assert {each.part for each in made[:12]} == {0}
    assert len({each.part for each in made}) > 4
    return made[::-1]


def test_filters_search_and_export_see_all_shards(world: World) -> None:
    made = grown(world)
    ended = [each.id for each in made[::5]]
    for each in ended:
        close.cancel(world.services, world.key(), each)
    query = ListQuery(limit=100, status=Status.CANCELED)
    listed = lists.list_page(world.services, world.key(), query)
    assert [each.id for each in listed.sessions] == ended
    found = reports.find_transactions(world.services, world.key(), "main", ListQuery(limit=100))
    assert [each.id for each in found.sessions] == [each.id for each in made]
    part = reports.export_part(world.endpoints, world.key(), "", ListQuery())
    assert [each.id for each in part.sessions] == [each.id for each in made]


def test_a_wallet_is_found_in_all_shards(world: World) -> None:
    made = grown(world)[::4]
    for each in made:
        world.submit(each, f"{CEDAR}/alice")
    found = reports.find_transactions(
        world.services, world.key(), f"{CEDAR}/alice", ListQuery(limit=100)
    )
    assert [each.id for each in found.sessions] == [each.id for each in made]


def test_events_are_in_the_shard_of_their_session(world: World) -> None:
    made = grown(world)[::4]
    for each in made:
        world.clock.pass_time(1)
        world.pay(each)
    key = world.key()
    paid = [world.session(each.id) for each in made][::-1]
    ids = [each.event for each in paid]
    events = [world.event(each) for each in ids if each]
    assert [each.part for each in events] == [each.part for each in paid]
    assert {each.type for each in events} == {COMPLETED}
    found, behind = event_log.events_page(world.services, key, EventQuery(limit=100, rounds=1))
    assert ([each.id for each in found], behind) == (ids, None)
    log = event_log.page(world.endpoints, key, status=None, after=None)
    assert [each.id for each in log.records] == ids


def test_failed_events_of_all_shards_are_sent_again(world: World) -> None:
    since = world.clock.now()
    sessions = grown(world)
    world.listen()
    world.core.merchants.replace(world.stored().disabled(world.clock.now()))
    for each in sessions[::4]:
        world.pay(each)
    world.deliver_hinted()  # the endpoint is disabled: they are given up
    endpoints.enable(world.endpoints, world.merchant.id)
    done = event_log.resend_failed(world.endpoints, world.key(), since=since, after=None)
    assert done.count == 9


def test_every_key_reads_and_writes_all_shards_at_once(world: World) -> None:
    before = api_keys.create(world.endpoints, world.key(), name="Before").key
    spread(world, 4)
    after = api_keys.create(world.endpoints, world.key(), name="After").key
    for key in (world.key(), before, after):
        found = world.services.api_keys.find(key.hash)
        assert found is not None
        assert found.parts == 4
    merchant = world.services.merchants.get(world.merchant.id)
    assert merchant is not None
    assert merchant.parts == 4
    assert not settings.keys_behind(world.endpoints, merchant)


@pytest.mark.parametrize("shards", [0, 3, 64, -1])
def test_only_powers_of_two_are_numbers_of_shards(world: World, shards: int) -> None:
    with pytest.raises(ParameterInvalid):
        spread(world, shards)


def test_an_unknown_merchant_has_no_shards(world: World) -> None:
    with pytest.raises(ResourceMissing):
        settings.spread(world.endpoints, "mer_nobody", 2)
