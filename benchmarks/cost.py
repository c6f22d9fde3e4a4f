"""`python -m benchmarks.cost`: the cost of a thousand checkouts in AWS.

It counts the calls, request units, messages and log lines of the real handlers; the prices are
AWS's list prices. It cannot measure the response time of wallet providers or Lambda's overhead; the
constants below assume them. Taxes, free tiers and the support plan are left out.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from typing import Any, Final

from benchmarks.meter import Metered, Usage
from checkout import telemetry
from checkout.adapters.dynamo.records import DUE_SHARDS, URGENT_SHARDS
from checkout.adapters.side_by_side import WIDTH
from sandbox.cloud import table_definitions
from tests.deployment import Deployment
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.product import PREFIX

# US dollars per million in us-east-1, unless the name gives another unit.
PRICES: Final = {
    "HTTP API requests": 1.00,
    "Lambda invocations": 0.20,
    "Lambda GB-seconds, arm64": 13.3334,
    "DynamoDB write units": 0.625,
    "DynamoDB read units": 0.125,
    "SQS requests": 0.40,
    "log and metric lines, GB": 0.50,
    "traffic out, GB": 0.09,
}
FIXED: Final = {  # US dollars per month; a deployment at rest sends no metrics of its own
    "KMS key": 1.00,
    "secret": 0.40,
    "alarms (8)": 0.80,
    "dashboard": 3.00,
    "polling two empty queues": 0.53,  # 5 pollers each, 3 times a minute
}
MEMORY_GB: Final = 1.0
PROVIDER_SECONDS: Final = 0.25  # a call to a wallet provider or a merchant's endpoint
AWS_SECONDS: Final = 0.008  # a call to DynamoDB or SQS
OWN_SECONDS: Final = 0.02  # the rest of an invocation, with its share of cold starts
PLATFORM_KB: Final = 0.35  # Lambda's own log lines per invocation
MINUTES_A_MONTH: Final = 43_800


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


def checkout(observed: Observed, number: int) -> dict[str, Usage]:
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

    create = kept("created", lambda: deployed.create(Idempotency_Key=f"order-{number}"))
    steps = {"create the session": used(create)}
    session = deployed.world.session(answers["created"].json["id"])
    steps["open the page"] = used(lambda: deployed.visit("GET", session))
    steps["submit the wallet"] = used(kept("wallet", lambda: deployed.submit(session)))
    callback = deployed.approve(answers["wallet"].json["interact_url"])
    deployed.world.clock.pass_time(5)  # it took longer than the wallet asks to wait
    steps["approve and pay"] = used(lambda: deployed.come_back(session, callback))
    steps["confirmation page"] = used(lambda: deployed.visit("GET", session, "/success"))
    sent = used(deployed.send_webhooks, requests=0, receivers=1)
    sent.messages += 2  # received and deleted
    steps["deliver the webhook"] = sent
    read = f"/sessions/{session.id}"
    steps["read the session"] = used(lambda: deployed.call("GET", read))
    return steps


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


def a_thousand(usage: Usage) -> float:
    """Return US dollars for a thousand times `usage`."""
    return sum(parts(usage).values()) / 1000


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


def measured() -> dict[str, Usage]:
    """Return the usage of the second purchase of a process, by its steps."""
    telemetry.start("pay")
    try:
        observed = Observed()
        observed.deployed.wants_webhooks()
        checkout(observed, 1)  # warm-up
        observed.deployed.world.clock.pass_time(2)
        return checkout(observed, 2)
    finally:
        telemetry.stop()


def main() -> None:
    steps = measured()
    total = sum(steps.values(), Usage())
    print("| step | AWS calls | write units | index writes | read units | wallet calls | log KB |")
    print("|---|---|---|---|---|---|---|")
    for name, used in [*steps.items(), ("total", total)]:
        print(
            f"| {name} | {used.calls + used.messages:g} | {used.writes:g} | {used.index_writes:g} "
            f"| {used.reads:g} | {used.wallet_calls:g} | {used.log_kb:.1f} |"
        )
    print("\n| per thousand checkouts | US dollars |\n|---|---|")
    for name, millionths in parts(total).items():
        print(f"| {name} | {millionths / 1000:.4f} |")
    print(f"| total | {a_thousand(total):.4f} |")
    print("\n| fixed costs per month | US dollars |\n|---|---|")
    for name, dollars in [*FIXED.items(), ("sweep, every minute", sweep_a_month())]:
        print(f"| {name} | {dollars:.2f} |")
    print(f"| total | {sum(FIXED.values()) + sweep_a_month():.2f} |")


if __name__ == "__main__":
    main()
