"""Rules and behaviours that no wallet of the local world has: the simulator draws them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from open_payments.transports import Request
from sandbox.wallets.behaviours import BEHAVIOURS, Behaviour
from sandbox.wallets.provider import CLOSINGS, Closing, Rules
from tests.support.wallet_client import ALICE, CEDAR, SHOP, Payment, World, compact, signed


def behaving(rules: Rules | None = None, **how: Any) -> World:
    """Return a world where Alice's wallet behaves like this."""
    world = World(rules=rules)
    own = Behaviour("Alice's.", **how)
    world.network.behaviours = {**BEHAVIOURS, "own": own}
    world.network.state.accounts[ALICE].behaviour = "own"
    return world


def complete(world: World, incoming: dict[str, Any]) -> tuple[int, bytes]:
    request = signed("POST", f"{incoming['id']}/complete", compact({}), incoming["token"])
    answer = world.network.handle(request)
    return answer.status, answer.body


def listed(world: World, payment: Payment) -> list[str]:
    """Return the receivers of the payments in the wallet's list, as the shop sees it."""
    server, wallet = world.wallet(ALICE)["resourceServer"], ALICE.replace("/", "%2F")
    url = f"{server}/outgoing-payments?wallet-address={wallet.replace(':', '%3A')}"
    status, answer = world.call("GET", url, token=payment.token)
    assert status == 200
    return [each["receiver"] for each in answer["result"]]


def test_a_few_units_less_can_arrive_and_never_less_than_nothing() -> None:
    for short_by, received in ((3, 1997), (5000, 0)):
        payment = behaving(short_by=short_by).pay(ALICE, SHOP, 2000)
        assert payment.received()["receivedAmount"]["value"] == str(received)
        assert payment.received()["completed"] is False
        assert payment.sent()["failed"] is False


def test_money_from_outside_is_credited_while_the_incoming_payment_takes_any() -> None:
    world = World()
    incoming = world.incoming_payment(SHOP, 2000)
    assert world.network.pay_from_outside(incoming["id"], 500)
    assert world.network.pay_from_outside(incoming["id"], 2000)  # both were on their way
    assert not world.network.pay_from_outside(incoming["id"], 1)
    assert not world.network.pay_from_outside(f"{incoming['id']}0", 1)
    (payment,) = world.network.state.incoming.values()
    assert (payment.received.value, payment.from_outside, payment.completed) == (2500, 2500, True)
    assert world.balance(SHOP) == 2500


@pytest.mark.parametrize("name", CLOSINGS)
def test_each_answer_to_complete(name: str) -> None:
    closing = CLOSINGS[name]
    world = World(rules=Rules(closing=closing))
    incoming = world.incoming_payment(SHOP, 2000)
    status, body = complete(world, incoming)
    assert status == closing.status
    assert closing.description.encode() in body
    assert bool(body) is not closing.empty
    (payment,) = world.network.state.incoming.values()
    assert payment.completed is closing.closes
    world.clock.pass_(31 * 24 * 3600)
    payment.received = payment.received.with_value(1)  # else it has vanished
    expected = 409 if closing.status < 300 else closing.status
    assert complete(world, {**incoming, "token": world.shop_token()})[0] == expected


def test_the_closings_differ() -> None:
    assert len(set(CLOSINGS.values())) == len(CLOSINGS)
    assert CLOSINGS["200"] == Closing() == Rules().closing


def test_a_provider_can_give_every_incoming_payment_its_own_life() -> None:
    world = World(rules=Rules(incoming_life=timedelta(days=365)))
    incoming = world.incoming_payment(SHOP, 2000, expiresAt="2026-11-20T13:00:00Z")
    assert incoming["expiresAt"] == "2027-11-20T12:00:00.000Z"


def test_a_wallet_can_send_at_the_moment_that_the_receiver_is_closed() -> None:
    world = behaving(sends_when_closed=True, in_flight=timedelta(seconds=29.9))
    payment = world.pay(ALICE, SHOP, 2000)
    world.clock.pass_(300)
    assert payment.received()["receivedAmount"]["value"] == "0"
    assert complete(world, payment.incoming)[0] == 200
    world.clock.pass_(29.8)
    assert payment.received()["receivedAmount"]["value"] == "0"
    world.clock.pass_(0.1)
    assert payment.received()["receivedAmount"]["value"] == "2000"


def test_and_where_nobody_closes_it_just_before_it_expires() -> None:
    world = behaving(sends_when_closed=True)
    incoming = world.incoming_payment(SHOP, 2000, expiresAt="2026-11-20T12:05:00Z")
    _, quote = world.quote(ALICE, incoming["id"])
    token = world.approved(ALICE, {"receiver": incoming["id"]})["access_token"]["value"]
    assert world.pay_quote(ALICE, quote, token)[0] == 201
    world.clock.pass_(3600)
    world.send(Request("GET", incoming["id"], {}))
    assert world.balance(SHOP) == 2000


def test_a_wallet_can_pay_after_a_refusal_and_hide_it() -> None:
    delay = timedelta(seconds=60)
    world = behaving(refuses_accepted=True, hides_payments=True, delivers_after=delay)
    payment = world.pay(ALICE, SHOP, 2000)
    assert payment.status == 403
    assert world.call("GET", payment.url, token=payment.token)[0] == 404
    assert listed(world, payment) == []
    world.clock.pass_(60)
    assert payment.received()["completed"] is True
    assert listed(world, payment) == []


def test_a_wallets_payments_to_others_come_first_in_its_list() -> None:
    world = behaving(pays_others=2)
    payment = world.pay(ALICE, SHOP, 2000)
    receivers = listed(world, payment)
    assert len(set(receivers)) == 3
    assert receivers[-1] == payment.incoming["id"]
    assert world.balance(ALICE) == 10_000_00 - 1854 - 2
    assert world.balance(SHOP) == 2000


def test_tokens_can_be_lost_at_every_use_and_rotated() -> None:
    world = World(rules=Rules(loses_tokens=1.0))
    granted = world.grant(SHOP, "quote", "create", "read")["access_token"]
    url = f"{world.wallet(SHOP)['resourceServer']}/quotes"
    body = {"walletAddress": SHOP, "receiver": f"{SHOP}/incoming-payments/1", "method": "ilp"}
    status, answer = world.call("POST", url, body, granted["value"])
    assert (status, answer["error"]["description"]) == (403, "Inactive Token")
    assert world.call("POST", granted["manage"], None, granted["value"])[0] == 200


def test_manage_uris_can_be_gone() -> None:
    world = World(rules=Rules(rotates=False))
    granted = world.grant(SHOP, "quote", "create", "read")["access_token"]
    assert world.call("POST", granted["manage"], None, granted["value"])[0] == 404


@pytest.mark.parametrize("ahead", [-2, 2])
def test_the_clocks_of_the_providers_may_differ(ahead: int) -> None:
    world = World()
    skew = timedelta(seconds=ahead)
    harbor = world.network.providers["harbor"]
    world.network.providers["harbor"] = replace(harbor, skew=skew)
    incoming = world.incoming_payment(SHOP, 2000, expiresAt="2026-11-20T12:01:00Z")
    assert incoming["createdAt"] == f"2026-11-20T{'11:59:58' if ahead < 0 else '12:00:02'}.000Z"
    world.clock.pass_(60 - ahead - 1)
    assert world.quote(ALICE, incoming["id"])[0] == 201
    world.clock.pass_(1)
    assert world.quote(ALICE, incoming["id"])[0] == 400
    assert world.quote(f"{CEDAR}/carol", incoming["id"])[0] == 400
