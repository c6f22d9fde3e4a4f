"""A few worlds in every run of the tests; thousands of them are `python -m tests.simulation`."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.simulation import command, mutants, shown, sim_world, soak
from tests.simulation.faults import CALM, FOCI, HTTP_KINDS, Faults, Http, Rates
from tests.simulation.scheduler import Died, Scheduler
from tests.simulation.webhooks import SPACING

pytestmark = pytest.mark.endurance

WORLDS = 100


def test_no_world_violates_an_invariant_and_none_is_stuck() -> None:
    total = command.run_many(range(1, WORLDS + 1))
    assert total.violations == []
    assert total.worlds == WORLDS
    assert total.counts["ended completed"] > WORLDS / 2
    assert total.counts["calm willing"] == total.counts["calm completed"] > 0
    assert len(total.kinds) > 10
    assert sum(total.faults.values()) > WORLDS


def test_ten_days_of_webhooks_deliver_or_give_up_every_event() -> None:
    done = soak.soak(300, seed=1)
    assert done.violations == []
    assert sum(not record.is_copy for record in done.deliveries.records) == 300
    assert {record.status for record in done.deliveries.records} <= {"delivered", "exhausted"}
    assert done.deliveries.counts["failures"] > 50
    assert done.deliveries.counts["answers 410"] > 0
    assert done.faults.counts["process died"] > 0
    assert max(done.deliveries.worst.values()) <= SPACING * 1000


def test_attempts_that_are_not_spaced_as_they_should_be_are_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(soak, "SPACING", -1)
    assert soak.report(20, 1) == 1
    assert "spacing_is_kept" in capsys.readouterr().out


def test_the_same_seed_is_the_same_world() -> None:
    first, second = sim_world.run(7, keep_trace=True), sim_world.run(7, keep_trace=True)
    assert first.trace == second.trace
    assert first.trace_hash == second.trace_hash != sim_world.run(8).trace_hash


def test_a_world_like_another_has_its_draws_and_a_course_of_its_own() -> None:
    model, one = sim_world.SimWorld(11), sim_world.SimWorld(1, like=11)
    assert model.profile == one.profile == "storm"
    assert (one.kind, one.shop, one.policy) == (model.kind, model.shop, model.policy)
    assert (one.swarm, one.refunding) == (model.swarm, model.refunding)
    assert one.faults.rates == model.faults.rates
    courses = [sim_world.run(seed, like=11).trace_hash for seed in (1, 2, 1)]
    assert courses[0] == courses[2]
    assert len({*courses, sim_world.run(11).trace_hash}) == 3


def test_a_trace_depends_on_nothing_but_the_seed() -> None:
    """Neither on the process's hash seed nor on what ran before."""
    told = {_run_command("--seed", "11", hash_seed=str(number)) for number in (1, 2)}
    told.add(_told(11))
    assert len(told) == 1


def test_every_seeded_bug_is_undone() -> None:
    """That each fits the product is shown by `hunt_all`, which tries it before the hunt."""
    before = sim_world.run(2).trace_hash
    for mutant in mutants.MUTANTS:
        with mutants.applied(mutant):
            pass
    assert sim_world.run(2).trace_hash == before


def test_each_seeded_bug_has_a_name_of_its_own_by_which_it_is_hunted() -> None:
    assert len({mutant.name for mutant in mutants.MUTANTS}) == len(mutants.MUTANTS) > 200


def test_a_violation_is_told_with_its_seed_and_fails_the_command(
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = {each.name: each for each in mutants.MUTANTS}
    with mutants.applied(named["no claim before the continuation"]):
        assert command.show(1) == 1
    told = capsys.readouterr().out
    assert "VIOLATION continue_has_its_claim" in told
    assert "callback" in told
    assert command.show(1) == 0


def test_a_missed_yield_is_told() -> None:
    assert command.missed_yields(Counter({"calm willing": 10, "calm completed": 9})) == []
    some = Counter({"calm willing": 50, "calm completed": 49, "calm at once": 50})
    assert command.missed_yields(some) == ["calm, completed: 49 of 50"]
    many = Counter({"one percent willing": 1000, "one percent completed": 980})
    many["one percent at once"] = 960
    assert command.missed_yields(many) == ["one percent, completed: 980 of 1000"]
    many["one percent completed"] = 994  # as chance would have it
    assert command.missed_yields(many) == []


def _told(seed: int) -> str:
    outcome = sim_world.run(seed, keep_trace=True)
    return "\n".join([*outcome.trace, f"trace hash {outcome.trace_hash}"]) + "\n"


def _run_command(*arguments: str, hash_seed: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "tests.simulation", *arguments],
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return ran.stdout


def test_each_fault_can_be_drawn_and_none_once_they_are_off() -> None:
    focused = Rates(focus=FOCI[1], focused=1.0, down="https://down", down_from=5, down_until=9)
    faults = Faults(random.Random(1), focused)
    assert faults.http("GET quotes", "https://up", 5) is None
    assert faults.http("GET quotes", "https://down", 5) is Http.DOWN
    assert faults.http("GET quotes", "https://down", 9) is None
    drawn = {faults.http(FOCI[1], "https://up", 5) for _ in range(300)}
    assert drawn == set(HTTP_KINDS)
    assert sum(faults.counts[kind.value] for kind in Http) == 301
    faults.off()
    assert faults.rates is CALM
    assert faults.http(FOCI[1], "https://down", 5) is None
    assert not faults.dies()
    assert faults.pause() == 0


def test_actors_take_turns_in_the_order_of_their_times() -> None:
    scheduler, seen = Scheduler(), []

    def act(name: str, *pauses: int) -> None:
        for pause in pauses:
            scheduler.sleep(pause)
            seen.append((scheduler.now, scheduler.actor))

    scheduler.spawn("slow", lambda: act("slow", 20, 20))
    scheduler.spawn("quick", lambda: act("quick", 15, 10))
    scheduler.run(until=1_000)
    assert seen == [(15, "quick"), (20, "slow"), (25, "quick"), (40, "slow")]
    assert scheduler.now == 1_000


def test_who_waits_goes_on_when_the_other_is_done_or_the_time_is_up() -> None:
    scheduler, seen = Scheduler(), []

    def wait(milliseconds: int) -> None:
        other = scheduler.spawn("other", lambda: scheduler.sleep(milliseconds))
        seen.append((scheduler.wait(other, at_most=100), scheduler.now))

    scheduler.spawn("patient", lambda: wait(30))
    scheduler.spawn("impatient", lambda: wait(300))
    scheduler.run(until=1_000)
    assert seen == [(True, 30), (False, 100)]


def test_nobody_outlives_the_world() -> None:
    scheduler, seen = Scheduler(), []

    def act() -> None:
        try:
            scheduler.sleep(10_000)
        except BaseException as error:  # noqa: BLE001 - as a careless handler does
            seen.append(type(error))
            scheduler.sleep(1)  # a handler that wants to go on

    actor = scheduler.spawn("late", act)
    scheduler.run(until=100)
    scheduler.close()
    assert seen == [Died]
    assert actor.done


def test_what_took_no_part_is_named_once_there_were_worlds_enough() -> None:
    total = command.Total()
    assert command.absent_kinds(total) == []
    total.worlds = command.ALL
    missing = command.absent_kinds(total)
    assert set(missing) == command.counters() > {"like Rafiki", "row open checked"}
    assert "check completed_is_paid" in missing
    total.happened["like Rafiki"] += 1
    assert "like Rafiki" not in command.absent_kinds(total)
    total.worlds = 300
    common = command.absent_kinds(total)
    assert "step payment_intended" in common
    assert set(common) < set(missing)


def test_in_worlds_of_two_releases_the_last_one_must_have_served() -> None:
    total = command.Total()
    total.worlds = command.ALL
    assert command.absent_kinds(total, two_releases=True) == ["processes of the last release"]
    total.counts["processes of the last release"] += 1
    assert command.absent_kinds(total, two_releases=True) == []


def test_the_counters_of_each_check_are_there() -> None:
    assert set(sim_world.CHECKS) <= shown.names()
    assert len(sim_world.CHECKS) > 80
