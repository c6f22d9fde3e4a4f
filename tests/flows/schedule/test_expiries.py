"""Sessions that the clock ends: told where the merchant asked, counted once, never written."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from checkout.adapters.dynamo.daily_totals import DynamoDailyTotals
from checkout.adapters.runtime import Threads
from checkout.domain.ground.errors import SessionUnexpectedState, Unavailable
from checkout.domain.ground.parts import Lists
from checkout.domain.reports.daily_totals import tallied
from checkout.domain.session.record import Status
from checkout.domain.webhooks.event_types import CANCELED, EXPIRED
from checkout.flows.schedule import expiries, sweep
from checkout.flows.schedule.expiries import GATHERED, STRETCH, Followed
from checkout.flows.session import close, lists, lookup, reconcile
from checkout.ports import Scan, ScanPositions
from tests.support.basics import NOW, HandClock, between
from tests.support.flows import PREFIX, World, interrupt, raising
from tests.support.protected import CLOCK_IS_FINAL_AFTER
from tests.support.stores import Watched

HALF_AN_HOUR = 1800
MINUTE = 60
FINAL = (CLOCK_IS_FINAL_AFTER + GATHERED).total_seconds()


def follow(world: World, *, seconds: float = 10) -> Followed:
    until = world.clock.now() + timedelta(seconds=seconds)
    return expiries.run(world.services, until=until)


def ended_on(world: World, day: date) -> int:
    (found,) = world.services.daily_totals.days(Lists(world.merchant.id), "usd", [day])
    return found.ended


def abandon(world: World, count: int = 1) -> list[str]:
    """Create sessions to which nobody comes."""
    return [world.create(expires_in_seconds=HALF_AN_HOUR).id for _ in range(count)]


def stored(world: World) -> list[dict[str, Any]]:
    """Return the rows of sessions, as they are."""
    rows = world.dynamo.rows(f"{PREFIX}-checkout_sessions")
    return sorted((row for row in rows if "version" in row), key=lambda row: str(row["id"]["S"]))


def mistaken(world: World, *, times: int) -> None:
    """Let the next writes of sessions fail by a mistake of ours."""
    mistake = raising(TypeError("a mistake of ours"))
    sessions = between(world.services.sessions, "save", mistake, times=times)
    world.services = replace(world.services, sessions=sessions)


@contextmanager
def no_writes(world: World, code: str) -> Iterator[None]:
    """Let transactions fail with this error of the store for a while."""
    error = ClientError({"Error": {"Code": code, "Message": ""}}, "TransactWriteItems")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.dynamo, "transact_write_items", raising(error))
        yield


def test_an_abandoned_session_is_counted_and_never_written(world: World) -> None:
    abandon(world, 3)
    before = stored(world)
    world.clock.pass_time(HALF_AN_HOUR)
    assert follow(world) == Followed()  # a write in time could still land
    world.clock.pass_time(FINAL)
    world.forget()
    assert follow(world) == Followed(counted=3)
    assert sweep.run(world.services, until=world.clock.now() + timedelta(seconds=9)).checked == 0
    assert (stored(world), ended_on(world, NOW.date())) == (before, 3)
    assert follow(world) == Followed()
    assert world.events() == []


def test_reading_it_shows_it_as_expired_and_writes_nothing(world: World) -> None:
    (session_id,) = abandon(world)
    before = stored(world)
    world.clock.pass_time(HALF_AN_HOUR + FINAL)
    read = lookup.get(world.services, world.key(), session_id)
    assert (read.status, read.version) == (Status.EXPIRED, 2)
    assert [(entry.event, entry.at) for entry in read.history[1:]] == [
        ("expiry_passed", read.expires_at)
    ]
    assert reconcile.advance_pending(world.services, session_id) == read
    query = lists.ListQuery(status=Status.EXPIRED)
    (listed,) = lists.list_page(world.services, world.key(), query).sessions
    assert listed.id == session_id
    for end in (close.expire, close.cancel):
        with pytest.raises(SessionUnexpectedState, match="is expired"):
            end(world.services, world.key(), session_id)
    assert stored(world) == before


def test_while_a_write_in_time_could_still_land_a_reader_writes_what_it_shows(
    world: World,
) -> None:
    (session_id,) = abandon(world)
    world.clock.pass_time(HALF_AN_HOUR)
    assert lookup.get(world.services, world.key(), session_id).status is Status.EXPIRED
    assert world.session(session_id).status is Status.EXPIRED
    world.clock.pass_time(FINAL)
    assert follow(world).counted == 1
    assert ended_on(world, NOW.date()) == 1


def test_the_merchant_who_asks_for_the_event_gets_it_at_once_and_one(world: World) -> None:
    world.listen(EXPIRED)
    ids = abandon(world, 3)
    world.clock.pass_time(HALF_AN_HOUR)
    assert follow(world).reported == 3
    assert {event["session"] for event in world.events()} == set(ids)
    assert {world.session(each).status for each in ids} == {Status.EXPIRED}
    world.clock.pass_time(FINAL)
    assert follow(world) == Followed(counted=3)
    assert (len(world.events()), ended_on(world, NOW.date())) == (3, 3)


def test_who_asks_for_the_event_later_is_told_of_what_expires_then(world: World) -> None:
    early = abandon(world)
    world.clock.pass_time(HALF_AN_HOUR)
    follow(world)
    late = abandon(world)
    world.listen(CANCELED, EXPIRED)
    world.clock.pass_time(HALF_AN_HOUR)
    assert follow(world).reported == 1
    lookup.get(world.services, world.key(), early[0])
    assert [event["session"] for event in world.events()] == late


def test_what_ends_by_a_write_is_counted_by_a_walk_of_its_own(world: World) -> None:
    (canceled,) = abandon(world)
    close.cancel(world.services, world.key(), canceled)
    world.pay(world.create(expires_in_seconds=HALF_AN_HOUR))
    world.abandoned(expires_in_seconds=HALF_AN_HOUR)
    world.clock.pass_time(HALF_AN_HOUR)
    sweep.run(world.services, until=world.clock.now() + timedelta(seconds=9))
    assert follow(world) == Followed(counted=2)
    world.clock.pass_time(FINAL)
    assert follow(world) == Followed(counted=1)
    assert ended_on(world, NOW.date()) == 3


def test_it_counts_on_the_day_of_its_expiry_whenever_that_is(world: World) -> None:
    world.create()  # for a day
    world.clock.pass_time(9 * 86_400)
    assert follow(world).counted == 1
    assert ended_on(world, NOW.date() + timedelta(days=1)) == 1


def test_many_of_the_same_moment_and_of_many_moments_are_each_counted_once(world: World) -> None:
    for _ in range(3):
        abandon(world, STRETCH * 3)
        world.clock.pass_time(1)
    abandon(world, 1)
    world.clock.pass_time(HALF_AN_HOUR + FINAL)
    assert follow(world) == Followed(counted=9 * STRETCH + 1)
    assert ended_on(world, NOW.date()) == 9 * STRETCH + 1


def test_two_rounds_at_once_count_and_tell_once(world: World) -> None:
    world.listen(EXPIRED)
    abandon(world, 20)
    world.clock.pass_time(HALF_AN_HOUR + FINAL)
    interrupt(world, "transact_write_items", lambda: follow(world), times=1)
    follow(world)
    assert (len(world.events()), ended_on(world, NOW.date())) == (20, 20)


def test_a_round_that_another_one_has_overtaken_leaves_the_rest_to_it(world: World) -> None:
    abandon(world, 3)
    world.clock.pass_time(MINUTE)
    abandon(world, 3)
    world.clock.pass_time(HALF_AN_HOUR + FINAL - MINUTE)
    services = world.services

    def overtaken() -> None:
        world.services = services
        world.clock.pass_time(MINUTE)
        follow(world)

    world.services = replace(
        services, daily_totals=between(services.daily_totals, "passed", overtaken)
    )
    follow(world)
    assert ended_on(world, NOW.date()) == 6


def test_side_by_side_each_is_counted_once(world: World) -> None:
    abandon(world, 50)
    world.clock.pass_time(HALF_AN_HOUR + FINAL)
    services = world.services
    for walk in Scan:
        Threads(8)(
            lambda shard, walk=walk: expiries._follow(  # type: ignore[misc]
                services,
                walk,
                ScanPositions({}, {}),
                world.clock.now() + timedelta(seconds=9),
                shard,
            ),
            [*services.daily_totals.shards, *services.daily_totals.shards],
        )
    assert ended_on(world, NOW.date()) == 50


def test_a_count_whose_answer_was_lost_is_made_once(world: World) -> None:
    client = Watched(world.dynamo)
    paced: Any = {"sleep": lambda seconds: None, "random_bytes": lambda size: bytes(size)}
    daily_totals = DynamoDailyTotals(client, PREFIX, **paced)
    (session_id,) = abandon(world)
    world.clock.pass_time(HALF_AN_HOUR + FINAL)
    shard, until = next(
        (shard, world.clock.now())
        for shard in daily_totals.shards
        if daily_totals.ahead(Scan.COUNT, shard, world.clock.now(), since=None, limit=9)
    )
    for walk, sums in ((Scan.TELL, ()), (Scan.COUNT, None)):
        batch = daily_totals.ahead(walk, shard, until, since=None, limit=9)
        assert batch is not None
        counted = tallied(batch.sessions, lambda _: ()) if sums is None else sums
        client.lose = 1
        assert daily_totals.passed(batch, counted)
        assert daily_totals.positions().marks[walk, shard] == batch.to
    assert ended_on(world, NOW.date()) == 1
    assert world.session(session_id).version == 1


def test_a_round_begins_nothing_when_its_time_is_over(world: World) -> None:
    abandon(world)
    world.clock.pass_time(HALF_AN_HOUR + FINAL)
    assert follow(world, seconds=0) == Followed()
    assert follow(world).counted == 1


def test_a_poisoned_record_stops_no_other_and_is_told_of_each_round_until_it_is_mended(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.listen(EXPIRED)
    ids = abandon(world, 5)
    poison = {
        "TableName": f"{PREFIX}-checkout_sessions",
        "Key": {"id": {"S": ids[0]}},
        "ExpressionAttributeNames": {"#status": "status"},
    }
    world.dynamo.update_item(**poison, UpdateExpression="REMOVE #status")
    world.clock.pass_time(HALF_AN_HOUR + FINAL)
    with caplog.at_level(logging.WARNING):
        assert follow(world) == Followed(reported=4, counted=4, failed=2)  # by each walk
    assert follow(world) == Followed(failed=1)
    assert ids[0] not in caplog.text
    named = hashlib.sha256(ids[0].encode()).hexdigest()[:12]
    assert {each.__dict__["session"] for each in caplog.records} == {named}
    values = {":status": {"S": "open"}}
    mended = {"UpdateExpression": "SET #status = :status", "ExpressionAttributeValues": values}
    world.dynamo.update_item(**poison, **mended)
    assert follow(world) == Followed(reported=1)
    assert follow(world) == Followed()
    assert {event["session"] for event in world.events()} == set(ids)


def test_an_end_that_cannot_be_told_now_is_told_later(world: World) -> None:
    world.listen(EXPIRED)
    abandon(world, 3)
    world.clock.pass_time(HALF_AN_HOUR)
    with no_writes(world, "InternalServerError"):
        assert follow(world).reported == 0
    assert follow(world).reported == 3


def test_one_that_fails_otherwise_stops_no_other(world: World) -> None:
    world.listen(EXPIRED)
    abandon(world, 5)
    world.clock.pass_time(HALF_AN_HOUR)
    mistaken(world, times=1)
    assert follow(world) == Followed(reported=4, failed=1)
    assert follow(world) == Followed(reported=1)
    assert follow(world) == Followed()
    assert (len(world.events()), ended_on(world, NOW.date())) == (5, 0)


@pytest.mark.parametrize("two_rounds", [False, True])
@pytest.mark.parametrize("kept", [90, 1])
def test_no_event_is_lost_while_the_sweep_may_not_write_ends(
    world: World, monkeypatch: pytest.MonkeyPatch, kept: int, *, two_rounds: bool
) -> None:
    world.listen(EXPIRED)
    monkeypatch.setattr(expiries, "UNREPORTED_MAX", kept)
    abandon(world, 30)
    world.clock.pass_time(HALF_AN_HOUR)
    with no_writes(world, "AccessDeniedException"):
        for _ in range(3):
            assert follow(world).failed > 0
            world.clock.pass_time(MINUTE)
    if two_rounds:
        interrupt(world, "update_item", lambda: follow(world), times=1)
    follow(world)
    follow(world)
    assert len(world.events()) == 30
    world.clock.pass_time(FINAL)
    assert follow(world) == Followed(counted=30)


def test_no_event_is_lost_to_a_process_whose_clock_is_behind(world: World) -> None:
    """Seen in the simulated worlds 461004699, 461008747 and 461029355."""
    world.listen(EXPIRED)
    session = world.create()
    behind = HandClock()
    left = session.expires_at - world.clock.now()
    world.clock.pass_time(left.total_seconds())
    behind.pass_time(left.total_seconds() - 1)
    ours = world.services
    mistaken(world, times=1)
    assert follow(world) == Followed(failed=1)
    world.services = replace(ours, clock=behind)
    assert follow(world) == Followed()
    world.services = ours
    assert follow(world) == Followed(reported=1)
    assert len(world.events()) == 1


def test_a_round_without_time_tries_none_again_and_forgets_none(world: World) -> None:
    world.listen(EXPIRED)
    abandon(world, 3)
    world.clock.pass_time(HALF_AN_HOUR)
    mistaken(world, times=3)
    assert follow(world) == Followed(failed=3)
    assert follow(world, seconds=0) == Followed()
    assert follow(world) == Followed(reported=3)


def test_at_rest_a_round_is_one_read_and_three_queries_a_shard(world: World) -> None:
    world.create()
    world.forget()
    follow(world)
    assert world.dynamo.calls == {"batch_get_item": 1, "query": 24}


def test_a_round_that_cannot_read_how_far_it_came_is_tried_again(world: World) -> None:
    abandon(world)
    world.clock.pass_time(HALF_AN_HOUR + FINAL)
    services = world.services
    failing = between(
        services.daily_totals, "positions", raising(Unavailable("no answer")), times=1
    )
    world.services = replace(services, daily_totals=failing)
    assert follow(world) == Followed(failed=1)
    assert follow(world).counted == 1


def test_a_round_stops_where_another_has_passed_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    abandon(world)
    world.clock.pass_time(HALF_AN_HOUR + FINAL)
    monkeypatch.setattr(DynamoDailyTotals, "passed", lambda *_: False)
    assert follow(world) == Followed()
