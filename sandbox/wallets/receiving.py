"""Incoming payments: the amounts that a merchant's wallet expects and has received."""

from __future__ import annotations

import base64
from datetime import datetime, timedelta
from http import HTTPStatus
from typing import Any

from open_payments.transports import Response
from sandbox.wallets import answers
from sandbox.wallets.answers import ok, resource, timestamp
from sandbox.wallets.backend import Backend
from sandbox.wallets.listing import MOST, Access, Page, one_page
from sandbox.wallets.provider import CLOSINGS, Provider
from sandbox.wallets.state import IncomingPayment, Money

LONGEST = timedelta(days=30)


def create(backend: Backend, provider: Provider, access: Access, body: dict[str, Any]) -> Response:
    """Handle POST /incoming-payments."""
    account = backend.state.accounts[access.wallet]
    now = backend.time_at(provider.name)
    expires_at = now + LONGEST
    if "expiresAt" in body:
        expires_at = datetime.fromisoformat(body["expiresAt"].upper())
        if not now < expires_at <= now + LONGEST:
            raise resource(400, "invalid expiresAt")
    if provider.rules.incoming_life is not None:
        expires_at = now + provider.rules.incoming_life
    amount = Money.of_json(body["incomingAmount"]) if "incomingAmount" in body else None
    if amount is not None:
        if amount.value > MOST:
            raise answers.plain(500, "Internal Server Error")
        if amount.value == 0 or not amount.same_asset(account.money(0)):
            raise resource(400, "invalid amount")
    payment = IncomingPayment(
        id=backend.new_id(),
        provider=provider.name,
        wallet=account.id,
        amount=amount,
        received=account.money(0),
        completed=False,
        created_at=now,
        expires_at=expires_at,
        metadata=body.get("metadata"),
        client=access.grant.client,
    )
    backend.state.incoming[payment.id] = payment
    return ok(_shown(backend, payment) | {"methods": _methods(backend, provider)}, 201)


def get(backend: Backend, provider: Provider, access: Access, payment_id: str) -> Response:
    """Handle GET /incoming-payments/{id} with a token."""
    payment = _seen(backend, access, payment_id)
    payable = backend.is_payable(payment)
    methods = _methods(backend, provider) if payable else []
    return ok(_shown(backend, payment) | {"methods": methods})


def public(backend: Backend, provider: Provider, payment_id: str) -> Response:
    """Handle GET /incoming-payments/{id} without a token: the public view."""
    payment = backend.state.incoming[payment_id]
    received = _received(backend, payment)
    return ok({"receivedAmount": received.json(), "authServer": provider.auth_server})


def complete(backend: Backend, provider: Provider, payment_id: str) -> Response:
    """Handle POST /incoming-payments/{id}/complete: close the payment to further money.

    Any client can do this, not only the client that has created the payment.
    """
    payment = backend.state.incoming[payment_id]
    closing = CLOSINGS["403"] if payment.stays_open else provider.rules.closing
    succeeds = closing.status < HTTPStatus.BAD_REQUEST
    if backend.is_payable(payment):
        if closing.closes:
            backend.close(payment)
    elif succeeds:
        raise resource(409, "wrong state")
    if closing.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        raise answers.plain(500, "Internal Server Error")
    if not succeeds:
        raise resource(closing.status, closing.description)
    return Response(closing.status, {}, b"") if closing.empty else ok(_shown(backend, payment))


def list_all(backend: Backend, provider: Provider, access: Access, page: Page) -> Response:
    """Handle GET /incoming-payments?wallet-address=…."""
    own = [
        payment
        for payment in reversed(backend.state.incoming.values())
        if payment.wallet == access.wallet
        and access.sees(payment)
        and not backend.has_vanished(payment)
    ]
    return one_page(own, page, lambda payment: _shown(backend, payment))


def _seen(backend: Backend, access: Access, payment_id: str) -> IncomingPayment:
    payment = backend.state.incoming[payment_id]
    if not access.sees(payment):
        raise resource(404, "Incoming payment does not exist")
    return payment


def _shown(backend: Backend, payment: IncomingPayment) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "id": backend.incoming_payment_url(payment),
        "walletAddress": payment.wallet,
        "incomingAmount": payment.amount.json() if payment.amount else None,
        "receivedAmount": _received(backend, payment).json(),
        "completed": payment.completed and not backend.behaviour(payment.wallet).shows_nothing,
        "metadata": payment.metadata,
        "createdAt": timestamp(payment.created_at),
        "expiresAt": timestamp(payment.expires_at),
    }
    return {name: value for name, value in shown.items() if value is not None}


def _received(backend: Backend, payment: IncomingPayment) -> Money:
    """Return the amount that the wallet reports as received."""
    lies = backend.behaviour(payment.wallet).shows_nothing
    return payment.received.with_value(0) if lies else payment.received


def _methods(backend: Backend, provider: Provider) -> list[dict[str, str]]:
    def text(length: int) -> str:
        return base64.urlsafe_b64encode(backend.random_bytes(length)).decode().rstrip("=")

    address = f"test.{provider.name}.{text(64)}"
    return [{"type": "ilp", "ilpAddress": address, "sharedSecret": text(32)}]
