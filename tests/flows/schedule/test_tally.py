"""The dashboard's figures: every ended session is counted once, whatever the rounds run into."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from typing import Any

from checkout.adapters.dynamo import DynamoTallies
from checkout.adapters.side_by_side import in_turn
from checkout.domain.session import Session, Status
from checkout.domain.tally import DayTally
from checkout.flows.merchant import settings
from checkout.flows.payment import sessions
from checkout.flows.schedule import tally
from checkout.open_payments.errors import NotSent
from checkout.ports.runtime import SideBySide
from tests.product import CEDAR, HARBOR, PREFIX, World, on, raising
from tests.support import NOW, seeded

TODAY = NOW.date()


def counted(world: World, side_by_side: SideBySide = in_turn) -> int:
    until = world.clock.now() + timedelta(seconds=50)
    return tally.run(world.services.tallies, world.clock, side_by_side, until=until)


def today(world: World) -> DayTally:
    (found,) = world.services.tallies.days(world.merchant.id, "usd", [world.clock.now().date()])
    return found


def test_ended_sessions_are_counted_by_how_far_they_got(world: World) -> None:
    assert world.pay(world.create(2000)).status is Status.COMPLETED
    assert world.pay(world.create(550)).status is Status.COMPLETED
    for session in (world.create(), world.submit(world.create())):
        sessions.cancel(world.services, world.key(), session.id)
    refused, callback = world.awaiting()
    world.transport.before = on("POST", "/continue/", raising(NotSent("")))
    world.finish(refused, callback)
    world.transport.before = lambda request: None
    sessions.cancel(world.services, world.key(), refused.id)
    world.create()  # has not ended
    assert counted(world) == 5
    assert today(world) == DayTally(
        merchant=world.merchant.id,
        currency="usd",
        day=TODAY,
        ended=5,
        wallet=4,
        approved=3,
        paid=2,
        amount=2550,
    )


def test_nothing_is_counted_twice_and_later_rounds_add(world: World) -> None:
    world.pay(world.create())
    assert [counted(world), counted(world)] == [1, 0]
    world.pay(world.create())
    assert counted(world) == 1
    assert (today(world).ended, today(world).amount) == (2, 4000)


def test_a_part_that_was_accepted_counts_with_what_has_arrived(world: World) -> None:
    part = world.settle(world.pay(world.create(), f"{CEDAR}/partial"), seconds=120)
    sessions.accept_as_paid(world.services, world.key(), part.id)
    counted(world)
    assert (today(world).paid, today(world).amount) == (1, 1000)


def test_money_that_comes_late_counts_nothing_again(world: World) -> None:
    session = world.submit(world.create())
    sessions.cancel(world.services, world.key(), session.id)
    assert counted(world) == 1
    world.pay_from_outside(session, 2000)
    world.sweep(rounds=3)
    assert world.session(session.id).received == 2000
    assert counted(world) == 0
    assert (today(world).ended, today(world).paid, today(world).amount) == (1, 0, 0)


def test_a_session_counts_on_the_utc_day_of_its_end(world: World) -> None:
    session = world.abandoned()
    world.clock.pass_time(86_400)
    sessions.get(world.services, world.key(), session.id)
    world.clock.pass_time(3 * 86_400)
    counted(world)
    days = [TODAY + timedelta(days=number) for number in range(3)]
    found = world.services.tallies.days(world.merchant.id, "usd", days)
    assert [each.ended for each in found] == [0, 1, 0]


def test_of_two_rounds_with_the_same_sessions_one_counts(world: World) -> None:
    for _ in range(3):
        world.pay(world.create())
    tallies = world.services.tallies
    ended = tallies.uncounted(world.clock.now(), limit=10, side_by_side=in_turn)
    assert len(ended) == 3
    mine = (DayTally(merchant=world.merchant.id, currency="usd", day=TODAY, ended=3),)
    assert tallies.count(mine, ended)
    assert not tallies.count(mine, ended[:2])
    assert today(world).ended == 3


def test_a_round_counts_more_than_a_batch_and_those_of_every_merchant(world: World) -> None:
    other = World(client=world.dynamo, seed=4, shop=f"{HARBOR}/shop-jpy")
    for _ in range(tally.BATCH + 5):
        sessions.cancel(world.services, world.key(), world.create().id)
    sessions.cancel(other.services, other.key(), other.create(20, "jpy").id)
    assert counted(world) == tally.BATCH + 6
    assert today(world).ended == tally.BATCH + 5
    (theirs,) = other.services.tallies.days(other.merchant.id, "jpy", [TODAY])
    assert theirs.ended == 1


def test_no_two_transactions_at_a_time_change_the_same_counter(world: World) -> None:
    tallies = world.services.tallies
    settings.spread(world.endpoints, world.merchant.id, 4)
    made = [world.create() for _ in range(4 * tally.BATCH)]
    for each in made:
        sessions.cancel(world.services, world.key(), each.id)
    widths: list[int] = []

    def noting(do: Callable[[Any], Any], items: Iterable[Any], /) -> list[Any]:
        given = list(items)
        if given and isinstance(given[0], list) and isinstance(given[0][0], Session):
            lanes = [{(each.merchant, each.shard) for each in lane} for lane in given]
            assert sum(map(len, lanes)) == len(set().union(*lanes))
            widths.append(len(lanes))
        return in_turn(do, given)

    assert counted(world, noting) == len(made)
    assert widths[0] == 4
    key = world.key()
    (found,) = tallies.days(key.merchant, "usd", [TODAY], shards=key.shards)
    assert found == DayTally(merchant=key.merchant, currency="usd", day=TODAY, ended=len(made))
    (first,) = tallies.days(key.merchant, "usd", [TODAY])
    assert 0 < first.ended < len(made)


class Beaten(DynamoTallies):
    """Another round is always first."""

    def count(self, tallies: Sequence[DayTally], sessions: Sequence[Session]) -> bool:
        return False


def test_a_round_that_another_has_overtaken_ends(world: World) -> None:
    world.pay(world.create())
    clock = world.clock
    tallies = Beaten(world.dynamo, PREFIX, sleep=clock.sleep, random_bytes=seeded())
    until = clock.now() + timedelta(seconds=50)
    assert tally.run(tallies, clock, in_turn, until=until) == 0
    assert counted(world) == 1


def test_a_round_begins_no_batch_when_its_time_is_over(world: World) -> None:
    world.pay(world.create())
    assert tally.run(world.services.tallies, world.clock, in_turn, until=world.clock.now()) == 0
    assert counted(world) == 1


def test_counting_changes_nothing_of_the_session(world: World) -> None:
    paid = world.pay(world.create(), f"{CEDAR}/alice")
    counted(world)
    assert world.session(paid.id) == paid


def test_a_day_that_nothing_happened_on_is_all_zeros(world: World) -> None:
    (empty,) = world.services.tallies.days("mer_nobody", "usd", [TODAY])
    assert empty == DayTally(merchant="mer_nobody", currency="usd", day=TODAY)
