"""Kill the process at a call of a flow: everybody goes on, and it ends as it would have, once.

The unit tests kill at some calls of each story, which other runs take others of, and the endurance
tests at each call. tests/kill does it to real processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

import pytest

from checkout.domain.ground.errors import CheckoutError
from checkout.domain.refund.record import Refund, RefundStatus
from checkout.domain.session.record import Session, Status
from checkout.flows.idempotency import Posted, answer
from checkout.flows.merchant.setup import SetupRefused
from checkout.flows.refund import budget, request
from checkout.flows.refund.request import NewRefund
from checkout.flows.schedule import sweep
from open_payments.errors import OutcomeUnknown
from open_payments.protocol import Access
from sandbox.wallets.provider import Rules
from tests.flows import identities
from tests.flows.deadly import Deadly, Killed
from tests.flows.identities import to_key_file, to_other_wallet, to_service_key
from tests.support.flows import World, lose_answers
from tests.support.refund_books import (
    ALICE,
    BOB,
    again,
    allow,
    allowed,
    approve_budget,
    ask,
    balance,
    come_back,
    consent,
    fund,
    mandate,
    payments,
    prepare,
)
from tests.support.sample import some

pytestmark = pytest.mark.untraced


@dataclass(frozen=True)
class Story:
    """`step` does what comes next, and is true once all is done; `holds` asserts what is then."""

    world: World
    step: Callable[[], bool]
    holds: Callable[[], None]


def run(begin: Callable[[], Story], at: int, *, before: bool) -> int:
    """Kill at the call `at`, or never for 0; return how many calls it took in all."""
    story = begin()
    world = story.world
    deadly = Deadly(world, at, before=before)
    for _ in range(60):
        try:
            with suppress(CheckoutError, SetupRefused):
                if story.step():
                    break
        except Killed:
            world.transport.after = lambda request, response: None
            world.restart()
            world.clock.pass_time(60)  # its lease lapses
    else:
        raise AssertionError("it comes to no end")
    deadly.at, calls = -1, deadly.calls
    story.holds()
    return calls


def swept(world: World, seconds: int = 60) -> None:
    world.clock.pass_time(seconds)
    sweep.run(world.services, until=world.clock.now() + timedelta(seconds=25))


# --- refunds


def refund(*, slow: bool) -> Story:
    """A merchant presses until their customer has the money back.

    `slow`: no answer about the payment arrives, until its token has ended.
    """
    world = World()
    fund(world)
    had, session = balance(world, ALICE), world.pay(world.create(2000))
    sold = payments(world)

    def asked() -> Refund:
        """Return the one refund, which has one idempotency key."""
        posted: Posted[Any] = Posted(
            merchant=world.merchant.id,
            key="one",
            fingerprint="one",
            render=lambda made: json.dumps(made.id),
            status=201,
        )
        make = partial(request.create, world.services, world.key(), NewRefund(session=session.id))
        made = json.loads(answer(world.services, posted, make).body)
        return request.get(world.services, world.key(), made)

    def step() -> bool:
        found = asked()
        if found.terminal:
            return True
        if found.approval_waits:
            prepared = prepare(world, found)
            callback = consent(world, prepared)
            if slow and not found.payment_in_flight:
                lost = OutcomeUnknown("lost")
                world.transport.after = lose_answers("/outgoing-payments", lost, times=99)
            come_back(world, prepared, callback)
            world.transport.after = lambda request, response: None
        swept(world, 760 if slow else 60)
        return False

    def holds() -> None:
        assert asked().status is RefundStatus.SUCCEEDED
        held = world.session(session.id)
        assert (len(held.refunds or ()), held.refunded, balance(world, ALICE)) == (1, 2000, had)
        assert payments(world) >= sold + 1

    return Story(world, step, holds)


def with_budget() -> tuple[World, Session]:
    world = World(rules=Rules(limits_enforced=False))
    fund(world)
    session = world.pay(world.create(2000), BOB)
    allow(world)
    return world, session


def refund_by_budget() -> Story:
    """The budget's token has ended, and must be renewed first."""
    world, session = with_budget()
    had, asked = balance(world, BOB), ask(world, session, 700)
    world.clock.pass_time(700)

    def step() -> bool:
        found = again(world, asked)
        if not mandate(world).active:
            allow(world)
        if found.approval_waits:
            prepare(world, found)
            budget.choose(world.services, world.key(), found.id)
        swept(world, 120)
        return again(world, found).terminal

    def holds() -> None:
        assert again(world, asked).status is RefundStatus.SUCCEEDED
        assert (balance(world, BOB), mandate(world).spent) == (had + 700, 700)

    return Story(world, step, holds)


def approval_of_a_budget_in_use() -> Story:
    """The owner wants another limit. Until then, and from then on, the budget pays."""
    world, session = with_budget()
    callback: list[tuple[str, str]] = []

    def pays() -> None:
        asked = ask(world, session, 10)
        for _ in range(5):
            swept(world)
        assert again(world, asked).status is RefundStatus.SUCCEEDED

    def step() -> bool:
        found = mandate(world)
        if found.terms is not None and found.terms.limit.value == 200_00:
            return True
        if callback:
            pays()
        if found.grant is None or not callback:
            callback.clear()
            made = budget.ask(world.services, world.key(), 200_00)
            callback.append(approve_budget(world, made))
        allowed(world, callback[0])
        return False

    return Story(world, step, pays)


# --- changes of the merchant's identity

# Whether the merchant begins without a key file, and what the operator does.
CHANGES: Final[dict[str, tuple[bool, Callable[[World], None]]]] = {
    "rotation": (True, to_service_key),  # of our key: the next signs five minutes later
    "to a key file": (True, to_key_file),
    "to the service's key": (False, to_service_key),
    "another key file": (False, to_key_file),
    "another wallet": (True, to_other_wallet),
}


def customer(world: World, session: Session, *callback: tuple[str, str]) -> Callable[[], bool]:
    """Return the step of one who pays; `callback` is that of an approval given before."""
    callbacks = {str(session.interact_url): each for each in callback}

    def step() -> bool:
        found = world.session(session.id)
        if found.status is Status.OPEN:
            found = world.submit(found)
        if found.status is Status.AWAITING_APPROVAL and found.interact_url is not None:
            if found.interact_url not in callbacks:
                callbacks[found.interact_url] = world.approve(found)
            world.finish(found, callbacks[found.interact_url])
        return world.session(session.id).status is Status.COMPLETED

    return step


def change(name: str, *, in_flight: bool) -> Story:
    """The operator changes the merchant while payments are under way, or after one was killed."""
    keyless, act = CHANGES[name]
    world = identities.opened(World())
    if keyless:
        to_service_key(world)
    stored = world.stored()

    def operator() -> bool:
        if world.stored().version == stored.version:
            act(world)
        return True

    doubtful = [world.in_doubt()] if in_flight else []
    approved = [world.awaiting()] if in_flight else []
    waiting = [world.submit(world.create())] if in_flight else []
    sessions = [*doubtful, *(each[0] for each in approved), *waiting, world.create()]
    left = [
        *(customer(world, each) for each in (*doubtful, *waiting, sessions[-1])),
        *(customer(world, *each) for each in approved),
    ]
    left.insert(0 if in_flight else 1, operator)

    def step() -> bool:
        for each in tuple(left):
            with suppress(CheckoutError, SetupRefused):
                if each():
                    left.remove(each)
        world.sweep()
        return not left

    def holds() -> None:
        for each in sessions:
            assert len(identities.payments(world, world.session(each.id))) == 1
            assert_seen(world, world.session(each.id))
        sent = [each for each in world.network.state.outgoing.values() if each.sent]
        assert (len(sent), identities.balance(world)) == (len(sessions), 2000 * len(sessions))

    return Story(world, step, holds)


def assert_seen(world: World, session: Session) -> None:
    """A new process reads the incoming payment as the identity that its session names."""
    world.restart()
    merchant, incoming = world.stored().as_of(session.identity), world.incoming(session)
    assert (merchant.client or merchant.wallet_address) == incoming.client
    assert merchant.wallet_address == incoming.wallet
    until = world.clock.now() + timedelta(seconds=9)
    calls = world.services.wallets.client(merchant, deadline=until)
    assert session.incoming_payment is not None
    url = session.incoming_payment.id
    read = world.services.wallets.tokens.use(
        calls,
        merchant.auth_server,
        merchant.resource_server,
        Access.INCOMING_PAYMENT,
        lambda token: calls.get_incoming_payment(url, token),
    )
    assert read.received.value == 2000


STORIES: Final[dict[str, Callable[[], Story]]] = {
    "refund": partial(refund, slow=False),
    "refund with a rotation": partial(refund, slow=True),
    "refund by the budget": refund_by_budget,
    "approval of a budget in use": approval_of_a_budget_in_use,
    **{f"{each}, payments under way": partial(change, each, in_flight=True) for each in CHANGES},
    **{f"{each}, after a payment": partial(change, each, in_flight=False) for each in CHANGES},
}


@pytest.mark.parametrize(
    "most", [8, pytest.param(10_000, marks=pytest.mark.endurance)], ids=["some calls", "each call"]
)
@pytest.mark.parametrize("story", STORIES)
def test_a_kill_at_a_call_changes_no_end(story: str, most: int) -> None:
    begin = STORIES[story]
    calls = run(begin, 0, before=True)
    assert calls > 10
    points = [(at, before) for at in range(1, calls + 1) for before in (True, False)]
    for at, before in some(points, most=most):
        run(begin, at, before=before)
