"""Prove that a person who has signed up owns the wallet: they approve a grant at the wallet.

The grant only allows reading that wallet's payments. It is canceled as soon as it is approved,
because only the approval is needed. The approval proves the ownership for these reasons:

- the authorization server is the one in the wallet address document
- the grant contains the exact wallet address
- the callback (the wallet sends the browser back) has a hash that only this server can make
- the callback must come from the browser in which the proof was begun

After the proof, the wallet belongs to the merchant, who can then sell.
Source: RFC 9635, sections 4.2.1 and 4.2.3.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.ground.errors import (
    Conflict,
    MemberUnexpectedState,
    MerchantWalletError,
    ParameterInvalid,
)
from checkout.domain.ground.json_values import compact
from checkout.domain.ground.limits import LOOK_UP
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import Actor
from checkout.domain.merchant.reach import Effect, allows
from checkout.domain.merchant.record import Merchant, Ownership
from checkout.flows import audit, limits, merchants
from checkout.flows.merchant.api_keys import change_copied
from checkout.flows.payment import approval, sealed
from checkout.flows.payment.sealed import Grant
from checkout.flows.payment.wallet_calls import WalletCalls
from checkout.flows.people.sign_in import place_of
from checkout.ports import StaleMerchant
from checkout.services import DashboardServices
from open_payments import errors as op
from open_payments.models import WalletAddress
from open_payments.urls import authority

WITHIN: Final = timedelta(seconds=20)
APPROVE_WITHIN: Final = timedelta(hours=1)
_DONE: Final = "Your wallet is confirmed already, or the operator has suspended your shop."
_ENDED: Final = "That took too long, or was sent twice. Confirm the wallet again."
_TAKEN: Final = (
    "This wallet already belongs to another shop here. Sign in to that shop, or ask its owner. "
    "This second shop cannot sell. You can leave it as it is."
)


@dataclass(frozen=True, slots=True)
class ProofRequest:
    """A pending approval; `page` is the URL of the wallet's page where the owner approves."""

    page: str = field(repr=False)


def waits(merchant: Merchant) -> bool:
    """Return whether the merchant still has to prove that the wallet is theirs, and can do so."""
    return allows(merchant, Effect.PROOF) and merchant.ownership is not Ownership.REFUSED


def begin(services: DashboardServices, actor: Actor, *, browser: str, client: str) -> ProofRequest:
    """Request the approval at the merchant's wallet. The callback must come from this `browser`.

    Raise MerchantWalletError, RateLimited, Conflict, and MemberUnexpectedState if there is nothing
    to prove.
    """
    merchant = _waiting(services, actor)
    paying = services.paying()
    limits.admit_work(paying, LOOK_UP, client, provider=authority(merchant.wallet_address))
    calls = WalletCalls.begin(paying, merchant, within=WITHIN)
    try:
        wallet = calls.client.get_wallet_address(merchant.wallet_address)
        if wallet.id != merchant.wallet_address:
            raise op.UntrustedAnswer("the wallet now has a different address")
        grant, page = approval.ask(
            calls, wallet, limits=None, finish_uri=callback_url(services.base_url)
        )
    except op.OpenPaymentsError as error:
        raise _of_wallet(error) from None
    _keep(services, merchant, browser, wallet.auth_server, grant)
    return ProofRequest(page)


def callback_url(base_url: str) -> str:
    """Return the URL to which the merchant's wallet sends the browser back."""
    return f"{base_url}/dashboard/wallet/callback"


def finish(
    services: DashboardServices,
    actor: Actor,
    *,
    browser: str,
    interact_ref: str,
    presented_hash: str,
) -> int:
    """Act on the callback: assign the wallet to the merchant, who can sell from now on.

    Return 0 or, after a temporary error of the wallet, the seconds after which the browser must
    call the same URL again. Raise CallbackInvalid for a callback that does not verify, without any
    write or wallet call. Raise MemberUnexpectedState, MerchantWalletError, ParameterInvalid if this
    browser has requested no approval, and Conflict if the wallet belongs to another merchant.
    """
    merchant = _waiting(services, actor)
    now, place = services.clock.now(), place_of(browser, _purpose(merchant))
    kept = services.challenges.look(place, now)
    if kept is None:
        raise ParameterInvalid(_ENDED)
    plain = services.vault.open(kept.decode(), place=_place(merchant))
    auth_server, text, *stored = json.loads(plain)
    until = datetime.fromisoformat(stored[0]) if stored else None
    grant, wallet = sealed.grant_from(text), _wallet(merchant, auth_server)
    approval.verify(grant, wallet, interact_ref=interact_ref, presented_hash=presented_hash)
    if wait := grant.wait_seconds(now):
        return wait
    if services.challenges.take(place, now) != kept:  # another request was faster
        raise ParameterInvalid(_ENDED)
    calls = WalletCalls.begin(services.paying(), merchant, within=WITHIN)
    try:
        approval.redeem(calls, grant, interact_ref, payer=wallet, limits=None)
    except op.OpenPaymentsError as error:
        if until := approval.kept_until(services, error, until):
            _keep(services, merchant, browser, auth_server, grant, until)
            return approval.KEPT_PAUSE
        raise _of_wallet(error) from None
    approval.cancel(calls, auth_server, grant)
    take_wallet(services, merchant)
    change_copied(services, merchant.id, _proven)
    audit.note(services, actor, Action.WALLET_PROVEN, merchant.wallet_address)
    return 0


def take_wallet(services: DashboardServices, merchant: Merchant) -> None:
    """Assign the wallet to the merchant. Raise Conflict if it belongs to another merchant."""
    try:
        other = services.merchants.move(merchant.changed())
    except StaleMerchant:
        raise Conflict("The shop was changed meanwhile. Try again.") from None
    if other is not None and other.id != merchant.id:
        raise Conflict(_TAKEN)


def _proven(merchant: Merchant) -> dict[str, Any]:
    """Return the fields of a merchant who has proved the ownership, and may therefore sell."""
    if not waits(merchant):
        raise MemberUnexpectedState(_DONE)
    return {"suspended": None, "ownership": Ownership.PROVEN}


def _waiting(services: DashboardServices, actor: Actor) -> Merchant:
    merchant = merchants.get(services.merchants, actor.merchant)
    if not waits(merchant):
        raise MemberUnexpectedState(_DONE)
    return merchant


def _keep(
    services: DashboardServices,
    merchant: Merchant,
    browser: str,
    auth_server: str,
    grant: Grant,
    until: datetime | None = None,
) -> None:
    """Store the pending approval for this browser in place of an earlier approval.

    After a temporary error of the wallet, `until` is the time at which the approval ends.
    """
    stored = () if until is None else (until.isoformat(),)
    plain = compact([auth_server, sealed.grant_text(grant), *stored])
    kept = services.vault.seal(plain, place=_place(merchant)).encode()
    ends = until or services.clock.now() + APPROVE_WITHIN
    services.challenges.put(place_of(browser, _purpose(merchant)), kept, ends)


def _wallet(merchant: Merchant, auth_server: str) -> WalletAddress:
    return WalletAddress(
        id=merchant.wallet_address,
        asset_code=merchant.asset_code,
        asset_scale=merchant.asset_scale,
        auth_server=auth_server,
        resource_server=merchant.resource_server,
    )


def _purpose(merchant: Merchant) -> str:
    return f"wallet of {merchant.id}"


def _place(merchant: Merchant) -> tuple[str, str, str]:
    return ("merchants", merchant.id, "ownership")


def _of_wallet(error: op.OpenPaymentsError) -> MerchantWalletError:
    if isinstance(error, op.Refused):
        return MerchantWalletError(f"Your wallet refused: {error.answered or error.reason.value}.")
    return MerchantWalletError("Your wallet does not answer. Try again later.")
