"""The command line of the simulator: arguments in, a table out, exit code 1 on any violation."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import math
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from checkout.domain.refund.transitions import REFUND_TRANSITIONS
from checkout.domain.session.transitions import TRANSITIONS
from tests.simulation import identities, mutants, shown, sim_world, soak
from tests.simulation.faults import AWS_KINDS, Around, Http, Life, Wider
from tests.simulation.providers import KINDS, SHOPS

CHUNK = 50
FEW = 30  # willing customers
# How often each counter was above 0, so that any number of worlds knows what must happen in it.
RATES = Path(__file__).with_name("rates.json")
SURE = 30  # worlds in which it should have happened; the rates themselves are from few worlds
ALL = 20_000  # worlds in which everything happens
OF_LAST = "processes of the last release"
ERASED = "erased"  # nobody erases a session, or a refund, in the simulator: tests/flows do
BOUNDS = (
    ("calm", "completed", 1.0),
    ("calm", "at once", 1.0),
    ("one percent", "completed", 0.995),
    ("one percent", "at once", 0.97),
)
LOST = ("completed_has_one_event", "no_event_is_lost")
FAULTS = [*Http, *AWS_KINDS, *Life, *Around, *Wider]


@dataclass
class Total:
    """The sum over many worlds. `hashes` is over each world's trace hash, in the seeds' order."""

    worlds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    shops: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)  # the worlds in which each did
    violations: list[tuple[int, str, str]] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)

    def add(self, outcome: sim_world.Outcome) -> None:
        self.worlds += 1
        self.faults.update(outcome.faults)
        self.kinds[outcome.kind] += 1
        self.shops[outcome.shop] += 1
        self.counts.update(outcome.counts)
        kinds = (outcome.kind, f"shop: {outcome.shop}")
        for each in (outcome.faults, outcome.counts):
            self.happened.update(name for name, count in each.items() if count)
        self.happened.update(kinds)
        found = [(outcome.seed, each.check, each.detail) for each in outcome.violations]
        self.violations += found
        self.hashes.append(outcome.trace_hash)

    def join(self, other: Total) -> None:
        self.worlds += other.worlds
        self.faults.update(other.faults)
        self.kinds.update(other.kinds)
        self.shops.update(other.shops)
        self.counts.update(other.counts)
        self.happened.update(other.happened)
        self.violations += other.violations
        self.hashes += other.hashes

    @property
    def trace_hash(self) -> str:
        return hashlib.sha256("\n".join(self.hashes).encode()).hexdigest()


def run_many(seeds: Iterable[int], *, two_releases: bool = False) -> Total:
    total = Total()
    for seed in seeds:
        total.add(sim_world.run(seed, two_releases=two_releases))
    return total


def run_parallel(first: int, worlds: int, *, processes: int, two_releases: bool = False) -> Total:
    chunks = [
        range(start, min(start + CHUNK, first + worlds))
        for start in range(first, first + worlds, CHUNK)
    ]
    total = Total()
    with ProcessPoolExecutor(processes, initializer=sim_world.have_own_process) as pool:
        for part in pool.map(partial(run_many, two_releases=two_releases), chunks):
            total.join(part)
    return total


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, help="the first world; alone: show this one's trace")
    parser.add_argument("--worlds", type=int, help="how many, from --seed on")
    parser.add_argument("--mutants", action="store_true", help="who catches which seeded bug")
    parser.add_argument("--learn", action="store_true", help="with --mutants: note who caught each")
    parser.add_argument("--soak", type=int, help="so many webhook events over days of retries")
    parser.add_argument("--rates", action="store_true", help="note how often each happened")
    parser.add_argument("--releases", action="store_true", help="with the last release beside ours")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args(arguments)
    logging.getLogger("checkout").setLevel(logging.ERROR)  # what fails here is meant to
    if chosen.soak:
        return soak.report(chosen.soak, chosen.seed or 1)
    if chosen.mutants:
        return show_mutants(chosen.processes, chosen.seed, learn=chosen.learn)
    if chosen.worlds is None and chosen.seed is not None:
        return show(chosen.seed, two_releases=chosen.releases)
    first = random.SystemRandom().randrange(10**9) if chosen.seed is None else chosen.seed
    return simulate(
        first,
        chosen.worlds or 500,
        chosen.processes,
        note=chosen.rates,
        two_releases=chosen.releases,
    )


def show(seed: int, *, two_releases: bool = False) -> int:
    """One world with its trace, one line an effect: time, actor, what."""
    outcome = sim_world.run(seed, keep_trace=True, two_releases=two_releases)
    print("\n".join(outcome.trace))
    print(f"trace hash {outcome.trace_hash}")
    for each in outcome.violations:
        print(f"VIOLATION {each.check}: {each.detail}")
    return int(bool(outcome.violations))


def show_mutants(processes: int, fresh: int | None = None, *, learn: bool = False) -> int:
    """Print each seeded bug with the checks that caught it; return 1 where worlds did not.

    And where a check has caught none, and no test shows it one by hand (shown.py). The worlds that
    are known to catch it come first, so that the hunt is short; with `fresh`, none is known, and
    the worlds begin at that seed. `learn` writes what is known, after a change of the worlds.
    """
    print(f"{'seeded bug':<66} {'caught by':<38} {'worlds':>6} seeds")
    survived, noticed, hunted = 0, set(), []
    for caught in mutants.hunt_all(processes, fresh, learning=learn):
        hunted.append(caught)
        survived += not caught.enough
        noticed |= set(caught.checks.values())
        checks = " and ".join(dict.fromkeys(caught.checks.values())) or "NOTHING"
        seeds = ", ".join(map(str, caught.checks))
        once = "" if caught.enough else "  NOT CAUGHT"
        print(f"{caught.mutant:<66} {checks:<38} {caught.worlds:>6} {seeds}{once}", flush=True)
    if learn:
        mutants.learn(hunted)
    twice = sum(len(each.checks) >= mutants.WANTED for each in hunted)
    print(
        f"{len(mutants.MUTANTS)} seeded bugs, {twice} caught by two seeds, "
        f"{survived} not caught as they should be"
    )
    unshown = shown.never(noticed)
    for check in unshown:
        print(f"NEVER SHOWN {check}")
    return int(bool(survived or unshown))


def simulate(
    first: int, worlds: int, processes: int, *, note: bool = False, two_releases: bool = False
) -> int:
    began = time.monotonic()
    total = run_parallel(first, worlds, processes=processes, two_releases=two_releases)
    seconds = time.monotonic() - began
    rows: list[tuple[str, object]] = [
        ("worlds", f"{total.worlds} (seeds {first} to {first + worlds - 1})"),
        ("checkouts", total.counts["checkouts"]),
        *((f"  {name}", total.counts[name]) for name in sorted(total.counts) if "ended" in name),
        ("  flagged as partly paid", total.counts["flagged"]),
        *((name, total.counts[name]) for name in sorted(total.counts) if name.startswith("step ")),
        *((f"fault: {kind.value}", total.faults[kind.value]) for kind in FAULTS),
        *(
            (each, total.counts[each])
            for each in [f"{identities.CHANGED}{state}" for state in identities.STATES]
        ),
        *((f"provider: {kind.name}", total.kinds[kind.name]) for kind in KINDS),
        *((f"shop: {shop.name}", total.shops[shop.name]) for shop in SHOPS),
        *_yields(total.counts),
        *((n, total.counts[n]) for n in sorted(total.counts) if n.startswith("webhooks: ")),
        (OF_LAST, total.counts[OF_LAST]),
        ("last customers, all of whom paid", total.counts["last customers"]),
        ("stuck", sum(check == "nothing_is_stuck" for _, check, _ in total.violations)),
        (
            "events lost",
            sum(check in LOST for _, check, _ in total.violations),
        ),
        ("violations", len(total.violations)),
        ("trace hash", total.trace_hash[:32]),
        ("seconds", f"{seconds:.1f}"),
    ]
    for name, value in rows:
        print(f"{name:<36} {value}")
    more = " --releases" if two_releases else ""
    for seed, check, detail in total.violations[:20]:
        print(f"VIOLATION {check}: {detail}")
        print(f"  replay: python -m tests.simulation --seed {seed}{more}")
    missed = missed_yields(total.counts)
    for miss in missed:
        print(f"YIELD {miss}")
    absent = absent_kinds(total, two_releases=two_releases)
    for kind in absent:
        print(f"NEVER HAPPENED {kind}")
    never = sorted(counters() - total.happened.keys())
    if not two_releases:
        for each in never:
            print(f"not once: {each}")
        print(f"{len(counters())} counters, {len(never)} of them never")
    if note:
        rates = {name: total.happened[name] for name in sorted(counters())}
        RATES.write_text(json.dumps({"worlds": worlds, **rates}, indent=1) + "\n", "utf-8")
    return int(bool(total.violations or missed or absent))


def counters() -> set[str]:
    """Return all that must happen: faults, providers, events and rows of the table, and checks."""
    rows = {f"row {status} {event}" for status, event in TRANSITIONS if event != ERASED}
    events = {f"step {event}" for _, event in TRANSITIONS if event != ERASED}
    shops = {f"shop: {each.name}" for each in SHOPS}
    conditions = {f"check {name}" for name in sim_world.CHECKS}
    kinds = {each.name for each in KINDS} | {each.value for each in FAULTS}
    refunds = {
        f"refund row {status} {event}" for status, event in REFUND_TRANSITIONS if event != ERASED
    }
    changed = {f"{identities.CHANGED}{state}" for state in identities.STATES}
    return kinds | shops | events | rows | conditions | refunds | changed


def absent_kinds(total: Total, *, two_releases: bool = False) -> list[str]:
    """Return what took no part, though it should have: what it would have shown is not shown.

    In few worlds only what is common must happen, by its rate in the last campaign; in many, all.
    The rates are those of worlds of one release. Worlds of two have no refunds and no change of
    identity, which the last one does not know: there only the last release itself must take part.
    """
    if two_releases:
        return [] if total.counts[OF_LAST] else [OF_LAST]
    rates = json.loads(RATES.read_text("utf-8"))

    def expected(name: str) -> float:
        return float(rates.get(name, 0) * total.worlds / rates["worlds"])

    must = {each for each in counters() if total.worlds >= ALL or expected(each) >= SURE}
    return sorted(must - total.happened.keys())


def missed_yields(counts: Counter[str]) -> list[str]:
    """Return the bounds of invariant 10 that these worlds miss.

    A bound below 1 is missed by more than chance explains: four standard deviations.
    """
    missed = []
    for profile, kind, bound in BOUNDS:
        willing, got = counts[f"{profile} willing"], counts[f"{profile} {kind}"]
        by_chance = 4 * math.sqrt(willing * bound * (1 - bound))
        if willing >= FEW and got < bound * willing - by_chance:
            missed.append(f"{profile}, {kind}: {got} of {willing}")
    return missed


def _yields(counts: Counter[str]) -> list[tuple[str, object]]:
    rows: list[tuple[str, object]] = []
    for profile in ("calm", "one percent"):
        willing = counts[f"{profile} willing"]
        if willing:
            done, at_once = counts[f"{profile} completed"], counts[f"{profile} at once"]
            rows.append((f"yield, {profile}: willing", willing))
            rows.append(("  completed", f"{100 * done / willing:.2f} %"))
            rows.append(("  with one approval", f"{100 * at_once / willing:.2f} %"))
    return rows
