"""Two releases in one world: both serve, what crosses between them, and what only this notices."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.session.record import Status
from checkout.flows.payment import sealed
from checkout.flows.session import lookup
from checkout.ports import Receipt, ShardRange
from tests.simulation import releases, sim_world
from tests.support.basics import a_session

SEEDS = range(20)


def test_both_releases_serve_over_the_same_tables_and_all_checks_hold() -> None:
    outcomes = [sim_world.run(seed, two_releases=True) for seed in SEEDS]
    assert [each.violations for each in outcomes if each.violations] == []
    served = sum(each.counts["processes of the last release"] for each in outcomes)
    assert served > len(SEEDS)
    assert sum(each.counts["ended completed"] for each in outcomes) > 5


def test_a_secret_that_the_last_release_cannot_open_is_noticed_only_where_it_serves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sealed, "_place", lambda record_id, name: ("elsewhere", record_id, name))
    assert not any(sim_world.run(seed).violations for seed in range(6))
    assert any(sim_world.run(seed, two_releases=True).violations for seed in range(6))


def test_a_world_of_one_release_is_as_it_was_before_there_were_two() -> None:
    alone = sim_world.run(3).trace_hash
    sim_world.run(3, two_releases=True)
    assert sim_world.run(3).trace_hash == alone


def test_records_cross_in_both_directions() -> None:
    session = a_session(status=Status.COMPLETED, created_at=datetime(2026, 3, 1, tzinfo=UTC))
    there = releases.crossed((session, "text", None), back=False)[0]
    assert releases.of_last(there)
    assert releases.of_last(there.status)
    assert (there.id, there.status.value) == (session.id, "completed")
    assert releases.crossed([there], back=True) == [session]


def test_errors_cross_with_their_code() -> None:
    there = releases.crossed(ParameterInvalid("no", param="name"), back=False)
    assert releases.of_last(there)
    assert (str(there), there.code, there.param) == ("no", "parameter_invalid", "name")


def test_a_port_of_today_serves_the_last_release() -> None:
    class Port:
        seen: object = None

        def post(self, given: object) -> Receipt:
            self.seen = given
            return Receipt(status=200)

    port = Port()
    answer = releases.Across(port).post(releases.crossed(ShardRange(1, 2), back=False))
    assert port.seen == ShardRange(1, 2)
    assert releases.of_last(answer)
    assert answer.status == 200


def test_a_flow_that_the_last_release_does_not_have_answers_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Older:
        __module__ = releases.LAST

    monkeypatch.setattr(lookup, "of_today", lambda services: None, raising=False)
    flow = releases._by_services(lookup)
    assert flow.of_today(object()) is None
    with pytest.raises(releases.NotThereYet):
        flow.of_today(Older())
