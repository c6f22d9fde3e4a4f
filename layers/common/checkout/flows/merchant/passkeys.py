"""Accept an invitation with a new passkey, and sign in with one.

Both have two steps: the browser asks for a challenge, and returns it signed. A challenge is bound
to the browser's cookie and to its purpose, lasts five minutes, and is removed from the store before
anything is verified, so it works only once. A sign-in asks for no name: the passkey itself names
its member. A refusal does not say why.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Final

from checkout.domain.ground.errors import (
    Conflict,
    ParameterInvalid,
    PasskeyInvalid,
    ResourceMissing,
)
from checkout.domain.ground.grammar import MEMBER_ID
from checkout.domain.ground.ids import api_key_hash
from checkout.domain.ground.limits import CHALLENGE, WRONG_KEY
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import CHALLENGE_LASTS, NEW_SHOP, Invitation, Member, Passkey
from checkout.flows import audit, limits, merchants
from checkout.flows.merchant import people, sign_in
from checkout.flows.merchant.sign_in import SignedIn
from checkout.ports.runtime import PasskeyRefused
from checkout.ports.services import DashboardServices

_SIGN_IN: Final = "sign-in"
_CHALLENGE_BYTES: Final = 32
_LATE: Final = "That took too long, or was sent twice. Try again."


def invitation_of(
    services: DashboardServices, token: str, *, client: str, new_shop: bool = False
) -> Invitation:
    """Return the open invitation of a link, whose sender may still invite.

    It is to a shop that exists, or with `new_shop` to sign up with one.
    Raise ResourceMissing; RateLimited after many wrong links.
    """
    found = services.people.invitation(api_key_hash(token))
    if (
        found is None
        or (found.merchant == NEW_SHOP) is not new_shop
        or not found.open_at(services.clock.now())
        or not people.inviter_owns(services, found)
    ):
        limits.admit(services, WRONG_KEY, client)
        raise ResourceMissing("This invitation was used or withdrawn, or has expired.")
    return found


def begin_joining(services: DashboardServices, token: str, *, browser: str, client: str) -> str:
    """Return the options for a new passkey, as JSON. Raise as `invitation_of` does."""
    invitation = invitation_of(services, token, client=client)
    challenge = new_challenge(services, browser, invitation.id, client)
    return services.passkeys.creation_options(invitation.member, invitation.name, challenge)


def join(
    services: DashboardServices, token: str, *, browser: str, answer: str, client: str
) -> SignedIn:
    """Make the invited person a member with the new passkey, and sign them in.

    Raise as `invitation_of` does, and ParameterInvalid for a passkey that does not verify.
    """
    invitation = invitation_of(services, token, client=client)
    _, passkey = created(services, browser, invitation.id, answer)
    now = services.clock.now()
    merchant = merchants.get(services.merchants, invitation.merchant)
    member = Member(
        id=invitation.member,
        merchant=merchant.id,
        name=invitation.name,
        role=invitation.role,
        passkey=passkey,
        asset_code=merchant.asset_code,
        asset_scale=merchant.asset_scale,
        invited_by=invitation.invited_by,
        created_at=now,
        last_used_at=now,
    )
    inviter = people.inviter_owns(services, invitation)
    kept = inviter if isinstance(inviter, Member) else None
    if not inviter or not services.people.join(member, replace(invitation, ended_at=now), kept):
        raise ResourceMissing("This invitation was used or withdrawn, or has expired.")
    audit.note(services, member, Action.MEMBER_JOINED, f"{member.role}")
    return sign_in.remember(services, member)


def created(
    services: DashboardServices, browser: str, purpose: str, answer: str
) -> tuple[bytes, Passkey]:
    """Return this browser's challenge and the passkey that was made with it.

    Raise ParameterInvalid without a challenge, or for a passkey that does not verify.
    """
    challenge = services.challenges.take(place_of(browser, purpose), services.clock.now())
    if challenge is None:
        raise ParameterInvalid(_LATE)
    try:
        return challenge, services.passkeys.created(answer, challenge)
    except PasskeyRefused:
        raise ParameterInvalid("The passkey could not be verified. Try again.") from None


def begin_sign_in(services: DashboardServices, *, browser: str, client: str) -> str:
    """Return the options for signing in with a passkey, as JSON. Raise RateLimited."""
    return services.passkeys.request_options(new_challenge(services, browser, _SIGN_IN, client))


def sign_in_with(
    services: DashboardServices, *, browser: str, answer: str, client: str
) -> SignedIn:
    """Sign in the member whose passkey signed this browser's challenge.

    Raise ParameterInvalid without a challenge, PasskeyInvalid, RateLimited after many wrong ones,
    Conflict if the same passkey was used at the same time.
    """
    now = services.clock.now()
    challenge = services.challenges.take(place_of(browser, _SIGN_IN), now)
    if challenge is None:
        raise ParameterInvalid(_LATE)
    try:
        member = _verified(services, answer, challenge)
    except PasskeyRefused:
        limits.admit(services, WRONG_KEY, client)
        raise PasskeyInvalid("This passkey is not valid here.") from None
    if not services.people.replace(member.changed(last_used_at=now)):
        raise Conflict("This passkey was used at the same time. Try again.")
    return sign_in.remember(services, member)


def _verified(services: DashboardServices, answer: str, challenge: bytes) -> Member:
    """Return the member with the counter of this use. Raise PasskeyRefused."""
    presented = services.passkeys.presented(answer)
    known = MEMBER_ID.fullmatch(presented.member)
    member = services.people.member(presented.member) if known else None
    if member is None or not member.active or member.passkey.id != presented.passkey:
        raise PasskeyRefused("no active member has this passkey")
    return replace(member, passkey=services.passkeys.used(answer, challenge, member.passkey))


def new_challenge(services: DashboardServices, browser: str, purpose: str, client: str) -> bytes:
    """Store and return a new challenge. It replaces the browser's previous one for this purpose."""
    limits.admit(services, CHALLENGE, client)
    challenge = services.random_bytes(_CHALLENGE_BYTES)
    until = services.clock.now() + CHALLENGE_LASTS
    services.challenges.put(place_of(browser, purpose), challenge, until)
    return challenge


def place_of(browser: str, purpose: str) -> str:
    """Return where something of this browser waits for its next step."""
    return hashlib.sha256(f"{purpose} {browser}".encode()).hexdigest()
