"""Kill the process around each call while a merchant changes its client, its key or its wallet.

Four sessions are in flight, one in each state. Each is paid once in the end, by what the wallets
show. The client that made a payment is the one that its session names, so its witness sees it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from checkout.domain.errors import CheckoutError
from checkout.domain.session import Session, Status
from checkout.flows.merchant.setup import SetupRefused
from checkout.open_payments.client import Access
from tests.flows.checkout.test_identities import (
    balance,
    opened,
    payments,
    to_key_file,
    to_other_wallet,
    to_service_key,
)
from tests.flows.refund.test_kills import Deadly, Killed
from tests.support.flows import World

pytestmark = pytest.mark.untraced

Change = Callable[[World], None]


# Whether the merchant begins without a key file, and what the operator does.
CHANGES: dict[str, tuple[bool, Change]] = {
    "rotation": (True, to_service_key),  # of our key: the next signs five minutes later
    "to a key file": (True, to_key_file),
    "to the service's key": (False, to_service_key),
    "another key file": (False, to_key_file),
    "another wallet": (True, to_other_wallet),
}


@dataclass
class Customer:
    """One who wants to pay the session, and comes back until it is paid."""

    session: str
    callbacks: dict[str, tuple[str, str]] = field(default_factory=dict)

    def step(self, world: World) -> bool:
        """Do the next thing; True once the session is paid."""
        session = world.session(self.session)
        if session.status is Status.OPEN:
            session = world.submit(session)
        if session.status is Status.AWAITING_APPROVAL:
            url = session.interact_url
            if url is None:  # its end is awaited
                return False
            if url not in self.callbacks:
                self.callbacks[url] = world.approve(session)
            world.finish(session, self.callbacks[url])
        return world.session(self.session).status is Status.COMPLETED


@dataclass
class Operator:
    """One who gives the command again until the merchant's record shows the change."""

    change: Change
    before: tuple[int, int] | None = None

    def step(self, world: World) -> bool:
        """Give the command; True once it is done."""
        stored = world.stored()
        self.before = self.before or (stored.version, stored.identity)
        if stored.version == self.before[0]:
            self.change(world)
        return True


def in_flight(world: World) -> list[Customer]:
    """Return the customers of an open, a waiting, an approved and a doubtful session."""
    doubtful = Customer(world.in_doubt().id)
    session, callback = world.awaiting()
    assert session.interact_url is not None
    approved = Customer(session.id, {session.interact_url: callback})
    waiting = Customer(world.submit(world.create()).id)
    return [doubtful, approved, waiting, Customer(world.create().id)]


def on_with_it(world: World, operator: Operator, customers: list[Customer]) -> None:
    """Let everybody go on, in a new process after each kill, until all is done."""
    left: list[Operator | Customer] = [operator, *customers]
    for _ in range(60):
        for each in tuple(left):
            try:
                with suppress(CheckoutError, SetupRefused):
                    if each.step(world):
                        left.remove(each)
            except Killed:
                world.restart()
        if not left:
            return
        try:
            world.sweep()
        except Killed:
            world.restart()
    raise AssertionError(left)


def assert_each_paid_once_and_seen(world: World, customers: list[Customer]) -> None:
    for customer in customers:
        session = world.session(customer.session)
        assert session.status is Status.COMPLETED
        assert len(payments(world, session)) == 1
        assert_seen(world, session)
    sent = [each for each in world.network.state.outgoing.values() if each.sent]
    assert len(sent) == len(customers)
    assert balance(world) == 2000 * len(customers)


def assert_seen(world: World, session: Session) -> None:
    """A new process reads the incoming payment as the identity that its session names."""
    world.restart()
    merchant = world.stored().as_of(session.identity)
    incoming = world.incoming(session)
    assert (merchant.client or merchant.wallet_address) == incoming.client
    assert merchant.wallet_address == incoming.wallet
    visit = world.services.wallets.client(
        merchant, deadline=world.clock.now() + timedelta(seconds=9)
    )
    read = world.services.wallets.tokens.use(
        visit,
        merchant.auth_server,
        merchant.resource_server,
        Access.INCOMING_PAYMENT,
        lambda token: visit.get_incoming_payment(incoming_id(session), token),
    )
    assert read.received.value == 2000


def incoming_id(session: Session) -> str:
    assert session.incoming_payment is not None
    return session.incoming_payment.id


def killed_in_or_after(change: str, at: int, *, before: bool) -> int:
    """Change the merchant, and pay all, under a kill at the call `at`; return the calls in all."""
    keyless, act = CHANGES[change]
    world = opened(World())
    if keyless:
        to_service_key(world)
    customers = in_flight(world)
    deadly = Deadly(world, at, before=before)
    on_with_it(world, Operator(act), customers)
    deadly.at, calls = -1, deadly.calls
    assert_each_paid_once_and_seen(world, customers)
    return calls


def killed_in_a_payment(change: str, at: int, *, before: bool) -> int:
    """Kill a payment at the call `at`, and change the merchant before anybody looks again."""
    keyless, act = CHANGES[change]
    world = opened(World())
    if keyless:
        to_service_key(world)
    customer = Customer(world.create().id)
    deadly = Deadly(world, at, before=before)
    with suppress(Killed):
        assert customer.step(world)
    deadly.at, calls = -1, deadly.calls
    world.restart()
    on_with_it(world, Operator(act), [customer])
    assert_each_paid_once_and_seen(world, [customer])
    return calls


@pytest.mark.parametrize("change", CHANGES)
def test_a_kill_in_or_after_a_change_pays_each_session_once(change: str) -> None:
    """After one call is before the next: nothing of the process is left."""
    calls = killed_in_or_after(change, 0, before=True)
    assert calls > 60
    for at in range(1, calls + 1):
        killed_in_or_after(change, at, before=True)
    killed_in_or_after(change, calls, before=False)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_after_a_kill_in_a_payment_pays_it_once(change: str) -> None:
    calls = killed_in_a_payment(change, 0, before=True)
    assert calls > 20
    for at in range(1, calls + 1):
        for before in (True, False):
            killed_in_a_payment(change, at, before=before)
