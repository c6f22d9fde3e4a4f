"""`python -m benchmarks.cost`: what a million checkouts cost in AWS.

It counts the calls, request units, messages and log lines of the real handlers, for a cart of one
line and for one of 5 lines and 4 metadata values, with a real browser: the page again after the
redirect, and two polls of its status. Sums of a day are counted in a round of 50 sessions. It
cannot measure the response time of wallet providers or Lambda's overhead; the constants below
assume them. The prices are in prices.py.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from benchmarks.meter import Metered, Usage
from benchmarks.prices import FIXED, PRICES
from checkout import telemetry
from checkout.adapters.dynamo.records import DUE_SHARDS, URGENT_SHARDS
from checkout.adapters.side_by_side import WIDTH, in_turn
from checkout.flows.payment import sessions
from checkout.flows.schedule import tally
from sandbox.cloud import table_definitions
from tests.deployment import Deployment
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.merchant_api import a_body, an_item
from tests.product import PREFIX

MEMORY_GB: Final = 1.0
PROVIDER_SECONDS: Final = 0.25  # a call to a wallet provider or a merchant's endpoint
AWS_SECONDS: Final = 0.008  # a call to DynamoDB or SQS
OWN_SECONDS: Final = 0.02  # the rest of an invocation, with its share of cold starts
PLATFORM_KB: Final = 0.35  # Lambda's own log lines per invocation
MINUTES_A_MONTH: Final = 43_800
MINUTE: Final = timedelta(minutes=1)
COMPLETED_SHARE: Final = 0.3  # of the sessions, where two thirds of the customers leave

SMALLEST: Final = a_body()
LARGER: Final = a_body(
    line_items=[
        an_item(name=f"{tea} tea", description=f"Loose leaves, a tin of {grams} g")
        for tea, grams in (
            ("Assam", 250),
            ("Darjeeling", 100),
            ("Earl Grey", 125),
            ("Jasmine", 80),
            ("Lapsang Souchong", 100),
        )
    ],
    metadata={
        "order_id": "A-2026-000173",
        "customer_id": "c_81724",
        "channel": "web",
        "campaign": "autumn",
    },
)


class Observed:
    """A deployment with metered use."""

    def __init__(self) -> None:
        tables = table_definitions(PREFIX)
        self.deployed = Deployment(client=InMemoryDynamoDb(tables))
        self.meter = Metered(self.deployed.dynamo.client, tables)
        self.deployed.dynamo.client = self.meter

    def used(self, step: Callable[[], Any], *, requests: int = 1, receivers: int = 0) -> Usage:
        """Return the usage of `step`, which is one invocation."""
        self.meter.usage = Usage()
        sent, messages = len(self.deployed.world.transport.sent), self.deployed.queue.asked
        asked = len(messages)
        lines = io.StringIO()
        with contextlib.redirect_stdout(lines):
            answer = step()
        usage, self.meter.usage = self.meter.usage, Usage()
        usage.requests, usage.invocations = requests, 1
        usage.wallet_calls = len(self.deployed.world.transport.sent) - sent
        usage.messages = len(messages) - asked
        usage.log_kb = len(lines.getvalue().encode()) / 1000 + PLATFORM_KB
        usage.out_kb = len(getattr(answer, "body", "").encode()) / 1000 + 0.6 * requests
        outside = usage.wallet_calls + receivers
        inside = usage.calls + usage.messages
        usage.seconds = outside * PROVIDER_SECONDS + inside * AWS_SECONDS + OWN_SECONDS
        return usage


def checkout(
    observed: Observed, number: int, cart: Mapping[str, Any] = SMALLEST
) -> dict[str, Usage]:
    """Return the usage of a purchase by its steps.

    The first purchase of a process also fetches grants and the encryption key.
    """
    deployed = observed.deployed
    used = observed.used
    answers: dict[str, Any] = {}

    def kept(name: str, step: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            answers[name] = step()
            return answers[name]

        return run

    def create() -> Any:
        return deployed.call("POST", "/sessions", cart, Idempotency_Key=f"order-{number}")

    steps = {"create the session": used(kept("created", create))}
    session = deployed.world.session(answers["created"].json["id"])
    steps["open the page"] = used(lambda: deployed.visit("GET", session))
    steps["submit the wallet"] = used(kept("wallet", lambda: deployed.submit(session)))
    callback = deployed.approve(answers["wallet"].json["interact_url"])
    deployed.world.clock.pass_time(5)  # it took longer than the wallet asks to wait
    polls = [used(lambda: deployed.visit("GET", session, "/status")) for _ in range(2)]
    steps["two polls of the status"] = sum(polls, Usage())
    steps["approve and pay"] = used(lambda: deployed.come_back(session, callback))
    steps["page after the redirect"] = used(lambda: deployed.visit("GET", session))
    steps["confirmation page"] = used(lambda: deployed.visit("GET", session, "/success"))
    sent = used(deployed.send_webhooks, requests=0, receivers=1)
    sent.messages += 2  # received and deleted
    steps["deliver the webhook"] = sent
    read = f"/sessions/{session.id}"
    steps["read the session"] = used(lambda: deployed.call("GET", read))
    return steps


def sums(observed: Observed) -> Usage:
    """Return the share of one ended session in the round that counts it, of a full batch."""
    world = observed.deployed.world
    while tally.run(world.services.tallies, world.clock, in_turn, until=world.clock.now() + MINUTE):
        pass
    for _ in range(tally.BATCH):
        sessions.cancel(world.services, world.key(), world.create().id)
    observed.meter.usage = Usage()
    assert (
        tally.run(world.services.tallies, world.clock, in_turn, until=world.clock.now() + MINUTE)
        > 0
    )
    usage, observed.meter.usage = observed.meter.usage, Usage()
    usage.seconds = usage.calls * AWS_SECONDS
    return usage * (1 / tally.BATCH)


def parts(usage: Usage) -> dict[str, float]:
    """Return millionths of a dollar per price."""
    amounts = {
        "HTTP API requests": usage.requests,
        "Lambda invocations": usage.invocations,
        "Lambda GB-seconds, arm64": usage.seconds * MEMORY_GB,
        "DynamoDB write units": usage.writes + usage.index_writes,
        "DynamoDB read units": usage.reads,
        "SQS requests": usage.messages,
        "log and metric lines, GB": usage.log_kb,
        "traffic out, GB": usage.out_kb,
    }
    return {name: amount * PRICES[name] for name, amount in amounts.items()}


def a_million(usage: Usage) -> float:
    """Return US dollars for a million times `usage`."""
    return sum(parts(usage).values())


def sweep_a_month() -> float:
    """Return US dollars for a month of idle rounds.

    A shard costs five queries: sessions that are not urgent, events, sessions to count, and those
    of the two walks, each of which also reads its mark. Urgent sessions have shards of their own.
    All are side by side.
    """
    queries, marks = URGENT_SHARDS + 5 * DUE_SHARDS, 2 * DUE_SHARDS
    usage = Usage(invocations=1, reads=queries / 2 + marks, log_kb=PLATFORM_KB + 0.5)
    turns = (queries + marks) / WIDTH
    usage.seconds = turns * AWS_SECONDS + OWN_SECONDS
    return sum(parts(usage).values()) * MINUTES_A_MONTH / 1e6


def measured(cart: Mapping[str, Any] = SMALLEST) -> dict[str, Usage]:
    """Return the usage of the second purchase of a process, by its steps."""
    telemetry.start("pay")
    try:
        observed = Observed()
        observed.deployed.wants_webhooks()
        checkout(observed, 1, cart)  # warm-up
        observed.deployed.world.clock.pass_time(2)
        steps = checkout(observed, 2, cart)
        with contextlib.redirect_stdout(io.StringIO()):
            steps["count it in the day's sums"] = sums(observed)
        return steps
    finally:
        telemetry.stop()


def abandoned(steps: Mapping[str, Usage]) -> Usage:
    """Return the usage of a session whose customer looks at the page and leaves."""
    counted = Usage(reads=1)  # by the walk along the expiries
    return steps["create the session"] + steps["open the page"] + counted


def table(steps: Mapping[str, Usage]) -> Iterator[str]:
    """Yield the lines of a table of what the steps use, and of what that costs."""
    total = sum(steps.values(), Usage())
    yield "| step | AWS calls | write units | of them index | read units | wallet calls | log kB |"
    yield "|---|---|---|---|---|---|---|"
    for name, used in [*steps.items(), ("total", total)]:
        yield (
            f"| {name} | {used.calls + used.messages:.4g} | {units(used):.4g} "
            f"| {used.index_writes:.3g} | {used.reads:.4g} | {used.wallet_calls:g} "
            f"| {used.log_kb:.1f} |"
        )
    yield ""
    yield from ("| a million checkouts | US dollars |", "|---|---|")
    for name, dollars in [*parts(total).items(), ("total", a_million(total))]:
        yield f"| {name} | {dollars:.2f} |"


def units(usage: Usage) -> float:
    """Return the write units, those of indexes included."""
    return usage.writes + usage.index_writes


def main() -> None:
    smallest, larger = measured(), measured(LARGER)
    for name, steps in (("smallest cart", smallest), ("5 lines, 4 metadata values", larger)):
        print(f"**{name}**\n")
        print("\n".join(table(steps)), "\n")
    print("| a million | write units each | US dollars |\n|---|---|---|")
    for name, steps in (("smallest cart", smallest), ("5 lines, 4 metadata values", larger)):
        total, left = sum(steps.values(), Usage()), abandoned(steps)
        mixed = a_million(total) + (1 / COMPLETED_SHARE - 1) * a_million(left)
        print(f"| completed, {name} | {units(total):.1f} | {a_million(total):.2f} |")
        print(f"| abandoned, {name} | {units(left):.1f} | {a_million(left):.2f} |")
        print(f"| completed at {COMPLETED_SHARE:.0%} conversion, {name} | | {mixed:.2f} |")
    print("\n| fixed costs per month | US dollars |\n|---|---|")
    for name, dollars in [*FIXED.items(), ("sweep, every minute", sweep_a_month())]:
        print(f"| {name} | {dollars:.2f} |")
    print(f"| total | {sum(FIXED.values()) + sweep_a_month():.2f} |")


if __name__ == "__main__":
    main()
