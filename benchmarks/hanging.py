"""Measure the wait of a payment in doubt behind customers' wallets that hang.

`python -m benchmarks.hanging`: in one process, rounds of the real sweep with its real threads over
the in-memory tables and the sandbox's wallets, whose calls take CALL seconds. A payment whose
answer was lost is decided alone, and then behind eight older ones whose wallets do not answer; all
eight are on different hosts, so all are asked before one of them is known to hang. Prints the
medians and their ratio; exits with 1 above LIMIT.
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from checkout.adapters.runtime import Threads
from checkout.domain.session.record import Status
from checkout.flows.schedule import sweep
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Request
from tests.support.basics import HandClock
from tests.support.flows import CEDAR, World

CALL: Final = 0.25  # seconds for a call to a wallet that answers
HANGING: Final = 8
ROUNDS: Final = 5  # of each kind, in turn
LIMIT: Final = 1.5
LATER: Final = timedelta(minutes=1)  # the first round after the answer was lost


class RealClock(HandClock):
    """The test world's clock, which also runs by itself."""

    def __init__(self) -> None:
        super().__init__()
        self._started = time.monotonic()

    def now(self) -> datetime:
        passed = int((time.monotonic() - self._started) * 1000)
        return super().now() + timedelta(milliseconds=passed)


def decided_after(hanging: int) -> tuple[float, float]:
    """Return the seconds until the honest payment was decided, and until the end of the round."""
    world = World(clock=RealClock())
    hostile = [world.pay(world.create(), f"{CEDAR}/never-credits") for _ in range(hanging)]
    quotes = [each.quote.id.rsplit("/", 1)[-1] for each in hostile if each.quote is not None]
    assert len(quotes) == hanging
    honest = world.in_doubt()
    world.services = replace(world.services, run_concurrently=Threads())
    world.clock.pass_time(LATER.total_seconds())

    def wait(request: Request) -> None:
        if any(quote in request.url for quote in quotes):
            time.sleep(sweep.CUSTOMER_WITHIN.total_seconds())
            raise OutcomeUnknown("no answer")
        time.sleep(CALL)

    world.transport.before = wait
    begun = world.clock.now()
    sweep.run(world.services, until=begun + timedelta(seconds=50))
    paid = world.session(honest.id)
    assert paid.status is Status.COMPLETED
    assert paid.completed_at is not None
    return (paid.completed_at - begun).total_seconds(), (world.clock.now() - begun).total_seconds()


def main() -> int:
    """Print the table; return 1 if the payment had to wait."""
    alone, behind, whole = [], [], []
    for _ in range(ROUNDS):
        alone.append(decided_after(0)[0])
        decided, ended = decided_after(HANGING)
        behind.append(decided)
        whole.append(ended)
    ratio = statistics.median(behind) / statistics.median(alone)
    print(f"{ROUNDS} rounds each, in turn, calls of {CALL} s\n")
    print("| seconds until a payment in doubt is decided | median | worst |")
    print("|---|---|---|")
    for name, seconds in (
        ("alone", alone),
        (f"behind {HANGING} wallets that hang", behind),
        ("the whole round with them", whole),
    ):
        print(f"| {name} | {statistics.median(seconds):.2f} | {max(seconds):.2f} |")
    print(f"| ratio (at most {LIMIT}) | {ratio:.2f} | |")
    return int(ratio > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
