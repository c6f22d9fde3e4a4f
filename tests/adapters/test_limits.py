"""The memory of the limits by client: how fast it forgives, and how much it keeps."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from checkout.adapters import limits
from checkout.adapters.dynamo import DynamoCounters
from checkout.adapters.limits import Allowances
from checkout.domain.ground.limits import Rule
from sandbox.cloud import table_definitions
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.basics import NOW, HandClock, at_once
from tests.support.protected import KNOWN_FOR

THREE = Rule("three", burst=3, every=timedelta(seconds=10))


class Counted:
    """Counters that have room for two in each window, and note what they are asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def attempt(self, counter: str, *, limit: int, until: object, by: int = 1) -> bool:
        self.asked.append(counter)
        return self.asked.count(counter) <= limit

    def give_back(self, counter: str, by: int = 1) -> None:
        self.asked.remove(counter)


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def counted() -> Counted:
    return Counted()


@pytest.fixture
def memory(clock: HandClock, counted: Any) -> Allowances:
    return Allowances(clock, counted, a_minute=12)


def test_a_burst_is_allowed_and_then_one_every_so_often(
    memory: Allowances, clock: HandClock
) -> None:
    assert [memory.take(THREE, "a") for _ in range(5)] == [0, 0, 0, 10, 10]
    clock.pass_time(4)
    assert memory.take(THREE, "a") == 6
    clock.pass_time(6)
    assert [memory.take(THREE, "a") for _ in range(2)] == [0, 10]
    clock.pass_time(1000)
    assert [memory.take(THREE, "a") for _ in range(4)] == [0, 0, 0, 10]


def test_an_item_is_given_back_in_the_window_of_that_time(memory: Allowances, counted: Any) -> None:
    assert [memory.take_items("lk", "a", 1, left=9) > 0 for _ in range(3)] == [False, False, True]
    counted.asked.pop()  # the store does not count a refused one
    memory.give_items("lk", "a", 1)
    assert memory.take_items("lk", "a", 1, left=9) == 0


def test_items_count_as_many_as_they_are_but_the_first_purchase_may_be_any() -> None:
    client = InMemoryDynamoDb(table_definitions("test"))
    limits = Allowances(HandClock(), DynamoCounters(client, "test"), a_minute=30)
    assert limits.take_items("lk", "a", 6, left=16) == 0  # a quarter of what is left is 4
    assert limits.take_items("lk", "a", 1, left=16) > 0
    limits.give_items("lk", "a", 6)
    assert limits.take_items("lk", "a", 3, left=16) == 0
    assert limits.take_items("lk", "a", 2, left=16) > 0
    assert limits.take_items("lk", "a", 1, left=16) == 0
    assert limits.take_items("lk", "b", 16, left=16) == 0


def test_a_burst_is_whole_whatever_the_fractions_of_a_second(memory: Allowances) -> None:
    for number in range(1, 100):
        rule = Rule(str(number), burst=number, every=timedelta(milliseconds=10 * number + 1))
        assert [memory.take(rule, "a") for _ in range(number)] == [0] * number
        assert memory.take(rule, "a") > 0


def test_clients_and_rules_are_counted_by_themselves(memory: Allowances) -> None:
    for _ in range(4):
        memory.take(THREE, "a")
    assert memory.take(THREE, "b") == 0
    assert memory.take(Rule("other", burst=1, every=timedelta(seconds=1)), "a") == 0


def test_the_shared_counter_is_asked_by_window_and_not_while_it_is_known_to_be_full(
    memory: Allowances, clock: HandClock, counted: Any
) -> None:
    clock.pass_time(3)
    assert [memory.take_shared("a") for _ in range(5)] == [0, 0, 7, 7, 7]
    assert len(counted.asked) == 3
    assert memory.take_shared("b") == 0
    clock.pass_time(7)
    assert memory.take_shared("a") == 0
    assert len(set(counted.asked)) == 3


@pytest.mark.parametrize(("a_minute", "a_window"), [(1, 1), (6, 1), (30, 5), (59, 9)])
def test_a_window_has_its_share_of_the_minute_and_at_least_one(
    clock: HandClock, counted: Any, a_minute: int, a_window: int
) -> None:
    memory = Allowances(clock, counted, a_minute=a_minute)
    assert [memory.take_shared("a") for _ in range(12)].count(0) == a_window


def test_a_provider_is_known_for_a_while(memory: Allowances, clock: HandClock) -> None:
    assert not memory.knows("wallet.example")
    memory.know("wallet.example")
    clock.pass_time(KNOWN_FOR.total_seconds() - 1)
    assert memory.knows("wallet.example")
    assert not memory.knows("other.example")
    clock.pass_time(1)
    assert not memory.knows("wallet.example")


def test_strangers_cannot_fill_the_memory_and_the_oldest_is_forgotten_first(
    memory: Allowances, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "_MOST", 3)
    for _ in range(3):
        memory.take(THREE, "a")
    for stranger in range(2):
        memory.take(THREE, str(stranger))
    assert memory.take(THREE, "a") == 10
    for stranger in range(3):
        memory.take(THREE, str(stranger))
    assert memory.take(THREE, "a") == 0


def test_threads_of_a_process_share_an_allowance(memory: Allowances) -> None:
    found = at_once([partial(memory.take, THREE, "a")] * 16)
    assert found.count(0) == 3


def test_without_a_limit_nothing_is_counted(clock: HandClock, counted: Any) -> None:
    memory = Allowances(clock, counted, a_minute=0)
    assert {memory.take(THREE, "a") for _ in range(9)} == {0}
    assert {memory.take_shared("a") for _ in range(9)} == {0}
    assert counted.asked == []


def test_a_counter_is_given_back_until_nothing_is_counted() -> None:
    client = InMemoryDynamoDb(table_definitions("test"))
    counters, until = DynamoCounters(client, "test"), NOW + timedelta(minutes=30)
    counters.give_back("unknown")
    assert client.rows("test-idempotency_keys") == []
    assert [counters.attempt("a", limit=2, until=until) for _ in range(3)] == [True, True, False]
    for _ in range(5):
        counters.give_back("a")
    assert [counters.attempt("a", limit=2, until=until) for _ in range(3)] == [True, True, False]
