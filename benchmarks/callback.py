"""`python -m benchmarks.callback`: the time that a customer waits for the money after the 201.

The money shows at the merchant's wallet some time after the customer's wallet has answered: on a
real Rafiki about 200 ms. The callback reads the incoming payment at once and then between pauses
(flows/session/completion.py). This runs the real loop on a clock moved by hand, against a provider
with that delay and that round trip, with the pauses in use and with others. It needs no network and
takes a second; the figures are the same on any machine.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from statistics import mean, median, quantiles
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from checkout.domain.payment.in_flight import IncomingPaymentRef
from checkout.domain.session.record import Status
from checkout.flows.session import completion
from checkout.flows.session.approve import WAIT_FOR_MONEY
from checkout.ports import CompletionPolicy
from open_payments.models import Amount
from tests.support.basics import NOW, HandClock, a_session

SCHEDULES: Final = {
    "as before: 0.4, 0.6, 1, 1, 1": (0.4, 0.6, 1.0, 1.0, 1.0),
    "0.1 each for a second, then 1": (0.1,) * 10 + (1.0,) * 3,
}
DELAY: Final = 0.2  # seconds, median
SPREAD: Final = 0.5  # standard deviation of the logarithm: nine of ten are between 90 and 460 ms
ROUND_TRIPS: Final = (0.0, 0.02, 0.1)  # seconds
STORE: Final = 0.008  # a write of ours
CALLBACKS: Final = 2_000
NOT_FAILED: Final[Any] = SimpleNamespace(
    id="https://s.example/out/1", failed=False, sent=Amount(0, "USD", 2)
)
TOKEN: Final[Any] = None


class Completed(Exception):
    """The money is seen."""


@dataclass
class Provider:
    """A merchant's wallet that shows the money `shows_at` seconds after the 201."""

    shows_at: float
    round_trip: float
    clock: HandClock = field(default_factory=HandClock)
    reads: int = 0

    def at_merchant(self, call: Callable[[Any], Any]) -> Any:
        """Answer a read of the incoming payment with its state when the request arrives."""
        self.reads += 1
        self.clock.pass_time(self.round_trip / 2)
        there = self.passed >= self.shows_at
        self.clock.pass_time(self.round_trip / 2)
        amount = Amount(2000 if there else 0, "USD", 2)
        return SimpleNamespace(received=amount, completed=False, expires_at=None)

    @property
    def passed(self) -> float:
        return (self.clock.now() - NOW).total_seconds()

    @property
    def merchant(self) -> Any:
        return SimpleNamespace(tolerance=0)

    @property
    def services(self) -> Any:
        return SimpleNamespace(clock=self.clock, completion_policy=CompletionPolicy.RECEIVED)

    def within(self, time: timedelta) -> Any:
        """Return the visit that ends after this `time`."""
        client = SimpleNamespace(get_outgoing_payment=lambda url, token: NOT_FAILED)
        return SimpleNamespace(
            services=self.services,
            merchant=self.merchant,
            client=client,
            deadline=self.clock.now() + time,
            at_merchant=self.at_merchant,
        )


def waits(pauses: tuple[float, ...], round_trip: float) -> Iterator[tuple[float, int]]:
    """Yield the seconds from the 201 until the money is seen, and the number of reads."""
    draw = random.Random(1)  # noqa: S311 - no secret
    payment = IncomingPaymentRef("https://r.example/in/1", a_session().expires_at)
    session = a_session(Status.PROCESSING, incoming_payment=payment)
    seen = patch.object(completion, "complete", side_effect=Completed)
    with patch.object(completion, "POLL_SECONDS", pauses), seen:
        for _ in range(CALLBACKS):
            provider = Provider(DELAY * draw.lognormvariate(0, SPREAD), round_trip)
            provider.clock.pass_time(STORE)  # W7
            work: Any = provider
            try:
                completion.await_money(work, session, NOT_FAILED, TOKEN, time_budget=WAIT_FOR_MONEY)
            except Completed:
                yield provider.passed, provider.reads


def main() -> None:
    schedules = {"in use": completion.POLL_SECONDS} | SCHEDULES
    print("| pauses, s | round trip, ms | wait, median ms | 9 of 10, ms | reads, mean |")
    print("|---|---|---|---|---|")
    for name, pauses in schedules.items():
        for round_trip in ROUND_TRIPS:
            found = list(waits(pauses, round_trip))
            seconds = [wait for wait, _ in found]
            print(
                f"| {name} | {round_trip * 1000:g} | {median(seconds) * 1000:.0f} "
                f"| {quantiles(seconds, n=10)[-1] * 1000:.0f} "
                f"| {mean(reads for _, reads in found):.1f} |"
            )


if __name__ == "__main__":
    main()
