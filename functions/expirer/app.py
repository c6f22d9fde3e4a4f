"""The Lambda function of the schedule: one round of the sweep, and its counts as metrics.

A round that takes longer than a minute overlaps with the next one, which is no harm; so the
function needs no reserved concurrency, which small AWS accounts do not have to give.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Protocol

from checkout import telemetry, wiring
from checkout.flows.schedule import sweep, tally
from checkout.flows.schedule.sweep import Counts
from checkout.ports.services import PayServices

# The last look of a round may take this long, and the process must live to the end of it.
LAST_LOOK: Final = timedelta(seconds=25)

_log: Final = logging.getLogger(__name__)


class Context(Protocol):
    """What of Lambda's context object is used."""

    def get_remaining_time_in_millis(self) -> int: ...


def scheduled(services: Callable[[], PayServices]) -> Callable[[Any, Context], dict[str, Any]]:
    """The function that Lambda calls; it returns the counts."""

    @telemetry.observed
    def handler(event: Any, context: Context) -> dict[str, Any]:
        ready = services()
        left = timedelta(milliseconds=context.get_remaining_time_in_millis())
        until = ready.clock.now() + left - LAST_LOOK
        counts = sweep.run(ready, until=until)
        return {**_told(counts), "Counted": tally.run(ready.tallies, ready.clock, until=until)}

    return handler


def _told(counts: Counts) -> dict[str, Any]:
    totals = {
        "LookedAt": counts.looked_at,
        "Moved": counts.moved.total(),
        "Failed": counts.failed,
        "NeedsAttention": counts.needs_attention,
        "LeftOver": counts.left_over,
        "EventsOwed": counts.enqueued,
    }
    for name, value in totals.items():
        telemetry.count(name, value)
    telemetry.count("OldestOwedEvent", counts.longest_due.total_seconds(), unit="Seconds")
    told = {**totals, "MovedBy": dict(counts.moved)}
    if any(totals.values()):
        _log.info("a round of the sweep", extra={"counts": told})
    return told


wiring.observe("expirer")
handler: Final = scheduled(wiring.pay_services)
