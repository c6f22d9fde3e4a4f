"""Sign up with a new shop: a wallet address, a name and a passkey, without a key file.

The responses never show whether a wallet or a name is already in use here. A new shop cannot sell,
and has no claim to its wallet, until its owner has approved a grant at the wallet (ownership.py).
So a sign-up with another person's wallet has no effect on that person. Source:
docs/decisions/0024-a-sign-up-proves-its-wallet.md.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from checkout.domain.ground.errors import ParameterInvalid, ResourceMissing
from checkout.domain.ground.ids import new_member_id
from checkout.domain.ground.limits import LOOK_UP
from checkout.domain.ground.names import is_plain_name
from checkout.domain.ground.typed_address import wallet_url
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import NAME_MAX, OWNER_OF, Invitation, Member, Role, SignUp
from checkout.flows import audit, limits
from checkout.flows.merchant import setup
from checkout.flows.people import sign_in
from checkout.flows.people.sign_in import SignedIn
from checkout.services import DashboardServices
from open_payments.models import WalletAddress
from open_payments.urls import authority

_PURPOSE: Final = "sign-up"


@dataclass(frozen=True, slots=True)
class Found:
    """The wallet at the typed address, and the name of the future shop."""

    wallet: WalletAddress
    name: str


def admitted(services: DashboardServices, token: str | None, *, client: str) -> Invitation | None:
    """Return the invitation with this link's token, or None without a token.

    Raise ResourceMissing if sign-ups are not allowed, if the invitation is not valid, or if an
    invitation is necessary and there is no token. Raise RateLimited after many wrong links.
    """
    if services.sign_up is SignUp.CLOSED or (services.sign_up is SignUp.INVITATION and not token):
        raise ResourceMissing("Shops are set up by the operator here.")
    if not token:
        return None
    return sign_in.invitation_of(services, token, client=client, new_shop=True)


def look_up(services: DashboardServices, *, typed: str, name: str, client: str) -> Found:
    """Read the wallet at the typed address, and check the name ("" means the wallet's own name).

    Raise ParameterInvalid, RateLimited.
    """
    paying = services.paying()
    try:
        url = wallet_url(typed, allow_ports=paying.allow_loopback)
    except ValueError as error:
        raise ParameterInvalid(str(error), param="wallet_address") from None
    limits.admit_work(paying, LOOK_UP, client, provider=authority(url))
    try:
        wallet = setup.read_wallet(paying, typed)
    except setup.SetupRefused as refused:
        raise ParameterInvalid(str(refused), param="wallet_address") from None
    if not name.strip():
        own = (wallet.public_name or "")[:NAME_MAX].strip()
        return Found(wallet, own if is_plain_name(own, NAME_MAX) else "")
    try:
        return Found(wallet, setup.shop_name(name, wallet))
    except setup.SetupRefused:
        raise ParameterInvalid(
            "Give your shop's name: up to 100 letters, digits and signs, without a web or e-mail "
            "address.",
            param="name",
        ) from None


def begin(
    services: DashboardServices, *, token: str | None, name: str, browser: str, client: str
) -> str:
    """Return the options for the owner's passkey, as JSON. Raise as `admitted`, and RateLimited."""
    invitation = admitted(services, token, client=client)
    challenge = sign_in.new_challenge(services, browser, _purpose(invitation), client)
    shown = " ".join(name.split())[:NAME_MAX] or OWNER_OF
    return services.passkeys.creation_options(_member_id(invitation, challenge), shown, challenge)


def finish(
    services: DashboardServices,
    *,
    token: str | None,
    typed: str,
    name: str,
    browser: str,
    answer: str,
    client: str,
) -> SignedIn:
    """Create the shop and its owner with the browser's new passkey, and sign the owner in.

    Raise as `admitted` and `look_up` do, ParameterInvalid for a passkey that does not verify, and
    RateLimited after too many shops in a day.
    """
    invitation = admitted(services, token, client=client)
    challenge, passkey = sign_in.created(services, browser, _purpose(invitation), answer)
    found = look_up(services, typed=typed, name=name, client=client)
    limits.admit_sign_up(services, client)
    if not found.name:
        raise ParameterInvalid("Give your shop's name.", param="name")
    merchant = setup.signed_up(services.paying(), found.wallet, name=found.name)
    now = services.clock.now()
    owner = Member(
        id=_member_id(invitation, challenge),
        merchant=merchant.id,
        name=invitation.name if invitation else found.name[:NAME_MAX].strip(),
        role=Role.OWNER,
        passkey=passkey,
        asset_code=merchant.asset_code,
        asset_scale=merchant.asset_scale,
        invited_by=invitation.invited_by if invitation else _PURPOSE,
        created_at=now,
        last_used_at=now,
    )
    ended = replace(invitation, ended_at=now) if invitation else None
    if not services.people.found(merchant, owner, ended):
        raise ResourceMissing("This invitation was used or withdrawn, or has expired.")
    audit.note(services, owner, Action.SIGNED_UP, merchant.wallet_address)
    return sign_in.remember(services, owner)


def _purpose(invitation: Invitation | None) -> str:
    return f"{_PURPOSE} {invitation.id}" if invitation else _PURPOSE


def _member_id(invitation: Invitation | None, challenge: bytes) -> str:
    """Return the member's id for the passkey, from the invitation or derived from the challenge.

    Both steps of a sign-up derive the same id. So the id need not be stored between the steps.
    """
    return invitation.member if invitation else new_member_id(partial(_derived, challenge))


def _derived(challenge: bytes, length: int) -> bytes:
    return hashlib.shake_256(b"member " + challenge).digest(length)
