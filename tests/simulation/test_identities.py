"""Test the changes of a shop's identity in a world, and what is checked of them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from open_payments.transports import Request
from sandbox.wallets import state as books
from tests.simulation import identities
from tests.simulation.boundaries import BEGINNING, moment
from tests.simulation.providers import HARBOR, MARKET, SHOP
from tests.simulation.sim_world import BASE_URL, SERVICE_KEY_ID, SimWorld

OURS = f"{BASE_URL}/clients/31"
ASKED = f"{HARBOR}/tenant/incoming-payments/in-1"


def changing_world(*, keyless: bool) -> SimWorld:
    """Return the first world that changes its identity and begins like that."""
    for seed in range(1, 200):
        world = SimWorld(seed, only=identities.ONLY)
        if world.changing is not None and world.changing.keyless is keyless:
            return world
    raise LookupError("no such world")


def asked(world: SimWorld, kid: str, *, client: str, made_by: str) -> list[str]:
    """Have `client` ask with this key for a payment of another's; return what was caught."""
    at = world.network.state
    grant = books.Grant("g", "harbor", client, None, [], "c", BEGINNING, books.GrantState.ISSUED)
    at.grants["g"] = grant
    at.tokens["secret"] = books.Token("secret", "m", "g", moment(1_000_000))
    none = at.accounts[SHOP].money(0)
    at.incoming["in-1"] = books.IncomingPayment(
        "in-1", "harbor", SHOP, none, none, False, BEGINNING, moment(1_000_000), None, made_by
    )
    signed = {"Signature-Input": f'sig1=();keyid="{kid}";created=1', "Authorization": "GNAP secret"}
    world.identities.sending(Request("GET", ASKED, signed))
    return [each.check for each in world.violations]


def test_a_fifth_of_the_storms_changes_and_no_other_world() -> None:
    drawn = [identities.drawn(seed, "storm") for seed in range(1, 400)]
    found = [each for each in drawn if each is not None]
    assert 50 < len(found) < 110
    assert {each.keyless for each in found} == {True, False}
    assert {state for each in found for _, state, _ in each.changes} == set(identities.STATES)
    assert {what for each in found for what, _, _ in each.changes} == set(identities.CHANGES)
    assert identities.drawn(1, "calm", always=True) is None
    assert identities.drawn(1, "storm", always=True) is not None


def test_a_key_signs_once_each_copy_of_our_document_shows_it() -> None:
    world = changing_world(keyless=True)
    checks = world.identities
    checks._keys = [(0, frozenset({"old"})), (100_000, frozenset({"old", SERVICE_KEY_ID}))]
    world.scheduler.now = 130_000
    assert asked(world, SERVICE_KEY_ID, client=OURS, made_by=OURS) == ["our_key_is_shown"]
    world.violations.clear()
    world.scheduler.now = 161_000
    assert asked(world, SERVICE_KEY_ID, client=OURS, made_by=OURS) == []


def test_a_wallet_reads_our_keys_from_a_copy_and_not_while_our_host_is_gone() -> None:
    world = changing_world(keyless=True)
    assert world.changing is not None
    world.changing = replace(world.changing, down_from=None)
    keys = json.loads(world.identities.fetch(f"{OURS}/jwks.json"))["keys"]
    assert [each["kid"] for each in keys] == [SERVICE_KEY_ID]
    assert json.loads(world.identities.fetch(OURS))["assetCode"] == world.swarm.asset[0]
    with pytest.raises(OSError, match="no such client"):
        world.identities.fetch(f"{BASE_URL}/clients/32/jwks.json")
    world.changing = replace(world.changing, down_from=0)
    with pytest.raises(OSError, match="cannot be reached"):
        world.identities.fetch(OURS)


def test_a_shop_changes_its_client_and_its_wallet() -> None:
    world = changing_world(keyless=False)
    done: list[Any] = []

    def act() -> None:
        changes = (identities.KEYLESS, identities.WALLET, identities.KEY_FILE)
        done.extend(world.operator._change(what) for what in changes)

    world.faults.off()
    world.scheduler.spawn("operator", act)
    world.scheduler.run(until=600_000)
    assert done == [True, True, True]
    known = world.identities._known
    assert known[0] == (SHOP, SHOP)
    assert known[1] == (OURS, SHOP)
    assert {wallet for number, (_, wallet) in known.items() if number > 1} == {MARKET}
    assert not world.violations
