"""A test stage and another one, side by side: nothing of one is anything to the other.

Keys and ids of both are mixed at random at the doors of the API, and addresses of wallets at the
guard before every request to a wallet.
"""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any, Final

import pytest

from checkout.adapters.outbound.wallets import StageTransport
from checkout.flows.merchant.api_keys import new_key
from open_payments.errors import NotSent
from open_payments.transports import Request, Response
from tests.support.basics import seeded
from tests.support.merchant_api import PREFIX, SESSIONS, MerchantApi, a_body
from tests.support.services import put_key

pytestmark = pytest.mark.untraced

CALLS: Final = 10_000
OWN: Final = "https://test.example/test-wallets"
MARK: Final = {"test": r"cs_test_[0-9A-Za-z]{22}", "live": r"cs_[0-9A-Za-z]{22}"}
KEY: Final = {"test": "sk_test_", "live": "sk_live_"}


class Stage:
    """The API of a stage over tables of its own, with a new key, and the sessions made there."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.api = MerchantApi()
        seed = 7 if kind == "test" else 8
        self.api.services = replace(
            self.api.services,
            test_wallets=OWN if kind == "test" else "",
            random_bytes=seeded(seed),
        )
        merchant = self.api.services.merchants.get("mer_1")
        assert merchant is not None
        made = new_key(self.api.services, merchant, name="Server")
        put_key(self.api.dynamo, PREFIX, made.key)
        self.key = made.plain
        self.sessions: list[str] = []

    def create(self) -> str:
        answer = self.api.post(SESSIONS, a_body(), key=self.key)
        found: str = answer.json["id"]
        assert re.fullmatch(MARK[self.kind], found)
        self.sessions.append(found)
        return found


class Wire:
    """A transport that sends nothing."""

    def send(self, request: Request, *, timeout: float) -> Response:
        return Response(200, {}, b"{}")


def test_no_key_id_or_wallet_of_one_stage_counts_at_the_other() -> None:
    chance = random.Random(52)
    stages = [Stage("live"), Stage("test")]
    for stage in stages:
        assert stage.key.startswith(KEY[stage.kind])
        for _ in range(5):
            stage.create()
    crossed: list[Any] = []
    for number in range(CALLS):
        here, there = chance.sample(stages, 2)
        if number % 2:
            crossed += at_a_wallet(chance, here)
        else:
            crossed += at_the_api(chance, here, there)
    assert crossed == []
    for here, there in (stages, stages[::-1]):
        assert not set(here.sessions) & set(there.sessions)
        listed = here.api.get(SESSIONS, {"limit": 100}, key=here.key).body
        assert all(each not in listed for each in there.sessions)


def at_the_api(chance: random.Random, here: Stage, there: Stage) -> list[Any]:
    """Call with the other stage's key or session, and return the call if it was let through."""
    session = chance.choice(there.sessions)
    foreign = chance.random() < 0.5
    key = there.key if foreign else here.key
    method, path, body = chance.choice(
        [
            ("GET", f"{SESSIONS}/{session}", None),
            ("POST", f"{SESSIONS}/{session}/cancel", None),
            ("POST", f"{SESSIONS}/{session}/give_up", None),
            ("GET", f"{SESSIONS}/{session}/attempts", None),
            ("GET", f"/api/checkout/refunds/re_{session[-22:]}", None),
            ("POST", SESSIONS, a_body()),
            ("GET", SESSIONS, None),
        ]
    )
    if not foreign and path == SESSIONS:  # one's own list and creation are no crossing
        path, method, body = f"{SESSIONS}/{session}", "GET", None
    send = here.api.get if method == "GET" else here.api.post
    options: dict[str, Any] = {} if method == "GET" else {"body": body}
    status = send(path, key=key, **options).status
    return [] if status == (401 if foreign else 404) else [(method, path, foreign, status)]


def at_a_wallet(chance: random.Random, here: Stage) -> list[Any]:
    """Ask a wallet of the other kind, written in some way; return the URL if it was sent."""
    name = chance.choice(["alice", "shop", "auth/grants", "incoming-payments/1", "x/jwks.json"])
    host = chance.choice(["test.example", "other.example", "pay.example", "wallet.example"])
    if here.kind == "live":
        marks = [
            "test-wallets",
            "Test-Wallets",
            "%74est-wallets",
            "test%2Dwallets",
            "a/test-wallets",
        ]
        url = f"https://{host}/{chance.choice(marks)}/{name}"
    else:
        marks = ["", "wallets/", "test-wallets-x/", "test-wallets/../", "test-wallets/%2e%2e/"]
        url = f"https://{host}/{chance.choice(marks)}{name}"
    guard = StageTransport(Wire(), here.api.services.test_wallets)
    try:
        guard.send(Request(chance.choice(["GET", "POST"]), url, {}), timeout=1)
    except NotSent:
        return []
    return [url]
