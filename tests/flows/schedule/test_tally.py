"""The dashboard's figures: every ended session is counted once, whatever the rounds run into."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.ground.parts import Lists
from checkout.domain.reports.daily_totals import DayTotals
from checkout.domain.session.record import Status
from checkout.flows.schedule import expiries
from checkout.flows.schedule.expiries import GATHERED, STRETCH
from checkout.flows.session import close, lookup
from checkout.ports import Scan
from open_payments.errors import NotSent
from tests.support.basics import NOW, count_ends
from tests.support.flows import CEDAR, HARBOR, PREFIX, World, on, raising
from tests.support.protected import CLOCK_IS_FINAL_AFTER

pytestmark = pytest.mark.untraced

TODAY = NOW.date()


def counted(world: World) -> int:
    """Count what has ended by now; what follows ends later."""
    found = count_ends(world.services.daily_totals, world.clock)
    world.clock.pass_time(1)
    return found


def place(world: World, session_id: str) -> list[Any]:
    """Return the session's place in the index of what is counted."""
    rows = world.dynamo.rows(f"{PREFIX}-checkout_sessions")
    [row] = [row for row in rows if row["id"]["S"] == session_id]
    return [row["uncounted_shard"], row["uncounted_at"]]


def today(world: World) -> DayTotals:
    (found,) = world.services.daily_totals.days(
        Lists(world.merchant.id), "usd", [world.clock.now().date()]
    )
    return found


def test_ended_sessions_are_counted_by_how_far_they_got(world: World) -> None:
    assert world.pay(world.create(2000)).status is Status.COMPLETED
    assert world.pay(world.create(550)).status is Status.COMPLETED
    for session in (world.create(), world.submit(world.create())):
        close.cancel(world.services, world.key(), session.id)
    refused, callback = world.awaiting()
    world.transport.before = on("POST", "/continue/", raising(NotSent("")))
    world.finish(refused, callback)
    world.transport.before = lambda request: None
    close.cancel(world.services, world.key(), refused.id)
    world.create()  # has not ended
    assert counted(world) == 5
    assert today(world) == DayTotals(
        merchant=world.merchant.id,
        currency="usd",
        day=TODAY,
        ended=5,
        wallet=4,
        priced=4,
        approved=3,
        paid=2,
        amount=2550,
        hours={NOW.hour: 2550},
        unpaid={("canceled", ""): 1, ("approval_unusable", ""): 1},
    )


def test_nothing_is_counted_twice_and_later_rounds_add(world: World) -> None:
    world.pay(world.create())
    assert [counted(world), counted(world)] == [1, 0]
    world.pay(world.create())
    assert counted(world) == 1
    assert (today(world).ended, today(world).amount) == (2, 4000)


def test_a_part_that_was_accepted_counts_with_what_has_arrived(world: World) -> None:
    close.accept_as_paid(world.services, world.key(), world.partly_paid().id)
    counted(world)
    assert (today(world).paid, today(world).amount) == (1, 1000)


def test_money_that_comes_late_counts_nothing_again(world: World) -> None:
    session = world.submit(world.create())
    close.cancel(world.services, world.key(), session.id)
    assert counted(world) == 1
    before = place(world, session.id)
    world.pay_from_outside(session, 2000)
    world.sweep(rounds=3)
    assert world.session(session.id).received == 2000
    assert counted(world) == 0
    assert (today(world).ended, today(world).paid, today(world).amount) == (1, 0, 0)
    assert place(world, session.id) == before


def test_a_session_counts_on_the_utc_day_of_its_end(world: World) -> None:
    session = world.abandoned()
    world.clock.pass_time(86_400)
    lookup.get(world.services, world.key(), session.id)
    world.clock.pass_time(3 * 86_400)
    counted(world)
    days = [TODAY + timedelta(days=number) for number in range(3)]
    found = world.services.daily_totals.days(Lists(world.merchant.id), "usd", days)
    assert [each.ended for each in found] == [0, 1, 0]


def test_of_two_rounds_with_the_same_sessions_one_counts(world: World) -> None:
    for _ in range(3):
        world.pay(world.create())
    daily_totals, later = world.services.daily_totals, world.clock.now() + CLOCK_IS_FINAL_AFTER
    found = [
        daily_totals.ahead(Scan.ENDS, n, later, since=None, limit=9) for n in daily_totals.shards
    ]
    ranges = [each for each in found if each is not None]
    assert sum(len(each.sessions) for each in ranges) == 3
    mine = (DayTotals(merchant=world.merchant.id, currency="usd", day=TODAY, ended=1),)
    assert all(daily_totals.passed(each, mine) for each in ranges)
    ended = today(world).ended
    assert not any(daily_totals.passed(replace(each, to=later), mine) for each in ranges)
    assert today(world).ended == ended == len(ranges)


def test_a_round_counts_more_than_a_stretch_and_those_of_every_merchant(world: World) -> None:
    other = World(client=world.dynamo, seed=4, shop=f"{HARBOR}/shop-jpy")
    for _ in range(3 * STRETCH):
        close.cancel(world.services, world.key(), world.create().id)
    close.cancel(other.services, other.key(), other.create(20, "jpy").id)
    assert counted(world) == 3 * STRETCH + 1
    assert today(world).ended == 3 * STRETCH
    (theirs,) = other.services.daily_totals.days(Lists(other.merchant.id), "jpy", [TODAY])
    assert theirs.ended == 1


def test_an_end_is_counted_when_no_write_that_says_it_can_still_come(world: World) -> None:
    world.pay(world.create())
    until = world.clock.now() + timedelta(days=1)
    world.clock.pass_time((CLOCK_IS_FINAL_AFTER + GATHERED).total_seconds() - 1)
    assert expiries.run(world.services, until=until).counted == 0
    world.clock.pass_time(1)
    assert expiries.run(world.services, until=until).counted == 1


def test_many_ends_are_counted_without_waiting_for_more(world: World) -> None:
    for _ in range(20 * STRETCH):
        close.cancel(world.services, world.key(), world.create().id)
    until = world.clock.now() + timedelta(days=1)
    world.clock.pass_time(CLOCK_IS_FINAL_AFTER.total_seconds() - 1)
    assert expiries.run(world.services, until=until).counted == 0
    world.clock.pass_time(1)
    assert expiries.run(world.services, until=until).counted >= 8 * STRETCH


def test_counting_changes_nothing_of_the_session(world: World) -> None:
    paid = world.pay(world.create(), f"{CEDAR}/alice")
    counted(world)
    assert world.session(paid.id) == paid


def test_a_day_that_nothing_happened_on_is_all_zeros(world: World) -> None:
    (empty,) = world.services.daily_totals.days(Lists("mer_nobody"), "usd", [TODAY])
    assert empty == DayTotals(merchant="mer_nobody", currency="usd", day=TODAY)
