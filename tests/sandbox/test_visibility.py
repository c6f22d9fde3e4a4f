"""Clients see and list their own; any may close. Another's payment is 404, an unknown one 401."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from sandbox.wallets.answers import timestamp
from sandbox.wallets.clients import Clients
from sandbox.wallets.money import Fee
from sandbox.wallets.provider import Rules
from tests.support.wallet_client import ALICE, HARBOR, SHOP, World, compact

OTHER = f"{HARBOR}/shop-kwd"  # a client with the same key, and another address
ID = "b8f3a1d2-0000-4000-8000-000000000000"


def token(world: World, kind: str, *actions: str, wallet: str, client: str = SHOP) -> str:
    return str(world.grant(wallet, kind, *actions, client=client)["access_token"]["value"])


def unknown(collection: str) -> dict[str, Any]:
    description = f"Failed to get wallet address from {collection}"
    details = {"description": description, "id": ID}
    return {"error": {"code": "401", "description": "Unauthorized", "details": details}}


def test_an_incoming_payment_of_another_client_is_404_to_read_and_can_be_completed(
    world: World,
) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    reads, completes = (
        token(world, "incoming-payment", action, wallet=SHOP, client=OTHER)
        for action in ("read", "complete")
    )
    assert world.call("GET", incoming["id"], token=reads) == (
        404,
        {"error": {"code": "404", "description": "Incoming payment does not exist"}},
    )
    all_ = token(world, "incoming-payment", "read-all", wallet=SHOP, client=OTHER)
    assert world.call("GET", incoming["id"], token=all_)[0] == 200
    status, closed = world.call("POST", f"{incoming['id']}/complete", token=completes)
    assert (status, closed["completed"]) == (200, True)
    status, again = world.call("POST", f"{incoming['id']}/complete", token=completes)
    assert (status, again["error"]["description"]) == (409, "wrong state")
    gone = incoming["id"].rpartition("/")[0] + f"/{ID}"
    assert world.call("GET", gone, token=reads) == (401, unknown("incoming payment"))


def test_to_list_all_wants_an_interaction_and_to_read_all_does_not(world: World) -> None:
    item = {"type": "incoming-payment", "actions": ["list-all"], "identifier": SHOP}
    body = {"access_token": {"access": [item]}, "client": OTHER}
    assert world.call("POST", world.wallet(SHOP)["authServer"], body) == (
        400,
        {
            "error": {
                "code": "invalid_request",
                "description": "missing required request field 'interact'",
            }
        },
    )


def test_an_open_incoming_payment_takes_any_amount_and_never_completes_itself(world: World) -> None:
    jar = world.open_payment(SHOP)
    assert "incomingAmount" not in jar
    budget = world.approved(ALICE, {})["access_token"]["value"]
    for _ in range(2):
        euro = {"value": "700", "assetCode": "EUR", "assetScale": 2}
        status, quote = world.quote(ALICE, jar["id"], debitAmount=euro)
        assert (status, quote["debitAmount"]) == (201, euro)
        assert world.pay_quote(ALICE, quote, budget)[0] == 201
    status, seen = world.call("GET", jar["id"], token=jar["token"])
    assert (status, seen["completed"], seen["receivedAmount"]["value"]) == (200, False, "1510")
    assert world.quote(ALICE, jar["id"])[1]["error"]["description"] == "invalid receiver"


def test_a_fixed_debit_includes_the_fee_and_what_is_set_aside(world: World) -> None:
    cedar = world.network.providers["cedar"]
    world.network.providers["cedar"] = replace(cedar, fee=Fee(200, 100, slippage=100))
    jar = world.open_payment(SHOP)
    euro = {"value": "700", "assetCode": "EUR", "assetScale": 2}
    _, quote = world.quote(ALICE, jar["id"], debitAmount=euro)
    budget = world.approved(ALICE, {})["access_token"]["value"]
    _, made = world.pay_quote(ALICE, quote, budget)
    _, ended = world.call("GET", made["id"], token=budget)
    assert ended["debitAmount"]["value"] == "700"
    assert ended["sentAmount"]["value"] == "582"  # 7.00 less 1.00, less 3 % of what is sent
    assert ended["receiveAmount"]["value"] == quote["receiveAmount"]["value"] == "634"
    low = {"value": "100", "assetCode": "EUR", "assetScale": 2}
    status, answer = world.quote(ALICE, jar["id"], debitAmount=low)
    assert (status, answer["error"]["description"]) == (400, "non-positive receive amount")
    least = {"value": "102", "assetCode": "EUR", "assetScale": 2}
    assert answer["error"]["details"] == {"minSendAmount": least}


def test_outgoing_payments_are_seen_by_the_client_that_made_them(world: World) -> None:
    payment = world.pay(ALICE, SHOP, 2000)
    server = world.wallet(ALICE)["resourceServer"]
    listing = f"{server}/outgoing-payments?wallet-address=https%3A%2F%2Flocalhost%3A4101%2Falice"

    def approved(client: str, *actions: str) -> str:
        item = {"type": "outgoing-payment", "actions": list(actions), "identifier": ALICE}
        body = {
            "access_token": {"access": [item]},
            "client": client,
            "interact": {
                "start": ["redirect"],
                "finish": {"method": "redirect", "uri": "https://a.example", "nonce": "n"},
            },
        }
        _, pending = world.call("POST", world.wallet(ALICE)["authServer"], body)
        ref = world.approved_reference(pending)
        world.clock.pass_(5)
        return str(world.proceed(pending, ref)[1]["access_token"]["value"])

    own, strange, everything = (
        approved(SHOP, "read", "list"),
        approved(OTHER, "read", "list"),
        approved(OTHER, "read-all"),
    )
    assert world.call("GET", payment.url, token=own)[0] == 200  # another grant of the same client
    assert len(world.call("GET", listing, token=own)[1]["result"]) == 1
    assert world.call("GET", payment.url, token=strange) == (
        404,
        {"error": {"code": "404", "description": "Outgoing payment does not exist"}},
    )
    status, listed = world.call("GET", listing, token=strange)
    assert (status, listed["result"]) == (200, [])
    assert world.call("GET", payment.url, token=everything)[0] == 200
    for known in (own, strange, "wrong"):
        answer = world.call("GET", f"{server}/outgoing-payments/{ID}", token=known)
        assert answer == (401, unknown("outgoing payment"))
    assert world.call("GET", f"{server}/outgoing-payments/none", token=own) == (
        500,
        "Internal Server Error",
    )
    quotes = token(world, "quote", "read", wallet=ALICE)
    for value, description in (("wrong", "Inactive Token"), (quotes, "Insufficient Grant")):
        status, answer = world.call("GET", payment.url, token=value)
        assert (status, answer["error"]["description"]) == (403, description)


def test_keys_that_cannot_be_read_are_told_from_a_payment_that_does_not_exist() -> None:
    documents = {"down": False}
    world = World()
    payment = world.pay(ALICE, SHOP, 2000)
    server = world.wallet(ALICE)["resourceServer"]
    (far,) = (each for each in world.network.state.grants.values() if each.interaction)
    far.client = "https://shop.example/till"
    key = world.network.state.accounts[SHOP].keys

    def fetch(url: str) -> bytes:
        if documents["down"]:
            raise OSError("down")
        return compact({"keys": key})

    world.network.clients = Clients(world.network.account, fetch)
    for outgoing in world.network.state.outgoing.values():
        outgoing.client = far.client
    assert world.call("GET", payment.url, token=payment.token)[0] == 200
    documents["down"] = True
    for url in (payment.url, f"{server}/outgoing-payment-grant"):
        assert world.call("GET", url, token=payment.token) == (
            401,
            {
                "error": {
                    "code": "401",
                    "description": "Signature validation error: could not retrieve client keys",
                    "details": {"client": {"walletAddress": "https://shop.example/till"}},
                }
            },
        )
    gone = f"{server}/outgoing-payments/{ID}"
    assert world.call("GET", gone, token=payment.token) == (401, unknown("outgoing payment"))


# Receivers that go away.


def unreadable(world: World, *, readable: bool) -> None:
    harbor = world.network.providers["harbor"]
    world.network.providers["harbor"] = replace(harbor, rules=Rules(readable=readable))


def test_a_receiver_that_cannot_be_read_looks_closed_and_nothing_is_counted(world: World) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    _, quote = world.quote(ALICE, incoming["id"])
    budget = world.approved(ALICE, {"debitAmount": quote["debitAmount"]})["access_token"]["value"]
    unreadable(world, readable=False)
    status, answer = world.quote(ALICE, incoming["id"])
    assert (status, answer["error"]["description"]) == (400, "invalid receiver")
    status, answer = world.pay_quote(ALICE, quote, budget)
    assert (status, answer["error"]["description"]) == (400, "invalid quote")
    unreadable(world, readable=True)
    assert world.pay_quote(ALICE, quote, budget)[0] == 201
    assert world.balance(SHOP) == 2000


@pytest.mark.parametrize(
    "ahead", [timedelta(days=30, seconds=1), timedelta(0), timedelta(seconds=-1)]
)
def test_an_incoming_payment_lives_thirty_days_at_most(world: World, ahead: timedelta) -> None:
    server = world.wallet(SHOP)["resourceServer"]
    body = {"walletAddress": SHOP, "expiresAt": timestamp(world.clock.now + ahead)}
    status, answer = world.call("POST", f"{server}/incoming-payments", body, world.shop_token())
    assert (status, answer["error"]["description"]) == (400, "invalid expiresAt")
