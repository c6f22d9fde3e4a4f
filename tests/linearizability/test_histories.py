"""The API under concurrency: every history of parallel requests is linearizable, and the histories
of a sabotaged store are not.
"""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest

from tests.linearizability.histories import SABOTAGES, History, play
from tests.linearizability.purchases import ENDS, Outcome, Recorded, Request

pytestmark = pytest.mark.endurance

SEEDS = range(1, 21)
SABOTAGED_MAX = 10  # histories until a sabotage is noticed
# What all histories together must hold at least, so that they say something.
FLOORS = {
    (Request.CREATE, Outcome.CREATED): 150,
    (Request.CREATE, Outcome.REPLAYED): 100,
    (Request.CREATE, Outcome.KEY_REUSED): 15,
    (Request.CREATE, Outcome.UNKNOWN): 5,
    (Request.CANCEL, Outcome.SHOWN): 50,
    (Request.CANCEL, Outcome.REFUSED): 50,
    (Request.EXPIRE, Outcome.SHOWN): 30,
    (Request.EXPIRE, Outcome.REFUSED): 30,
    (Request.GET, Outcome.SHOWN): 400,
    (Request.LIST, Outcome.SHOWN): 200,
}


@pytest.fixture(scope="module")
def histories() -> list[History]:
    return [play(seed) for seed in SEEDS]


@pytest.mark.parametrize("seed", SEEDS)
def test_each_history_is_linearizable(histories: list[History], seed: int) -> None:
    [history] = [each for each in histories if each.seed == seed]
    wrong = history.violations()
    assert not wrong, "\n\n".join([f"seed {seed}", *wrong])


def test_the_histories_hold_every_kind_of_answer_often(histories: list[History]) -> None:
    records = [record for history in histories for record in history.records]
    counts = Counter((record.request, record.outcome) for record in records)
    assert {kind: counts[kind] for kind in FLOORS if counts[kind] < FLOORS[kind]} == {}


def test_the_histories_hold_many_requests_at_the_same_time(histories: list[History]) -> None:
    pairs = [
        pair
        for history in histories
        for pair in combinations(history.records, 2)
        if _overlap(*pair) and _of_one(*pair)
    ]
    both_end = [pair for pair in pairs if all(record.request in ENDS for record in pair)]
    both_create = [pair for pair in pairs if all(record.purchase for record in pair)]
    assert len(both_end) >= 15
    assert len(both_create) >= 60


def _overlap(one: Recorded, other: Recorded) -> bool:
    if one.responded is None or other.responded is None:
        return False
    return one.invoked <= other.responded and other.invoked <= one.responded


def _of_one(one: Recorded, other: Recorded) -> bool:
    named = (one.purchase, one.session)
    return any(named) and named == (other.purchase, other.session)


@pytest.mark.parametrize("sabotage", SABOTAGES)
def test_a_sabotaged_store_is_noticed(sabotage: str) -> None:
    played = (play(seed, sabotage) for seed in range(SABOTAGED_MAX))
    assert any(history.violations() for history in played)


def test_a_seed_repeats_its_history() -> None:
    assert play(3).records == play(3).records != play(4).records
