from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from checkout import telemetry
from checkout.adapters.runtime import WIDTH, Threads, run_in_turn


@pytest.mark.parametrize("run", [run_in_turn, Threads(), Threads(3), Threads(1)])
def test_results_come_in_the_order_of_the_items(run: Threads) -> None:
    assert run(lambda item: item * 2, range(50)) == [item * 2 for item in range(50)]
    assert run(lambda item: item, []) == []


def test_as_many_as_the_width_are_under_way_at_once() -> None:
    together = threading.Barrier(WIDTH, timeout=10)
    assert len(Threads()(lambda _: together.wait(), range(WIDTH))) == WIDTH


def test_an_iterator_that_ends_early_ends_the_work() -> None:
    done: list[int] = []

    def until_five() -> Iterator[int]:
        yield from iter(lambda: len(done), 5)

    Threads(1)(done.append, until_five())
    assert len(done) == 5
    assert Threads(4)(lambda item: item, (each for each in range(9))) == list(range(9))


def test_an_error_is_raised_after_the_others_are_done() -> None:
    done: list[int] = []

    def act(item: int) -> None:
        if item == 3:
            raise ValueError("three")
        done.append(item)

    with pytest.raises(ValueError, match="three"):
        Threads(4)(act, range(20))
    assert sorted(done) == [item for item in range(20) if item != 3]


def test_no_thread_is_left_over() -> None:
    before = threading.active_count()
    Threads()(lambda item: item, range(100))
    assert threading.active_count() == before


def test_a_thread_knows_the_invocation_of_its_caller() -> None:
    with telemetry.request("request-1"):
        assert set(Threads(4)(lambda _: telemetry._request.get(), range(8))) == {"request-1"}
