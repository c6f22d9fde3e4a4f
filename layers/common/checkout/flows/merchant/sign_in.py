"""Sign a browser in to the dashboard with an API key, and recognise it by its cookie.

Members sign in with passkeys.py; after that there is no difference. Only a hash of the cookie's
token is stored. Each request also reads the record of the key or the member, so revoking it signs
out everybody who used it. A key is rejected without saying whether it ever existed. A key is looked
up first, and only wrong keys are counted, so a correct key always signs in. A wrong key costs one
read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from checkout.domain.ground.errors import ApiKeyInvalid, ApiKeyMissing, PermissionMissing
from checkout.domain.ground.ids import RandomBytes
from checkout.domain.ground.limits import WRONG_KEY
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import Actor, Member, SignIn
from checkout.domain.merchant.record import ApiKey
from checkout.flows import audit, limits
from checkout.flows.merchant import authentication
from checkout.ports.services import DashboardServices

SEEN_EVERY: Final = timedelta(minutes=1)

_TOKEN: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The key or member with which a browser signed in, and the token in its cookie."""

    actor: Actor
    token: str = field(repr=False)


def new_token(random_bytes: RandomBytes) -> str:
    """Return a token for a cookie. It has no meaning before a sign-in."""
    return random_bytes(32).hex()


def is_token(value: str | None) -> bool:
    return _TOKEN.fullmatch(value or "") is not None


def form_token(token: str) -> str:
    """Return the token that proves that a form was made for the browser with this cookie.

    It is derived from the cookie's token, which another site can neither read nor set.
    """
    return hmac.new(token.encode(), b"dashboard form", hashlib.sha256).hexdigest()


def sign_in(services: DashboardServices, api_key: str, *, client: str) -> SignedIn:
    """Sign in with a key that this client typed.

    Raises ApiKeyMissing, ApiKeyInvalid, PermissionMissing, RateLimited after many wrong ones.
    """
    typed = api_key.strip()
    if not typed:
        raise ApiKeyMissing("Enter an API key.")
    try:
        key = authentication.active_key(services, typed)
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
    """Return the sign-in of a cookie's token: two reads, and at most one write a minute.

    Raises ApiKeyMissing if nobody is signed in with it, ApiKeyInvalid if its key or member has
    ended.
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
    """Return the key or member that signed in, unless it was revoked or may no longer sign in."""
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
