"""Test the surroundings of the product in a world: strangers, clean-up, old reads, clocks."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pytest

from checkout.domain.payment.in_flight import IncomingPaymentRef
from checkout.domain.session.record import Session, Status
from checkout.flows.payment.cleanup import TryLater
from checkout.ports import Cleanup
from checkout.services import PayServices
from sandbox.wallets.network import Network
from sandbox.wallets.provider import Rules
from sandbox.wallets.state import IncomingPayment, Money
from tests.simulation import actors, providers
from tests.simulation.boundaries import BEGINNING, moment
from tests.simulation.faults import LAGS, Around
from tests.simulation.providers import HARBOR, KINDS, SHOP, SHOPS, SKEW_MAX
from tests.simulation.sim_world import POOL_MAX, Answer, SimWorld, run
from tests.simulation.webhooks import FAIR
from tests.support.basics import a_session

MANY_SEEDS = range(1, 60)
URL = f"{HARBOR}/438fa74a-fa7d-4317-9ced-dde32ece1787/incoming-payments/in-1"
LATER = BEGINNING + timedelta(hours=3)
TASK = Cleanup(session="cs_1", merchant="mer_0", auth_server="https://localhost:4102/x", grant="")


def storm() -> SimWorld:
    return next(world for seed in MANY_SEEDS if (world := SimWorld(seed)).profile == "storm")


def with_a_session(world: SimWorld, status: Status) -> IncomingPayment:
    """Put a session of 2000 with an incoming payment into the world."""
    none = Money(0, "USD", 2)
    incoming = IncomingPayment(
        "in-1", "harbor", SHOP, none.with_value(2000), none, False, BEGINNING, LATER, None, SHOP
    )
    world.network.state.incoming["in-1"] = incoming
    session = a_session(status, incoming_payment=IncomingPaymentRef(URL, LATER))
    world.checker.sessions[session.id] = session
    return incoming


# --- strangers ---


@pytest.mark.parametrize("status", [Status.OPEN, Status.CANCELED])
def test_a_stranger_pays_in_full_in_part_or_more_before_and_after_the_end(status: Status) -> None:
    seen = set()
    for seed in MANY_SEEDS:
        world = SimWorld(seed)
        incoming = with_a_session(world, status)
        world.scheduler.spawn("stranger", actors.Stranger(world).run)
        world.scheduler.run(until=3 * 3600 * 1000)
        how = [kind for kind in Around if world.faults.counts[kind.value]]
        if not how:
            assert incoming.received.value == 0
            continue
        value = incoming.received.value
        assert value == incoming.from_outside
        assert (Around.OUTSIDE_LATE in how) is (status is Status.CANCELED)
        kind = how[0]
        seen.add(kind)
        assert {
            Around.OUTSIDE_FULL: value == 2000,
            Around.OUTSIDE_PART: 0 < value < 2000,
            Around.OUTSIDE_MORE: 2000 < value < 4000,
        }[kind]
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("seed", "happens"),
    [
        (800136, ("canceled refund_requested", "canceled refund_settled")),
        (800136, ("canceled paid_elsewhere",)),
        (800242, ("expired paid_elsewhere",)),
    ],
)
def test_money_that_came_late_is_paid_back_or_noted(seed: int, happens: tuple[str, ...]) -> None:
    outcome = run(seed)
    assert not outcome.violations
    assert all(outcome.counts[f"row {each}"] for each in happens)


def test_late_money_comes_only_where_somebody_refunds_and_nobody_changes_the_shop() -> None:
    seeds = range(800100, 800300)
    for world in [SimWorld(seed) for seed in seeds]:
        able = world.profile == "storm" and world.refunding is not None and world.changing is None
        assert able or not world.late_money
    assert any(SimWorld(seed).late_money for seed in seeds)
    assert not any(SimWorld(seed, changes=False).late_money for seed in seeds)


def test_customers_choose_the_amount_in_some_of_the_worlds_that_sell_at_a_link() -> None:
    worlds = [SimWorld(seed) for seed in range(800101, 800301, 4)]
    chosen = {world.link.open_amount is not None for world in worlds if world.link is not None}
    assert chosen == {True, False}
    assert not any(SimWorld(seed, changes=False).gifts for seed in range(800101, 800301, 4))


def test_each_last_customer_is_counted_by_the_check() -> None:
    outcome = run(800136)
    assert outcome.counts["last customers"] > 0
    assert outcome.counts["check can_be_paid_in_the_end"] == outcome.counts["last customers"]


def test_a_stranger_cannot_pay_what_is_closed_or_not_there() -> None:
    world = SimWorld(1)
    with_a_session(world, Status.OPEN).completed = True
    session = next(iter(world.checker.sessions.values()))
    stranger = actors.Stranger(world)
    assert not stranger._pay(session, Around.OUTSIDE_FULL)
    assert not stranger._pay(replace(session, incoming_payment=None), Around.OUTSIDE_FULL)
    assert not world.faults.counts


# --- the clean-up's queue ---


def test_a_task_is_received_again_until_it_is_done() -> None:
    world, received = SimWorld(1), []
    world.weather = FAIR

    def request(name: str, act: object) -> Answer:
        received.append(world.scheduler.now)
        return Answer(len(received) == 2)

    world.request = request  # type: ignore[method-assign]
    world.tasks.clean_up(TASK)
    world.scheduler.run(until=3_600_000)
    assert len(received) == 2
    assert received[1] - received[0] == actors.TASK_VISIBILITY
    assert world.faults.counts[Around.TASK_AGAIN.value] == 1


def test_a_task_is_given_up_in_the_end_or_lost_at_once() -> None:
    world, received = SimWorld(1), []
    world.weather = FAIR
    world.request = lambda name, act: received.append(name) or Answer(lost=True)  # type: ignore[method-assign,func-returns-value]
    world.tasks.clean_up(TASK)
    world.weather = replace(FAIR, lost_hint=1.0)
    world.tasks.clean_up(TASK)
    world.scheduler.run(until=3_600_000)
    assert len(received) == actors.TASK_RECEIVES_MAX
    assert world.faults.counts[Around.TASK_LOST.value] == 1


def test_a_task_that_wants_to_be_tried_later_was_not_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def later(services: PayServices, task: Cleanup) -> None:
        raise TryLater

    world, done = SimWorld(1), []
    services = world._services[world._free_process()]

    def act() -> None:
        done.append(actors.cleaned_up(services, TASK))
        monkeypatch.setattr("checkout.flows.payment.cleanup.clean_up", later)
        done.append(actors.cleaned_up(services, TASK))

    world.scheduler.spawn("task", act)
    world.scheduler.run(until=10_000)
    assert done == [True, False]


# --- readers ---


def test_one_who_is_shown_the_past_is_caught_unless_the_question_is_older_still() -> None:
    world = SimWorld(1)
    reader = actors.Reader(world)
    inner = iter([2, 3, 1])

    def ask(session: Session) -> None:
        world.request = lambda name, act: Answer(session)  # type: ignore[method-assign]
        reader.ask("look", lambda services: None)

    def meanwhile(name: str, act: object) -> Answer:
        ask(a_session(version=next(inner)))
        return Answer(a_session(version=1))

    world.request = meanwhile  # type: ignore[method-assign]
    reader.ask("look", lambda services: None)  # an answer that came late
    assert not world.violations
    ask(a_session(version=3))
    ask(a_session(version=1))
    assert [violation.check for violation in world.violations] == ["nobody_is_shown_the_past"]


# --- clocks, reads, providers ---


def test_only_storms_have_wrong_clocks_and_old_reads() -> None:
    skews, lags = set(), set()
    for seed in MANY_SEEDS:
        world = SimWorld(seed)
        own = {provider.skew for provider in world.network.providers.values()}
        own.add(timedelta(milliseconds=world._free_process().skew))
        lag = world.tables._lag
        if world.profile == "storm":
            assert lag is not None
            lags.add(lag.longest)
            assert world.swarm.lag in (0, lag.longest)
            if world.swarm.lag:
                lags.discard(lag.longest)
            skews |= own
            assert 0 <= lag.draw() <= lag.longest
        else:
            assert (own, lag) == ({timedelta(0)}, None)
            assert (world.kind, world.shop) == (KINDS[0], SHOPS[0])
    assert lags == set(LAGS)
    assert max(skews) == -min(skews) == timedelta(milliseconds=SKEW_MAX)


def test_in_a_storm_any_free_process_serves_and_not_too_many() -> None:
    world = storm()
    assert len({world._free_process().name for _ in range(300)}) == POOL_MAX
    calm = next(world for seed in MANY_SEEDS if (world := SimWorld(seed)).profile == "calm")
    assert len({calm._free_process().name for _ in range(300)}) == 1


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: each.name)
def test_each_kind_of_wallet_can_be_there(kind: providers.Kind) -> None:
    made = network(kind, SHOPS[0])
    assert made.behaviours["kind"].description == kind.name


@pytest.mark.parametrize("shop", SHOPS, ids=lambda each: each.name)
def test_each_shop_can_be_there(shop: providers.Shop) -> None:
    rules = network(KINDS[0], shop).providers["harbor"].rules
    assert shop.endless is (rules.incoming_life is not None)
    assert (rules == Rules()) is (shop is SHOPS[0])


def network(kind: providers.Kind, shop: providers.Shop) -> Network:
    rng = random.Random(1)
    return providers.network(kind, shop, rng, lambda: moment(0), {"kid": "k"}, skewed=False)


def test_a_world_can_be_asked_for_with_one_kind_of_wallet() -> None:
    names = {SimWorld(seed, only="no money").kind.name for seed in MANY_SEEDS}
    assert names == {"no money", KINDS[0].name}
