"""Incoming payments, quotes and outgoing payments, beyond the cases of the recordings."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from open_payments.transports import Request
from sandbox.wallets.answers import timestamp
from sandbox.wallets.provider import Rules
from tests.support.wallet_client import ALICE, CEDAR, HARBOR, SHOP, World, signed


@pytest.mark.parametrize("path", ["/shop", "/shop/", "/SHOP", "/Shop/"])
def test_a_wallet_address_answers_with_its_canonical_id(world: World, path: str) -> None:
    assert world.wallet(HARBOR + path)["id"] == SHOP


@pytest.mark.parametrize(
    ("accept", "status"),
    [("application/json", 200), ("*/*", 200), ("text/html, */*;q=0.1", 200), ("text/html", 406)],
)
def test_a_wallet_address_is_json_or_nothing(world: World, accept: str, status: int) -> None:
    assert world.send(Request("GET", SHOP, {"Accept": accept}))[0] == status


def test_keys_and_unknown_wallets(world: World) -> None:
    status, answer = world.send(Request("GET", f"{SHOP}/jwks.json", {}))
    assert (status, [key["kid"] for key in answer["keys"]]) == (200, ["shop-key"])
    assert world.send(Request("GET", f"{HARBOR}/nobody", {}))[0] == 404
    assert world.send(Request("GET", f"{HARBOR}/nobody/jwks.json", {}))[0] == 404
    assert world.send(Request("GET", f"{HARBOR}/", {}))[0] == 404


def test_a_failed_payment_gives_its_part_of_the_limit_back(world: World) -> None:
    empty = f"{CEDAR}/no-funds"
    payment = world.pay(empty, SHOP, 2000)
    grant_url = f"{world.wallet(empty)['resourceServer']}/outgoing-payment-grant"
    _, answer = world.call("GET", grant_url, token=payment.token)
    assert answer["spentDebitAmount"]["value"] == "1854"
    world.clock.pass_(1)
    status, answer = world.call("GET", grant_url, token=payment.token)
    nothing = {
        "spentDebitAmount": {"value": "0", "assetCode": "EUR", "assetScale": 2},
        "spentReceiveAmount": {"value": "0", "assetCode": "USD", "assetScale": 2},
    }
    assert (status, answer) == (200, nothing)


def test_a_quote_can_be_paid_twice_only_where_the_provider_allows_it() -> None:
    for single_use, status in ((True, 400), (False, 201)):
        world = World(rules=Rules(single_use_quotes=single_use))
        incoming = world.incoming_payment(SHOP, 2000)
        _, quote = world.quote(f"{CEDAR}/late", incoming["id"])
        token = world.approved(f"{CEDAR}/late", {})["access_token"]["value"]
        assert world.pay_quote(f"{CEDAR}/late", quote, token)[0] == 201
        assert world.pay_quote(f"{CEDAR}/late", quote, token)[0] == status


def test_a_signed_get_is_needed_with_a_token_and_none_without(world: World) -> None:
    incoming = world.incoming_payment(SHOP, 2000)
    authorization = {"authorization": f"GNAP {incoming['token']}"}
    assert world.send(Request("GET", incoming["id"], authorization))[0] == 401
    status, public = world.send(Request("GET", incoming["id"], {}))
    assert status == 200
    assert public.keys() == {"receivedAmount", "authServer"}


def test_an_unpaid_incoming_payment_vanishes_and_a_partly_paid_one_stays(world: World) -> None:
    soon = timestamp(world.clock.now + timedelta(seconds=60))
    unpaid = world.incoming_payment(SHOP, 2000, expiresAt=soon)
    part = world.incoming_payment(SHOP, 2000, expiresAt=soon)
    usd = {"value": "500", "assetCode": "USD", "assetScale": 2}
    _, quote = world.quote(ALICE, part["id"], receiveAmount=usd)
    token = world.approved(ALICE, {})["access_token"]["value"]
    assert world.pay_quote(ALICE, quote, token)[0] == 201
    world.clock.pass_(60)
    for url in (unpaid["id"], unpaid["id"] + "/complete"):
        method = "POST" if url.endswith("complete") else "GET"
        status, answer = world.call(method, url, token=unpaid["token"])
        assert (status, answer["error"]["description"]) == (401, "Unauthorized")
    status, answer = world.call("GET", part["id"], token=part["token"])
    assert (status, answer["completed"], answer["methods"]) == (200, False, [])
    assert world.call("POST", part["id"] + "/complete", token=part["token"])[0] == 409


def test_a_quote_lives_five_minutes_or_as_long_as_its_receiver(world: World) -> None:
    soon = timestamp(world.clock.now + timedelta(seconds=60))
    short = world.incoming_payment(SHOP, 2000, expiresAt=soon)
    assert world.quote(ALICE, short["id"])[1]["expiresAt"] == short["expiresAt"]
    long = world.incoming_payment(SHOP, 2000)
    expected = timestamp(world.clock.now + timedelta(minutes=5))
    assert world.quote(ALICE, long["id"])[1]["expiresAt"] == expected


def listed(world: World, token: str, **query: Any) -> tuple[int, Any]:
    pairs = "".join(f"&{name}={value}" for name, value in query.items())
    server = world.wallet(SHOP)["resourceServer"]
    wallet = "https%3A%2F%2Flocalhost%3A4201%2Fshop"
    return world.call(
        "GET", f"{server}/incoming-payments?wallet-address={wallet}{pairs}", None, token
    )


def test_lists_are_paged_newest_first_both_ways(world: World) -> None:
    made = [world.incoming_payment(SHOP, 100 + index) for index in range(5)]
    ids = [payment["id"].rsplit("/", 1)[1] for payment in reversed(made)]
    token = made[0]["token"]

    def page(**query: Any) -> tuple[list[str], bool, bool]:
        _, answer = listed(world, token, **query)
        found = [item["id"].rsplit("/", 1)[1] for item in answer["result"]]
        pagination = answer["pagination"]
        assert pagination["startCursor"] == found[0]
        assert pagination["endCursor"] == found[-1]
        return found, pagination["hasNextPage"], pagination["hasPreviousPage"]

    assert page() == (ids, False, False)
    assert page(first=2) == (ids[:2], True, False)
    assert page(first=2, cursor=ids[1]) == (ids[2:4], True, True)
    assert page(first=9, cursor=ids[3]) == (ids[4:], False, True)
    assert page(last=2, cursor=ids[3]) == (ids[1:3], True, True)
    assert page(last=9, cursor=ids[1]) == (ids[:1], True, False)


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"first": 0}, 400),
        ({"first": 101}, 400),
        ({"last": "x"}, 400),
        ({"cursor": "unknown"}, 404),
    ],
)
def test_a_page_that_cannot_be_is_refused(world: World, query: Any, status: int) -> None:
    token = world.incoming_payment(SHOP, 100)["token"]
    assert listed(world, token, **query)[0] == status


def test_a_list_needs_its_wallet_address(world: World) -> None:
    token = world.incoming_payment(SHOP, 100)["token"]
    server = world.wallet(SHOP)["resourceServer"]
    assert world.call("GET", f"{server}/incoming-payments", None, token)[0] == 400


def test_a_provider_without_lists_has_none() -> None:
    world = World(rules=Rules(lists=False))
    token = world.incoming_payment(SHOP, 100)["token"]
    assert listed(world, token)[0] == 404


@pytest.mark.parametrize(
    ("content_type", "raw", "status"),
    [
        ("text/plain", b"{}", 415),
        ("application/json", b"[]", 400),
        ("application/json", b'"x"', 400),
        ("application/json", b"{" + b" " * 1_100_000 + b"}", 413),
    ],
)
def test_a_body_that_is_no_json_object_is_refused(
    world: World, content_type: str, raw: bytes, status: int
) -> None:
    server = world.wallet(SHOP)["resourceServer"]
    request = signed("POST", f"{server}/incoming-payments", raw, "TOKEN")
    headers = {**request.headers, "content-type": content_type}
    assert world.send(Request("POST", request.url, headers, raw))[0] == status


def test_metadata_comes_back_as_it_went(world: World) -> None:
    metadata = {"description": "Café, 2 thés à 3 € 😀", "n": 1, "nested": {"a": [True, None, 1.5]}}
    assert world.incoming_payment(SHOP, 100, metadata=metadata)["metadata"] == metadata
