"""The check of what is connected, against the sandbox's own wallets."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import pytest

from checkout.domain.merchant.record import Merchant
from checkout.flows.merchant import first_steps
from checkout.flows.merchant.first_steps import Connected, State
from open_payments.errors import NotSent
from open_payments.signatures import public_x
from open_payments.transports import Response
from tests.support.flows import World, answering, on, raising

FINE, WRONG, UNKNOWN = State


def check(world: World, **changes: Any) -> Connected:
    merchant: Merchant = replace(world.stored(), **changes)
    services = replace(world.endpoints, wallets=lambda: world.services.wallets)
    return first_steps.check(services, merchant)


@pytest.mark.parametrize(
    ("changes", "found"),
    [
        ({}, Connected(FINE, FINE)),
        ({"key_id": "another"}, Connected(FINE, WRONG)),
        ({"private_key": "v1.00000000.b3RoZXI="}, Connected(FINE, WRONG)),
        ({"asset_code": "EUR"}, Connected(WRONG, FINE)),
        ({"wallet_address": "https://localhost:4201/nobody"}, Connected(WRONG, UNKNOWN)),
    ],
)
def test_wallet_and_key_are_compared_with_what_the_wallet_says(
    changes: dict[str, Any], found: Connected
) -> None:
    assert check(World(), **changes) == found


@pytest.mark.parametrize(
    ("part", "found"),
    [("/shop", Connected(UNKNOWN, UNKNOWN)), ("jwks.json", Connected(FINE, UNKNOWN))],
)
def test_a_provider_that_does_not_answer_proves_nothing(part: str, found: Connected) -> None:
    world = World()
    world.transport.before = on("", part, raising(NotSent("no connection")))
    assert check(world) == found


def test_a_wallet_without_keys_does_not_list_ours(world: World) -> None:
    answering(world, "GET", "jwks.json", lambda request: Response(404, {}, b"{}"))
    assert check(world) == Connected(FINE, WRONG)


CLIENT = "http://localhost:4000/clients/0123456789abcdef0123456789abcdef"


def published(world: World, key_id: str, x: str) -> None:
    """Have the service's own document hold this key."""
    key = {"kid": key_id, "alg": "EdDSA", "kty": "OKP", "crv": "Ed25519", "x": x}
    body = json.dumps({"keys": [key]}).encode()
    answering(world, "GET", "/clients/", lambda request: Response(200, {}, body))


def test_a_key_of_the_service_is_read_where_wallets_read_it(world: World) -> None:
    plain = world.services.vault.open(
        world.stored().private_key, place=("merchants", world.merchant.id, "private_key")
    )
    x = public_x(base64.b64decode(plain))
    keyless = {"client": CLIENT, "key_id": "ours"}
    published(world, "ours", x)
    assert check(world, **keyless) == Connected(FINE, FINE)
    published(world, "older", x)
    assert check(world, **keyless) == Connected(FINE, WRONG)
    published(world, "ours", public_x(bytes(32)))
    assert check(world, **keyless) == Connected(FINE, WRONG)


def test_a_host_of_ours_that_nobody_reaches_is_told_as_not_known(world: World) -> None:
    world.transport.before = on("", "/clients/", raising(NotSent("no such host")))
    assert check(world, client=CLIENT, key_id="ours") == Connected(FINE, UNKNOWN)
