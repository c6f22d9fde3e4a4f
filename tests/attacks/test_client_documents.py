"""Attacks on the client documents, which strangers read without a key and wallets believe.

Names that pretend or carry scripts, other ids and paths, methods, headers, enumeration, floods, and
the private keys.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import pytest

from checkout.domain.merchant.record import Merchant, private_key_place
from checkout.flows.merchant import setup
from sandbox.wallets.state import Account
from tests.attacks.texts import HIDDEN, SCRIPTS
from tests.support.flows import HARBOR, World, client_id
from tests.support.keys import new_key_pair
from tests.support.merchant_api import Answer, MerchantApi

BASE: Final = "https://pay.example"
UNKNOWN: Final = "33" * 22
BOTH: Final = ("", "/jwks.json")


class Place:
    """The function `api` over a world with a keyless merchant, and one that has a key file."""

    def __init__(self) -> None:
        self.world = World()
        self.world.core = replace(self.world.core, base_url=BASE)
        self.world.services = replace(self.world.services, base_url=BASE)
        self.merchant = self.world.join_without_key(f"{HARBOR}/shop-jpy").merchant
        self.file = self.world.merchant
        self.api = MerchantApi()
        self.api.services = self.world.core
        self.api.documents = replace(self.world.core, merchants=self.world.documents)
        self.client, self.of_file = client_id(self.merchant.id), client_id(self.file.id)
        self.world.forget()

    def read(
        self, path: str, method: str = "GET", headers: Mapping[str, str] | None = None, **more: Any
    ) -> Answer:
        return self.api.send(method, f"/clients/{path}", headers=headers, key=None, **more)

    def join(self, name: str, public_name: str = "Wallet") -> Merchant:
        """Set up another merchant without a key file."""
        wallet = f"{HARBOR}/another"
        self.world.network.add_account(Account(wallet, public_name, "USD", 2, 0))
        return setup.set_up(self.world.services, setup.NewMerchant(name, wallet)).merchant


@pytest.fixture
def place() -> Place:
    return Place()


def assert_nothing_there(answer: Answer, *asked: str) -> None:
    assert (answer.status, answer.code) == (404, "resource_missing"), (answer, asked)
    assert answer.headers["cache-control"] == "no-store"
    assert "location" not in answer.headers
    assert not any(each in answer.body for each in asked if len(each) > 3)


# --- names


@pytest.mark.parametrize("name", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("of_wallet", [False, True])
def test_no_name_with_hidden_characters_gets_a_document(
    place: Place, name: str, of_wallet: bool
) -> None:
    given = ("", name) if of_wallet else (name, "Wallet")
    with pytest.raises(setup.SetupRefused):
        place.join(*given)
    assert "transact_write_items" not in place.world.aws_calls()


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_name_is_one_string_of_the_document_whatever_it_says(place: Place, name: str) -> None:
    merchant = place.join(name)
    answer = place.read(client_id(merchant.id))
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.json == {
        "id": f"{BASE}/clients/{client_id(merchant.id)}",
        "publicName": name,
        "assetCode": "USD",
        "assetScale": 2,
        "authServer": merchant.auth_server,
        "resourceServer": merchant.resource_server,
    }
    assert set(place.read(f"{client_id(merchant.id)}/jwks.json").json) == {"keys"}


# --- ids and paths


def tricks(client: str, other: str) -> dict[str, str]:
    """Return paths that could be taken for the document of `client` by a careless reader."""
    return {
        "the merchant's id": "",
        "upper case": "4A" + client[2:],
        "prefix in digits": "6d65725f" + client,
        "one letter less": client[:-1],
        "one letter more": client + "0",
        "two letters less": client[:-2],
        "other digits": "".join(f"{ord(each):03o}" for each in client),
        "prefix": f"mer_{client}",
        "slash in digits": client[:-2] + "2f",
        "not in any alphabet": "ff" * 22,
        "space": client + " ",
        "encoded space": client + "%20",
        "new line": client + "\n",
        "encoded new line": client + "%0a",
        "nothing": client + "\0",
        "encoded nothing": client + "%00",
        "slash": client + "/",
        "two slashes": "/" + client,
        "dot": f"./{client}",
        "encoded dot": f"%2e/{client}",
        "up": f"{other}/../{client}",
        "encoded up": f"{other}%2f..%2f{client}",
        "encoded twice": f"{other}%252f..%252f{client}",
        "backslash": f"{other}\\..\\{client}",
        "out": "../api/checkout/sessions",
        "parameter": f"{client};a=b",
        "two ids": f"{client},{other}",
        "wide digits": "\uff11" * 44,
        "guard of a wallet": f"wallet:{HARBOR}/shop-jpy",
        "encoded guard": f"wallet:{HARBOR}/shop-jpy".replace("/", "%2f"),
        "well known": ".well-known/jwks.json",
        "file in capitals": f"{client}/JWKS.JSON",
        "file with a slash": f"{client}/jwks.json/",
        "more of the file": f"{client}/jwks.json/private",
        "another file": f"{client}/private.pem",
        "incoming payments": f"{client}/incoming-payments",
        "not an id": "__proto__",
        "long": "x" * 8000,
        "surrogate": client + "\ud800",
    }


@pytest.mark.parametrize("trick", tricks("31", ""))
def test_no_other_path_is_a_document(place: Place, trick: str) -> None:
    path = tricks(place.client, place.of_file)[trick] or place.merchant.id
    for rest in BOTH:
        answer = place.read(path + rest)
        if trick == "surrogate":  # no request at all
            assert answer.status == 400
        else:
            assert_nothing_there(answer, path)


@pytest.mark.parametrize("rest", BOTH)
def test_a_query_asks_for_nobody_else(place: Place, rest: str) -> None:
    other = place.join("Other")
    own = place.read(place.client + rest).json
    for query in (f"merchant_id={other.id}", f"id={other.id}&d=1", "private=true", "%00"):
        assert place.read(place.client + rest, query=query).json == own
        assert_nothing_there(place.read(UNKNOWN + rest, query=query), other.id)


# --- methods


@pytest.mark.parametrize(
    "method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"]
)
@pytest.mark.parametrize("rest", BOTH)
def test_nothing_is_changed_there(place: Place, method: str, rest: str) -> None:
    before = place.world.core.merchants.get(place.merchant.id)
    raw = json.dumps({"publicName": "Bank", "keys": []}).encode()
    assert place.read(place.client + rest, method, raw=raw).status == 405
    assert place.world.core.merchants.get(place.merchant.id) == before


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override"])
def test_a_header_is_no_method(place: Place, header: str) -> None:
    answer = place.read(place.client, headers={header: "DELETE"})
    assert answer.status == 200
    assert place.world.core.merchants.get(place.merchant.id) == place.merchant


# --- headers


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example"},
        {"X-Forwarded-Host": "evil.example", "X-Forwarded-Proto": "http"},
        {"Forwarded": "host=evil.example;proto=http"},
        {"X-Original-URL": "/clients/" + UNKNOWN, "X-Rewrite-URL": "/clients/" + UNKNOWN},
        {"Origin": "https://evil.example", "Cookie": "session=evil"},
        {"Authorization": "Bearer sk_" + "0" * 43},
        {"Range": "bytes=0-3", "If-Range": "*"},
        {"If-None-Match": "*", "If-Modified-Since": "Thu, 01 Jan 2099 00:00:00 GMT"},
        {"X-Huge": "x" * 100_000},
        {f"X-{number}": "evil.example" for number in range(500)},
    ],
    ids=lambda headers: next(iter(headers)),
)
@pytest.mark.parametrize("rest", BOTH)
def test_no_header_changes_an_answer(place: Place, headers: dict[str, str], rest: str) -> None:
    plain = place.read(place.client + rest)
    answer = place.read(place.client + rest, headers=headers)
    assert (answer.status, answer.body) == (200, plain.body)
    assert but_the_request_id(answer) == but_the_request_id(plain)
    assert "evil" not in str(answer.headers)


@pytest.mark.parametrize(
    ("accept", "status"),
    [
        ("text/html", 406),
        ("application/jsonp", 406),
        ("text/html;x=application/json", 406),
        ("," * 100_000, 406),
        ("text/html," * 10_000, 406),
        ("application/json" * 5_000, 406),
        ("\x01", 406),
        ("application/json\r\nSet-Cookie: a=b", 406),
        ("text/html," * 10_000 + "*/*", 200),
        ("APPLICATION/JSON ; charset=utf-16", 200),
        ("application/json", 200),
        ("application/*", 200),
        ("text/html, */*;q=0.8", 200),
        ("", 200),
        ("\ud800", 400),
    ],
    ids=range(15),
)
@pytest.mark.parametrize("rest", BOTH)
def test_an_accept_header_chooses_json_or_nothing(
    place: Place, rest: str, accept: str, status: int
) -> None:
    answer = place.read(place.client + rest, headers={"Accept": accept})
    head = place.read(place.client + rest, "HEAD", {"Accept": accept})
    assert answer.status == head.status == status
    assert "set-cookie" not in answer.headers
    kept = "public, max-age=60" if status == 200 else "no-store"
    assert answer.headers["cache-control"] == head.headers["cache-control"] == kept
    assert status != 406 or answer.body == "This address returns only JSON."
    assert status != 200 or answer.headers["content-type"] == "application/json"


# --- enumeration and floods


def but_the_request_id(answer: Answer) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name != "request-id"}


def said(answer: Answer) -> Any:
    """Return what an error says, without what is of the request."""
    if not answer.body:
        return None
    error = answer.json["error"]
    return {name: value for name, value in error.items() if name != "request_id"}


@pytest.mark.parametrize("rest", BOTH)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
@pytest.mark.parametrize("accept", ["application/json", "text/html"])
def test_who_has_a_key_file_is_as_unknown_as_nobody(
    place: Place, rest: str, method: str, accept: str
) -> None:
    headers = {"Accept": accept}
    nobody = place.read(UNKNOWN + rest, method, headers)
    for known in (place.of_file, place.file.id):
        answer = place.read(known + rest, method, headers)
        assert answer.status == nobody.status
        assert said(answer) == said(nobody)
        assert but_the_request_id(answer) == but_the_request_id(nobody)


def test_a_flood_for_one_merchant_reads_once_a_minute(place: Place) -> None:
    for client, status in ((place.client, 200), (place.of_file, 404)):
        place.world.forget()
        for minute in (1, 2):
            for number in range(300):
                assert place.read(client + BOTH[number % 2]).status == status
            assert place.world.aws_calls() == ["get_item"] * minute
            place.world.clock.pass_time(61)


def test_a_flood_of_what_is_no_id_reads_nothing(place: Place) -> None:
    chance = random.Random(31)
    for _ in range(300):
        place.read(chance.randbytes(chance.choice((3, 10, 21, 22, 40))).hex())
    assert place.world.aws_calls() == []


def test_a_flood_of_unknown_ids_reads_each_once_and_pushes_nobody_out(place: Place) -> None:
    for rest in BOTH:
        assert place.read(place.client + rest).status == 200
    place.world.forget()
    for number in range(1_100):  # more than the merchants that are remembered
        assert place.read(client_id(f"mer_{number:022}")).status == 404
    assert place.world.aws_calls() == ["get_item"] * 1_100
    place.world.forget()
    assert place.read(place.client).status == 200
    assert place.world.aws_calls() == []


# --- wallets of others


@pytest.mark.parametrize(
    "typed", ["{}", "{}/", "$", "SHOP-JPY"], ids=["as it is", "slash", "pointer", "capitals"]
)
def test_the_wallet_of_a_keyless_merchant_is_claimed_by_nobody(place: Place, typed: str) -> None:
    wallet = place.merchant.wallet_address
    forms = {
        "$": wallet.replace("https://", "$"),
        "SHOP-JPY": wallet.replace("shop-jpy", "SHOP-JPY"),
    }
    claimed = forms.get(typed) or typed.format(wallet)
    pem, jwk = new_key_pair("mine")
    place.world.network.register_key(wallet, jwk)
    for new in (
        setup.NewMerchant("Bank", claimed),
        setup.NewMerchant("Bank", claimed, "mine", pem),
    ):
        with pytest.raises(setup.SetupRefused):
            setup.set_up(place.world.services, new)
    assert place.world.core.merchants.find_by_wallet(wallet) == place.merchant
    assert place.read(place.client).json["publicName"] == "Shop"


# --- private keys


def test_no_answer_ever_has_a_private_key(place: Place) -> None:
    """After a rotation, a change to a key file, and back; sealed or not, in any notation."""
    world, merchant = place.world, place.merchant
    wallet = merchant.wallet_address
    pem, jwk = new_key_pair("file")
    world.network.register_key(wallet, jwk)
    ours = setup.NewMerchant("", wallet)
    for new in (ours, replace(ours, key_id="file", private_key_text=pem), ours):
        world.clock.pass_time(301)
        setup.replace_key(world.services, new)
    world.clock.pass_time(61)
    stored = world.core.merchants.get(merchant.id)
    assert stored is not None
    sealed = {each.private_key for each in stored.service_keys}
    sealed |= {each.private_key for each in stored.former} | {stored.private_key}
    assert len(sealed) == 3  # two of ours, and the file's
    secrets = {*sealed, pem.split("\n")[1]}
    for each in sealed:
        opened = world.vault.open(each, place=private_key_place(merchant.id))
        raw = base64.b64decode(opened)
        assert len(raw) == 32
        secrets |= {opened, opened.rstrip("="), raw.hex()}
        secrets.add(base64.urlsafe_b64encode(raw).decode().rstrip("="))
    answers = [
        place.read(f"{path}{rest}", method, {"Accept": accept})
        for path in (place.client, place.of_file, UNKNOWN, merchant.id)
        for rest in (*BOTH, "/private")
        for method in ("GET", "HEAD", "POST")
        for accept in ("application/json", "text/html", "*/*")
    ]
    assert sum(each.status == 200 for each in answers) == 8
    for answer in answers:
        told = answer.body + str(answer.headers)
        assert not [each for each in secrets if each in told]
    shown = place.read(f"{client_id(merchant.id)}/jwks.json").json["keys"]
    okp = {"alg": "EdDSA", "kty": "OKP", "crv": "Ed25519"}
    assert shown == [{"kid": each.key_id, **okp, "x": each.x} for each in stored.service_keys]
    assert len(shown) == 2
