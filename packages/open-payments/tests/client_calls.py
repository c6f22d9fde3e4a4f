"""Each call of the client, with an answer that fits it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from client_script import ALICE, CONTINUATION, SHOP, START, TOKEN, money

from open_payments.interaction import Limits
from open_payments.models import Amount, Quote
from open_payments.protocol import Access, OpenPayments

ASKED = Amount(2500, "USD", 2)


DEBIT = Amount(2442, "EUR", 2)


RESOURCES = "https://shop.example/tenant"


RECEIVER = "https://shop.example/tenant/incoming-payments/1"


LIMITS = Limits(receiver=RECEIVER, debit_amount=DEBIT)


QUOTE = Quote("https://wallet.example/tenant/quotes/9", DEBIT, ASKED, None)


DOCUMENT = {
    "id": ALICE.id,
    "publicName": "Alice",
    "assetCode": "EUR",
    "assetScale": 2,
    "authServer": ALICE.auth_server,
    "resourceServer": ALICE.resource_server,
}


KEY = {"kid": "k", "kty": "OKP", "crv": "Ed25519", "x": "11qY"}


GRANTED = {
    "access_token": {
        "value": "2E6F040D518B6F1A0883",
        "manage": "https://auth.wallet.example/token/2",
        "expires_in": 600,
    },
    "continue": {
        "access_token": {"value": "3A088F83D39BDCDEC995"},
        "uri": "https://auth.wallet.example/continue/2",
    },
}


PENDING = {
    "interact": {
        "redirect": "https://auth.wallet.example/interact/1",
        "finish": "9E184C09C8310409",
    },
    "continue": {
        "access_token": {"value": "33OMUKMKSKU80UPRY5NM"},
        "uri": "https://auth.wallet.example/continue/1",
        "wait": 30,
    },
}


INCOMING = {
    "id": RECEIVER,
    "walletAddress": SHOP,
    "incomingAmount": money(2500, "USD"),
    "receivedAmount": money(0, "USD"),
    "completed": False,
    "expiresAt": "2026-11-20T13:00:00.000Z",
}


FOREIGN_URL = "https://wallet.example/tenant/incoming-payments/7"


FOREIGN = {
    "id": FOREIGN_URL,
    "walletAddress": ALICE.id,
    "receivedAmount": money(0),
    "completed": False,
    "expiresAt": "2026-11-20T13:00:00.000Z",
}


QUOTED = {
    "id": QUOTE.id,
    "walletAddress": ALICE.id,
    "receiver": RECEIVER,
    "debitAmount": money(2442),
    "receiveAmount": money(2500, "USD"),
    "method": "ilp",
    "expiresAt": "2026-11-20T12:05:00.000Z",
}


PAID = {
    "id": "https://wallet.example/tenant/outgoing-payments/9",
    "walletAddress": ALICE.id,
    "quoteId": QUOTE.id,
    "receiver": RECEIVER,
    "debitAmount": money(2442),
    "sentAmount": money(0),
    "failed": False,
}


SPENT = {"spentDebitAmount": money(400), "spentReceiveAmount": money(410, "USD")}


PAGE = {"result": [PAID], "pagination": {"hasNextPage": False, "hasPreviousPage": False}}


CALLS: dict[str, tuple[int, dict[str, Any], Callable[[OpenPayments], Any]]] = {
    "document": (200, DOCUMENT, lambda client: client.get_wallet_address(ALICE.id)),
    "keys": (200, {"keys": [KEY]}, lambda client: client.get_jwks(ALICE.id)),
    "grant": (200, GRANTED, lambda client: client.request_grant(ALICE.auth_server, Access.QUOTE)),
    "pending": (
        200,
        PENDING,
        lambda client: client.request_payment_grant(
            ALICE, limits=LIMITS, finish_uri="https://pay.example/cb", nonce="n"
        ),
    ),
    "continued": (
        200,
        GRANTED,
        lambda client: client.continue_grant(ALICE, CONTINUATION, interact_ref="r", limits=LIMITS),
    ),
    "rotated": (200, GRANTED, lambda client: client.rotate_token(ALICE.auth_server, TOKEN)),
    "incoming": (
        201,
        INCOMING,
        lambda client: client.create_incoming_payment(
            RESOURCES, TOKEN, amount=ASKED, expires_at=START + timedelta(hours=1)
        ),
    ),
    "read": (200, INCOMING, lambda client: client.get_incoming_payment(RECEIVER, TOKEN)),
    "completed": (200, INCOMING, lambda client: client.complete_incoming_payment(RECEIVER, TOKEN)),
    "quote": (
        201,
        QUOTED,
        lambda client: client.create_quote(ALICE, TOKEN, receiver=RECEIVER, receive=ASKED),
    ),
    "fixed": (
        201,
        QUOTED,
        lambda client: client.create_quote(ALICE, TOKEN, receiver=RECEIVER, debit=DEBIT),
    ),
    "foreign": (
        201,
        FOREIGN,
        lambda client: client.create_incoming_payment(
            ALICE.resource_server,
            TOKEN,
            amount=None,
            expires_at=START + timedelta(hours=1),
            wallet=ALICE.id,
        ),
    ),
    "foreign read": (
        200,
        FOREIGN,
        lambda client: client.get_incoming_payment(FOREIGN_URL, TOKEN, wallet=ALICE.id),
    ),
    "foreign completed": (
        200,
        FOREIGN,
        lambda client: client.complete_incoming_payment(FOREIGN_URL, TOKEN, wallet=ALICE.id),
    ),
    "spent": (200, SPENT, lambda client: client.get_grant_spent(ALICE, TOKEN)),
    "payment": (
        201,
        PAID,
        lambda client: client.create_outgoing_payment(ALICE, TOKEN, quote=QUOTE, receiver=RECEIVER),
    ),
    "paid": (200, PAID, lambda client: client.get_outgoing_payment(str(PAID["id"]), TOKEN)),
    "page": (200, PAGE, lambda client: client.list_outgoing_payments(ALICE, TOKEN)),
}
