"""Ask the customer of a refund for another wallet, by a link that the merchant sends.

The link is useful if the customer's wallet no longer exists or refuses the refund. The customer
enters the other wallet on the page behind the link. No function of this module moves money: the
merchant then has to approve the refund to the new wallet (domain/refund/transitions.py). Only a
hash of the link is stored.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from checkout.domain.ground.errors import (
    RefundUnexpectedState,
    ResourceMissing,
    SessionBusy,
    WalletInvalid,
)
from checkout.domain.ground.grammar import KEY_DIGITS
from checkout.domain.ground.ids import api_key_hash, new_claim_token
from checkout.domain.ground.limits import SUBMISSION
from checkout.domain.merchant.people import Actor
from checkout.domain.payment.machine import IllegalTransition
from checkout.domain.refund.record import Refund, RefundEvent
from checkout.flows import limits, merchants
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.payment.writes import move
from checkout.flows.refund import request
from checkout.flows.session import lookup, prepare
from checkout.ports import StaleRecord
from checkout.services import PayServices, Services
from open_payments.urls import authority

DEADLINE: Final = timedelta(seconds=12)
CURRENCY: Final = "currency"  # the customer's mistake: the wallet has another currency
_MISSING: Final = "No such link. Ask the shop for a new one."


@dataclass(frozen=True, slots=True)
class Offer:
    """A refund, and the link to send to its customer. The link is shown once and never stored."""

    refund: Refund
    link: str


def offer(services: Services, key: Actor, refund_id: str) -> Offer:
    """Make a link for the refund's customer. An earlier link becomes invalid.

    Raises ResourceMissing, PermissionMissing as `request.require_own` does, RefundUnexpectedState.
    """
    refund = request.get(services, key, refund_id)
    request.require_own(key, refund)
    token = new_claim_token(services.random_bytes)
    try:
        refund = move(
            services,
            refund,
            RefundEvent.CLAIM_OFFERED,
            note=f"by {key.label}",
            claim=api_key_hash(token),
            claim_open=1,
        )
    except (StaleRecord, IllegalTransition):
        raise RefundUnexpectedState(
            "You can create a link only while the refund waits for your approval."
        ) from None
    return Offer(refund, f"{services.base_url}/pay/{refund.session}/claim/{token}")


def find(services: Services, session_id: str, token: str) -> Refund:
    """Return the refund of a link. Raises ResourceMissing for all but the refund's latest link."""
    session = lookup.load(services, session_id)
    ids = tuple(each.id for each in session.refunds or ())
    if not ids or len(token) != KEY_DIGITS:
        raise ResourceMissing(_MISSING)
    presented = api_key_hash(token)
    for refund in services.refunds.of(ids):
        if refund.claim is not None and hmac.compare_digest(refund.claim, presented):
            return refund
    raise ResourceMissing(_MISSING)


def is_open(services: Services, refund: Refund) -> bool:
    """Return whether the customer can now give another wallet by the link."""
    waits = not refund.terminal and not refund.payment_in_flight
    return waits and bool(refund.claim_open) and services.clock.now() < refund.ends_at


def take(
    services: PayServices, session_id: str, token: str, typed: str, *, client: str | None
) -> Refund:
    """Read the wallet that the customer `typed`, and store it.

    `client` is the customer's network address. Returns the refund, which is unchanged if the link
    was already used or is no longer valid. Raises ResourceMissing, WalletInvalid,
    WalletUnreachable, RateLimited, SessionBusy.
    """
    refund = find(services, session_id, token)
    if not is_open(services, refund):
        return refund
    url = prepare.address_in(services, typed)
    limits.admit_work(services, SUBMISSION, client, provider=authority(url))
    merchant = merchants.get(services.merchants, refund.merchant)
    calls = WalletCalls.begin(services, merchant, within=DEADLINE)
    wallet = prepare.resolve(calls.client, url)
    if refund.give is not None and not refund.give.is_of(wallet):
        raise WalletInvalid(
            f"This wallet uses {wallet.asset_code}, but the refund is in {refund.give.asset_code}.",
            param="wallet_address",
            mistake=CURRENCY,
        )
    try:
        return move(services, refund, RefundEvent.CLAIMED, wallet=wallet.id, claimed=1)
    except (StaleRecord, IllegalTransition):
        raise SessionBusy("This refund is being changed; try again shortly.") from None
