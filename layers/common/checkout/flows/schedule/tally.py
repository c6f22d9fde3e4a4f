"""Count each ended session once into its merchant's day, for the dashboard's figures.

This stays outside of every payment: the write that ends a session only marks it as not yet counted.
The counters and the marks change in one transaction, so a round that dies, or two rounds that
overlap, count nothing twice and miss nothing. Where many are to be counted, transactions run side
by side, but never two on the same counter.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from checkout.domain.session import Session
from checkout.domain.shards import shard_of
from checkout.domain.tally import tallied
from checkout.ports.runtime import Clock, SideBySide
from checkout.ports.sessions import Tallies

BATCH: Final = 50  # sessions, which `Tallies.count` writes in one transaction
LANES: Final = 8


def run(tallies: Tallies, clock: Clock, side_by_side: SideBySide, *, until: datetime) -> int:
    """Count ended sessions, begin no batch after `until`, and return how many were counted."""

    def count(lane: Sequence[Session]) -> int:
        counted = 0
        for start in range(0, len(lane), BATCH):
            batch = lane[start : start + BATCH]
            if clock.now() >= until or not tallies.count(tallied(batch), batch):
                break
            counted += len(batch)
        return counted

    total = 0
    while clock.now() < until:
        ended = tallies.uncounted(clock.now(), limit=BATCH, side_by_side=side_by_side)
        counted = sum(side_by_side(count, _lanes(ended)))
        total += counted
        if not ended or counted < len(ended):
            break
    return total


def _lanes(ended: Sequence[Session]) -> list[Sequence[Session]]:
    """Return the sessions in lanes, of which no two have a counter in common.

    What fits into one transaction is one lane.
    """
    if len(ended) <= BATCH:
        return [ended]
    lanes: dict[int, list[Session]] = defaultdict(list)
    for session in ended:
        lanes[(shard_of(session.merchant, LANES) + session.shard) % LANES].append(session)
    return list(lanes.values())
