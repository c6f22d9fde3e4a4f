"""An hour of load; a whole day is `python -m tests.simulation.load`."""

from __future__ import annotations

import pytest

from tests.simulation import load

pytestmark = pytest.mark.endurance


def test_abandoned_carts_and_hanging_wallets_delay_no_payment() -> None:
    day = load.run()
    assert day.violations == []
    assert day.backlog_most > 0  # there was more to do than a round has time for
    assert day.counts["decided: completed"] > load.SMALL.minutes
    assert day.counts["decided: open"] > load.SMALL.hanging
    assert day.counts["calls that hung"] > load.SMALL.hanging
    assert day.ended["by the clock"] >= day.counts["abandoned"]
