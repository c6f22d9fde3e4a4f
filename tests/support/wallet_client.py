"""A small Open Payments client for the sandbox's tests: it signs, sends and keeps the answers.

It shares no code with the product's client, so that a mistake of that client shows in the tests of
the servers.
"""

from __future__ import annotations

import base64
import hashlib
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from open_payments.transports import Request, Response
from sandbox.wallets.clients import no_fetch
from sandbox.wallets.defaults import default_network
from sandbox.wallets.network import Network
from sandbox.wallets.provider import Rules

CEDAR = "https://localhost:4101"
HARBOR = "https://localhost:4201"
SHOP = f"{HARBOR}/shop"
ALICE = f"{CEDAR}/alice"
FINISH = "https://checkout.example/return?order=42"
KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY_ID = "shop-key"


class Clock:
    """Simulated time, from a fixed moment."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def jwk(key: Ed25519PrivateKey = KEY, kid: str = KEY_ID) -> dict[str, str]:
    x = base64.urlsafe_b64encode(key.public_key().public_bytes_raw()).rstrip(b"=").decode()
    return {"kid": kid, "alg": "EdDSA", "kty": "OKP", "crv": "Ed25519", "x": x}


def compact(body: Any) -> bytes:
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False).encode()


def signed(
    method: str,
    url: str,
    body: bytes | None = None,
    token: str | None = None,
    *,
    key: Ed25519PrivateKey = KEY,
    kid: str = KEY_ID,
    label: str = "sig1",
    digested: bytes | None = None,
    algorithm: str = "sha512",
    covered: tuple[str, ...] | None = None,
    signed_url: str | None = None,
    created: int = 1_790_000_000,
    kind: str = "GNAP",
) -> Request:
    """Return a signed request; the keyword arguments introduce faults."""
    headers = {"accept": "application/json"}
    if token is not None:
        headers["authorization"] = f"{kind} {token}"
    if body is not None:
        digest = hashlib.new(algorithm, body if digested is None else digested).digest()
        name = algorithm.replace("sha", "sha-")
        headers["content-digest"] = f"{name}=:{base64.b64encode(digest).decode()}:"
        headers["content-length"] = str(len(body))
        headers["content-type"] = "application/json"
    values = {"@method": method, "@target-uri": signed_url or url, **headers}
    names = covered or tuple(name for name in values if name != "accept")
    listed = " ".join(f'"{name}"' for name in names)
    parameters = f'({listed});keyid="{kid}";created={created}'
    base = [*(f'"{name}": {values[name]}' for name in names), f'"@signature-params": {parameters}']
    signature = base64.b64encode(key.sign("\n".join(base).encode())).decode()
    headers["signature-input"] = f"{label}={parameters}"
    headers["signature"] = f"{label}=:{signature}:"
    return Request(method, url, headers, body)


@dataclass
class World:
    """A default network with simulated time, the shop's key registered, and shortcuts."""

    rules: Rules | None = None
    fetch: Callable[[str], bytes] = no_fetch  # of documents at other hosts
    clock: Clock = field(default_factory=Clock)
    slept: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        randomness = random.Random(7)
        self.network: Network = default_network(
            self.clock,
            randomness.randbytes,
            rules=self.rules,
            fetch=self.fetch,
            sleep=self.slept.append,
        )
        for wallet in (SHOP, f"{HARBOR}/shop-jpy", f"{HARBOR}/shop-kwd", f"{HARBOR}/shop-scale9"):
            self.network.register_key(wallet, jwk())

    def send(self, request: Request) -> tuple[int, Any]:
        answer = self.network.handle(request)
        return answer.status, content(answer)

    def call(
        self, method: str, url: str, body: Any = None, token: str | None = None, **wrong: Any
    ) -> tuple[int, Any]:
        raw = None if body is None else compact(body)
        return self.send(signed(method, url, raw, token, **wrong))

    def wallet(self, url: str) -> dict[str, Any]:
        status, document = self.send(Request("GET", url, {"accept": "application/json"}))
        assert status == 200
        return dict(document)

    def grant(self, wallet: str, kind: str, *actions: str, client: Any = SHOP) -> dict[str, Any]:
        body = {
            "access_token": {"access": [{"type": kind, "actions": list(actions)}]},
            "client": client,
        }
        status, answer = self.call("POST", self.wallet(wallet)["authServer"], body)
        assert status == 200, answer
        return dict(answer)

    def shop_token(self, shop: str = SHOP) -> str:
        """Return a new token for a shop's incoming payments."""
        grant = self.grant(
            shop, "incoming-payment", "create", "read", "complete", "list", client=shop
        )
        return str(grant["access_token"]["value"])

    def incoming_payment(self, shop: str, value: int, **more: Any) -> dict[str, Any]:
        merchant = self.wallet(shop)
        token = self.shop_token(shop)
        asset = {name: merchant[name] for name in ("assetCode", "assetScale")}
        amount = {"value": str(value), **asset}
        status, payment = self.call(
            "POST",
            f"{merchant['resourceServer']}/incoming-payments",
            {"walletAddress": shop, "incomingAmount": amount, **more},
            token,
        )
        assert status == 201, payment
        return {"token": token, **payment}

    def open_payment(self, shop: str) -> dict[str, Any]:
        """Make an incoming payment that takes any amount."""
        token, server = self.shop_token(shop), self.wallet(shop)["resourceServer"]
        body = {"walletAddress": shop}
        status, payment = self.call("POST", f"{server}/incoming-payments", body, token)
        assert status == 201, payment
        return {"token": token, **payment}

    def quote(self, customer: str, receiver: str, **more: Any) -> tuple[int, Any]:
        grant = self.grant(customer, "quote", "create", "read")
        return self.call(
            "POST",
            f"{self.wallet(customer)['resourceServer']}/quotes",
            {"walletAddress": customer, "receiver": receiver, "method": "ilp", **more},
            grant["access_token"]["value"],
        )

    def ask(self, customer: str, limits: Mapping[str, Any], finish: str | None = FINISH) -> Any:
        """Request an interactive grant for one outgoing payment; it is not approved yet."""
        interact: dict[str, Any] = {"start": ["redirect"]}
        if finish is not None:
            interact["finish"] = {"method": "redirect", "uri": finish, "nonce": "client-nonce"}
        item = {
            "type": "outgoing-payment",
            "actions": ["create", "read", "list"],
            "identifier": customer,
            "limits": limits,
        }
        body = {"access_token": {"access": [item]}, "interact": interact, "client": SHOP}
        status, answer = self.call("POST", self.wallet(customer)["authServer"], body)
        assert status == 200, answer
        return answer

    def approved(self, customer: str, limits: Mapping[str, Any]) -> dict[str, Any]:
        """Return the continuation's answer after the customer has approved in time."""
        pending = self.ask(customer, limits)
        ref = self.approved_reference(pending)
        self.clock.pass_(pending["continue"]["wait"])
        status, answer = self.proceed(pending, ref)
        assert status == 200, answer
        return dict(answer)

    def approved_reference(self, pending: Mapping[str, Any]) -> str:
        """Approve as the customer; return the callback's interact_ref."""
        return callback(self.network.approve(pending["interact"]["redirect"]))["interact_ref"]

    def proceed(self, pending: Mapping[str, Any], ref: str | None, **wrong: Any) -> tuple[int, Any]:
        body = None if ref is None else {"interact_ref": ref}
        onward = pending["continue"]
        return self.call("POST", onward["uri"], body, onward["access_token"]["value"], **wrong)

    def pay(self, customer: str, shop: str, value: int) -> Payment:
        """Make every step from the incoming payment to the outgoing one."""
        incoming = self.incoming_payment(shop, value)
        status, quote = self.quote(customer, incoming["id"])
        assert status == 201, quote
        limits = {"receiver": incoming["id"], "debitAmount": quote["debitAmount"]}
        token = self.approved(customer, limits)["access_token"]["value"]
        status, outgoing = self.pay_quote(customer, quote, token)
        return Payment(self, incoming, quote, token, status, outgoing)

    def pay_quote(self, customer: str, quote: Mapping[str, Any], token: str) -> tuple[int, Any]:
        body = {"walletAddress": customer, "quoteId": quote["id"]}
        server = self.wallet(customer)["resourceServer"]
        return self.call("POST", f"{server}/outgoing-payments", body, token)

    def balance(self, wallet: str) -> int:
        return self.network.state.accounts[wallet].balance


@dataclass
class Payment:
    """The parts of one payment."""

    world: World
    incoming: dict[str, Any]
    quote: dict[str, Any]
    token: str
    status: int
    outgoing: dict[str, Any]

    @property
    def url(self) -> str:
        return str(self.quote["id"].replace("/quotes/", "/outgoing-payments/"))

    def sent(self) -> dict[str, Any]:
        return dict(self.world.call("GET", self.url, token=self.token)[1])

    def received(self) -> dict[str, Any]:
        answer = self.world.call("GET", self.incoming["id"], token=self.incoming["token"])
        return dict(answer[1])


def content(answer: Response) -> Any:
    if not answer.body:
        return None
    if answer.headers["content-type"].startswith("application/json"):
        return json.loads(answer.body)
    return answer.body.decode()


def callback(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}
