"""A merchant with two wallets, and what changes whom it is at them."""

from __future__ import annotations

from checkout.domain.session.record import Session
from checkout.flows.merchant import setup
from sandbox.wallets.state import Account
from tests.support.flows import HARBOR, World
from tests.support.keys import new_key_pair

NEW_SHOP = f"{HARBOR}/new-shop"


FILE_KEY = "5b0b9f5e-0000-4000-8000-000000000002"


def opened(world: World) -> World:
    world.network.add_account(Account(NEW_SHOP, "New shop", "USD", 2, 0))
    return world


def to_service_key(world: World) -> None:
    setup.replace_key(world.services, setup.NewMerchant("", wallet(world)))


def to_key_file(world: World) -> None:
    pem, jwk = new_key_pair(FILE_KEY)
    world.network.register_key(wallet(world), jwk)
    setup.replace_key(world.services, setup.NewMerchant("", wallet(world), FILE_KEY, pem))


def to_other_wallet(world: World) -> None:
    other = NEW_SHOP if wallet(world) == world.shop else world.shop
    setup.move_wallet(world.services, wallet(world), setup.NewMerchant("", other))


def wallet(world: World) -> str:
    return world.stored().wallet_address


def balance(world: World) -> int:
    """Return what both wallets of the merchant hold."""
    return sum(world.network.state.accounts[each].balance for each in (world.shop, NEW_SHOP))


def payments(world: World, session: Session) -> list[int]:
    """Return what the wallets have sent to the session's incoming payments, by payment."""
    assert session.incoming_payment is not None
    return [
        each.sent
        for each in world.network.state.outgoing.values()
        if each.receiver == session.incoming_payment.id and each.sent
    ]
