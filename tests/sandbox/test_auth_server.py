"""Grants, continuation and tokens, beyond the cases of the recordings."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sandbox.wallets.network import Network
from sandbox.wallets.provider import Rules
from sandbox.wallets.state import GrantState
from tests.support.wallet_client import (
    ALICE,
    FINISH,
    HARBOR,
    SHOP,
    Clock,
    World,
    callback,
    compact,
    jwk,
    signed,
)

QUOTE = {"type": "quote", "actions": ["create"]}
STRANGER = Ed25519PrivateKey.from_private_bytes(b"\x07" * 32)


@pytest.mark.parametrize("root", [False, True], ids=["grant endpoint", "root, as before"])
def test_the_interaction_hash_binds_nonces_reference_and_the_servers(root: bool) -> None:
    world = World(rules=Rules(hash_over_root=root))
    pending = world.ask(ALICE, {})
    back = callback(world.network.approve(pending["interact"]["redirect"]))
    server = "https://localhost:4102/" if root else world.wallet(ALICE)["authServer"]
    bound = ("client-nonce", pending["interact"]["finish"], back["interact_ref"], server)
    digest = hashlib.sha256("\n".join(bound).encode()).digest()
    assert back["hash"] == base64.b64encode(digest).decode()


def test_the_hash_vectors_are_reproduced() -> None:
    path = Path(__file__).parent / "data" / "signature_vectors.json"
    vectors = json.loads(path.read_text("utf-8"))["interaction_hash"]
    assert len(vectors) == 3
    for vector in vectors:
        origin, _, tenant = vector["grant_endpoint"].removeprefix("https://").partition("/")
        world = World()
        cedar = world.network.providers["cedar"]
        rules = Rules(hash_over_root=not tenant)
        provider = replace(cedar, auth_origin=f"https://{origin}", tenant=tenant, rules=rules)
        world.ask(ALICE, {}, finish="https://checkout.example/cb/abc?session=1")
        world.network.providers["cedar"] = provider
        (grant,) = (each for each in world.network.state.grants.values() if each.interaction)
        assert grant.interaction is not None
        grant.interaction.nonce = vector["as_finish_nonce"]
        grant.interaction.client_nonce = vector["client_nonce"]
        grant.interaction.ref = vector["interact_ref"]
        url = f"http://x/interact/{grant.interaction.id}/{grant.interaction.nonce}"
        assert world.network.approve(url) == vector["callback_url_as_rafiki_sends"]


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        (FINISH, "https://checkout.example/return?order=42&result=grant_rejected"),
        ("https://x.example/", "https://x.example/?result=grant_rejected"),
        ("https://x.example/?result=a&b=%20#f", "https://x.example/?b=+&result=grant_rejected#f"),
    ],
)
def test_the_finish_uri_keeps_its_own_query(world: World, finish: str, expected: str) -> None:
    pending = world.ask(ALICE, {}, finish=finish)
    assert world.network.decline(pending["interact"]["redirect"]) == expected


def test_the_first_choice_counts(world: World) -> None:
    url = world.ask(ALICE, {})["interact"]["redirect"]
    assert callback(world.network.decline(url))["result"] == "grant_rejected"
    assert callback(world.network.approve(url))["result"] == "grant_rejected"


def test_a_continuation_is_only_for_the_client_that_asked(world: World) -> None:
    pending = world.ask(ALICE, {})
    world.network.register_key(f"{HARBOR}/bob", jwk(STRANGER, "strange"))
    status, answer = world.proceed(pending, "x", key=STRANGER, kid="strange")
    assert (status, answer["error"]["code"]) == (400, "invalid_client")
    status, answer = world.proceed(pending, "x", key=STRANGER)
    assert (status, answer["error"]["description"]) == (401, "invalid signature")


@pytest.mark.parametrize(
    ("rules", "client", "wanted"),
    [
        (Rules(client_objects=False), {"walletAddress": SHOP}, "string"),  # before 1.3
        (Rules(client_strings=False), SHOP, "object"),
    ],
)
def test_a_server_may_take_one_form_of_client_alone(
    rules: Rules, client: object, wanted: str
) -> None:
    world = World(rules=rules)
    body = {"access_token": {"access": [QUOTE]}, "client": client}
    status, answer = world.call("POST", world.wallet(ALICE)["authServer"], body)
    assert (status, answer["error"]["description"]) == (
        400,
        f"Received error validating OpenAPI request: body.client must be {wanted}",
    )


def test_a_grant_for_nothing_or_too_much_is_refused(world: World) -> None:
    server = world.wallet(ALICE)["authServer"]
    for access in ([QUOTE, QUOTE], [{**QUOTE, "actions": [name]} for name in ("a", "b", "c", "d")]):
        body = {"access_token": {"access": access}, "client": SHOP}
        assert world.call("POST", server, body)[0] == 400
    body = {"access_token": {"access": [{**QUOTE, "limits": {}}]}, "client": SHOP}
    status, answer = world.call("POST", server, body)
    assert status == 400
    assert "code" not in answer["error"]


SIX_FIELDS = {
    "id": "https://shop.example/wallet",
    "publicName": "Far Shop",
    "assetCode": "EUR",
    "assetScale": 2,
    "authServer": "https://auth.shop.example/",
    "resourceServer": "https://shop.example/op",
}


@pytest.mark.parametrize("lacks", SIX_FIELDS)
def test_a_client_whose_document_is_incomplete_may_ask_for_a_price_but_for_no_approval(
    lacks: str,
) -> None:
    document = {name: value for name, value in SIX_FIELDS.items() if name != lacks}
    documents = {
        "https://shop.example/wallet/jwks.json": {"keys": [jwk()]},
        "https://shop.example/wallet": document,
    }
    world = World()
    world.network = _with_fetch(world, lambda url: compact(documents[url]))
    body = {"access_token": {"access": [QUOTE]}, "client": "https://shop.example/wallet"}
    server = world.wallet(ALICE)["authServer"]
    assert world.call("POST", server, body)[0] == 200
    item = {"type": "outgoing-payment", "actions": ["create"], "identifier": ALICE}
    body = {
        "access_token": {"access": [item]},
        "client": "https://shop.example/wallet",
        "interact": {"start": ["redirect"]},
    }
    status, answer = world.call("POST", server, body)
    assert (status, answer["error"]["code"]) == (400, "invalid_client")
    assert answer["error"]["description"] == "missing required request field 'client'"


def test_a_client_elsewhere_is_looked_up_over_the_network() -> None:
    documents = {
        "https://shop.example/wallet/jwks.json": {"keys": [jwk()]},
        "https://shop.example/wallet": SIX_FIELDS,
    }
    asked: list[str] = []

    def fetch(url: str) -> bytes:
        asked.append(url)
        return compact(documents[url])

    world = World()
    world.network = _with_fetch(world, fetch)
    item = {"type": "outgoing-payment", "actions": ["create"], "identifier": ALICE}
    body = {
        "access_token": {"access": [item]},
        "client": "https://shop.example/wallet",
        "interact": {"start": ["redirect"]},
    }
    status, answer = world.call("POST", world.wallet(ALICE)["authServer"], body)
    assert status == 200
    assert "clientName=Far+Shop" in answer["interact"]["redirect"]
    assert set(asked) == set(documents)


@pytest.mark.parametrize("document", [b"{oops", b"[]", b'{"keys":1}', b'{"keys":[1]}', b"{}"])
def test_a_client_with_a_broken_document_is_unknown(document: bytes) -> None:
    world = World()
    world.network = _with_fetch(world, lambda _: document)
    body = {
        "access_token": {"access": [QUOTE]},
        "client": "https://shop.example/wallet",
    }
    status, answer = world.call("POST", world.wallet(ALICE)["authServer"], body)
    assert (status, answer["error"]["description"]) == (400, "could not determine client")


def _with_fetch(world: World, fetch: object) -> Network:
    assert callable(fetch)
    network = Network(
        world.clock,
        world.network.random_bytes,
        providers=world.network.providers.values(),
        fetch=fetch,
    )
    network.state = world.network.state
    return network


def test_polling_works_only_without_a_finish(world: World) -> None:
    pending = world.ask(ALICE, {}, finish=None)
    world.clock.pass_(5)
    status, answer = world.proceed(pending, None)
    assert (status, "access_token" in answer) == (200, False)
    (grant,) = (each for each in world.network.state.grants.values() if each.interaction)
    grant.state = GrantState.APPROVED
    assert world.proceed(pending, None)[1]["error"]["code"] == "too_fast"
    world.clock.pass_(5)
    assert "access_token" in world.proceed(pending, None)[1]


def test_the_wait_and_the_life_of_a_token_can_be_set() -> None:
    world = World(rules=Rules(wait=1, token_life=timedelta(seconds=30)), clock=Clock())
    pending = world.ask(ALICE, {})
    assert pending["continue"]["wait"] == 1
    assert world.grant(ALICE, "quote", "create")["access_token"]["expires_in"] == 30


def test_the_grant_endpoint_is_signed_as_it_is_called(world: World) -> None:
    server = world.wallet(ALICE)["authServer"]
    body = compact({"access_token": {"access": [QUOTE]}, "client": SHOP})
    assert world.send(signed("POST", f"{server}/", body))[0] == 200
    assert world.send(signed("POST", f"{server}/", body, signed_url=server))[0] == 401
    assert world.send(signed("POST", server, body, kid="other"))[0] == 400
