"""`python -m benchmarks.cost`: the cost of a million checkouts in AWS.

It counts the calls, request units, messages and log lines of the real handlers, for a cart of one
line and for one of 5 lines and 4 metadata values, with a browser that takes compressed pages and
polls the status of those that are in sight. Each record is counted until its time to live, with
the entries of indexes and the copies for recovery. The ends of 5 minutes are counted together. It
cannot measure the response time of wallet providers or Lambda's overhead; the constants below
assume them. The prices are in prices.py.
"""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from unittest.mock import patch
from urllib.parse import urlsplit

from benchmarks.meter import Metered, Rows, Usage, keeping, stored
from benchmarks.prices import EDGE, FIXED, FREE, FREE_FIXED, PRICES
from checkout import telemetry
from checkout.adapters.dynamo.index_keys import DUE_SHARDS, URGENT_SHARDS
from checkout.adapters.runtime import WIDTH, run_in_turn
from checkout.domain.session.record import CLOCK_IS_FINAL_AFTER, Session
from checkout.flows.schedule import expiries
from checkout.flows.session import close
from checkout.ports import Scan
from open_payments.transports import Request
from sandbox.cloud import table_definitions
from sandbox.template import resources, template
from tests.fakes.dynamodb import InMemoryDynamoDb
from tests.support.deployment import Deployment
from tests.support.flows import CEDAR, PREFIX
from tests.support.merchant_api import a_body, an_item

PROVIDER_SECONDS: Final = 0.25  # a call to a wallet provider or a merchant's endpoint
AWS_SECONDS: Final = 0.008  # a call to DynamoDB or SQS
# The seconds that an invocation computes with 1 GB, including its share of cold starts. Lambda
# gives half of a processor for half of the memory.
OWN_SECONDS: Final = 0.02
HEADERS_KB: Final = 0.6  # of an answer
PLATFORM_KB: Final = 0.35  # Lambda's own log lines per invocation
HANDSHAKE_KB: Final = 0.8  # what a client sends to open a connection: one for each host of a step
READS: Final = 20  # seconds that a customer has the form in sight, and then the price
LEAVES: Final = 60  # seconds that a customer who leaves has the page in sight
KEY_SHOWN: Final = 300  # seconds for which wallets see a new key before it signs
# A page in sight polls every CLOSELY seconds for CLOSELY_FOR seconds after a touch, and then every
# OFTEN seconds (page.js).
CLOSELY: Final = 3
CLOSELY_FOR: Final = 20
OFTEN: Final = 10
MINUTES_A_MONTH: Final = 43_800
MINUTE: Final = timedelta(minutes=1)
COUNTED: Final = 115  # sessions that end in 5 minutes, of a million a month
COMPLETED_SHARE: Final = 0.3  # of the sessions, if two thirds of the customers leave

# The functions of the steps; the others are the hosted page's.
FUNCTIONS: Final = {
    "create the session": "ApiFunction",
    "read the session": "ApiFunction",
    "keys that wallets read": "ApiFunction",
    "deliver the webhook": "WebhookSenderFunction",
    "count it in the day's sums": "ExpirerFunction",
}
KEPT: Final = "keep its records"  # for their time to live
SIZES: Final = (256, 512, 1024, 1769)  # MB; with the last one a function has a whole processor

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
    """A deployment with metered use. Its merchant has no key file, as is usual."""

    def __init__(self, client: InMemoryDynamoDb | None = None) -> None:
        self.tables = table_definitions(PREFIX)
        client = client or InMemoryDynamoDb(self.tables)
        self.deployed = Deployment(client=client, key_file=False)
        self.meter = Metered(self.deployed.dynamo.client, self.tables)
        self.deployed.dynamo.client = self.meter
        self.deployed.world.clock.pass_time(KEY_SHOWN)
        self.deployed.world.transport.before = self._asks
        self._asked_kb = 0.0
        self._hosts: set[str] = set()

    def _asks(self, request: Request) -> None:
        self._hosts.add(urlsplit(request.url).netloc)
        self._asked_kb += _request_kb(request.url, request.headers, request.body)

    def stored(self) -> dict[str, Rows]:
        """Return all items of all tables."""
        return stored(self.meter.client, self.tables)

    def kept(self, before: dict[str, Rows]) -> Usage:
        """Return the usage of keeping what is stored since `before`, from now on."""
        now = self.deployed.world.clock.now()
        return keeping(before, self.stored(), self.tables, since=now)

    def used(
        self,
        step: Callable[[], Any],
        function: str = "PayFunction",
        *,
        requests: int = 1,
        receivers: int = 0,
    ) -> Usage:
        """Return the usage of `step`, which is one invocation."""
        self.meter.usage = Usage()
        sent, messages = len(self.deployed.world.transport.sent), self.deployed.queue.asked
        asked = len(messages)
        delivered = self.deployed.delivered
        known = len(delivered)
        self._asked_kb, self._hosts = 0.0, set()
        lines = io.StringIO()
        with contextlib.redirect_stdout(lines):
            answer = step()
        usage, self.meter.usage = self.meter.usage, Usage()
        usage.requests, usage.invocations = requests, 1
        usage.wallet_calls = len(self.deployed.world.transport.sent) - sent
        usage.messages = len(messages) - asked
        usage.log_kb = len(lines.getvalue().encode()) / 1000 + PLATFORM_KB
        usage.access_kb = access_line(answer) / 1000 * requests
        for url, headers, body in delivered[known:]:
            self._hosts.add(urlsplit(url).netloc)
            self._asked_kb += _request_kb(url, headers, body)
        asked_kb = self._asked_kb + HANDSHAKE_KB * len(self._hosts)
        usage.out_kb = _sent(answer) / 1000 + HEADERS_KB * requests + asked_kb
        outside = usage.wallet_calls + receivers
        inside = usage.calls + usage.messages
        lasts(usage, outside * PROVIDER_SECONDS + inside * AWS_SECONDS, function)
        return usage


def lasts(usage: Usage, waits: float, function: str) -> None:
    """Note the duration of a function's invocations, which wait for `seconds` in all."""
    usage.seconds = waits + usage.invocations * OWN_SECONDS / memory(function)
    usage.gb_seconds = usage.seconds * memory(function)


def _sent(answer: Any) -> int:
    """Return the number of bytes of an answer's body as it was sent. A page is compressed."""
    return int(getattr(answer, "headers", {}).get("content-length", 0))


def _request_kb(url: str, headers: Mapping[str, str], body: bytes | None) -> float:
    """Return the size of a request as it is sent."""
    lines = sum(len(name) + len(value) + 4 for name, value in headers.items())
    return (len(url) + lines + len(body or b"")) / 1000


def access_line(answer: Any) -> int:
    """Return the bytes of a request's line in the access log of template.yaml; 0 if it is off."""
    if template()["Parameters"]["AccessLog"]["Default"] != "true":
        return 0
    _, settings, _ = resources("AWS::ApiGatewayV2::Stage")["HttpStage"]["AccessLogSettings"][
        "Fn::If"
    ]
    values = {
        "requestTime": "23/Nov/2026:10:00:00 +0000",
        "requestId": "JKJaXmPLvHcESHA=",
        "routeKey": "POST /pay/{session_id}/wallet",
        "status": str(getattr(answer, "status", 200)),
        "responseLatency": "1250",
        "integrationLatency": "1245",
        "error.responseType": "-",
    }
    return len(
        re.sub(r"\$context\.([A-Za-z.]+)", lambda found: values[found[1]], settings["Format"])
    )


def function_of(step: str) -> str:
    """Return the function of the template that serves a step."""
    return FUNCTIONS.get(step, "PayFunction")


def memory(function: str) -> float:
    """Return the memory of a function of the template, in GB."""
    own = resources("AWS::Serverless::Function")[function]
    size: int = own.get("MemorySize") or template()["Globals"]["Function"]["MemorySize"]
    return size / 1024


def checkout(
    observed: Observed, number: int, cart: Mapping[str, Any] = SMALLEST
) -> dict[str, Usage]:
    """Return the usage of a purchase by its steps.

    The first purchase of a process also fetches grants and the encryption key.
    """
    deployed = observed.deployed
    used = observed.used
    before, fetched = observed.stored(), deployed.world.fetched
    fetched.clear()
    answers: dict[str, Any] = {}

    def kept(name: str, step: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            answers[name] = step()
            return answers[name]

        return run

    def create() -> Any:
        return deployed.call("POST", "/sessions", cart, Idempotency_Key=f"order-{number}")

    steps = {"create the session": used(kept("created", create), function_of("create the session"))}
    session = deployed.world.session(answers["created"].json["id"])
    steps["open the page"] = used(kept("opened", lambda: deployed.browse(session)))
    wallet = {"wallet_address": f"{CEDAR}/alice"}
    submit = partial(deployed.browse, session, "/wallet", fields=wallet)
    steps["submit the wallet"] = used(kept("submitted", submit))
    assert answers["submitted"].status == 200
    asked = deployed.world.session(session.id).interact_url
    assert asked is not None
    callback = deployed.approve(asked)
    deployed.world.clock.pass_time(20)  # the customer reads and approves
    times = sum(polls(answers[page].body, READS) for page in ("opened", "submitted"))
    steps["polls of the status"] = _polled(observed, session, times)
    back = partial(deployed.come_back, session, callback)
    steps["approve and pay"] = used(kept("returned", back))
    assert answers["returned"].headers["location"].endswith("/success")
    steps["confirmation page"] = used(lambda: deployed.browse(session, "/success"))
    sent = used(deployed.send_webhooks, function_of("deliver the webhook"), requests=0, receivers=1)
    sent.messages += 2  # received and deleted
    steps["deliver the webhook"] = sent
    read = f"/sessions/{session.id}"
    steps["read the session"] = used(
        lambda: deployed.call("GET", read), function_of("read the session")
    )
    steps["keys that wallets read"] = _documents(observed, list(fetched))
    steps[KEPT] = observed.kept(before)
    return steps


def left(
    observed: Observed,
    number: int,
    cart: Mapping[str, Any] = SMALLEST,
    *,
    wallet: bool = False,
) -> dict[str, Usage]:
    """Return the usage, by its steps, of a session whose customer sees the page and leaves.

    With `wallet` they leave at the price, after they gave a wallet.
    """
    deployed, used = observed.deployed, observed.used
    before, fetched = observed.stored(), deployed.world.fetched
    fetched.clear()
    answers: list[Any] = []

    def create() -> None:
        key = f"cart-{number}"
        answers.append(deployed.call("POST", "/sessions", cart, Idempotency_Key=key))

    steps = {"create the session": used(create, function_of("create the session"))}
    session = deployed.world.session(answers[0].json["id"])

    def browse(*place: Any) -> Any:
        answers.append(deployed.browse(session, *place))
        return answers[-1]

    steps["open the page"] = used(browse)
    times = polls(answers[-1].body, READS if wallet else LEAVES)
    if wallet:
        fields = {"wallet_address": f"{CEDAR}/alice"}
        steps["submit the wallet"] = used(partial(browse, "/wallet", "", fields))
        assert answers[-1].status == 200
        times += polls(answers[-1].body, LEAVES)
        steps["keys that wallets read"] = _documents(observed, list(fetched))
    steps["polls of the status"] = _polled(observed, session, times)
    steps[KEPT] = observed.kept(before)
    return steps


def polls(page: str, seconds: float) -> int:
    """Return how often a page asks for its status if it is in sight for these seconds.

    Nobody touches the page, and no money is under way.
    """
    found = re.search(r'data-pace="([0-9]+)"', page)
    wait = float(found[1]) if found else seconds + 1
    at, times = wait, 0
    while at <= seconds:
        times += 1
        wait = min(wait * 1.5, CLOSELY if at < CLOSELY_FOR else OFTEN)
        at += wait
    return times


def _polled(observed: Observed, session: Session, times: int) -> Usage:
    def calls() -> Any:
        answer = observed.deployed.visit("GET", session, "/status")
        assert answer.status == 200
        return answer

    return sum((observed.used(calls) for _ in range(times)), Usage())


def _documents(observed: Observed, urls: list[str]) -> Usage:
    """Return the usage of serving these documents to wallets, each a request of its own."""
    function = function_of("keys that wallets read")
    found = Usage()
    for url in urls:
        found += observed.used(partial(observed.deployed.document, url), function)
    return found


def sums(observed: Observed) -> Usage:
    """Return the share of one ended session in the round that counts it."""
    world = observed.deployed.world
    for _ in range(COUNTED):
        close.cancel(world.services, world.key(), world.create().id)
    world.clock.pass_time((CLOCK_IS_FINAL_AFTER + expiries.GATHERED).total_seconds())
    services = replace(world.services, run_concurrently=run_in_turn)
    observed.meter.usage = Usage()
    until = world.clock.now() + MINUTE
    followed = expiries.run(services, until=until, walks=[Scan.ENDS])
    assert followed.counted >= COUNTED
    usage, observed.meter.usage = observed.meter.usage, Usage()
    lasts(usage, usage.calls * AWS_SECONDS, function_of("count it in the day's sums"))
    return usage * (1 / followed.counted)


def parts(usage: Usage, *, free: Mapping[str, float] = MappingProxyType({})) -> dict[str, float]:
    """Return US dollars per price for a million times `usage`, less the `free` amounts."""
    amounts = {
        "HTTP API requests": usage.requests,
        "Lambda invocations": usage.invocations,
        "Lambda GB-seconds, arm64": usage.gb_seconds,
        "DynamoDB write units": usage.writes + usage.index_writes,
        "DynamoDB read units": usage.reads,
        "SQS requests": usage.messages,
        "log and metric lines, GB": usage.log_kb,
        "access log, GB": usage.access_kb,
        "traffic out, GB": usage.out_kb,
        "DynamoDB storage, GB-months": usage.kept,
        "recovery copies, GB-months": usage.recoverable,
    }
    return {
        name: max(0.0, amount - free.get(name, 0.0)) * PRICES[name]
        for name, amount in amounts.items()
    }


def a_million(usage: Usage, *, free: Mapping[str, float] = MappingProxyType({})) -> float:
    """Return US dollars for a million times `usage`, less the `free` amounts."""
    return sum(parts(usage, free=free).values())


def at_the_edge(usage: Usage) -> float:
    """Return US dollars for a million times `usage` with an edge."""
    return a_million(usage) + usage.requests * sum(EDGE.values())


def sweep_a_month() -> Usage:
    """Return the millionth part of a month of idle rounds.

    A shard costs five queries: one for sessions that are not urgent, one for events, and three for
    the walks. Urgent sessions have shards of their own. All queries run in parallel. One call reads
    the walks' marks, a row for each shard.
    """
    queries, marks = URGENT_SHARDS + 5 * DUE_SHARDS, DUE_SHARDS
    usage = Usage(invocations=1, reads=queries / 2 + marks, log_kb=PLATFORM_KB + 0.5)
    turns = 1 + queries / WIDTH
    lasts(usage, turns * AWS_SECONDS, "ExpirerFunction")
    return usage * (MINUTES_A_MONTH / 1e6)


def idle() -> dict[str, tuple[float, float]]:
    """Return US dollars per line for a month at rest: by list price, and less the free amounts."""
    sweep = sweep_a_month()
    fixed = {name: (price, price - FREE_FIXED.get(name, 0.0)) for name, price in FIXED.items()}
    return {**fixed, "sweep, every minute": (a_million(sweep), a_million(sweep, free=FREE))}


@contextlib.contextmanager
def _logging() -> Iterator[None]:
    """Log as in Lambda, but no debug lines: one request in a hundred, by chance, has them."""
    telemetry.start("pay")
    try:
        with patch.object(telemetry, "sampled", lambda request_id: False):
            yield
    finally:
        telemetry.stop()


def measured(cart: Mapping[str, Any] = SMALLEST) -> dict[str, Usage]:
    """Return the usage of the second purchase of a process, by its steps."""
    with _logging():
        observed = Observed()
        observed.deployed.wants_webhooks()
        checkout(observed, 1, cart)  # warm-up
        observed.deployed.world.clock.pass_time(2)
        steps = checkout(observed, 2, cart)
        with contextlib.redirect_stdout(io.StringIO()):
            steps["count it in the day's sums"] = sums(observed)
        return steps


def measured_left(cart: Mapping[str, Any] = SMALLEST) -> dict[str, Usage]:
    """Return the usage of a session whose customer leaves, in a running process."""
    with _logging():
        observed = Observed()
        left(observed, 1, cart)  # warm-up
        walk = {"count it in the day's sums": Usage(reads=1)}  # along the expiries
        return left(observed, 2, cart) | walk


def table(steps: Mapping[str, Usage]) -> Iterator[str]:
    """Yield the lines of two tables: what the steps use, and the cost."""
    total = sum(steps.values(), Usage())
    yield (
        "| step | AWS calls | write units | of them index | of them search | read units "
        "| wallet calls | log kB |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, used in [*steps.items(), ("total", total)]:
        yield (
            f"| {name} | {used.calls + used.messages:.4g} | {units(used):.4g} "
            f"| {used.index_writes:.3g} | {used.search_writes:g} | {used.reads:.4g} "
            f"| {used.wallet_calls:g} | {used.log_kb:.1f} |"
        )
    yield ""
    yield from ("| a million checkouts | US dollars | less what is free |", "|---|---|---|")
    free = [*parts(total, free=FREE).values(), a_million(total, free=FREE)]
    listed = [*parts(total).items(), ("total", a_million(total))]
    for (name, dollars), less in zip(listed, free, strict=True):
        yield f"| {name} | {dollars:.2f} | {less:.2f} |"


def sizes(steps: Mapping[str, Usage]) -> Iterator[str]:
    """Yield the lines of a table of the functions' cost with more or less memory."""
    heads = " | ".join(f"{size} MB" for size in SIZES)
    yield f"| a million completed checkouts, US dollars | {heads} |"
    yield "|---|" + "---|" * len(SIZES)
    for function in ("ApiFunction", "PayFunction", "WebhookSenderFunction"):
        used = sum(
            (steps[name] for name in steps if function_of(name) == function),
            Usage(),
        )
        waits = used.seconds - used.invocations * OWN_SECONDS / memory(function)
        costs = [
            (waits * size / 1024 + used.invocations * OWN_SECONDS)
            * PRICES["Lambda GB-seconds, arm64"]
            for size in SIZES
        ]
        shown = [
            f"**{cost:.2f}**" if size == memory(function) * 1024 else f"{cost:.2f}"
            for size, cost in zip(SIZES, costs, strict=True)
        ]
        yield f"| {function} | {' | '.join(shown)} |"
    own = " | ".join(f"{OWN_SECONDS * 1024 / size * 1000:.0f}" for size in SIZES)
    yield f"| ms that an invocation computes | {own} |"


def units(usage: Usage) -> float:
    """Return the write units, including those of indexes."""
    return usage.writes + usage.index_writes


CARTS: Final = MappingProxyType({"smallest cart": SMALLEST, "5 lines, 4 metadata values": LARGER})


def main() -> None:
    # Once for all tables: ids are random, and pages with them compress to a few bytes more or less.
    paid = {name: measured(cart) for name, cart in CARTS.items()}
    for name, steps in paid.items():
        print(f"**{name}**\n")
        print("\n".join(table(steps)) + "\n")
    print("| a million | write units each | storage | US dollars |\n|---|---|---|---|")
    storage = ("DynamoDB storage, GB-months", "recovery copies, GB-months")
    for name, cart in CARTS.items():
        total, away = (sum(each.values(), Usage()) for each in (paid[name], measured_left(cart)))
        for what, usage in (("completed", total), ("abandoned", away)):
            kept = sum(parts(usage)[each] for each in storage)
            dollars = f"{units(usage):.1f} | {kept:.2f} | {a_million(usage):.2f}"
            print(f"| {what}, {name} | {dollars} |")
        # With the share of the others that comes with a completed one.
        mixed = a_million(total) + (1 / COMPLETED_SHARE - 1) * a_million(away)
        print(f"| completed at {COMPLETED_SHARE:.0%} conversion, {name} | | | {mixed:.2f} |")
    print("\n| a million completed | no edge | an edge |\n|---|---|---|")
    for name, steps in paid.items():
        total = sum(steps.values(), Usage())
        print(f"| {name} | {a_million(total):.2f} | {at_the_edge(total):.2f} |")
    print("\n" + "\n".join(sizes(paid["smallest cart"])))
    print("\n| fixed costs per month | US dollars | less what is free |\n|---|---|---|")
    lines = idle()
    listed, less = (sum(each) for each in zip(*lines.values(), strict=True))
    for name, (dollars, charged) in [*lines.items(), ("total", (listed, less))]:
        print(f"| {name} | {dollars:.2f} | {charged:.2f} |")


if __name__ == "__main__":
    main()
