"""Kill the process before and after each call between R1 and R3, and let the merchant go on.

At any moment the customer gets their money back once, and the merchant ends where they
would have ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from checkout.domain.errors import CheckoutError
from checkout.domain.refund import Refund, RefundStatus
from checkout.flows.idempotency import Posted, answer
from checkout.flows.refund import request
from checkout.flows.refund.request import NewRefund
from checkout.flows.schedule import sweep
from checkout.open_payments.errors import OutcomeUnknown
from tests.support.flows import CEDAR, World
from tests.support.refund_books import again, balance, come_back, consent, fund, payments, prepare

pytestmark = pytest.mark.untraced

ALICE = f"{CEDAR}/alice"
CALLS = (
    "get_item",
    "put_item",
    "update_item",
    "query",
    "batch_get_item",
    "batch_write_item",
    "transact_write_items",
)


class Killed(BaseException):
    """The process is told to end."""


class Deadly:
    """Count each call to a store and to a wallet, and kill at one: `before` or after it.

    Another process answers the requests of wallets to us, and is not killed.
    """

    def __init__(self, world: World, at: int, *, before: bool) -> None:
        self.calls, self.at, self.before, self.asked = 0, at, before, False
        for name in CALLS:
            setattr(world.dynamo, name, self._around(getattr(world.dynamo, name)))
        world.transport.send = self._around(world.transport.send)  # type: ignore[method-assign]

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            if self.asked:
                return call(*given, **named)
            self.calls += 1
            mine = self.calls == self.at
            if mine and self.before:
                raise Killed
            self.asked = True
            try:
                result = call(*given, **named)
            finally:
                self.asked = False
            if mine:
                raise Killed
            return result

        return counted


class Merchant:
    """One who wants their customer to have the money back, and presses until it is done."""

    def __init__(self, world: World, session: str, *, slow: bool) -> None:
        self.world, self.session, self.slow = world, session, slow

    def step(self) -> bool:
        """Do the next thing; True once the refund has ended."""
        world = self.world
        refund = self._refund()
        if refund.terminal:
            return True
        if refund.approval_waits:
            prepared = prepare(world, refund)
            callback = consent(world, prepared)
            if self.slow and not refund.payment_in_flight:
                self._lose_what_comes()
            come_back(world, prepared, callback)
            world.transport.after = lambda request, response: None
        if self.slow:
            world.clock.pass_time(700)  # longer than a token lasts
        world.clock.pass_time(60)
        sweep.run(world.services, until=world.clock.now() + timedelta(seconds=25))
        return False

    def _lose_what_comes(self) -> None:
        """Let no answer about the payment reach us: the wallet pays, and we do not know."""

        def lost(request: Any, response: Any) -> None:
            if "/outgoing-payments" in request.url:
                raise OutcomeUnknown("lost")

        self.world.transport.after = lost

    def _refund(self) -> Refund:
        world = self.world
        posted: Posted[Any] = Posted(
            merchant=world.merchant.id,
            key="one",
            fingerprint="one",
            render=lambda refund: json.dumps(refund.id),
            status=201,
        )
        asked = NewRefund(session=self.session)
        given = answer(
            world.services,
            posted,
            lambda reserve: request.create(world.services, world.key(), asked, reserve),
        )
        return request.get(world.services, world.key(), json.loads(given.body))


def run(at: int, *, before: bool, slow: bool) -> int:
    """Refund under a kill at the call `at`; return how many calls it took in all."""
    world = World()
    fund(world)
    had = balance(world, ALICE)
    session = world.pay(world.create(2000))
    sold = payments(world)
    deadly = Deadly(world, at, before=before)
    merchant = Merchant(world, session.id, slow=slow)
    for _ in range(40):
        try:
            with suppress(CheckoutError):
                if merchant.step():
                    break
        except Killed:
            world.transport.after = lambda request, response: None
            world.restart()
            world.clock.pass_time(60)  # its lease lapses
    deadly.at, calls = -1, deadly.calls  # what follows only reads the books
    held = world.session(session.id)
    [only] = held.refunds or ()
    refund = again(world, world.services.refunds.of((only.id,))[0])
    assert refund.status is RefundStatus.SUCCEEDED, (at, before, refund)
    assert balance(world, ALICE) == had, (at, before)
    assert held.refunded == 2000
    assert payments(world) >= sold + 1
    return calls


@pytest.mark.parametrize("slow", [False, True], ids=["prompt", "with a rotation"])
def test_a_kill_at_any_call_gives_the_money_back_once(slow: bool) -> None:
    calls = run(0, before=True, slow=slow)
    assert calls > 30
    for at in range(1, calls + 1):
        for before in (True, False):
            run(at, before=before, slow=slow)
