"""The client against the sandbox's wallets, which check what it signs and asks for.

The merchant pays a customer: an incoming payment at the customer's wallet, a quote and a payment at
the merchant's own, under a budget that its owner approved once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from checkout.open_payments.client import Access, OpenPayments
from checkout.open_payments.errors import NotSent, Reason, Refused
from checkout.open_payments.limits import Interval, Limits
from checkout.open_payments.models import (
    AccessToken,
    Amount,
    ClientIdentity,
    GrantSpent,
    IncomingPayment,
    WalletAddress,
)
from checkout.open_payments.tokens import TokenKeeper
from checkout.open_payments.transport import Request, Response
from sandbox.wallets.provider import Rules
from tests.support.wallet_client import ALICE, HARBOR, KEY_ID, SHOP, World, callback

OTHER = f"{HARBOR}/shop-kwd"
MONTHLY = Interval(datetime(2026, 11, 1, tzinfo=UTC), months=1)
BUDGET = Limits(debit_amount=Amount(100_00, "USD", 2), interval=MONTHLY)
FINISH = "https://checkout.example/return"


class Wire:
    """A transport to the wallets of a world."""

    def __init__(self, world: World) -> None:
        self._world = world

    def send(self, request: Request, *, timeout: float) -> Response:
        return self._world.network.handle(request)


def client_of(world: World, wallet: str = SHOP) -> OpenPayments:
    identity = ClientIdentity(wallet, KEY_ID, bytes(range(32)))
    deadline = world.clock.now + timedelta(days=3650)
    return OpenPayments(
        Wire(world), identity, now=world.clock, deadline=deadline, allow_http_interaction=True
    )


class Refunds:
    """A merchant with money, a client and a customer's wallet address."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.network.state.accounts[SHOP].balance = 1000_00
        self.client = client_of(world)
        self.keeper = TokenKeeper(world.clock)
        self.shop = self.client.get_wallet_address(SHOP)
        self.alice = self.client.get_wallet_address(ALICE)

    def approved(self, limits: Limits) -> AccessToken:
        pending = self.client.request_payment_grant(
            self.shop, limits=limits, finish_uri=FINISH, nonce="nonce"
        )
        ref = callback(self.world.network.approve(pending.interact_url))["interact_ref"]
        self.world.clock.pass_(5)
        return self.client.continue_grant(
            self.shop, pending.continuation, interact_ref=ref, limits=limits
        )

    def incoming(self, amount: Amount | None) -> IncomingPayment:
        ends = self.world.clock.now + timedelta(hours=1)
        return self.keeper.use(
            self.client,
            self.alice.auth_server,
            self.alice.resource_server,
            Access.INCOMING_PAYMENT,
            lambda token: self.client.create_incoming_payment(
                self.alice.resource_server, token, amount=amount, expires_at=ends, wallet=ALICE
            ),
            wallet=ALICE,
        )

    def read(self, url: str) -> IncomingPayment:
        return self.keeper.use(
            self.client,
            self.alice.auth_server,
            self.alice.resource_server,
            Access.INCOMING_PAYMENT,
            lambda token: self.client.get_incoming_payment(url, token, wallet=ALICE),
            wallet=ALICE,
        )

    def pay(self, token: AccessToken, debit: int) -> str:
        """Send a debit of this many cents; return the outgoing payment's address."""
        receiver = self.incoming(None)
        asked = self.client.request_grant(self.shop.auth_server, Access.QUOTE)
        quote = self.client.create_quote(
            self.shop, asked, receiver=receiver.id, debit=Amount(debit, "USD", 2)
        )
        return self.client.create_outgoing_payment(
            self.shop, token, quote=quote, receiver=receiver.id
        ).id

    def spent(self, token: AccessToken) -> GrantSpent:
        return self.client.get_grant_spent(self.shop, token)


@pytest.fixture
def refunds() -> Refunds:
    return Refunds(World())


@contextmanager
def refused(reason: Reason) -> Iterator[None]:
    with pytest.raises(Refused) as caught:
        yield
    assert caught.value.reason is reason


def test_a_refund_of_an_exact_amount_arrives_at_the_customers_wallet(refunds: Refunds) -> None:
    budget = refunds.approved(BUDGET)
    five = Amount(500, "EUR", 2)
    receiver = refunds.incoming(five)
    asked = refunds.client.request_grant(refunds.shop.auth_server, Access.QUOTE)
    quote = refunds.client.create_quote(refunds.shop, asked, receiver=receiver.id, receive=five)
    assert (quote.receive, quote.debit) == (five, Amount(551, "USD", 2))  # 5.45 and 1 % of fee
    made = refunds.client.create_outgoing_payment(
        refunds.shop, budget, quote=quote, receiver=receiver.id
    )
    ended = refunds.client.get_outgoing_payment(made.id, budget)
    assert (ended.sent.value, ended.debit.value, ended.failed) == (545, 551, False)
    seen = refunds.read(receiver.id)
    assert (seen.received, seen.completed) == (five, True)


def test_a_budget_holds_for_all_refunds_of_a_month_and_is_renewed(refunds: Refunds) -> None:
    budget = refunds.approved(BUDGET)
    assert refunds.spent(budget) == GrantSpent(None, None)
    url = refunds.pay(budget, 60_00)
    assert refunds.client.get_outgoing_payment(url, budget).sent == Amount(59_40, "USD", 2)
    assert refunds.spent(budget).debit == Amount(60_00, "USD", 2)
    with refused(Reason.BEYOND_LIMITS):
        refunds.pay(budget, 40_01)
    refunds.pay(budget, 40_00)
    refunds.world.clock.now = datetime(2026, 12, 1, tzinfo=UTC)
    with refused(Reason.TOKEN_INACTIVE):
        refunds.spent(budget)
    fresh = refunds.client.rotate_token(refunds.shop.auth_server, budget)
    assert refunds.spent(fresh).debit == Amount(0, "USD", 2)
    refunds.pay(fresh, 100_00)


def test_a_refund_without_an_amount_is_closed_by_the_merchant(refunds: Refunds) -> None:
    receiver = refunds.incoming(None)
    assert receiver.incoming_amount is None
    token = refunds.client.request_grant(
        refunds.alice.auth_server, Access.INCOMING_PAYMENT, wallet=ALICE
    )
    closed = refunds.client.complete_incoming_payment(receiver.id, token, wallet=ALICE)
    assert closed.completed
    with refused(Reason.WRONG_STATE):
        refunds.client.complete_incoming_payment(receiver.id, token, wallet=ALICE)


def test_a_rotation_says_whether_the_token_is_gone(refunds: Refunds) -> None:
    budget, server = refunds.approved(BUDGET), refunds.shop.auth_server
    harbor = refunds.world.network.providers["harbor"]
    refunds.world.network.providers["harbor"] = replace(harbor, rules=Rules(busy=1))
    with refused(Reason.NOT_ROTATED):
        refunds.client.rotate_token(server, budget)
    refunds.world.network.providers["harbor"] = harbor
    fresh = refunds.client.rotate_token(server, budget)
    with refused(Reason.TOKEN_GONE):
        refunds.client.rotate_token(server, budget)
    refunds.world.clock.pass_(600 + 30 * 24 * 3600)
    with refused(Reason.TOKEN_GONE):
        refunds.client.rotate_token(server, fresh)


def test_what_is_not_there_not_ours_or_not_verified_has_a_reason_of_its_own(
    refunds: Refunds,
) -> None:
    budget = refunds.approved(BUDGET)
    url = refunds.pay(budget, 10_00)
    unknown = url[:-12] + "0" * 12
    with refused(Reason.NOT_FOUND):
        refunds.client.get_outgoing_payment(unknown, budget)
    refunds.world.network.state.outgoing[url.rpartition("/")[2]].client = OTHER
    with refused(Reason.NOT_OURS):
        refunds.client.get_outgoing_payment(url, budget)
    refunds.world.network.state.accounts[SHOP].keys.clear()
    with refused(Reason.CLIENT_UNKNOWN):
        refunds.client.get_outgoing_payment(url, budget)
    with refused(Reason.NOT_FOUND):
        refunds.client.get_outgoing_payment(unknown, budget)


def test_an_incoming_payment_of_another_client_is_not_ours_to_read_but_to_close(
    refunds: Refunds,
) -> None:
    receiver = refunds.incoming(None)
    other = client_of(refunds.world, OTHER)
    token = other.request_grant(refunds.alice.auth_server, Access.INCOMING_PAYMENT, wallet=ALICE)
    with refused(Reason.NOT_OURS):
        other.get_incoming_payment(receiver.id, token, wallet=ALICE)
    assert other.complete_incoming_payment(receiver.id, token, wallet=ALICE).completed


def test_a_wallet_of_another_asset_than_the_limit_is_not_asked(refunds: Refunds) -> None:
    yen = WalletAddress(SHOP, "JPY", 0, refunds.shop.auth_server, refunds.shop.resource_server)
    before = len(refunds.world.network.state.grants)
    with pytest.raises(NotSent, match="another asset"):
        refunds.client.request_payment_grant(yen, limits=BUDGET, finish_uri=FINISH, nonce="n")
    assert len(refunds.world.network.state.grants) == before
