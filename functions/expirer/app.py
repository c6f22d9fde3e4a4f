"""The scheduled Lambda function: run one round of the sweep, and send its counts as metrics.

The sweep checks payments in doubt, expired sessions and other due work, in one round a minute. A
round that takes longer than a minute overlaps with the next one, which is harmless. So the function
needs no reserved concurrency (a limit of copies running at once), which small AWS accounts cannot
spare. If one round a minute is not enough, add schedules that start rounds in parallel. The index
of due work has parts, the shards, and each of these rounds checks a range of them
(docs/scaling.md).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from checkout import telemetry, wiring
from checkout.adapters.aws import Context
from checkout.domain.merchant.record import Merchant
from checkout.domain.session.customer_details import CustomerDetails
from checkout.domain.session.record import Session
from checkout.domain.session.withdrawal import Withdrawal
from checkout.flows.schedule import expiries, sweep
from checkout.flows.schedule.expiries import Followed
from checkout.flows.schedule.sweep import Counts
from checkout.ports import Email, Notice, ShardRange
from checkout.services import PayServices

# A check can take this long, and must end before Lambda stops the process. So no check begins when
# less than this time is left.
LAST_CHECK: Final = timedelta(seconds=25)
SWEEP: Final = 0.8  # the share of a round's time for the sweep; expired sessions get the rest

_log: Final = logging.getLogger(__name__)


def scheduled(services: Callable[[], PayServices]) -> Callable[[Any, Context], dict[str, Any]]:
    """Return the Lambda handler, which returns the counts of one round.

    The event `{"part": 3, "of": 8}` requests the sweep of range 3 of the shards, if these are
    divided into ranges 0 to 7. Only a round of range 0 also ends expired sessions, and counts ended
    sessions for the daily totals.
    """

    @telemetry.observed
    def handler(event: Any, context: Context) -> dict[str, Any]:
        ready = services()
        begun = ready.clock.now()
        left = timedelta(milliseconds=context.get_remaining_time_in_millis()) - LAST_CHECK
        part = ShardRange(event.get("part", 0), event.get("of", 1))
        try:
            if part.number:
                return _reported(sweep.run(ready, until=begun + left, part=part), Followed())
            counts = sweep.run(ready, until=begun + left * SWEEP, part=part)
            return _reported(counts, expiries.run(ready, until=begun + left))
        except Exception as error:
            _log.error("a round of the sweep failed", extra=telemetry.failure(error))
            raise

    return handler


def _reported(counts: Counts, followed: Followed) -> dict[str, Any]:
    """Send the counts as metrics, and return the counts."""
    totals = {
        "SessionsChecked": counts.checked,
        "Moved": counts.moved.total() + followed.reported,
        "Failed": counts.failed + followed.failed,
        "NeedsAttention": counts.needs_attention,
        "SweepBacklog": counts.not_reached,
        "EventsDue": counts.enqueued,
    }
    ages = {
        "OldestDuePayment": counts.oldest_payment.total_seconds(),
        "OldestDueEvent": counts.longest_due.total_seconds(),
    }
    for name, value in totals.items():
        telemetry.count(name, value)
    for name, seconds in ages.items():
        telemetry.count(name, seconds, unit="Seconds")
    result = {
        **totals,
        **ages,
        "MovedBy": dict(counts.moved),
        "Counted": followed.counted,
    }
    if any(totals.values()):
        _log.info("a round of the sweep", extra={"counts": result})
    return result


def _written(notice: Notice) -> Email:
    """Write a notice. The code is loaded only here, because most rounds send no notice."""
    from pay.emails import notice_email

    return notice_email(notice)


def _acknowledged(
    session: Session, merchant: Merchant, filed: Withdrawal, said: CustomerDetails
) -> Email:
    """Write the acknowledgement of a withdrawal. The code is loaded only here."""
    from pay.emails import acknowledgement

    return acknowledgement(session, merchant, filed, said)


def _services() -> PayServices:
    return replace(
        wiring.pay_services(), write_notice=_written, write_acknowledgement=_acknowledged
    )


wiring.observe("expirer")
wiring.build_in_lambda(wiring.pay_services)
handler: Final = scheduled(_services)
