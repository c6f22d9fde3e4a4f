"""Seal and open what a customer has given at a payment link.

It is kept for years, so it is sealed under a key of its merchant, which is itself sealed: after
ENCRYPTION_KEY was rotated only the merchants' keys are sealed again (flows/merchant/rotation.py).
"""

from __future__ import annotations

from typing import Final

from checkout.domain.customer_details import NONE_GIVEN, CustomerDetails, from_json
from checkout.domain.errors import Unavailable
from checkout.domain.merchant import Merchant, details_key_place
from checkout.domain.session import Session
from checkout.ports.runtime import RandomBytes, Vault

_KEY_SIZE: Final = 32  # bytes


def new_key(vault: Vault, random_bytes: RandomBytes, merchant_id: str) -> str:
    """Return a new key for the details of a merchant's customers, sealed."""
    return vault.seal(random_bytes(_KEY_SIZE).hex(), place=details_key_place(merchant_id))


def seal(vault: Vault, merchant: Merchant, session_id: str, details: CustomerDetails) -> str | None:
    """Return the details sealed for this session; None if nothing was given.

    Raises Unavailable if this process does not know the merchant's key yet.
    """
    if details == NONE_GIVEN:
        return None
    if merchant.details_key is None:
        raise Unavailable("The shop's settings are being read again; try again in a minute.")
    return _inner(vault, merchant.id, merchant.details_key).seal(
        details.to_json(), place=_place(session_id)
    )


def opened(vault: Vault, merchant: Merchant | None, session: Session) -> CustomerDetails:
    """Return what the customer of a session has given, which may be nothing.

    Raises SecretUnreadable, and Unavailable while the key cannot be read.
    """
    if session.customer_details is None or merchant is None or merchant.details_key is None:
        return NONE_GIVEN
    inner = _inner(vault, merchant.id, merchant.details_key)
    return from_json(inner.open(session.customer_details, place=_place(session.id)))


def _inner(vault: Vault, merchant_id: str, key: str) -> Vault:
    return vault.inner(vault.open(key, place=details_key_place(merchant_id)))


def _place(session_id: str) -> tuple[str, str, str]:
    return ("checkout_sessions", session_id, "customer_details")
