"""Rotation of tokens: when a token is gone, and when nothing was lost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sandbox.wallets.provider import Rules
from tests.support.wallet_client import ALICE, CEDAR, HARBOR, SHOP, World, jwk

STRANGER = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)
GONE = {"error": {"code": "invalid_client", "description": "invalid access token"}}
DAY = 24 * 60 * 60


def granted(world: World) -> dict[str, Any]:
    return dict(world.approved(ALICE, {})["access_token"])


def rotate(world: World, token: dict[str, Any], value: str | None = None) -> tuple[int, Any]:
    return world.call("POST", token["manage"], token=value or token["value"])


def is_active(world: World, value: str) -> bool:
    server = world.wallet(ALICE)["resourceServer"]
    status, answer = world.call("GET", f"{server}/outgoing-payment-grant", token=value)
    assert status == 200 or answer["error"] == {"code": "403", "description": "Inactive Token"}
    return status == 200


def test_a_token_expires_after_ten_minutes_and_rotates_for_thirty_days_more(world: World) -> None:
    token = granted(world)
    assert token["expires_in"] == 600
    world.clock.pass_(599)
    assert is_active(world, token["value"])
    world.clock.pass_(1)
    assert not is_active(world, token["value"])
    world.clock.pass_(30 * DAY - 1)
    status, answer = rotate(world, token)
    assert status == 200
    assert is_active(world, answer["access_token"]["value"])
    assert answer["access_token"]["manage"] != token["manage"]


def test_a_token_that_was_deleted_is_gone_and_so_is_its_grant(world: World) -> None:
    whole = world.approved(ALICE, {})
    token, onward = whole["access_token"], whole["continue"]
    world.clock.pass_(600 + 30 * DAY)
    assert rotate(world, token) == (401, GONE)
    assert token["value"] not in world.network.state.tokens
    status, answer = world.call("POST", onward["uri"], token=onward["access_token"]["value"])
    assert (status, answer["error"]) == (
        401,
        {"code": "request_denied", "description": "grant cannot be polled"},
    )
    # It can still be revoked, so that it does not linger.
    assert world.call("DELETE", onward["uri"], token=onward["access_token"]["value"])[0] == 204


def test_the_manage_address_decides_and_not_the_value_in_the_header(world: World) -> None:
    token, other = granted(world), granted(world)
    _, first = rotate(world, token)
    status, second = rotate(world, first["access_token"], token["value"])  # the old value
    assert status == 200
    status, third = world.call("POST", second["access_token"]["manage"])  # none
    assert status == 200
    assert rotate(world, third["access_token"], other["value"])[0] == 200  # another grant's
    assert rotate(world, third["access_token"], other["value"]) == (401, GONE)
    assert is_active(world, other["value"])


def test_a_busy_database_refuses_a_rotation_and_nothing_is_lost(world: World) -> None:
    token = granted(world)
    cedar = world.network.providers["cedar"]
    world.network.providers["cedar"] = replace(cedar, rules=Rules(busy=1))
    for _ in range(2):
        assert rotate(world, token) == (
            404,
            {
                "error": {
                    "code": "invalid_rotation",
                    "description": "Defined query timeout of 10000ms exceeded when running query.",
                }
            },
        )
        assert is_active(world, token["value"])
    world.network.providers["cedar"] = cedar
    assert rotate(world, token)[0] == 200


def test_addresses_and_keys_that_are_wrong_are_told_apart(world: World) -> None:
    token = granted(world)
    auth = f"{CEDAR[:-1]}2"
    unknown = {"manage": f"{auth}/token/b8f3a1d2-0000-4000-8000-000000000000", "value": "x"}
    assert rotate(world, unknown) == (401, GONE)
    assert rotate(world, {"manage": f"{auth}/token/none", "value": "x"}) == (
        500,
        "Internal Server Error",
    )
    world.network.register_key(f"{HARBOR}/bob", jwk(STRANGER, "strange"))
    refused = {"error": {"code": "invalid_client", "description": "could not determine client"}}
    stranger = world.call(
        "POST", token["manage"], token=token["value"], key=STRANGER, kid="strange"
    )
    assert stranger == (400, refused)
    keys, world.network.state.accounts[SHOP].keys = world.network.state.accounts[SHOP].keys, []
    assert rotate(world, token) == (400, refused)
    world.network.state.accounts[SHOP].keys = keys
    assert rotate(world, token)[0] == 200


@pytest.mark.parametrize("how", ["the grant", "the token"])
def test_after_a_revocation_nothing_works_and_what_was_accepted_is_sent(
    world: World, how: str
) -> None:
    late = f"{CEDAR}/late"
    incoming = world.incoming_payment(SHOP, 2000)
    _, quote = world.quote(late, incoming["id"])
    whole = world.approved(late, {"debitAmount": quote["debitAmount"]})
    token, onward = whole["access_token"], whole["continue"]
    assert world.pay_quote(late, quote, token["value"])[0] == 201
    url, value = (
        (onward["uri"], onward["access_token"]["value"])
        if how == "the grant"
        else (token["manage"], token["value"])
    )
    assert world.call("DELETE", url, token=value)[0] == 204
    assert rotate(world, token) == (401, GONE)
    assert world.pay_quote(late, quote, token["value"])[0] == 403
    world.clock.pass_(20)
    world.network.advance()
    assert world.balance(SHOP) == 2000
