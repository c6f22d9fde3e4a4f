"""Quotes and outgoing payments of a customer's wallet.

As in Rafiki, an outgoing payment has the UUID of its quote, and a quote can be used only once
(provider.py has options to change this). Money moves in `backend`, not here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from open_payments.errors import OutcomeUnknown
from open_payments.transports import Response
from sandbox.wallets import allowance, answers, money
from sandbox.wallets.answers import ok, resource, timestamp
from sandbox.wallets.backend import Backend
from sandbox.wallets.listing import MOST, Access, Page, one_page
from sandbox.wallets.provider import Provider
from sandbox.wallets.state import Grant, IncomingPayment, Money, OutgoingPayment, Quote

# --- quotes ---


def create_quote(
    backend: Backend, provider: Provider, access: Access, body: dict[str, Any]
) -> Response:
    """Handle POST /quotes, with a receive amount, a debit amount, or the receiver's own amount."""
    quote = _quote(backend, provider, access, body["receiver"], body)
    if backend.behaviour(access.wallet).paid_from_outside:
        backend.pay_from_outside(quote.receiver, quote.receive.value)
    return ok(_shown_quote(backend, provider, quote), 201)


def get_quote(backend: Backend, provider: Provider, access: Access, quote_id: str) -> Response:
    """Handle GET /quotes/{id}, expired or not."""
    quote = backend.state.quotes[quote_id]
    if not access.sees(quote):
        raise resource(404, "Quote does not exist")
    return ok(_shown_quote(backend, provider, quote))


def _quote(
    backend: Backend, provider: Provider, access: Access, url: str, body: dict[str, Any]
) -> Quote:
    now = backend.time_at(provider.name)
    behaviour = backend.behaviour(access.wallet)
    receiver = backend.incoming_payment(url)
    if receiver is None or not backend.is_reached(receiver) or not behaviour.peered:
        raise resource(400, "invalid receiver")
    debit, receive, fee = _amounts(backend, provider, access.wallet, receiver, body)
    quote = Quote(
        id=backend.new_id(),
        provider=provider.name,
        wallet=access.wallet,
        receiver=url,
        debit=debit,
        receive=receive,
        fee=fee,
        created_at=now,
        expires_at=min(now + behaviour.quote_life, receiver.expires_at)
        if behaviour.tells_quote_expiry
        else now + behaviour.quote_life,
        client=access.grant.client,
    )
    backend.state.quotes[quote.id] = quote
    return quote


def _amounts(
    backend: Backend,
    provider: Provider,
    wallet: str,
    receiver: IncomingPayment,
    body: dict[str, Any],
) -> tuple[Money, Money, int]:
    """Return the debit, the receive amount, and the fee in units of the debit's asset."""
    asset = backend.state.accounts[wallet].money(0)
    fee = money.FREE if receiver.provider == provider.name else provider.fee
    behaviour = backend.behaviour(wallet)
    wanted = _wanted(receiver, body)
    try:
        if behaviour.minimum_too_high:
            least, _ = money.cost(
                wanted or receiver.received.with_value(1), asset, fee, backend.rates
            )
            raise _too_small(asset.with_value(2 * least))
        if wanted is None:
            return _fixed_debit(backend, Money.of_json(body["debitAmount"]), asset, receiver, fee)
        value, kept = money.cost(wanted, asset, fee, backend.rates)
    except money.NoRate:
        raise answers.plain(500, "Internal Server Error") from None
    again = any(
        (quote.wallet, quote.receiver) == (wallet, backend.incoming_payment_url(receiver))
        for quote in backend.state.quotes.values()
    )
    if again:
        value = -int(-value * behaviour.dearer // 1)
    return asset.with_value(value), wanted, kept


def _wanted(receiver: IncomingPayment, body: dict[str, Any]) -> Money | None:
    """Return the amount to deliver, or None if the request has a debit amount instead."""
    remaining = receiver.remaining()
    if "debitAmount" in body:
        return None
    if "receiveAmount" in body:
        wanted = Money.of_json(body["receiveAmount"])
        most = MOST if remaining is None else remaining
        if not (wanted.same_asset(receiver.received) and 0 < wanted.value <= most):
            raise resource(400, "invalid amount")
        return wanted
    if remaining is None:
        raise resource(400, "invalid receiver")
    return receiver.received.with_value(remaining)


def _fixed_debit(
    backend: Backend, debit: Money, asset: Money, receiver: IncomingPayment, fee: money.Fee
) -> tuple[Money, Money, int]:
    if debit.value == 0 or debit.value > MOST or not debit.same_asset(asset):
        raise resource(400, "invalid amount")
    target = receiver.received
    value = money.delivery(debit, target, fee, backend.rates)
    if value == 0:
        least, _ = money.cost(target.with_value(1), asset, fee, backend.rates)
        raise _too_small(asset.with_value(least))
    remaining = receiver.remaining()
    if remaining is not None and value > remaining:
        raise resource(400, "invalid amount")
    _, kept = money.cost(target.with_value(value), asset, fee, backend.rates)
    return debit, target.with_value(value), kept


def _too_small(least: Money) -> answers.Refusal:
    details = {"minSendAmount": least.json()}
    return resource(400, "non-positive receive amount", details=details)


def _said(backend: Backend, wallet: str, debit: Money) -> dict[str, Any]:
    """Return the debit that the wallet shows, which can be wrong (`Behaviour.claims`)."""
    return debit.with_value(int(debit.value * backend.behaviour(wallet).claims)).json()


def _shown_quote(backend: Backend, provider: Provider, quote: Quote) -> dict[str, Any]:
    shown = {
        "id": f"{provider.resource_server}/quotes/{quote.id}",
        "walletAddress": quote.wallet,
        "receiveAmount": quote.receive.json(),
        "debitAmount": _said(backend, quote.wallet, quote.debit),
        "receiver": quote.receiver,
        "expiresAt": timestamp(quote.expires_at),
        "createdAt": timestamp(quote.created_at),
        "method": "ilp",
    }
    if not backend.behaviour(quote.wallet).tells_quote_expiry:
        del shown["expiresAt"]
    return shown


# --- outgoing payments ---


def create_payment(
    backend: Backend, provider: Provider, access: Access, body: dict[str, Any]
) -> Response:
    """Handle POST /outgoing-payments, with a quote or with incoming payment and debit amount."""
    quote = _usable_quote(backend, provider, access, body)
    grant, now = access.grant, backend.time_at(provider.name)
    before = allowance.spent(grant, now)
    try:
        if provider.rules.limits_enforced and not allowance.fits(grant, quote, now):
            raise resource(403, "unauthorized")
    except allowance.Unreadable:
        raise answers.plain(500, "Internal Server Error") from None
    quote.used = True
    behaviour = backend.behaviour(quote.wallet)
    # If a quote is used a second time, its id already belongs to a payment.
    named = provider.rules.own_payment_ids or quote.id in backend.state.outgoing
    payment = OutgoingPayment(
        id=backend.new_id() if named else quote.id,
        quote_id=quote.id,
        provider=provider.name,
        wallet=quote.wallet,
        receiver=quote.receiver,
        debit=quote.debit,
        receive=quote.receive,
        fee=quote.fee,
        sent=0,
        failed=behaviour.claims_failure_early,
        metadata=body.get("metadata", {}),
        created_at=now,
        grant_id=grant.id,
        client=grant.client,
        settles_at=None,
        since=allowance.since(grant, now),
    )
    created = _shown(backend, provider, payment) | {
        "grantSpentReceiveAmount": (before[1] or quote.receive.with_value(0)).json(),
        "grantSpentDebitAmount": (before[0] or quote.debit.with_value(0)).json(),
    }
    if not behaviour.phantom:
        if not payment.failed:
            allowance.hold(grant, payment)
        backend.start(payment)
        _pay_others(backend, payment, behaviour.pays_others)
    if behaviour.dies_after_create:
        raise OutcomeUnknown("the connection was closed without an answer")
    if behaviour.refuses_accepted:
        raise resource(403, "unauthorized")
    return ok(created, 201)


def get_payment(backend: Backend, provider: Provider, access: Access, payment_id: str) -> Response:
    """Handle GET /outgoing-payments/{id}."""
    payment = backend.state.outgoing[payment_id]
    if not access.sees(payment) or backend.behaviour(payment.wallet).hides_payments:
        raise resource(404, "Outgoing payment does not exist")
    return ok(_shown(backend, provider, payment))


def list_all(backend: Backend, provider: Provider, access: Access, page: Page) -> Response:
    """Handle GET /outgoing-payments?wallet-address=…."""
    own = [
        payment
        for payment in reversed(backend.state.outgoing.values())
        if payment.wallet == access.wallet and access.sees(payment)
    ]
    if backend.behaviour(access.wallet).hides_payments:
        own = []
    return one_page(own, page, lambda payment: _shown(backend, provider, payment))


def spent(backend: Backend, provider: Provider, grant: Grant) -> Response:
    """Handle GET /outgoing-payment-grant: the amounts spent from the grant in this period."""
    debit, receive = allowance.spent(grant, backend.time_at(provider.name))
    return ok(
        {
            "spentDebitAmount": debit.json() if debit else None,
            "spentReceiveAmount": receive.json() if receive else None,
        }
    )


def _usable_quote(
    backend: Backend, provider: Provider, access: Access, body: dict[str, Any]
) -> Quote:
    if "quoteId" not in body:
        return _quote(backend, provider, access, body["incomingPayment"], body)
    quote = backend.state.quotes.get(body["quoteId"].rsplit("/", 1)[-1])
    if quote is None or quote.provider != provider.name:
        raise resource(404, "unknown quote")
    receiver = backend.incoming_payment(quote.receiver)
    if receiver is not None and backend.behaviour(quote.wallet).closed_from_outside:
        backend.close(receiver)
    used = quote.used and provider.rules.single_use_quotes
    late = quote.expires_at <= backend.time_at(provider.name)
    if (
        used
        or quote.wallet != access.wallet
        or (late and not backend.behaviour(quote.wallet).keeps_quotes)
        or receiver is None
        or not backend.is_reached(receiver)
    ):
        raise resource(400, "invalid quote")
    return quote


def _pay_others(backend: Backend, own: OutgoingPayment, number: int) -> None:
    """Record `number` finished payments of one unit by the same wallet and client to others."""
    one = own.debit.with_value(1)
    receivers = own.receiver.rsplit("/", 1)[0]
    for _ in range(number):
        payment = replace(
            own,
            id=backend.new_id(),
            quote_id=backend.new_id(),
            receiver=f"{receivers}/{backend.new_id()}",
            debit=one,
            receive=own.receive.with_value(1),
            fee=0,
            sent=1,
            grant_id="",
            settles_at=None,
            funded=True,
            parts_sent=1,
        )
        backend.state.outgoing[payment.id] = payment
        backend.state.accounts[own.wallet].book(
            payment.created_at, f"Payment {payment.id[:8]}", -one.value
        )


def _shown(backend: Backend, provider: Provider, payment: OutgoingPayment) -> dict[str, Any]:
    return {
        "id": f"{provider.resource_server}/outgoing-payments/{payment.id}",
        "walletAddress": payment.wallet,
        "quoteId": f"{provider.resource_server}/quotes/{payment.quote_id}",
        "receiveAmount": payment.receive.json(),
        "debitAmount": _said(backend, payment.wallet, payment.debit),
        "sentAmount": payment.debit.with_value(payment.sent).json(),
        "receiver": payment.receiver,
        "failed": payment.failed,
        "metadata": payment.metadata,
        "createdAt": timestamp(payment.created_at),
    }
