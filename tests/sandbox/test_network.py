"""Money moves exactly, between providers, currencies and scales, and survives a restart."""

from __future__ import annotations

import json

import pytest

from open_payments.errors import NotSent
from open_payments.transports import Request
from sandbox.wallets.state import Account
from tests.support.wallet_client import ALICE, CEDAR, HARBOR, SHOP, World


@pytest.mark.parametrize(
    ("customer", "shop", "value", "debit"),
    [
        ("cedar/alice", "shop", 2000, 1854),  # EUR to USD
        ("harbor/bob", "shop", 2000, 2000),  # USD to USD, one provider: no fee
        ("cedar/alice", "shop-jpy", 3500, 2174),  # to scale 0
        ("cedar/alice", "shop-kwd", 12_345, 3730),  # to scale 3
        ("cedar/alice", "shop-scale9", 1, 2),  # less than a cent still costs one, and its fee
        ("cedar/scale9", "shop", 2000, 18_532_110_093),  # from scale 9
        ("cedar/scale9", "shop-scale9", 20 * 10**9, 18_532_110_093),
        ("cedar/jpy", "shop", 2000, 3016),  # from scale 0
        ("harbor/bob", "shop-kwd", 1000, 326),
    ],
)
def test_a_payment_settles_to_the_exact_unit(
    world: World, customer: str, shop: str, value: int, debit: int
) -> None:
    provider, name = customer.split("/")
    customer = f"{CEDAR if provider == 'cedar' else HARBOR}/{name}"
    shop = f"{HARBOR}/{shop}"
    before = world.balance(customer)
    payment = world.pay(customer, shop, value)
    assert payment.status == 201
    assert payment.quote["debitAmount"]["value"] == str(debit)
    assert before - world.balance(customer) == debit
    assert world.balance(shop) == value
    received = payment.received()
    assert received["receivedAmount"] == received["incomingAmount"]
    assert received["completed"] is True
    assert payment.sent()["failed"] is False
    assert 0 < int(payment.sent()["sentAmount"]["value"]) <= debit


def test_an_outgoing_payment_has_the_uuid_of_its_quote(world: World) -> None:
    payment = world.pay(ALICE, SHOP, 100)
    assert payment.outgoing["id"] == payment.url
    assert payment.outgoing["sentAmount"]["value"] == "0"


def test_a_fixed_debit_delivers_what_it_pays_for(world: World) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    euro = {"value": "1000", "assetCode": "EUR", "assetScale": 2}
    status, quote = world.quote(ALICE, incoming["id"], debitAmount=euro)
    assert status == 201
    assert quote["debitAmount"]["value"] == "1000"
    assert quote["receiveAmount"]["value"] == "1079"


def test_the_statement_adds_up(world: World) -> None:
    for value in (100, 250, 4999):
        world.pay(ALICE, SHOP, value)
    for wallet, opening in ((ALICE, 10_000_00), (SHOP, 0)):
        account = world.network.state.accounts[wallet]
        assert account.balance == opening + sum(entry.value for entry in account.entries)
        assert account.entries[-1].balance == account.balance
    assert world.balance(SHOP) == 5349


def test_two_payers_race_and_the_second_keeps_the_money(world: World) -> None:
    late = f"{CEDAR}/late"
    incoming = world.incoming_payment(SHOP, 2000)
    _, quote = world.quote(late, incoming["id"])
    limits = {"receiver": incoming["id"], "debitAmount": quote["debitAmount"]}
    token = world.approved(late, limits)["access_token"]["value"]
    assert world.pay_quote(late, quote, token)[0] == 201
    _, other = world.quote(ALICE, incoming["id"])
    paid = world.approved(ALICE, limits)["access_token"]["value"]
    assert world.pay_quote(ALICE, other, paid)[0] == 201
    world.clock.pass_(20)
    url = quote["id"].replace("/quotes/", "/outgoing-payments/")
    _, second = world.call("GET", url, token=token)
    assert (second["failed"], second["sentAmount"]["value"]) == (False, "0")
    assert world.balance(late) == 10_000_00
    assert world.balance(SHOP) == 2000


def test_another_host_is_certainly_not_reached(world: World) -> None:
    with pytest.raises(NotSent):
        world.network.handle(Request("GET", "https://elsewhere.example/alice", {}))


def test_what_is_dumped_is_json_and_goes_on_where_it_stopped(world: World) -> None:
    payment = world.pay(f"{CEDAR}/late", SHOP, 2000)
    dumped = json.loads(json.dumps(world.network.dump()))
    again = World(clock=world.clock)
    again.network.load(dumped)
    assert again.network.dump() == dumped
    world.clock.pass_(20)
    payment.world = again
    assert payment.received()["completed"] is True
    assert again.balance(SHOP) == 2000


def test_accounts_that_a_dump_does_not_know_are_kept(world: World) -> None:
    dumped = World().network.dump()
    world.network.add_account(Account(f"{CEDAR}/new", "New", "EUR", 2, 5))
    world.network.load(dumped)
    assert world.balance(f"{CEDAR}/new") == 5


def test_a_dump_of_other_addresses_is_refused(world: World) -> None:
    dumped = world.network.dump()
    dumped["origins"][0] = "http://localhost:1"
    with pytest.raises(ValueError, match="other addresses"):
        world.network.load(dumped)


def test_an_account_needs_a_provider_that_serves_it(world: World) -> None:
    with pytest.raises(ValueError, match="no provider"):
        world.network.add_account(Account("https://elsewhere.example/x", "X", "EUR", 2, 0))
