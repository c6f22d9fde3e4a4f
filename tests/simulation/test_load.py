"""An hour of load; a whole day is `python -m tests.simulation.load`."""

from __future__ import annotations

import pytest

from tests.simulation import load, mutants

pytestmark = pytest.mark.endurance

QUICK = ("merchants do not take turns", "carts come before payments")  # the others: make mutants


def test_abandoned_carts_and_hanging_wallets_delay_no_payment() -> None:
    day = load.run()
    assert day.violations == []
    assert day.backlog_most > 0  # there was more to do than a round has time for
    assert day.counts["decided: completed"] > load.SMALL.minutes
    assert day.counts["decided: open"] > load.SMALL.hanging
    assert day.counts["calls that hung"] > load.SMALL.hanging
    assert day.ended["by the clock"] >= day.counts["abandoned"]


@pytest.mark.parametrize(
    "mutant",
    [each for each in mutants.MUTANTS if each.name in QUICK],
    ids=lambda mutant: mutant.name,
)
def test_a_seeded_bug_is_caught_by_the_load(mutant: mutants.Mutant) -> None:
    assert mutants.hunt(mutant).check is not None
