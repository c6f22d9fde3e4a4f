"""Refunds meet each thing that a real provider was seen to do, with the sandbox's wallet for it.

The customer pays as usual; the wallet's name says what happens to the refund (docs/sandbox.md). The
expected amounts come from both wallets' books.
"""

from __future__ import annotations

from datetime import timedelta

import pytest

from checkout.domain.ground.errors import WalletInvalid
from checkout.domain.payment.in_flight import Attention
from checkout.domain.refund.public import public_refund
from checkout.domain.refund.record import Refund, RefundProblem, RefundStatus
from checkout.domain.session.record import Session, Status
from open_payments.errors import OutcomeUnknown
from open_payments.transports import Response
from sandbox.wallets.provider import Rules
from tests.support.flows import CEDAR, World, answering, lose_answers, on, raising
from tests.support.refund_books import (
    again,
    ask,
    balance,
    come_back,
    consent,
    fund,
    payments,
    prepare,
    send,
    wait,
)

# The customer's price of the 20.00 USD of these sessions, in cents of their euros.
PRICE = 1854


def paid(world: World, wallet: str) -> tuple[str, Session]:
    """Let this wallet pay 20.00 USD; return its address and the session."""
    address = f"{CEDAR}/{wallet}"
    before = balance(world, address)
    session = world.pay(world.create(2000), address)
    assert session.status is Status.COMPLETED
    assert before - balance(world, address) == PRICE
    return address, session


def doubtful(world: World, session: Session) -> Refund:
    """Return a refund that was paid, but whose 201 was lost and whose payment nobody can read."""
    prepared = prepare(world, ask(world, session))
    callback = consent(world, prepared)
    world.transport.after = lose_answers("/outgoing-payments", OutcomeUnknown("lost"))
    world.transport.before = on("GET", "/outgoing-payments", raising(OutcomeUnknown("down")))
    theirs = on("GET", "/incoming-payments/", raising(OutcomeUnknown("down")))
    ours = world.transport.before
    world.transport.before = lambda request: (theirs(request), ours(request))[0]
    refund = come_back(world, prepared, callback)
    world.transport.after = lambda request, response: None
    world.transport.before = lambda request: None
    assert refund.status is RefundStatus.SENDING
    return refund


def test_a_receiver_that_is_away_for_a_second_gets_nothing_and_the_next_refund(
    world: World,
) -> None:
    """The merchant's wallet calls the payment complete with 0: nothing failed, nothing was sent."""
    address, session = paid(world, "refund-away")
    before, had = balance(world, address), world.received()
    sent = send(world, ask(world, session))
    assert sent.status is RefundStatus.SENDING
    ends = sent.quote_ends_at
    refund = wait(world, sent)
    assert (refund.status, refund.problem) == (RefundStatus.NEEDS_APPROVAL, RefundProblem.NOT_SENT)
    assert world.clock.now() >= ends + timedelta(minutes=10)
    assert (balance(world, address), world.received()) == (before, had)
    assert send(world, refund).status is RefundStatus.SUCCEEDED
    assert balance(world, address) == before + PRICE
    assert world.session(session.id).refundable == 0


def test_a_receiver_that_ends_midway_leaves_a_part_that_nobody_calls_failed(world: World) -> None:
    address, session = paid(world, "refund-partial")
    before, had = balance(world, address), world.received()
    refund = wait(world, send(world, ask(world, session)))
    got = balance(world, address) - before
    assert got == PRICE // 2
    assert (refund.status, refund.problem) == (RefundStatus.FAILED, RefundProblem.SENT_IN_PART)
    assert refund.sent * PRICE >= got * 2000, "no less than what arrived counts"
    assert public_refund(refund, base_url="https://pay.example")["cost"] == {
        "value": str(had - world.received()),
        "asset_code": "USD",
        "asset_scale": 2,
    }
    assert world.session(session.id).refundable == 2000 - refund.sent


def test_of_a_frozen_server_the_greater_word_counts_and_nothing_is_sent_twice(
    world: World,
) -> None:
    """The merchant's wallet says that a quarter was sent, and a half has arrived."""
    address, session = paid(world, "refund-freezes")
    before = balance(world, address)
    refund = wait(world, send(world, ask(world, session)))
    got = balance(world, address) - before
    assert got == PRICE // 2
    assert (refund.status, refund.problem) == (RefundStatus.FAILED, RefundProblem.SENT_IN_PART)
    assert refund.sent * PRICE >= got * 2000, "what arrived counts, not what the sender says"
    left = world.session(session.id).refundable
    assert left <= 1000
    # The rest goes the same way: whatever is asked for, nobody gets more than they paid.
    send(world, ask(world, session, left))
    assert balance(world, address) - before <= PRICE


def test_not_found_at_the_customers_wallet_is_no_word_that_nothing_has_arrived(
    world: World,
) -> None:
    """Of a half that arrived the shop's wallet reports a quarter, and the customer's denies it."""
    address, session = paid(world, "refund-freezes")
    before = balance(world, address)
    refund = send(world, ask(world, session))
    answering(world, "GET", "/incoming-payments/", lambda asked: Response(404, {}, b"{}"))
    for _ in range(15):
        world.clock.pass_time(60)
        world.sweep()
    assert world.clock.now() > refund.quote_ends_at + timedelta(minutes=10)
    assert again(world, refund).status is RefundStatus.SENDING, "one of two words is missing"
    world.transport.network = world.network
    refund = wait(world, refund)
    assert refund.status is RefundStatus.FAILED
    assert refund.sent * PRICE >= (balance(world, address) - before) * 2000


def test_a_wallet_that_shows_nothing_for_ever_is_paid_once(world: World) -> None:
    address, session = paid(world, "refund-unseen")
    before = balance(world, address)
    sent, sold = send(world, ask(world, session)), payments(world)
    refund = wait(world, sent)
    assert (refund.status, refund.confirmed) == (RefundStatus.SUCCEEDED, 0)
    assert balance(world, address) == before + PRICE
    assert payments(world) == sold
    assert world.session(session.id).refundable == 0


@pytest.mark.parametrize("wallet", ["refund-fails", "refund-hangs"])
def test_a_refund_that_comes_to_nothing_waits_for_the_next_approval(
    world: World, wallet: str
) -> None:
    address, session = paid(world, wallet)
    before = balance(world, address)
    refund = wait(world, send(world, ask(world, session)))
    assert (refund.status, refund.problem) == (RefundStatus.NEEDS_APPROVAL, RefundProblem.NOT_SENT)
    assert balance(world, address) == before
    assert world.session(session.id).refundable == 0, "it is still held"


def test_a_wallet_that_is_gone_is_told(world: World) -> None:
    _, session = paid(world, "refund-gone")
    refund = ask(world, session)
    with pytest.raises(WalletInvalid, match="no wallet at the customer's address any more"):
        prepare(world, refund)
    assert again(world, refund).status is RefundStatus.NEEDS_APPROVAL


def test_while_our_own_keys_cannot_be_read_nothing_is_decided(world: World) -> None:
    """The wallet answers 401 with other words than for a payment that it does not know."""
    address, session = paid(world, "alice")
    before = balance(world, address)
    refund = doubtful(world, session)
    keys = world.network.clients.keys
    world.network.clients.keys = lambda wallet_address: None  # type: ignore[method-assign]
    sold = payments(world)
    for _ in range(90):
        world.clock.pass_time(60)
        world.sweep()
    stuck = again(world, refund)
    assert (stuck.status, stuck.attention) == (RefundStatus.SENDING, Attention.UNDECIDED)
    world.network.clients.keys = keys  # type: ignore[method-assign]
    assert wait(world, refund).status is RefundStatus.SUCCEEDED
    assert payments(world) == sold
    assert balance(world, address) == before + PRICE


def test_a_busy_server_rotates_later_and_loses_nothing() -> None:
    """It answers `invalid_rotation`, 404, and keeps the token as it was."""
    world = World(rules=Rules(busy=1.0))
    fund(world)
    address, session = paid(world, "alice")
    before = balance(world, address)
    refund = doubtful(world, session)
    world.clock.pass_time(660)  # the token that reads the payment has ended
    for _ in range(5):
        world.clock.pass_time(60)
        world.sweep()
    assert again(world, refund).token == refund.token
    for provider in world.network.providers.values():
        object.__setattr__(provider, "rules", Rules())
    assert wait(world, refund).status is RefundStatus.SUCCEEDED
    assert balance(world, address) == before + PRICE
