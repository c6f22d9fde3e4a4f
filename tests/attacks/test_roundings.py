"""Wallets that keep money back and call the payment complete: what a merchant may lose by them.

Nothing where nothing was converted, nothing of less than ten units; one unit of 10 to 99; above,
the merchant's tolerance, and never more than a hundredth. The rule is written a second time here.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from typing import Any

import pytest

from checkout.domain.payment import Attention
from checkout.domain.session import Session, Status
from checkout.open_payments.errors import OutcomeUnknown
from sandbox.wallets.behaviours import BEHAVIOURS
from tests.attacks.hostile import hostile
from tests.support.flows import CEDAR, HARBOR, World, lose_answers, on, raising

CUSTOMERS = {True: f"{CEDAR}/one-short", False: f"{HARBOR}/bob"}  # by whether they convert


def keeping_back(world: World, units: int) -> None:
    """Have the customers' wallets keep these units back, and say that they have paid."""
    keeps = replace(BEHAVIOURS["one-short"], short_by=units)
    world.network.behaviours = {**BEHAVIOURS, "one-short": keeps}
    accounts = world.network.state.accounts
    accounts[CUSTOMERS[False]] = replace(accounts[CUSTOMERS[False]], behaviour="one-short")


def may_be_lost(asked: int, tolerance: int, *, converted: bool) -> int:
    if not converted or asked < 10:
        return 0
    return min(tolerance, 1 if asked < 100 else asked // 100)


@pytest.mark.parametrize("converted", [True, False])
@pytest.mark.parametrize("tolerance", [0, 1, 5])
@pytest.mark.parametrize("units", [1, 2])
@pytest.mark.parametrize("asked", [2, 9, 10, 57, 99, 100, 199, 200, 2000])
def test_a_wallet_keeps_no_more_back_than_a_conversion_may_lose(
    asked: int, units: int, tolerance: int, converted: bool
) -> None:
    world = World()
    world.services.merchants.replace(world.stored().changed(tolerance=tolerance))
    keeping_back(world, units)
    session = world.pay(world.create(asked), CUSTOMERS[converted])
    session = world.settle(session, seconds=60)
    lost = asked - world.received()
    assert lost == min(units, asked)
    paid = session.status is Status.COMPLETED
    assert paid is (lost <= may_be_lost(asked, tolerance, converted=converted))
    if world.received() and not paid:
        assert session.attention is Attention.PARTIAL_PAYMENT


@pytest.mark.parametrize(
    ("shop", "currency", "asked"),
    [("shop", "usd", 57), ("shop", "usd", 96), ("shop-jpy", "jpy", 60), ("shop-jpy", "jpy", 95)],
)
def test_a_small_price_that_lost_a_unit_is_paid_while_the_customer_waits(
    shop: str, currency: str, asked: int
) -> None:
    world = World(shop=f"{HARBOR}/{shop}")
    world.listen("checkout.session.partially_paid")
    session = world.submit(world.create(asked, currency), f"{CEDAR}/one-short")
    callback = world.approve(session)
    world.clock.pass_time(5)
    begun = world.clock.now()
    done = world.finish(session, callback).session
    assert (done.status, done.amount_received) == (Status.COMPLETED, asked - 1)
    assert (world.clock.now() - begun).total_seconds() == 2.0, "a second without any more sent"
    assert [row["type"] for row in world.events()] == ["checkout.session.completed"]


def in_doubt(world: World, asked: int = 57) -> Session:
    """Return a session whose payment arrived a unit short, and whose 201 was lost."""
    session = world.submit(world.create(asked), f"{CEDAR}/one-short")
    callback = world.approve(session)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"))
    return world.finish(session, callback).session


def test_a_check_finds_a_small_price_paid_but_for_its_rounding() -> None:
    world = World()
    done = world.settle(in_doubt(world), seconds=20)
    assert (done.status, done.received, done.attention) == (Status.COMPLETED, 56, None)


@pytest.mark.parametrize("told", ["failed", "moves", "nothing sent"])
def test_a_payment_that_has_not_ended_waits_for_its_last_unit(told: str) -> None:
    world = World()
    moved = count(1)

    def tell(answer: dict[str, Any]) -> None:
        if told == "failed":
            answer["failed"] = True
        elif "sentAmount" in answer:
            answer["sentAmount"]["value"] = str(next(moved) if told == "moves" else 0)

    hostile(world).changes.append(("/outgoing-payments/", tell))
    for session in (
        world.pay(world.create(57), f"{CEDAR}/one-short"),
        world.settle(in_doubt(world), seconds=60),
    ):
        session = world.settle(session, seconds=20)
        assert (session.status, session.received) == (Status.PROCESSING, 56)
        assert session.attention is Attention.PARTIAL_PAYMENT


def test_a_wallet_that_falls_silent_between_two_looks_has_not_said_that_it_ended() -> None:
    world = World()
    session = in_doubt(world)
    looks = count()

    def silent_at_every_second_look() -> None:
        if next(looks) % 2:
            raising(OutcomeUnknown("silence"))()

    world.transport.before = on("GET", "/outgoing-payments/", silent_at_every_second_look)
    session = world.settle(session, seconds=20)
    assert (session.status, session.attention) == (Status.PROCESSING, Attention.PARTIAL_PAYMENT)
    world.transport.before = lambda *_: None
    assert world.settle(session, seconds=120).status is Status.COMPLETED


def test_money_from_outside_of_which_no_price_is_known_must_arrive_in_full() -> None:
    world = World()
    session = world.submit(world.create(2000))
    world.pay_from_outside(session, 1999)
    world.clock.pass_time(60)
    session = world.settle(session, seconds=61)
    world.clock.pass_time(60)
    session = world.settle(session, seconds=20)
    assert (session.status, session.attention) == (Status.PROCESSING, Attention.PARTIAL_PAYMENT)
