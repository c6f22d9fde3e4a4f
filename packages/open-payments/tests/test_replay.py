"""Whole payments as a running provider answered them, replayed through the client; and what goes
over the wire.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from client_script import START, Script, answer, header, identity, load

from open_payments.errors import Reason, Refused
from open_payments.interaction import Limits
from open_payments.models import (
    AccessToken,
    Amount,
    ClientIdentity,
    Continuation,
    Quote,
    WalletAddress,
)
from open_payments.protocol import Access, OpenPayments
from open_payments.transports import Request, Response

RECORDINGS = load("recordings.json")


class _Recording:
    """Serves the recorded answer only to the request that it was an answer to."""

    def __init__(self, name: str) -> None:
        self._exchanges = RECORDINGS[name]["exchanges"]
        self._at = 0
        self.bodies: list[tuple[Any, Any]] = []

    def at(self, step: str) -> Any:
        """Move to the next exchange of that name."""
        while self._exchanges[self._at]["step"] != step:
            self._at += 1
        return self._exchanges[self._at]

    def send(self, request: Request, *, timeout: float) -> Response:
        exchange = self._exchanges[self._at]
        self._at += 1
        assert (request.method, request.url) == (exchange["method"], exchange["url"])
        sent = None if request.body is None else json.loads(request.body)
        recorded = json.loads(exchange["request_body"]) if exchange["request_body"] else None
        self.bodies.append((sent, recorded))
        return answer(exchange["status"], exchange["response"])

    def client(self, me: ClientIdentity) -> OpenPayments:
        return OpenPayments(self, me, now=lambda: START, deadline=START + timedelta(seconds=60))


@pytest.mark.parametrize(
    ("name", "asked", "debit", "sent"),
    [
        ("cross-currency", Amount(2500, "USD", 2), Amount(2442, "EUR", 2), 2273),
        ("one-provider", Amount(1000, "USD", 2), Amount(1029, "EUR", 2), 910),
        ("yen", Amount(3500, "JPY", 0), Amount(2385, "EUR", 2), 2155),
    ],
)
def test_a_recorded_payment_is_understood_from_wallet_address_to_receipt(
    name: str, asked: Amount, debit: Amount, sent: int
) -> None:
    recording, told = _Recording(name), RECORDINGS[name]
    client = recording.client(identity(told["merchant"]))
    merchant = client.get_wallet_address(told["merchant"])
    wallet = client.get_wallet_address(told["customer"])
    assert (merchant.asset_code, merchant.asset_scale) == (asked.asset_code, asked.asset_scale)
    assert "merchant-key-1" in {key.kid for key in client.get_jwks(merchant.id)}

    token = client.request_grant(merchant.auth_server, Access.INCOMING_PAYMENT)
    assert token.expires_at == START + timedelta(seconds=600)
    incoming = client.create_incoming_payment(
        merchant.resource_server, token, amount=asked, expires_at=START
    )
    assert (incoming.incoming_amount, incoming.received.value) == (asked, 0)
    recording.at("grant: quote")

    quote_token = client.request_grant(wallet.auth_server, Access.QUOTE)
    quote = client.create_quote(wallet, quote_token, receiver=incoming.id, receive=asked)
    assert (quote.receive, quote.debit) == (asked, debit)
    assert quote.expires_at is not None
    assert quote.expires_at.tzinfo is UTC

    limits = Limits(receiver=incoming.id, debit_amount=quote.debit)
    pending = client.request_payment_grant(
        wallet,
        limits=limits,
        finish_uri="https://shop.example/checkout/return?order=42",
        nonce=told["nonce"],
    )
    assert pending.finish_nonce == told["hash"]["serverNonce"]
    assert pending.continuation.not_before == START + timedelta(seconds=5)
    approved = client.continue_grant(
        wallet,
        pending.continuation,
        interact_ref=told["hash"]["interactRef"],
        limits=limits,
    )
    payment = client.create_outgoing_payment(wallet, approved, quote=quote, receiver=incoming.id)
    assert client.outgoing_payment_url(wallet, quote.id) == payment.id
    for _ in range(2):
        payment = client.get_outgoing_payment(payment.id, approved)
        incoming = client.get_incoming_payment(incoming.id, token)
    assert (payment.sent.value, payment.failed) == (sent, False)
    assert (incoming.received, incoming.completed) == (asked, True)
    recording.at("complete incoming payment (already complete)")
    with pytest.raises(Refused) as caught:
        client.complete_incoming_payment(incoming.id, token)
    assert caught.value.reason is Reason.WRONG_STATE

    recording.at("list outgoing payments")
    page, _ = client.list_outgoing_payments(wallet, approved, first=3)
    assert page[0] == payment
    recording.at("rotate token")
    rotated = client.rotate_token(wallet.auth_server, approved)
    assert rotated.value != approved.value
    client.revoke_token(wallet.auth_server, rotated)
    client.cancel_grant(wallet.auth_server, pending.continuation)

    for ours, recorded in recording.bodies:
        assert _without_choices(ours) == _without_choices(recorded)


def _without_choices(body: Any) -> Any:
    """A body less what is a client's own choice: times, notes, further actions and limits."""
    if isinstance(body, dict):
        chosen = {"metadata", "expiresAt", "actions", "identifier"}
        kept = {key: value for key, value in body.items() if key not in chosen}
        if isinstance(kept.get("limits"), dict):
            kept["limits"] = {"debitAmount": kept["limits"]["debitAmount"]}
        return {key: _without_choices(value) for key, value in kept.items()}
    if isinstance(body, list):
        return [_without_choices(item) for item in body]
    return body


def test_a_rejected_approval_is_a_grant_that_is_gone() -> None:
    recording = _Recording("rejected")
    exchange = recording.at("continue after rejection")
    client = recording.client(identity())
    with pytest.raises(Refused) as caught:
        client.continue_grant(
            WalletAddress("https://localhost:3100/a", "EUR", 2, "https://localhost:3106/any", BASE),
            Continuation(exchange["url"], "token", START),
            interact_ref="none",
            limits=LIMITS,
        )
    assert caught.value.reason is Reason.GRANT_GONE


# The recorded requests of the reference client, call by call.

BASE = "https://op.example"
TENANT = f"{BASE}/cf5fd7d3-1eb1-4041-8e43-ba45747e9e5d"
WALLET = WalletAddress("https://wallet.example/alice", "EUR", 2, TENANT, TENANT)
TOKEN = AccessToken("tok", f"{BASE}/token/1")
CONTINUATION = Continuation(f"{BASE}/continue/1", "tok", START)
PAYMENT = f"{TENANT}/incoming-payments/1"
LIMITS = Limits(receiver=PAYMENT, debit_amount=Amount(1, "EUR", 2))
QUOTE = Quote("https://wallet.example/quotes/1", Amount(1, "EUR", 2), Amount(1, "EUR", 2), None)

# Two of the fourteen are not ours: polling a grant without `finish`, and reading an incoming
# payment as the public sees it.
OURS: dict[int, Callable[[OpenPayments], object]] = {
    0: lambda client: client.get_wallet_address(f"{BASE}/shop"),
    1: lambda client: client.request_grant(TENANT, Access.INCOMING_PAYMENT),
    2: lambda client: client.request_grant(BASE, Access.QUOTE),
    3: lambda client: client.continue_grant(
        WALLET, CONTINUATION, interact_ref="ref", limits=LIMITS
    ),
    5: lambda client: client.cancel_grant(BASE, CONTINUATION),
    6: lambda client: client.create_incoming_payment(
        TENANT, TOKEN, amount=Amount(100, "EUR", 2), expires_at=datetime(2026, 9, 1, tzinfo=UTC)
    ),
    7: lambda client: client.get_incoming_payment(PAYMENT, TOKEN),
    9: lambda client: client.complete_incoming_payment(PAYMENT, TOKEN),
    10: lambda client: client.list_outgoing_payments(WALLET, TOKEN, first=10),
    11: lambda client: client.get_grant_spent(WALLET, TOKEN),
    12: lambda client: client.rotate_token(BASE, TOKEN),
    13: lambda client: client.revoke_token(BASE, TOKEN),
}


@pytest.mark.parametrize("at", OURS)
def test_each_request_is_made_as_the_reference_client_makes_it(at: int) -> None:
    seen = load("wire-capture.json")["requests"][at]
    raw = seen["rawHeaders"]
    headers = {raw[i].lower(): raw[i + 1] for i in range(0, len(raw), 2)}
    script = Script(answer(418))
    with pytest.raises(Refused):
        OURS[at](script.client(identity=identity("https://wallet.example/shop")))
    [sent] = script.sent
    assert sent.method == seen["method"]
    assert sent.url == BASE + seen["target"]
    assert header(sent, "Accept") == headers["accept"]
    ours = {name.lower() for name in sent.headers}
    signed = {"authorization", "content-digest", "signature", "signature-input"}
    assert ours & signed == set(headers) & signed
    assert ("content-type" in ours) == (sent.body is not None) == bool(seen["body"])
    if "signature-input" in headers:
        covered = headers["signature-input"].partition(";")[0]
        assert header(sent, "Signature-Input").partition(";")[0] == covered
    if "authorization" in headers:
        assert header(sent, "Authorization") == headers["authorization"]
    if sent.body is not None:
        assert header(sent, "Content-Length") == str(len(sent.body))
        body = seen["body"].replace("http://127.0.0.1:46575", "https://wallet.example")
        recorded = json.loads(body)
        assert _without_choices(json.loads(sent.body)) == _without_choices(recorded)


def test_trap_08_a_payment_names_its_quote_and_never_amounts_of_its_own() -> None:
    script = Script(answer(418))
    with pytest.raises(Refused):
        script.client().create_outgoing_payment(WALLET, TOKEN, quote=QUOTE, receiver=PAYMENT)
    assert script.sent[0].body == (
        b'{"walletAddress":"https://wallet.example/alice","quoteId":"https://wallet.example/quotes/1"}'
    )


def test_trap_03_a_grant_at_a_bare_host_is_sent_and_signed_with_the_root_slash() -> None:
    script = Script(answer(418))
    with pytest.raises(Refused):
        script.client().request_grant("https://auth.example", Access.QUOTE)
    assert script.sent[0].url == "https://auth.example/"
