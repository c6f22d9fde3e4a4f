"""The things that only some worlds have: constants drawn for the run, and a wider world's faults.

TigerBeetle's VOPR and FoundationDB's swarm testing draw the configuration, too, for each run, and
leave most of it out of most runs: a fault that is everywhere hides what another would have shown.
Each world draws from a randomness of its own, so a world without any of this is as it was before.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final
from unittest.mock import patch

from checkout.adapters.dynamo import index_keys
from checkout.adapters.dynamo.codec import deflated, inflated
from checkout.flows.payment import approval
from checkout.flows.session import prepare
from tests.simulation.faults import Rates
from tests.simulation.providers import HARBOR, Kind
from tests.support.protected import LEASE

PLAIN: Final = 0.4  # of the storms: none of what is here
EDGE: Final = 0.3  # of the others: a sum misses by a unit, or a number of a stranger is too large
AT_THE_EDGE: Final = "sums at the edge"  # in all storms, if only these are asked for
HOUR: Final = 3_600_000  # milliseconds
DAY: Final = 24 * HOUR
# The read that decides begins 35 s after another saw the incoming payment closed. A packet may take
# 30 s, two clocks differ by 4 s: a provider's replica may be behind by less than the last second.
REPLICA_MAX: Final = 900  # milliseconds
KEPT: Final = timedelta(hours=2)  # where DynamoDB deletes what is past its time
NEVER: Final = range(0)
LATER: Final = "of_a_later_release"


@dataclass(frozen=True, slots=True)
class Swarm:
    """Times are milliseconds, those of ranges since the world began.

    `asset`: the code and scale of the shop's wallet. `partial`: the chance that a batch is done in
    part. `lag`: the largest age of reads of an index; 0: as any world's. `killed`: a function ends
    at its timeout. `steps`: clocks are set between two requests. `replica`: how far the shop's
    provider may be behind. `keyless`: when the shop's key is not registered. `moved_at`: from when
    on the customer's wallet names other servers. `later`: the share of processes that run a later
    release. `crowded`: the wallets' lists have more pages than are read.

    `pair`: the customer's wallet has the shop's currency, in this scale, and the money goes over a
    third one. `off`: the units by which wallets miss what they have quoted, either way. `claims`:
    the customer's wallet says that it paid this many times what it did. `margin`: per cent, and
    units, that the owner lets the refund budget add without a person.
    """

    plain: bool = True
    tolerance: int = 1
    lease: timedelta = LEASE
    asset: tuple[str, int] = ("USD", 2)
    deletes: bool = False
    partial: float = 0.0
    throttled: range = NEVER
    lag: int = 0
    killed: bool = False
    steps: bool = False
    replica: int = 0
    keyless: range = NEVER
    moved_at: int | None = None
    later: float = 0.0
    crowded: bool = False
    down_for: int = 0
    twice: float = 0.0
    pair: int | None = None
    off: int = 0
    claims: Fraction = Fraction(1)
    margin: tuple[int, int] = (10, 0)

    @property
    def theirs(self) -> tuple[str, int]:
        """Return the asset of the customer's wallet."""
        return ("EUR", 2) if self.pair is None else (self.asset[0], self.pair)


def drawn(seed: int, only: str | None = None) -> Swarm:
    """Return what a storm of this seed has of it."""
    rng = random.Random(f"{seed} swarm")
    if rng.random() < PLAIN:
        return _at_the_edge(seed, Swarm(), 1.0) if only == AT_THE_EDGE else Swarm()

    def some(chance: float, value: Any, other: Any) -> Any:
        return value if rng.random() < chance else other

    def while_(longest: int) -> range:
        begun = rng.randrange(600_000)
        return range(begun, begun + rng.randrange(1_000, longest))

    swarm = Swarm(
        plain=False,
        tolerance=some(0.4, (0, 2, 5)[rng.randrange(3)], 1),
        lease=some(0.2, timedelta(seconds=(30, 60, 90)[rng.randrange(3)]), LEASE),
        asset=some(0.3, ASSETS[rng.randrange(len(ASSETS))], ("USD", 2)),
        deletes=some(0.15, True, False),
        partial=some(0.3, (0.1, 0.5)[rng.randrange(2)], 0.0),
        throttled=some(0.15, while_(120_000), NEVER),
        lag=some(0.15, rng.randrange(10_000, 180_000), 0),
        killed=some(0.3, True, False),
        steps=some(0.3, True, False),
        replica=some(0.3, rng.randrange(1, REPLICA_MAX), 0),
        keyless=some(0.1, while_(1_200_000), NEVER),
        moved_at=some(0.1, rng.randrange(120_000), None),
        later=some(0.25, 0.5, 0.0),
        crowded=some(0.5, True, False),
        down_for=some(0.04, rng.randrange(HOUR, 6 * DAY), 0),
        twice=some(0.2, 0.3, 0.0),
    )
    # An outage of days may not be longer than a record is kept: real ones are kept for months.
    swarm = replace(swarm, down_for=0) if swarm.deletes else swarm
    return _at_the_edge(seed, swarm, 1.0 if only == AT_THE_EDGE else EDGE)


def _at_the_edge(seed: int, swarm: Swarm, chance: float) -> Swarm:
    """Return the swarm with what makes a sum miss by a unit, or a number of a stranger too large.

    Its draws are apart, so that the worlds without it are what they were.
    """
    rng = random.Random(f"{seed} edge")
    if rng.random() >= chance:
        return swarm
    scale = swarm.asset[1]
    return replace(
        swarm,
        pair=(scale, scale, scale + 2, None, None)[rng.randrange(5)],
        off=(-1, 1, 1, 0, 3)[rng.randrange(5)],
        claims=(Fraction(1), Fraction(21, 20), Fraction(11, 10), Fraction(2))[rng.randrange(4)],
        margin=((2, 0), (2, 3), (0, 0), (10, 0))[rng.randrange(4)],
    )


@dataclass(frozen=True, slots=True)
class Beside:
    """What else is in storms to which others come, drawn apart from all that they had before.

    `stripe`: where sessions ask for details, the first endpoint gets each event, in Stripe's form.
    `named`: customers name another wallet for each refund, and nobody asks the budget for it
    before. `held`: all refunds are held now and then, as after a restore.
    """

    stripe: bool = False
    named: bool = False
    held: bool = False


def beside(seed: int) -> Beside:
    """Return what the storm of this seed has of it."""
    rng = random.Random(f"{seed} beside")
    stripe, named = rng.random() < 0.7, rng.random() < 0.25
    return Beside(stripe=stripe, named=named, held=rng.random() < 0.2)


def at_the_edge(swarm: Swarm, kind: Kind) -> Kind:
    """Return the kind of wallet with what the swarm says of its sums, if it pays by itself."""
    if not swarm.off and swarm.claims == 1:
        return kind
    if not kind.pays or kind.behaviour.get("short_by") or kind.behaviour.get("paid_from_outside"):
        return kind
    return replace(kind, behaviour={**kind.behaviour, **missed(swarm), "claims": swarm.claims})


def missed(swarm: Swarm) -> dict[str, int]:
    """Return the behaviour of a wallet that misses what it has quoted."""
    return {"short_by": max(0, -swarm.off), "over_by": max(0, swarm.off)}


ASSETS: Final = (("USD", 2), ("JPY", 0), ("EUR", 2), ("USD", 6), ("EUR", 9))


@contextmanager
def in_force(swarm: Swarm) -> Iterator[None]:
    """Have the product's constants be this world's."""
    with ExitStack() as undo:
        if swarm.lease != LEASE:
            undo.enter_context(patch.object(prepare, "LEASE", swarm.lease))
            undo.enter_context(patch.object(approval, "LEASE", swarm.lease))
        if swarm.deletes:  # at once, so that a world of hours sees it
            undo.enter_context(patch.object(index_keys, "_TTL_DELAY", 0))
        yield


def down_for_long(swarm: Swarm, rates: Rates) -> Rates:
    """Return the rates of a world whose shop's provider is down for hours or days."""
    if not swarm.down_for:
        return rates
    begun = min(rates.down_from, 60_000)
    status = rates.down_status if rates.down_status == 502 else 0
    return replace(
        rates,
        down=f"{HARBOR}/",
        down_from=begun,
        down_until=begun + swarm.down_for,
        down_status=status,
    )


def crowded(swarm: Swarm, kind: Kind) -> Kind:
    """Return the kind of wallet as one that pays so many others that its lists do not end."""
    refuses = kind.behaviour.get("refuses_accepted") and not kind.behaviour.get("hides_payments")
    if not swarm.crowded or not refuses:
        return kind
    rules = {key: each for key, each in kind.rules.items() if key != "lists"}
    return replace(
        kind,
        rules={**rules, "own_payment_ids": True},
        behaviour={**kind.behaviour, "pays_others": 75},
    )


def of_a_later_release(request: dict[str, Any]) -> bool:
    """Have a write store what this release does not know; return whether it stores a session."""
    grown = False
    for each in [request, *request.get("TransactItems", ())]:
        for write in (each, each.get("Put", {}), each.get("Update", {})):
            item, values = write.get("Item", {}), write.get("ExpressionAttributeValues", {})
            if item.get("id", {}).get("S", "").startswith("cs_"):
                item["payment"], item["later"] = _grown(item["payment"]), {"S": "unknown"}
                grown = True
            if ":set_payment" in values:
                values[":set_payment"] = _grown(values[":set_payment"])
                grown = True
    return grown


def is_grown(group: Any) -> bool:
    """Return whether a group has what only a later release knows."""
    return LATER in json.loads(inflated(group))


def _grown(group: Any) -> Any:
    return deflated(json.dumps({**json.loads(inflated(group)), LATER: [1]}))
