"""The command line of the simulator: arguments in, a table out, exit code 1 on any violation."""

from __future__ import annotations

import argparse
import hashlib
import logging
import random
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from tests.simulation import mutants, sim_world, soak
from tests.simulation.faults import AWS_KINDS, Around, Http, Life
from tests.simulation.providers import KINDS, SHOPS

CHUNK = 50
FEW = 500  # willing customers
MANY = 1_000  # worlds, in which every kind of fault and of provider has its turn
BOUNDS = (
    ("calm", "completed", 1.0),
    ("calm", "at once", 1.0),
    ("one percent", "completed", 0.995),
    ("one percent", "at once", 0.97),
)
LOST = ("completed_has_one_event", "no_event_is_lost")
FAULTS = [*Http, *AWS_KINDS, *Life, *Around]


@dataclass
class Total:
    """The sum over many worlds. `hashes` is over each world's trace hash, in the seeds' order."""

    worlds: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    kinds: Counter[str] = field(default_factory=Counter)
    shops: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    violations: list[tuple[int, str, str]] = field(default_factory=list)
    hashes: list[str] = field(default_factory=list)

    def add(self, outcome: sim_world.Outcome) -> None:
        self.worlds += 1
        self.faults.update(outcome.faults)
        self.kinds[outcome.kind] += 1
        self.shops[outcome.shop] += 1
        self.counts.update(outcome.counts)
        found = [(outcome.seed, each.check, each.detail) for each in outcome.violations]
        self.violations += found
        self.hashes.append(outcome.trace_hash)

    def join(self, other: Total) -> None:
        self.worlds += other.worlds
        self.faults.update(other.faults)
        self.kinds.update(other.kinds)
        self.shops.update(other.shops)
        self.counts.update(other.counts)
        self.violations += other.violations
        self.hashes += other.hashes

    @property
    def trace_hash(self) -> str:
        return hashlib.sha256("\n".join(self.hashes).encode()).hexdigest()


def run_many(seeds: Iterable[int]) -> Total:
    total = Total()
    for seed in seeds:
        total.add(sim_world.run(seed))
    return total


def run_parallel(first: int, worlds: int, *, processes: int) -> Total:
    chunks = [
        range(start, min(start + CHUNK, first + worlds))
        for start in range(first, first + worlds, CHUNK)
    ]
    total = Total()
    with ProcessPoolExecutor(processes, initializer=sim_world.have_own_process) as pool:
        for part in pool.map(run_many, chunks):
            total.join(part)
    return total


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seed", type=int, help="the first world; alone: show this one's trace")
    parser.add_argument("--worlds", type=int, help="how many, from --seed on")
    parser.add_argument("--mutants", action="store_true", help="who catches which seeded bug")
    parser.add_argument("--soak", type=int, help="so many webhook events over days of retries")
    parser.add_argument("--processes", type=int, default=2)
    chosen = parser.parse_args(arguments)
    logging.getLogger("checkout").setLevel(logging.ERROR)  # what fails here is meant to
    if chosen.soak:
        return soak.report(chosen.soak, chosen.seed or 1)
    if chosen.mutants:
        return show_mutants(chosen.processes)
    if chosen.worlds is None and chosen.seed is not None:
        return show(chosen.seed)
    first = random.SystemRandom().randrange(10**9) if chosen.seed is None else chosen.seed
    return simulate(first, chosen.worlds or 500, chosen.processes)


def show(seed: int) -> int:
    """One world with its trace, one line an effect: time, actor, what."""
    outcome = sim_world.run(seed, keep_trace=True)
    print("\n".join(outcome.trace))
    print(f"trace hash {outcome.trace_hash}")
    for each in outcome.violations:
        print(f"VIOLATION {each.check}: {each.detail}")
    return int(bool(outcome.violations))


def show_mutants(processes: int) -> int:
    """Print each seeded bug with the check that caught it; return 1 where one was not caught.

    `worlds` were run until the one of `seed` caught it. Where they are many, the seed is written
    into the list as its `known`, so that the next hunt is short.
    """
    print(f"{'seeded bug':<60} {'caught by':<38} {'worlds':>6} seed")
    survived = 0
    for caught in mutants.hunt_all(processes):
        survived += caught.check is None
        line = (
            f"{caught.mutant:<60} {caught.check or 'NOTHING':<38} {caught.worlds:>6} {caught.seed}"
        )
        print(line, flush=True)
    print(f"{len(mutants.MUTANTS)} seeded bugs, {survived} not caught")
    return int(bool(survived))


def simulate(first: int, worlds: int, processes: int) -> int:
    began = time.monotonic()
    total = run_parallel(first, worlds, processes=processes)
    seconds = time.monotonic() - began
    rows: list[tuple[str, object]] = [
        ("worlds", f"{total.worlds} (seeds {first} to {first + worlds - 1})"),
        ("checkouts", total.counts["checkouts"]),
        *((f"  {name}", total.counts[name]) for name in sorted(total.counts) if "ended" in name),
        ("  flagged as partly paid", total.counts["flagged"]),
        *((name, total.counts[name]) for name in sorted(total.counts) if name.startswith("step ")),
        *((f"fault: {kind.value}", total.faults[kind.value]) for kind in FAULTS),
        *((f"provider: {kind.name}", total.kinds[kind.name]) for kind in KINDS),
        *((f"shop: {shop.name}", total.shops[shop.name]) for shop in SHOPS),
        *_yields(total.counts),
        *((n, total.counts[n]) for n in sorted(total.counts) if n.startswith("webhooks: ")),
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
    for seed, check, detail in total.violations[:20]:
        print(f"VIOLATION {check}: {detail}\n  replay: python -m tests.simulation --seed {seed}")
    missed = missed_yields(total.counts)
    for miss in missed:
        print(f"YIELD {miss}")
    absent = absent_kinds(total) if worlds >= MANY else []
    for kind in absent:
        print(f"NEVER HAPPENED {kind}")
    return int(bool(total.violations or missed or absent))


def absent_kinds(total: Total) -> list[str]:
    """The faults and the providers that took no part: what they would have shown is not shown."""
    faults = [kind.value for kind in FAULTS if not total.faults[kind.value]]
    kinds = [kind.name for kind in KINDS if not total.kinds[kind.name]]
    return faults + kinds + [f"shop: {each.name}" for each in SHOPS if not total.shops[each.name]]


def missed_yields(counts: Counter[str]) -> list[str]:
    """Return the bounds of invariant 10 that these worlds miss; a few worlds prove nothing."""
    missed = []
    for profile, kind, bound in BOUNDS:
        willing = counts[f"{profile} willing"]
        if willing >= FEW and counts[f"{profile} {kind}"] < bound * willing:
            missed.append(f"{profile}, {kind}: {counts[f'{profile} {kind}']} of {willing}")
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
