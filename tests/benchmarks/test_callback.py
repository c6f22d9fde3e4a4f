"""The pauses before the callback looks for the money again, against others."""

from __future__ import annotations

from statistics import mean

from benchmarks.callback import CALLBACKS, SCHEDULES, waits
from checkout.flows.session.completion import POLL_SECONDS


def test_the_pauses_in_use_find_the_money_sooner_with_hardly_more_reads() -> None:
    before = list(waits(SCHEDULES["as before: 0.4, 0.6, 1, 1, 1"], 0.02))
    now = list(waits(POLL_SECONDS, 0.02))
    assert len(before) == len(now) == CALLBACKS  # each sees it while the customer waits
    assert mean(wait for wait, _ in now) < 0.75 * mean(wait for wait, _ in before)
    assert mean(reads for _, reads in now) < 2.5
