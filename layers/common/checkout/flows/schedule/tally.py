"""The dashboard's figures: each ended session is counted once into its day, by the scheduled job.

Outside of every payment: the write that ends a session only marks it as not yet counted. The
counters and the marks change in one transaction, so that a round that dies, or two that overlap,
count nothing twice and miss nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from checkout.domain.tally import tallied
from checkout.ports.runtime import Clock
from checkout.ports.sessions import Tallies

# Sessions a transaction: with a counter for each at worst, it stays within DynamoDB's 100 items.
BATCH: Final = 50


def run(tallies: Tallies, clock: Clock, *, until: datetime) -> int:
    """Count what has ended, and begin no batch from `until` on. How many were counted."""
    counted = 0
    while clock.now() < until:
        ended = tallies.uncounted(clock.now(), limit=BATCH)
        if not ended or not tallies.count(tallied(ended), ended):
            break
        counted += len(ended)
    return counted
