"""Sign a browser in to the dashboard with an API key or a passkey, and recognize its cookie.

Only a hash of the cookie's token is stored. Each request also reads the record of the key or member
that signed in, so revoking a key or a member ends all sign-ins with it. The error for a rejected
API key does not show whether the key ever existed.

Joining by an invitation and signing in with a passkey take two steps: the browser requests a
challenge, and then returns it signed. A challenge is bound to the browser's cookie and to one
purpose, and lasts five minutes. A challenge works only once, because it is removed from the store
before anything is verified. A sign-in needs no user name, because the passkey contains the member's
id.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.ground.errors import (
    ApiKeyInvalid,
    ApiKeyMissing,
    Conflict,
    ParameterInvalid,
    PasskeyInvalid,
    PermissionMissing,
    ResourceMissing,
)
from checkout.domain.ground.grammar import MEMBER_ID
from checkout.domain.ground.ids import RandomBytes, api_key_hash
from checkout.domain.ground.limits import CHALLENGE, WRONG_KEY
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import (
    CHALLENGE_LASTS,
    NEW_SHOP,
    Actor,
    Invitation,
    Member,
    Passkey,
    SignIn,
)
from checkout.domain.merchant.record import ApiKey
from checkout.flows import audit, limits, merchants
from checkout.flows.merchant import api_keys
from checkout.flows.people import people
from checkout.ports import PasskeyRefused
from checkout.services import DashboardServices

SEEN_EVERY: Final = timedelta(minutes=1)

_TOKEN: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The key or member with which a browser signed in, and the token in its cookie."""

    actor: Actor
    token: str = field(repr=False)


def new_token(random_bytes: RandomBytes) -> str:
    """Return a token for a cookie. Before a sign-in, the token gives no access."""
    return random_bytes(32).hex()


def is_token(value: str | None) -> bool:
    return _TOKEN.fullmatch(value or "") is not None


def form_token(token: str) -> str:
    """Return the token that proves that a form was made for the browser with this cookie.

    The returned token is derived from the cookie's token, which another site cannot read or set.
    """
    return hmac.new(token.encode(), b"dashboard form", hashlib.sha256).hexdigest()


def sign_in(services: DashboardServices, api_key: str, *, client: str) -> SignedIn:
    """Sign in with a key that this client typed.

    Raises ApiKeyMissing, ApiKeyInvalid, PermissionMissing, RateLimited after many wrong keys.
    """
    typed = api_key.strip()
    if not typed:
        raise ApiKeyMissing("Enter an API key.")
    try:
        key = api_keys.active_key(services, typed)
    except ApiKeyInvalid:
        limits.admit(services, WRONG_KEY, client)
        raise
    if not key.signs_in:
        raise PermissionMissing(
            "This API key cannot sign in to the dashboard. Use a passkey or another key."
        )
    return remember(services, key)


def remember(services: DashboardServices, actor: ApiKey | Member) -> SignedIn:
    """Sign in with a verified key or as a verified member, with a new token for the cookie."""
    token, now = new_token(services.random_bytes), services.clock.now()
    new = SignIn(
        id=_id(token),
        key_hash=actor.hash if isinstance(actor, ApiKey) else None,
        member=actor.id if isinstance(actor, Member) else None,
        created_at=now,
        seen_at=now,
    )
    services.sign_ins.add(new)
    audit.note(services, actor, Action.SIGNED_IN)
    return SignedIn(actor, token)


def signed_in(services: DashboardServices, token: str | None) -> SignedIn:
    """Return the sign-in of a cookie's token, with two reads and at most one write a minute.

    Raises ApiKeyMissing if nobody is signed in, and ApiKeyInvalid if the key or the member was
    revoked.
    """
    known = services.sign_ins.get(_id(token)) if token is not None and is_token(token) else None
    now = services.clock.now()
    if token is None or known is None or not known.live_at(now):
        raise ApiKeyMissing("Sign in first.")
    actor = _actor(services, known, now)
    if actor is None:
        raise ApiKeyInvalid("This sign-in is no longer valid.")
    if now - known.seen_at >= SEEN_EVERY:
        services.sign_ins.seen(known, now)
    return SignedIn(actor, token)


def sign_out(services: DashboardServices, signed: SignedIn) -> None:
    """End the sign-in."""
    services.sign_ins.end(_id(signed.token))
    audit.note(services, signed.actor, Action.SIGNED_OUT)


def _actor(services: DashboardServices, known: SignIn, now: datetime) -> Actor | None:
    """Return the key or member that signed in, or None if it is revoked or may not sign in now."""
    if known.member is not None:
        member = services.people.member(known.member)
        merchant = services.known_merchants.get(member.merchant) if member else None
        if member is None or merchant is None or not member.active:
            return None
        return replace(member, parts=merchant.parts)
    assert known.key_hash is not None
    key = services.api_keys.find(known.key_hash)
    return key if key is not None and key.active_at(now) and key.signs_in else None


def _id(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


_SIGN_IN: Final = "sign-in"
_CHALLENGE_BYTES: Final = 32
_LATE: Final = "That took too long, or was sent twice. Try again."


def invitation_of(
    services: DashboardServices, token: str, *, client: str, new_shop: bool = False
) -> Invitation:
    """Return the open invitation of a link if its sender may still invite.

    The invitation must be for an existing shop or, with `new_shop`, for a sign-up with a new shop.
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
    """Return the browser's options for creating a passkey, as JSON.

    The browser lists the passkey under the names of the shop and of the member, because a person
    can have several shops. Raise as `invitation_of` does.
    """
    invitation = invitation_of(services, token, client=client)
    shop = merchants.get(services.merchants, invitation.merchant).name
    challenge = new_challenge(services, browser, invitation.id, client)
    listed = f"{shop} – {invitation.name}"
    return services.passkeys.creation_options(invitation.member, listed, challenge)


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
    return remember(services, member)


def created(
    services: DashboardServices, browser: str, purpose: str, answer: str
) -> tuple[bytes, Passkey]:
    """Return this browser's challenge and the passkey that was made with it.

    Raise ParameterInvalid if the browser has no challenge, or if the passkey does not verify.
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

    Raise ParameterInvalid if the browser has no challenge, PasskeyInvalid if the passkey is wrong,
    RateLimited after many wrong passkeys, and Conflict if the same passkey was used at the same
    time.
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
    return remember(services, member)


def _verified(services: DashboardServices, answer: str, challenge: bytes) -> Member:
    """Return the member with the updated use counter. Raise PasskeyRefused."""
    presented = services.passkeys.presented(answer)
    known = MEMBER_ID.fullmatch(presented.member)
    member = services.people.member(presented.member) if known else None
    if member is None or not member.active or member.passkey.id != presented.passkey:
        raise PasskeyRefused("no active member has this passkey")
    return replace(member, passkey=services.passkeys.used(answer, challenge, member.passkey))


def new_challenge(services: DashboardServices, browser: str, purpose: str, client: str) -> bytes:
    """Store and return a new challenge, in place of the browser's earlier one for this purpose."""
    limits.admit(services, CHALLENGE, client)
    challenge = services.random_bytes(_CHALLENGE_BYTES)
    until = services.clock.now() + CHALLENGE_LASTS
    services.challenges.put(place_of(browser, purpose), challenge, until)
    return challenge


def place_of(browser: str, purpose: str) -> str:
    """Return the key under which this browser's challenge for `purpose` is stored."""
    return hashlib.sha256(f"{purpose} {browser}".encode()).hexdigest()
