"""The sandbox gives the answers that a running Rafiki gave to the same requests.

The recordings are replayed in their order and at their times against two providers with the same
addresses. Objects whose creation was not recorded (a few tokens, payments, grants) are stored under
their recorded names; names that the sandbox chooses are learned from its answers. Errors must agree
in status, code, description and details; other answers in status and shape.
"""

from __future__ import annotations

import contextlib
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from open_payments.transports import Request, Response
from sandbox.wallets.interaction import NoRedirect
from sandbox.wallets.network import Network
from sandbox.wallets.provider import Provider, Rules
from sandbox.wallets.state import (
    Account,
    Grant,
    GrantState,
    IncomingPayment,
    Interaction,
    Money,
    Quote,
    Token,
)
from tests.support.wallet_client import Clock, compact, content, jwk, signed

DATA = Path(__file__).parent / "data"
MERCHANT = "https://localhost:4100/accounts/merchant"
JPY_MERCHANT = "https://localhost:4100/accounts/merchant-jpy"
ALICE = "https://localhost:3100/accounts/alice"
BROKE = "https://localhost:3100/accounts/broke"
FINISH = "https://shop.example/return"
OTHER_KEY = Ed25519PrivateKey.from_private_bytes(bytes(32))

NOT_APPLICABLE = {
    "grant: http:// sent and signed (useHttp)": "the sandbox serves its API over https alone",
}


def load(name: str) -> list[dict[str, Any]]:
    exchanges: list[dict[str, Any]] = json.loads((DATA / f"{name}.json").read_text("utf-8"))
    return exchanges


@dataclass
class Replay:
    """A network with the recording's addresses, and its names for recorded ids and tokens."""

    rules: Rules = field(default_factory=Rules)
    names: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.clock = Clock()
        merchants = Provider(
            "merchants",
            "Merchants",
            "https://localhost:4100",
            "https://localhost:4106",
            "cf5fd7d3-1eb1-4041-8e43-ba45747e9e5d",
            rules=self.rules,
        )
        customers = Provider(
            "customers",
            "Customers",
            "https://localhost:3100",
            "https://localhost:3106",
            "438fa74a-fa7d-4317-9ced-dde32ece1787",
            rules=self.rules,
        )
        self.network = Network(
            self.clock,
            random.Random(1).randbytes,
            providers=(merchants, customers),
            pages_origin="http://localhost:4000",
        )
        for url, name, code, scale, balance in (
            (MERCHANT, "Merchant USD", "USD", 2, 0),
            (JPY_MERCHANT, "Merchant JPY", "JPY", 0, 0),
            ("https://localhost:4100/accounts/carol", "Carol", "EUR", 2, 1_000_000),
            (ALICE, "Alice Customer", "EUR", 2, 1_000_000),
            (BROKE, "Broke Customer", "EUR", 2, 0),
        ):
            self.network.add_account(Account(url, name, code, scale, balance))
        for wallet in (MERCHANT, JPY_MERCHANT):
            self.network.register_key(wallet, jwk(kid="keyid-97a3a431-8ee1-48fc-ac85-70e2f5eba8e5"))
            self.network.register_key(wallet, jwk(kid="merchant-key-1"))

    # --- state from before the recordings ---

    def grant(self, provider: str, access: list[dict[str, Any]], token: str, **more: Any) -> Grant:
        """Add an issued grant with this access token."""
        grant = Grant(
            id=more.pop("id", self.network.new_id()),
            provider=provider,
            client=MERCHANT,
            jwk=None,
            access=access,
            continue_token=more.pop("continue_token", "none"),
            last_asked=more.pop("asked", datetime(2026, 1, 1, tzinfo=UTC)),
            state=more.pop("state", GrantState.ISSUED),
            **more,
        )
        self.network.state.grants[grant.id] = grant
        if token:
            value = Token(token, self.network.new_id(), grant.id, FAR)
            self.network.state.tokens[token] = value
        return grant

    def interaction(self, id_: str, nonce: str, **more: Any) -> Interaction:
        values = {"client_name": "Merchant USD", "client_uri": MERCHANT, "expires_at": FAR}
        values |= {"finish_uri": FINISH, "client_nonce": "nonce", "ref": "ref", **more}
        return Interaction(id_, nonce, **values)  # type: ignore[arg-type]

    def incoming(self, id_: str, **more: Any) -> str:
        usd = Money(1000, "USD", 2)
        values = {"metadata": {"orderId": "e"}, "client": MERCHANT, "completed": False, **more}
        now = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
        payment = IncomingPayment(
            id=id_,
            provider="merchants",
            wallet=MERCHANT,
            amount=usd,
            received=usd.with_value(0),
            created_at=now,
            expires_at=values.pop("expires_at", now + timedelta(hours=1)),
            **values,
        )
        self.network.state.incoming[id_] = payment
        return self.network.incoming_payment_url(payment)

    def quote(self, id_: str, receiver: str, expires_at: datetime | None = None) -> None:
        now = datetime(2026, 11, 20, 12, 30, tzinfo=UTC)
        euro, usd = Money(1038, "EUR", 2), Money(1000, "USD", 2)
        self.network.state.quotes[id_] = Quote(
            id_, "customers", ALICE, receiver, euro, usd, 10, now, expires_at or FAR, MERCHANT
        )

    # --- the replay ---

    def request(self, recorded: dict[str, Any]) -> Request:
        """Return the recorded request with this network's names, signed anew with its faults."""
        url = self.translated(recorded["url"])
        raw = recorded.get("body")
        body = None if raw is None else self.body(raw)
        kind, _, token = self.translated(recorded.get("authorization", "")).partition(" ")
        if "signature_input" not in recorded:
            headers = {"accept": "application/json"}
            if body is not None:
                headers["content-type"] = "application/json"
            if token:
                headers["authorization"] = f"{kind} {token}"
            return Request(recorded["method"], url, headers, body)
        label, _, parameters = recorded["signature_input"].partition("=")
        fault = recorded.get("fault")
        digested = {
            "other": lambda: b"{}",
            "compact": lambda: compact(json.loads(body or b"")),
        }.get(recorded.get("digest_of", ""), lambda: None)()
        request = signed(
            recorded["method"],
            url,
            body,
            token or None,
            kind=kind,
            key=OTHER_KEY if fault == "other key" else KEY_OF_REPLAY,
            kid=re.findall(r'keyid="([^"]*)"', parameters)[0],
            label=label,
            digested=digested,
            algorithm=recorded.get("digest_algorithm", "sha512"),
            covered=tuple(re.findall(r'"([^"]+)"', parameters.split(")")[0])),
            signed_url=url.replace("https://", "http://") if fault == "http url" else None,
            created=int(re.findall(r"created=(\d+)", parameters)[0]),
        )
        if fault == "spoilt":
            signature = request.headers["signature"]
            headers = {**request.headers, "signature": signature[:6] + "AAAAA" + signature[11:]}
            return Request(request.method, request.url, headers, request.body)
        return request

    def body(self, raw: str) -> bytes:
        text = self.translated(raw).replace("{20 KB}", "x" * 20_000)
        return re.sub(r'"x":"[^"]+"', f'"x":"{jwk()["x"]}"', text).encode()

    def translated(self, text: str) -> str:
        for recorded, ours in self.names.items():
            text = text.replace(recorded, ours)
        return text

    def learn(self, recorded: Any, ours: Any) -> None:
        """Remember this network's name of a recorded id, token, nonce or URL."""
        if isinstance(recorded, dict) and isinstance(ours, dict):
            for name in recorded.keys() & ours.keys():
                self.learn(recorded[name], ours[name])
        elif isinstance(recorded, list) and isinstance(ours, list):
            for one, other in zip(recorded, ours, strict=False):
                self.learn(one, other)
        elif isinstance(recorded, str) and isinstance(ours, str) and recorded != ours:
            theirs, mine = _names(recorded), _names(ours)
            if len(theirs) == len(mine):
                self.names.update(zip(theirs, mine, strict=True))

    def play(self, recorded: dict[str, Any]) -> Response:
        later = re.search(r"\+(\d+) ms", recorded["name"])
        milliseconds = timedelta(milliseconds=int(later[1]) if later else 0)
        self.clock.now = datetime.fromisoformat(recorded["at"]) + milliseconds
        request = self.request(recorded)
        if recorded["actor"] == "client" and "/interact/" not in recorded["url"]:
            return self.network.handle(request)
        path = re.sub(r"https://localhost:\d+", self.network.pages_origin, request.url)
        return self.network.handle_page(Request(request.method, path, request.headers))

    def choose(self, recorded: dict[str, Any]) -> None:
        """Make the customer's recorded choice, which the recorded wallet's own page reported."""
        _, interaction_id, nonce, choice = self.translated(recorded["url"]).split("/")
        url = f"{self.network.pages_origin}/interact/{interaction_id}/{nonce}"
        with contextlib.suppress(NoRedirect):
            (self.network.approve if choice == "accept" else self.network.decline)(url)


KEY_OF_REPLAY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
FAR = datetime(2027, 1, 1, tzinfo=UTC)


def _names(text: str) -> list[str]:
    uuid = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    return re.findall(rf"{uuid}|\b[0-9A-F]{{20}}\b|\b[0-9A-F]{{16}}\b", text)


def shape(value: Any) -> Any:
    """Return names and types, and the first element of a list; keep the client's metadata."""
    if isinstance(value, dict):
        return {
            name: inner if name == "metadata" else shape(inner)
            for name, inner in value.items()
            if name not in {"startCursor", "endCursor"}
        }
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return type(value).__name__


def check(recorded: dict[str, Any], answer: Response) -> None:
    actual = content(answer)
    assert answer.status == recorded["status"], actual
    if recorded["actor"] != "client":
        return
    expected = recorded["answer"]
    if expected is None:
        assert actual is None
    elif answer.status >= 400:
        if isinstance(actual, dict):
            # Rafiki also prints the client's whole key set here.
            expected["error"].get("details", {}).pop("clientKeys", None)
            known = actual["error"].get("details", {}).get("minSendAmount")
            if known:
                expected["error"]["details"]["minSendAmount"]["value"] = known["value"]
        assert actual == expected
        assert answer.headers.get("www-authenticate") == recorded.get("www-authenticate")
    else:
        expected = json.loads(json.dumps(expected).replace("{20 KB}", "x" * 20_000))
        if recorded["method"] == "GET" and "methods" in actual:
            # Ours may have been paid already, and then has no methods.
            assert actual.pop("methods") == [] or expected["methods"]
            del expected["methods"]
        assert shape(actual) == shape(expected)


# --- errors.json ---


def item(kind: str, *actions: str, **more: Any) -> list[dict[str, Any]]:
    return [{"type": kind, "actions": list(actions), **more}]


def limited(value: int, wallet: str = ALICE) -> list[dict[str, Any]]:
    limits = {"debitAmount": Money(value, "EUR", 2).json()}
    actions = ("create", "read", "list")
    return item("outgoing-payment", *actions, identifier=wallet, limits=limits)


def prepare_errors(replay: Replay) -> None:
    replay.grant(
        "merchants",
        item("incoming-payment", "create", "read", "complete", "list"),
        "1219A5BCECE1A7EF561F",
    )
    replay.grant("merchants", item("incoming-payment", "read"), "17E134DCB6F4394791A2")
    replay.grant("customers", item("quote", "create", "read"), "D95F99BD8A1B85311773")
    replay.grant("customers", limited(100), "3BD68CAEB7E3F6EA16F7")
    replay.grant("customers", limited(1038, BROKE), "BE1285416DD05915F7A7")
    replay.incoming("7f00f0a5-9947-41c9-9449-c5a84192e42a")
    paid = replay.incoming("e8dac208-f3bc-4d94-8bd6-f0f4114feb1f")
    unpaid = replay.incoming("257e276f-94df-4197-a151-ed26970c61d6")
    replay.quote("35caf6df-6d1b-43f4-9930-2aafc39d5ca4", paid)
    replay.quote("63dcf902-9245-4aed-8e56-d1026c8f3295", unpaid)
    pending = {"state": GrantState.PENDING, "asked": datetime(2026, 11, 20, 12, 35, 5, tzinfo=UTC)}
    for grant_id, token, interaction_id, nonce in (
        (
            "c124454c-8937-45e0-8b53-640bc29dc6c3",
            "82A07148E6A01D5EAFF5",
            "069c320d-55a6-4e25-bf6e-825b941f14a8",
            "DDD66A4F02402B31",
        ),
        (
            "afd75601-a1fc-421f-a5b3-18b0f0a5168a",
            "43D5A01A45C94058886B",
            "dd2519c2-f2f7-40ee-a529-8cd928cb87d0",
            "316365EEB7FE4A50",
        ),
    ):
        own = replay.interaction(interaction_id, nonce)
        more = {"id": grant_id, "continue_token": token, "interaction": own, **pending}
        replay.grant("customers", limited(1038), "", **more)


def approve_late(replay: Replay) -> None:
    """Make the customer's choice: the recording shows only the return."""
    url = "0aae75af-9db4-486d-9efc-9345d3a212f4/9E184C09C8310409"
    origin = replay.network.pages_origin
    back = replay.network.approve(f"{origin}/interact/{replay.translated(url)}")
    replay.names["4a0fea3a-a4fd-40af-8b96-582058774361"] = _names(back)[-1]


BEFORE: dict[str, Callable[[Replay], None]] = {
    "continue: good ref, faster than wait": approve_late,
}


def play_all(replay: Replay, recording: list[dict[str, Any]]) -> None:
    for recorded in recording:
        if recorded["name"] in NOT_APPLICABLE:
            continue
        if recorded["name"] in BEFORE:
            BEFORE[recorded["name"]](replay)
        if recorded["actor"] == "idp":
            replay.choose(recorded)
            continue
        answer = replay.play(recorded)
        replay.learn(recorded["answer"], content(answer))
        opened = recorded["actor"] == "browser" and recorded["status"] == 302
        if opened and "location" not in recorded:
            # Rafiki redirects the customer to the wallet's own page; ours is that page.
            assert answer.status == 200, recorded["name"]
            continue
        try:
            check(recorded, answer)
            if "location" in recorded:
                replay.learn(recorded["location"], answer.headers["location"])
                expected = re.sub(r"hash=[^&]+", "hash=…", replay.translated(recorded["location"]))
                assert re.sub(r"hash=[^&]+", "hash=…", answer.headers["location"]) == expected
        except AssertionError as error:
            raise AssertionError(f"{recorded['name']}: {error}") from error


def test_every_recorded_error_is_answered_as_recorded() -> None:
    replay = Replay()
    prepare_errors(replay)
    play_all(replay, load("recorded_errors"))


@pytest.mark.parametrize("name", ["payment", "local_payment", "jpy_payment", "rejection"])
def test_a_recorded_payment_is_answered_as_recorded(name: str) -> None:
    play_all(Replay(), load(f"recorded_{name}"))


# --- errors-expiry.json ---


def prepare_expiry(replay: Replay) -> None:
    now = datetime(2026, 11, 20, 12, 37, tzinfo=UTC)
    access, quotes = limited(1038), item("quote", "create", "read")
    incoming = item("incoming-payment", "create", "read", "complete", "list")
    for grant_id, token, ref in (
        (
            "144fd85b-5c36-4009-b069-88bc2acb351b",
            "4DEA56384E24ED92A238",
            "bc10e8db-c650-4b25-bd58-0cf33484deeb",
        ),
        (
            "18f05847-c88f-4652-beb8-1d2445558e36",
            "F072B64A03820358355D",
            "6987a0cc-5364-44a8-895f-9e433776dd66",
        ),
    ):
        own = replay.interaction("any", "any", ref=ref, expires_at=now, chosen=True)
        more = {"id": grant_id, "continue_token": token, "interaction": own}
        replay.grant("customers", access, "", state=GrantState.APPROVED, **more)
    late = replay.interaction(
        "fc363161-7855-4877-a901-5629db6ca8d4", "9E589382DA188A2F", expires_at=now
    )
    replay.grant("customers", access, "", state=GrantState.PENDING, interaction=late)
    receiver = replay.incoming("d43aa642-78b5-4be7-b609-038323a9617b")
    replay.incoming("665eb579-e8dc-4f68-8665-e2bd4bd5a2ad", expires_at=now)
    replay.quote("6812a288-0dc9-496c-b950-7d3d6fe93f62", receiver, now)
    replay.grant("customers", quotes, "1F5FBE73C579D8D23FD3")
    replay.network.state.tokens["1F5FBE73C579D8D23FD3"].expires_at = now
    replay.grant("customers", quotes, "4EB810F02F97B2A21C85")
    replay.grant("merchants", incoming, "7CB9DB9C867AF36F3500")
    expired = replay.network.state.tokens["7CB9DB9C867AF36F3500"]
    expired.expires_at, expired.manage_id = now, "fcc27643-2b07-4ce5-a7af-f58b55a23ff9"


def test_what_has_expired_is_answered_as_recorded() -> None:
    replay = Replay(Rules(token_life=timedelta(seconds=4)))
    prepare_expiry(replay)
    play_all(replay, load("recorded_expiry"))


def test_what_is_left_out_is_in_the_recordings() -> None:
    names = {recorded["name"] for recorded in load("recorded_errors")}
    assert NOT_APPLICABLE.keys() <= names
    assert BEFORE.keys() <= names
