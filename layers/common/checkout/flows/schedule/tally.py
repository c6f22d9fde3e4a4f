"""Count each ended session once into its merchant's day, for the dashboard's figures.

This stays outside of every payment: the write that ends a session only marks it as not yet counted.
The counters and the marks change in one transaction, so a round that dies, or two rounds that
overlap, count nothing twice and miss nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from checkout.domain.tally import tallied
from checkout.ports.runtime import Clock
from checkout.ports.sessions import Tallies

BATCH: Final = 50  # sessions, which `Tallies.count` writes in one transaction


def run(tallies: Tallies, clock: Clock, *, until: datetime) -> int:
    """Count ended sessions, begin no batch after `until`, and return how many were counted."""
    counted = 0
    while clock.now() < until:
        ended = tallies.uncounted(clock.now(), limit=BATCH)
        if not ended or not tallies.count(tallied(ended), ended):
            break
        counted += len(ended)
    return counted
