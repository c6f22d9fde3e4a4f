"""`python -m benchmarks.scaling`: the first limit that is reached as the checkouts a second grow.

It counts the request units, calls and messages of the real handlers and of the scheduled job, and
compares the needs of a rate with AWS's published limits and our own. Durations of calls are the
assumptions of benchmarks/cost.py; the assumptions about customers are below. docs/scaling.md has
the tables, which docs/tables.py writes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from math import ceil, floor, log10
from typing import Any, Final

from benchmarks.cost import AWS_SECONDS, Observed, checkout, function_of, left
from benchmarks.meter import Metered, Usage, index_writes
from checkout import telemetry
from checkout.adapters.dynamo.codec import Item
from checkout.adapters.dynamo.index_keys import DUE_SHARDS, URGENT_SHARDS
from checkout.adapters.runtime import WIDTH
from checkout.domain.ground.parts import PARTS
from checkout.domain.session.record import CLOCK_IS_FINAL_AFTER
from checkout.flows.merchant.settings import LOGO_MAX
from checkout.flows.schedule import expiries, sweep
from expirer.app import SWEEP
from sandbox.template import resources, template
from tests.fakes.dynamodb import item_size

Units = Mapping[str, float]

RATES: Final = (10, 100, 1_000, 10_000)  # completed checkouts a second

# Assumptions. A checkout is a completed one; with it come:
ABANDONED: Final = 7 / 3  # carts without a wallet: 70 % of all
LEFT: Final = 1 / 9  # customers who gave a wallet and did not come back: one in ten
IN_DOUBT: Final = 0.002  # payments whose answer was lost

TRANSACTION_SECONDS: Final = 0.02
ROUND_SECONDS: Final = 50  # of each minute (functions/expirer)

SHARED: Final = ("clock#", "day#")  # rows that the sessions of a batch have in common

_DYNAMO: Final = "docs.aws.amazon.com/amazondynamodb/latest/developerguide/"


@dataclass(frozen=True, slots=True)
class Limit:
    """A published limit. `raised` says whether AWS raises it on request."""

    value: int
    unit: str
    source: str
    raised: bool


LIMITS: Final = {
    "partition writes": Limit(
        1_000, "write units a second", _DYNAMO + "bp-partition-key-design.html", False
    ),
    "partition reads": Limit(
        3_000, "read units a second", _DYNAMO + "bp-partition-key-design.html", False
    ),
    "table writes": Limit(40_000, "write units a second", _DYNAMO + "ServiceQuotas.html", True),
    "table reads": Limit(40_000, "read units a second", _DYNAMO + "ServiceQuotas.html", True),
    "new table writes": Limit(
        4_000, "write units a second", _DYNAMO + "on-demand-capacity-mode.html", True
    ),
    "executions": Limit(
        1_000,
        "at the same time; 10 in a new account",
        "docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html",
        True,
    ),
    "gateway requests": Limit(
        10_000,
        "a second, in all of the account",
        "docs.aws.amazon.com/apigateway/latest/developerguide/limits.html",
        True,
    ),
    "messages in flight": Limit(
        120_000,
        "for each queue",
        "docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-messages.html",
        True,
    ),
    "secret reads": Limit(
        10_000,
        "a second",
        "docs.aws.amazon.com/secretsmanager/latest/userguide/reference_limits.html",
        False,
    ),
    "key requests": Limit(
        10_000,
        "a second; more in some regions",
        "docs.aws.amazon.com/kms/latest/developerguide/requests-per-second.html",
        True,
    ),
}


class Placed(Metered):
    """A metered client that also notes the place where units are used.

    A place is a table, or an index with the kind of its key.
    """

    def __init__(self, meter: Metered) -> None:
        super().__init__(meter.client, meter.tables)
        self.writes: Counter[str] = Counter()
        self.reads: Counter[str] = Counter()

    def forget(self) -> None:
        self.writes, self.reads = Counter(), Counter()

    def get_item(self, **request: Any) -> Any:
        before = self.usage.reads
        answer = self.__getattr__("get_item")(**request)
        self.reads[_short(request["TableName"])] += round(self.usage.reads - before)
        return answer

    def _wrote(self, operation: str, before: Any, after: Any) -> None:
        super()._wrote(operation, before, after)
        factor = 2 if operation == "transact_write_items" else 1
        for table in self.tables:
            name = table["TableName"]
            for key in before[name].keys() | after[name].keys():
                old, new = before[name].get(key, {}), after[name].get(key, {})
                if old != new and not key.startswith(SHARED):
                    size = max(item_size(old), item_size(new))
                    self.writes[_short(name)] += factor * ceil(size / 1024)
                    self._moved(table, old, new)

    def _moved(self, table: dict[str, Any], old: Item, new: Item) -> None:
        for index in table.get("GlobalSecondaryIndexes", []):
            key = index["KeySchema"][0]["AttributeName"]
            lane = "" if key in ("merchant", "search_key") else _lane(old, new, key)
            place = f"{_short(table['TableName'])}/{index['IndexName']}{lane}"
            if units := index_writes(old, new, index):
                self.writes[place] += units


def _short(table: str) -> str:
    return table.partition("-")[2]


def _lane(old: Item, new: Item, key: str) -> str:
    value: str = (new.get(key) or old.get(key) or {"S": ""})["S"]
    lane = value.rstrip("0123456789").rstrip("-")
    return f" {lane}" if lane else ""


@dataclass(frozen=True, slots=True)
class Cost:
    """The use of one session: requests by step, messages, seconds by function, units by place."""

    asked: Units
    messages: float
    read_units: float
    seconds: Units
    writes: Units
    reads: Units

    def times(self, number: float) -> Cost:
        return Cost(
            {name: each * number for name, each in self.asked.items()},
            self.messages * number,
            self.read_units * number,
            {name: each * number for name, each in self.seconds.items()},
            {name: each * number for name, each in self.writes.items()},
            {name: each * number for name, each in self.reads.items()},
        )

    def plus(self, other: Cost) -> Cost:
        return Cost(
            _added(self.asked, other.asked),
            self.messages + other.messages,
            self.read_units + other.read_units,
            _added(self.seconds, other.seconds),
            _added(self.writes, other.writes),
            _added(self.reads, other.reads),
        )

    @property
    def requests(self) -> float:
        return sum(self.asked.values())


def _added(one: Units, other: Units) -> Units:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


class Scene:
    """A deployment whose use is counted by place."""

    def __init__(self) -> None:
        self.observed = Observed()
        deployed = self.observed.deployed
        deployed.wants_webhooks()
        self.meter = Placed(self.observed.meter)
        self.observed.meter = deployed.dynamo.client = self.meter
        self.world = deployed.world
        self._number = 0

    def steps(self, do: Callable[[], dict[str, Usage]]) -> Cost:
        """Return the use of `do`, which names its steps."""
        self.meter.forget()
        steps = do()
        seconds: Units = {}
        for name, used in steps.items():
            seconds = _added(seconds, {function_of(name): used.seconds})
        total = sum(steps.values(), Usage())
        asked = {name: used.requests for name, used in steps.items()}
        writes: Units = {**self.meter.writes}
        reads: Units = {**self.meter.reads}
        return Cost(asked, total.messages, total.reads, seconds, writes, reads)

    def paid(self) -> dict[str, Usage]:
        self._number += 1
        steps = checkout(self.observed, self._number)
        self.world.clock.pass_time(2)
        return steps

    def abandoned(self, *, wallet: bool) -> dict[str, Usage]:
        """Create a session whose customer sees the page, and gives a wallet or not."""
        self._number += 1
        steps = left(self.observed, self._number, wallet=wallet)
        self.world.clock.pass_time(5)  # so that no limit by client is reached
        return steps

    def rounds(self) -> dict[str, Usage]:
        """Let a day pass, and let the scheduled job do its work."""
        clock, services = self.world.clock, self.world.services
        done = {"sweep": Usage(), "clock": Usage()}
        used = partial(self.observed.used, function="ExpirerFunction", requests=0)
        for seconds in (86_400, (CLOCK_IS_FINAL_AFTER + expiries.GATHERED).total_seconds(), 120):
            clock.pass_time(int(seconds))
            until = clock.now() + timedelta(seconds=ROUND_SECONDS)
            done["sweep"] += used(partial(sweep.run, services, until=until))
            done["clock"] += used(partial(expiries.run, services, until=until))
        return done


@dataclass(frozen=True, slots=True)
class Measured:
    """The use of a completed checkout, of an abandoned cart, and of one with a wallet.

    Each includes the work of the scheduled job. `check` is the time of one thread of the sweep for
    a session whose customer gave a wallet and left.
    """

    paid: Cost
    abandoned: Cost
    left: Cost
    check: float

    @property
    def load(self) -> Cost:
        """Return the use of one completed checkout with its share of the other carts."""
        return self.paid.plus(self.abandoned.times(ABANDONED)).plus(self.left.times(LEFT))


SOME: Final = 8  # sessions of each kind for which the scheduled job is measured


@cache
def measured() -> Measured:
    """Return the use of sessions of a running process."""
    telemetry.start("pay")
    try:
        scene = Scene()
        scene.paid()  # warm-up
        scene.rounds()
        idle = scene.rounds()
        checks, costs = [], []
        for make in (
            scene.paid,
            partial(scene.abandoned, wallet=False),
            partial(scene.abandoned, wallet=True),
        ):
            made = [scene.steps(make) for _ in range(SOME)]
            scene.meter.forget()
            done = scene.rounds()
            checks.append((done["sweep"].seconds - idle["sweep"].seconds) / SOME)
            reads = sum(each.reads for each in done.values())
            reads -= sum(each.reads for each in idle.values())
            later = Cost({}, 0, reads, {}, {**scene.meter.writes}, {})
            costs.append(made[-1].plus(later.times(1 / SOME)))
        paid, abandoned, left = costs
        return Measured(paid, abandoned, left, check=checks[-1])
    finally:
        telemetry.stop()


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the deployment: the use of one checkout a second, and its limit.

    `has` is the limit with the defaults, `most` the limit with the setting or quota in `lifted`,
    without a change of code; `beyond` is the change of design that would follow.
    """

    name: str
    need: float
    has: float
    most: float
    lifted: str
    beyond: str

    @property
    def at(self) -> float:
        """Return the checkouts a second at which the limit is reached."""
        return self.has / self.need

    @property
    def at_most(self) -> float:
        return self.most / self.need


QUOTA: Final = 10  # times the default, which AWS grants if it is needed


def components(found: Measured) -> list[Component]:
    """Return all components, ordered by the rate at which they are full."""
    load = found.load
    created = 1 + ABANDONED + LEFT
    parameters = template()["Parameters"]
    throttle = {
        name: int(parameters[name]["Default"].split(",")[0])
        for name in parameters
        if name.endswith("Throttle")
    }
    partition = LIMITS["partition writes"].value
    gateway = LIMITS["gateway requests"].value
    requests = load.requests
    executions = sum(load.seconds.values())
    sender = load.seconds["WebhookSenderFunction"]
    mapping = resources("AWS::Lambda::EventSourceMapping")["EventsMapping"]
    sender_batch = int(mapping["BatchSize"])  # messages, attempted in parallel
    row_units = LOGO_MAX // 4096 + 1  # of a merchant with the largest logo
    time = ROUND_SECONDS / 60
    environments = executions
    parts = max(parameters["SweepParts"]["AllowedValues"])
    sessions = "checkout_sessions"
    events = "webhook_events"
    tables = {
        name: sum(units for place, units in load.writes.items() if place == name)
        for name in (sessions, events)
    }
    cells = "another deployment, for new merchants"

    def quota(limit: str) -> tuple[float, float]:
        value = LIMITS[limit].value
        return value, value * QUOTA

    stretch_calls = 4 * AWS_SECONDS  # mark, query, read, and the write or transaction
    walk = stretch_calls / expiries.STRETCH / DUE_SHARDS
    found_components = [
        Component(
            "wallet submissions, throttle",
            1 + LEFT,
            throttle["WalletsThrottle"],
            gateway * QUOTA,
            "`WalletsThrottle`",
            cells,
        ),
        Component(
            "creations, throttle",
            created,
            throttle["CreationsThrottle"],
            gateway * QUOTA,
            "`CreationsThrottle`",
            cells,
        ),
        Component(
            "requests of a route, throttle",
            1 + created,  # the page: once when it is opened, once after the payment
            throttle["RequestsThrottle"],
            gateway * QUOTA,
            "`RequestsThrottle`",
            cells,
        ),
        Component(
            "status requests of open pages, throttle",
            load.asked["polls of the status"],
            throttle["StatusThrottle"],
            gateway * QUOTA,
            "`StatusThrottle`",
            cells,
        ),
        Component(
            "keys that wallets read, throttle",
            load.asked["keys that wallets read"],
            throttle["ClientsThrottle"],
            gateway * QUOTA,
            "`ClientsThrottle`",
            cells,
        ),
        Component(
            "requests at API Gateway",
            requests,
            *quota("gateway requests"),
            "quota of API Gateway",
            cells,
        ),
        Component(
            "executions of Lambda",
            executions,
            *quota("executions"),
            "quota of Lambda (10 in a new account)",
            cells,
        ),
        Component(
            "webhook sender",
            sender / sender_batch,
            parameters["SenderConcurrency"]["Default"],
            parameters["SenderConcurrency"]["MaxValue"],
            "`SenderConcurrency`",
            "several queues",
        ),
        Component(
            "messages in flight",
            load.messages / 3 * sender,
            LIMITS["messages in flight"].value,
            LIMITS["messages in flight"].value,
            "",
            "several queues",
        ),
        Component(
            "sweep: threads",
            (LEFT + IN_DOUBT) * found.check,
            WIDTH * SWEEP * time,
            WIDTH * (SWEEP + parts - 1) * time,  # only the first part has other work
            f"`SweepParts={parts}`",
            "more parts, and shards for them (`DUE_SHARDS`)",
        ),
        Component(
            "ends by the clock, after a sweep that takes all of its time",
            (2 * ABANDONED + 1 + LEFT) * walk,
            (1 - SWEEP) * time,
            (1 - SWEEP) * time + (SWEEP - SWEEP / parts) * time,
            f"`SweepParts={parts}`",
            "a function of its own for the clock",
        ),
        Component(
            "one merchant's row of a day: transactions one after the other",
            (1 + LEFT + ABANDONED) * TRANSACTION_SECONDS / expiries.STRETCH,
            1,
            max(PARTS),
            "`checkout shards`",
            "larger batches for one merchant",
        ),
        Component(
            "new tables: sessions",
            tables[sessions],
            LIMITS["new table writes"].value,
            LIMITS["table writes"].value * QUOTA,
            "warm throughput, or growth: twice the last peak each half hour",
            cells,
        ),
        Component(
            "table of sessions",
            tables[sessions],
            *quota("table writes"),
            "quota of DynamoDB",
            cells,
        ),
        Component(
            "tables: reads",
            load.read_units,
            *quota("table reads"),
            "quota of DynamoDB",
            cells,
        ),
        Component(
            "table of events",
            tables[events],
            *quota("table writes"),
            "quota of DynamoDB",
            cells,
        ),
        Component(
            "index `due`: payments",
            load.writes[f"{sessions}/due"] / URGENT_SHARDS,
            partition,
            partition,
            "",
            "more `URGENT_SHARDS`",
        ),
        Component(
            "index `due`: other sessions",
            load.writes[f"{sessions}/due later"] / DUE_SHARDS,
            partition,
            partition,
            "",
            "more `DUE_SHARDS`",
        ),
        Component(
            "index `due` of events",
            load.writes[f"{events}/due"] / DUE_SHARDS,
            partition,
            partition,
            "",
            "more `DUE_SHARDS`",
        ),
        Component(
            "index `uncounted`: carts that end by the clock",
            load.writes[f"{sessions}/uncounted clock"] / DUE_SHARDS,
            partition,
            partition,
            "",
            "more `DUE_SHARDS`",
        ),
        Component(
            "index `uncounted`: others",
            load.writes[f"{sessions}/uncounted"] / DUE_SHARDS,
            partition,
            partition,
            "",
            "more `DUE_SHARDS`",
        ),
        Component(
            "one merchant's list of sessions",
            load.writes[f"{sessions}/by_merchant"],
            partition,
            partition * max(PARTS),
            "`checkout shards`",
            "more `PARTS`",
        ),
        Component(
            "one merchant's list of events",
            load.writes[f"{events}/by_merchant"],
            partition,
            partition * max(PARTS),
            "`checkout shards`",
            "more `PARTS`",
        ),
        Component(
            "one metadata value that all sessions of a merchant have",
            created,
            partition,
            partition * max(PARTS),
            "`checkout shards`",
            "more `PARTS`",
        ),
        Component(
            "one API key's row",
            load.reads["api_keys"],
            LIMITS["partition reads"].value,
            LIMITS["partition reads"].value * 20,
            "more API keys (at most 20)",
            "a cache of some seconds for keys",
        ),
        Component(
            "one merchant's row, with the largest logo",
            load.reads["merchants"] * row_units,
            LIMITS["partition reads"].value,
            LIMITS["partition reads"].value * row_units,
            "a smaller logo",
            "a cache in the sender",
        ),
        Component(
            "reads of the secret",
            environments / 300,  # each process, every five minutes
            LIMITS["secret reads"].value,
            LIMITS["secret reads"].value,
            "",
            "the key in a parameter of the function",
        ),
        Component(
            "requests of the KMS key",
            environments / 300,
            *quota("key requests"),
            "quota of KMS",
            cells,
        ),
    ]
    return sorted(found_components, key=lambda each: each.at)


def _number(value: float) -> str:
    """Return `value` with three significant digits, and blanks between thousands."""
    digits = max(0, 2 - floor(log10(value))) if value else 0
    rounded = round(value, -floor(log10(value)) + 2) if value else 0.0
    text = f"{rounded:,.{digits}f}".replace(",", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text


def units() -> str:
    """Return the use of one session of each kind as a table."""
    found = measured()
    kinds = [found.paid, found.abandoned, found.left, found.load]
    places = sorted({name for each in kinds for name in each.writes})
    rows: list[tuple[str, list[float]]] = [
        ("requests", [each.requests for each in kinds]),
        *(
            (f"of them: {name}", [each.asked.get(name, 0) for each in kinds])
            for name in ("polls of the status", "keys that wallets read")
        ),
        ("messages", [each.messages for each in kinds]),
        ("read units", [each.read_units for each in kinds]),
        ("seconds of functions", [sum(each.seconds.values()) for each in kinds]),
        *((f"writes: `{name}`", [each.writes.get(name, 0) for each in kinds]) for name in places),
        *(
            (f"reads: `{name}`, one row", [each.reads.get(name, 0) for each in kinds])
            for name in ("api_keys", "merchants")
        ),
    ]
    head = ["| uses | completed | abandoned | wallet given | in all |", "|---|---|---|---|---|"]
    return "\n".join(
        [*head, *(f"| {name} | {' | '.join(map(_number, each))} |" for name, each in rows)]
    )


def limits() -> str:
    """Return the limits of AWS as a table."""
    rows = [
        f"| {name} | {_number(each.value)} {each.unit} | {'yes' if each.raised else 'no'} "
        f"| [AWS](https://{each.source}) |"
        for name, each in LIMITS.items()
    ]
    return "\n".join(["| limit | value | can be raised | source |", "|---|---|---|---|", *rows])


def breaks() -> str:
    """Return the rate at which each part is full as a table, lowest first."""
    rows = [
        f"| {each.name} | {_number(each.at)} | {each.lifted or 'none needed'} "
        f"| {_number(each.at_most)} | {each.beyond} |"
        for each in components(measured())
    ]
    head = ["| what | full at | lifted by | then full at | beyond |", "|---|---|---|---|---|"]
    return "\n".join([*head, *rows])


def rates() -> str:
    """Return the required settings for each rate as a table."""
    found = components(measured())
    rows = []
    for rate in RATES:
        full = [each for each in found if each.at < rate]
        settings = dict.fromkeys(each.lifted for each in full if each.at_most >= rate)
        steps = dict.fromkeys(each.beyond for each in full if each.at_most < rate)
        first = f"{full[0].name} ({_number(full[0].at)})" if full else "nothing"
        rows.append(
            f"| {_number(rate)} | {first} | {'; '.join(settings) or 'nothing'} "
            f"| {'; '.join(steps) or 'nothing'} |"
        )
    head = ["| checkouts a second | breaks first | set or ask for | change |", "|---|---|---|---|"]
    return "\n".join([*head, *rows])


def main() -> None:
    print("\n\n".join([rates(), breaks(), units(), limits()]))


if __name__ == "__main__":
    main()
