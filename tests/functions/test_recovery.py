"""Each way a payment can go wrong, as the customer lives it: the same link pays in the end.

On the way there, no page says "paid" before the money is there, and none says "not charged" while
that is not certain.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from checkout.domain.session import Session, Status
from checkout.flows.checkout import reconcile
from checkout.ports.wallets import CompletionPolicy
from tests.support.flows import CEDAR, World
from tests.support.hosted_pages import Customer, customer

pytestmark = pytest.mark.untraced

PAID = "Paid. Thank you!"
NOT_CHARGED = "You have not been charged."
WATCHED = 1_200  # seconds


def declines(world: World, browser: Customer, session: Session) -> None:
    awaiting = world.submit(session)
    told = browser.get(world.network.decline(str(awaiting.interact_url)))
    assert "declined" in told.body
    assert NOT_CHARGED in told.body


def lets_the_approval_time_out(world: World, browser: Customer, session: Session) -> None:
    awaiting = world.submit(session, f"{CEDAR}/interact-timeout")
    world.clock.pass_time(601)
    told = browser.get(world.network.approve(str(awaiting.interact_url)))
    assert "This approval is no longer valid" in told.body
    assert NOT_CHARGED in told.body


def closes_the_tab(world: World, browser: Customer, session: Session) -> None:
    world.submit(session)
    world.clock.pass_time(3_600)
    told = browser.open(session)
    assert NOT_CHARGED in told.body or "Nothing is paid until you approve" in told.body


def comes_back_after_the_quote_has_run_out(
    world: World, browser: Customer, session: Session
) -> None:
    awaiting = browser.submitted(f"{CEDAR}/expensive-renewal", session)
    reference, presented = world.approve(awaiting)
    world.clock.pass_time(301)
    query = {"interact_ref": reference, "hash": presented}
    back = browser.open(session, "/grant/callback", params=query)
    assert back.location.endswith(session.id)
    told = browser.open(session)
    assert "went up after you approved it" in told.body
    assert NOT_CHARGED in told.body


def has_no_money(world: World, browser: Customer, session: Session) -> None:
    doubtful = world.pay(session, f"{CEDAR}/no-funds")
    assert doubtful.status is Status.PROCESSING
    for _ in range(WATCHED):
        told = browser.open(session)
        if world.session(session.id).status is Status.OPEN:
            assert "The shop has received no money" in told.body
            return
        assert NOT_CHARGED not in told.body
        assert PAID not in told.body
        world.clock.pass_time(1)
    raise AssertionError("never decided")


@pytest.mark.parametrize(
    "mishap",
    [
        declines,
        lets_the_approval_time_out,
        closes_the_tab,
        comes_back_after_the_quote_has_run_out,
        has_no_money,
    ],
    ids=lambda mishap: mishap.__name__,
)
def test_a_customer_who(mishap: Callable[[World, Customer, Session], None]) -> None:
    world = World()
    with customer(world) as browser:
        session = world.create()
        mishap(world, browser, session)
        assert world.received() == 0
        assert PAID not in browser.open(session).body
        done = world.pay(world.session(session.id))
        assert done.status is Status.COMPLETED
        assert world.received() == 2000
        assert PAID in browser.open(session, "/success").body


def test_a_wallet_that_accepts_everything_and_sends_nothing_never_completes_a_session() -> None:
    world = World()
    with customer(world) as browser:
        session = world.pay(world.create(), f"{CEDAR}/never-credits")
        for _ in range(WATCHED):
            assert PAID not in browser.open(session).body
            session = reconcile.advance_pending(world.services, session.id)
            if session.status is Status.OPEN:
                break
            world.clock.pass_time(1)
    assert session.status is Status.OPEN
    assert world.events() == []


def test_under_instructed_the_same_wallet_does_and_the_session_says_what_is_known() -> None:
    world = World(policy=CompletionPolicy.INSTRUCTED)
    session = world.pay(world.create(), f"{CEDAR}/never-credits")
    assert session.status is Status.COMPLETED
    assert session.received is None  # nobody looked: the dashboard has no amount to show
    assert len(world.events()) == 1
