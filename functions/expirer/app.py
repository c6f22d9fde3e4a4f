"""The Lambda function of the schedule: one round of the sweep, with its counts as metrics.

A round that takes longer than a minute overlaps with the next one, which is harmless. So the
function needs no reserved concurrency, which small AWS accounts cannot spare.
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

# The last check of a round may take this long, and must end before the process does.
LAST_CHECK: Final = timedelta(seconds=25)

_log: Final = logging.getLogger(__name__)


class Context(Protocol):
    """The part of Lambda's context object that is used."""

    def get_remaining_time_in_millis(self) -> int: ...


def scheduled(services: Callable[[], PayServices]) -> Callable[[Any, Context], dict[str, Any]]:
    """Return the Lambda handler; it returns the counts."""

    @telemetry.observed
    def handler(event: Any, context: Context) -> dict[str, Any]:
        ready = services()
        left = timedelta(milliseconds=context.get_remaining_time_in_millis())
        until = ready.clock.now() + left - LAST_CHECK
        counts = sweep.run(ready, until=until)
        return {**_counted(counts), "Counted": tally.run(ready.tallies, ready.clock, until=until)}

    return handler


def _counted(counts: Counts) -> dict[str, Any]:
    totals = {
        "SessionsChecked": counts.checked,
        "Moved": counts.moved.total(),
        "Failed": counts.failed,
        "NeedsAttention": counts.needs_attention,
        "NotReached": counts.not_reached,
        "EventsDue": counts.enqueued,
    }
    for name, value in totals.items():
        telemetry.count(name, value)
    telemetry.count("OldestDueEvent", counts.longest_due.total_seconds(), unit="Seconds")
    result = {**totals, "MovedBy": dict(counts.moved)}
    if any(totals.values()):
        _log.info("a round of the sweep", extra={"counts": result})
    return result


wiring.observe("expirer")
wiring.build_in_lambda(wiring.pay_services)
handler: Final = scheduled(wiring.pay_services)
