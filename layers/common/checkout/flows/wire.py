"""The session's records in the Open Payments client's terms, and back."""

from __future__ import annotations

from checkout.domain.money import Amount
from checkout.domain.session import CustomerWallet, Session
from checkout.open_payments import models


def to_wire(amount: Amount) -> models.Amount:
    return models.Amount(amount.value, amount.asset_code, amount.asset_scale)


def from_wire(amount: models.Amount) -> Amount:
    return Amount(amount.value, amount.asset_code, amount.asset_scale)


def as_customer(wallet: models.WalletAddress) -> CustomerWallet:
    return CustomerWallet(
        id=wallet.id,
        auth_server=wallet.auth_server,
        resource_server=wallet.resource_server,
        asset_code=wallet.asset_code,
        asset_scale=wallet.asset_scale,
    )


def as_wallet(customer: CustomerWallet) -> models.WalletAddress:
    return models.WalletAddress(
        id=customer.id,
        asset_code=customer.asset_code,
        asset_scale=customer.asset_scale,
        auth_server=customer.auth_server,
        resource_server=customer.resource_server,
    )


def as_quote(session: Session) -> models.Quote:
    """The quote in use. Only for a session that has one."""
    assert session.quote is not None
    assert session.customer is not None
    assert session.incoming_payment is not None
    return models.Quote(
        id=session.quote.id,
        wallet_address=session.customer.id,
        receiver=session.incoming_payment.id,
        debit=to_wire(session.quote.debit),
        receive=to_wire(session.quote.receive),
        expires_at=session.quote.expires_at,
    )
