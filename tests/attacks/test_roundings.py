"""Wallets that miss what they have quoted, or lie about it: what a merchant may lose by them.

Nothing where nothing was converted, nothing of less than ten units; one unit of 10 to 99; above,
the merchant's tolerance, and never more than a hundredth. The rule is written a second time here.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import count
from typing import Any

import pytest

from checkout.domain.ground.errors import RefundUnexpectedState
from checkout.domain.payment.in_flight import Attention
from checkout.domain.payment.mandate import Margin
from checkout.domain.refund.record import AmountMode, RefundProblem, RefundStatus
from checkout.domain.session.note import needs_somebody
from checkout.domain.session.record import Session, Status
from checkout.flows.refund import budget
from open_payments.errors import OutcomeUnknown
from open_payments.models import Amount
from sandbox.wallets.behaviours import BEHAVIOURS
from tests.attacks.hostile import hostile
from tests.support.flows import CEDAR, HARBOR, World, lose_answers, on, raising
from tests.support.refund_books import (
    allow,
    ask,
    balance,
    fund,
    payments,
    prepare,
    send,
    wait,
)

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
    done = world.finish(session, callback).record
    assert (done.status, done.amount_received) == (Status.COMPLETED, asked - 1)
    assert (world.clock.now() - begun).total_seconds() == 2.0, "a second without any more sent"
    assert [row["type"] for row in world.events()] == ["checkout.session.completed"]


def in_doubt(world: World, asked: int = 57) -> Session:
    """Return a session whose payment arrived a unit short, and whose 201 was lost."""
    session = world.submit(world.create(asked), f"{CEDAR}/one-short")
    callback = world.approve(session)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"))
    return world.finish(session, callback).record


def test_a_check_finds_a_small_price_paid_but_for_its_rounding() -> None:
    world = World()
    done = world.settle(in_doubt(world), seconds=20)
    assert (done.status, done.received, done.attention) == (Status.COMPLETED, 56, None)


PRINTS = f"{HARBOR}/shop-eur"  # the customers' currency, at another provider: over USD, and back


@pytest.mark.parametrize(
    ("asked", "off"), [(57, -1), (99, -1), (1234, -1), (57, 0), (1234, 0), (57, 1), (1234, 1)]
)
def test_a_sale_in_one_currency_over_another_is_paid_and_refunded_but_for_a_unit(
    asked: int, off: int
) -> None:
    world = World(shop=PRINTS)
    fund(world)
    payer = f"{CEDAR}/{ {-1: 'one-short', 0: 'alice', 1: 'one-over'}[off] }"
    before = balance(world, payer)
    done = world.pay(world.create(asked, "eur"), payer)
    for _ in range(3):  # less than asked is read once more before it can be refunded
        world.clock.pass_time(60)
        world.sweep()
    done = world.session(done.id)
    assert (done.status, done.amount_received) == (Status.COMPLETED, asked + off)
    assert (done.needs_attention, done.paid_as_quoted) == (False, True)
    price = before - balance(world, payer)  # with a fee of the customer's provider
    refund = send(world, ask(world, done))
    assert (refund.status, refund.amount) == (RefundStatus.SUCCEEDED, asked + min(off, 0))
    assert balance(world, payer) - (before - price) == min(price, asked + off)
    assert world.session(done.id).refundable == 0


@pytest.mark.parametrize("off", [-1, 0, 1])
def test_a_refund_in_one_currency_over_another_has_succeeded_but_for_a_unit(off: int) -> None:
    world = World(shop=PRINTS)
    fund(world)
    done = world.pay(world.create(1234, "eur"), f"{CEDAR}/alice")
    shop = world.network.state.accounts[PRINTS]
    world.network.behaviours = {
        **BEHAVIOURS,
        "misses": replace(BEHAVIOURS["normal"], short_by=max(0, -off), over_by=max(0, off)),
    }
    world.network.state.accounts[PRINTS] = replace(shop, behaviour="misses")
    refund = send(world, ask(world, done))
    assert (refund.status, refund.sent, refund.confirmed) == (RefundStatus.SUCCEEDED, 1234, 1)


@pytest.mark.parametrize("asked", [1000, 100_000])
def test_a_sale_that_arrives_with_a_unit_too_much_gives_back_what_was_paid(asked: int) -> None:
    world = World()
    fund(world, 2000_00)
    payer = f"{CEDAR}/one-over"
    before = balance(world, payer)
    done = world.pay(world.create(asked), payer)
    assert (done.status, done.amount_received) == (Status.COMPLETED, asked + 1)
    assert not needs_somebody(done, None)
    paid = before - balance(world, payer)
    for part in (asked // 3, None):
        refund = send(world, ask(world, done, part))
        assert refund.mode is AmountMode.AS_PAID
    assert balance(world, payer) == before
    assert paid == sum(each.give for each in world.session(done.id).refunds or ())


def boasting(world: World, claims: Fraction) -> str:
    """Return a customer's wallet that says that each payment cost it this many times as much."""
    lies = replace(BEHAVIOURS["boasts"], claims=claims)
    world.network.behaviours = {**BEHAVIOURS, "boasts": lies}
    return f"{CEDAR}/boasts"


@pytest.mark.parametrize("claims", [Fraction(1), Fraction(131, 120), Fraction(2)])
def test_in_one_currency_no_more_than_arrived_goes_back_whatever_a_wallet_says(
    claims: Fraction,
) -> None:
    world = World(shop=PRINTS)
    fund(world)
    had = balance(world, PRINTS)
    done = world.pay(world.create(1200, "eur"), boasting(world, claims))
    refund = ask(world, done)
    assert refund.give == Amount(1200, "EUR", 2)
    assert wait(world, send(world, refund)).status is RefundStatus.SUCCEEDED
    assert had - balance(world, PRINTS) == 12  # the fee of the shop's own wallet


@pytest.mark.parametrize(
    ("claims", "margin", "alone"),
    [
        (Fraction(1), Margin(2, 0), False),  # two fees of a hundredth each, and their rounding
        (Fraction(1), Margin(3, 0), True),
        (Fraction(1), Margin(2, 10), True),
        (Fraction(21, 20), Margin(3, 0), False),
        (Fraction(2), Margin(20, 0), False),
    ],
)
def test_in_another_currency_the_budget_adds_no_more_than_its_owner_allows(
    claims: Fraction, margin: Margin, alone: bool
) -> None:
    world = World()
    fund(world)
    allow(world, margin=margin)
    done = world.pay(world.create(1200), boasting(world, claims))
    had = balance(world, world.shop)
    refund = budget.pay_now(world.services, ask(world, done))
    assert (refund.status is RefundStatus.SUCCEEDED) is alone
    if alone:
        assert had - balance(world, world.shop) <= 1200 + 12 * margin.percent + margin.units
    else:
        assert (refund.problem, refund.approval_waits) == (RefundProblem.TOO_DEAR, True)
        assert balance(world, world.shop) == had


def test_a_budget_that_is_chosen_without_a_price_has_nobody_who_saw_one() -> None:
    world = World()
    fund(world)
    allow(world)
    refund = ask(
        world, world.pay(world.create(1200), boasting(world, Fraction(2))), by_budget=False
    )
    for _ in range(2):
        with pytest.raises(RefundUnexpectedState, match="Ask for the price first"):
            budget.choose(world.services, world.key(), refund.id)
    assert payments(world) == 1  # the sale's
    prepare(world, refund)
    refund = budget.choose(world.services, world.key(), refund.id)
    assert refund.status is RefundStatus.SUCCEEDED


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
