"""Kill the process around each call of a refund that the budget pays, from the request on.

The token has ended, so that a rotation is among them. The merchant approves the budget again where
a kill has lost it, and the customer gets the money once.
"""

from __future__ import annotations

from contextlib import suppress

import pytest

from checkout.domain.errors import CheckoutError
from checkout.domain.refund import Refund, RefundStatus
from checkout.flows.refund import budget
from sandbox.wallets.provider import Rules
from tests.flows.refund.test_kills import Deadly, Killed
from tests.support.flows import HARBOR, World
from tests.support.refund_books import again, allow, ask, balance, fund, mandate

pytestmark = pytest.mark.untraced

BOB = f"{HARBOR}/bob"


def step(world: World, refund: Refund) -> bool:
    """Do what the merchant and the sweep do next; True once the refund has ended."""
    refund = again(world, refund)
    if refund.terminal:
        return True
    if not mandate(world).active:
        allow(world)
    if refund.approval_waits:
        budget.choose(world.services, world.key(), refund.id)
    world.clock.pass_time(60)
    world.sweep()
    return False


def run(at: int, *, before: bool) -> int:
    """Refund under a kill at the call `at`; return how many calls it took in all."""
    world = World(rules=Rules(limits_enforced=False))
    fund(world)
    session = world.pay(world.create(2000), BOB)
    had = balance(world, BOB)
    allow(world)
    refund = ask(world, session, 700)
    world.clock.pass_time(700)
    deadly = Deadly(world, at, before=before)
    for _ in range(60):
        try:
            with suppress(CheckoutError):
                if step(world, refund):
                    break
        except Killed:
            world.restart()
            world.clock.pass_time(60)  # its lease lapses
    deadly.at, calls = -1, deadly.calls  # what follows only reads the books
    refund = again(world, refund)
    assert refund.status is RefundStatus.SUCCEEDED, (at, before, refund)
    assert balance(world, BOB) == had + 700, (at, before)
    assert mandate(world).spent == 700, (at, before)
    return calls


def test_a_kill_at_any_call_gives_the_money_back_once_and_counts_it_once() -> None:
    calls = run(0, before=True)
    assert calls > 20
    for at in range(1, calls + 1):
        for before in (True, False):
            run(at, before=before)
