"""Sign a browser in to the dashboard with an API key, and recognise it by its cookie.

Only a hash of the cookie's token is stored. Each request reads the key's own record as well, so
revoking a key signs everybody out who used it. A key is rejected without saying whether it ever
existed. Only wrong keys are counted, and a key is looked up first: however many wrong ones are
typed, and from wherever, a right one signs in. A wrong key costs one read.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from checkout.domain.audit import Action
from checkout.domain.errors import ApiKeyInvalid, ApiKeyMissing
from checkout.domain.limits import WRONG_KEY
from checkout.domain.merchant import ApiKey
from checkout.domain.sign_in import SignIn
from checkout.flows import audit, limits
from checkout.flows.merchant import authentication
from checkout.ports.runtime import RandomBytes
from checkout.ports.services import DashboardServices

SEEN_EVERY: Final = timedelta(minutes=1)

_TOKEN: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The key that a browser signed in with, and the token in its cookie."""

    key: ApiKey
    token: str = field(repr=False)


def new_token(random_bytes: RandomBytes) -> str:
    """Return a token for a cookie; it means nothing before a sign-in with it."""
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

    Raises ApiKeyMissing, ApiKeyInvalid, RateLimited after many wrong ones.
    """
    typed = api_key.strip()
    if not typed:
        raise ApiKeyMissing("Enter an API key.")
    try:
        key = authentication.active_key(services, typed)
    except ApiKeyInvalid:
        limits.admit(services, WRONG_KEY, client)
        raise
    token, now = new_token(services.random_bytes), services.clock.now()
    new = SignIn(id=_id(token), key_hash=key.hash, created_at=now, seen_at=now)
    services.sign_ins.add(new)
    audit.note(services, key, Action.SIGNED_IN)
    return SignedIn(key, token)


def signed_in(services: DashboardServices, token: str | None) -> SignedIn:
    """Return the sign-in of a cookie's token: two reads, and at most one write a minute.

    Raises ApiKeyMissing if nobody is signed in with it, ApiKeyInvalid if its key has ended.
    """
    known = services.sign_ins.get(_id(token)) if token is not None and is_token(token) else None
    now = services.clock.now()
    if token is None or known is None or not known.live_at(now):
        raise ApiKeyMissing("Sign in with an API key.")
    key = services.api_keys.find(known.key_hash)
    if key is None or not key.active_at(now):
        raise ApiKeyInvalid("The API key of this sign-in is not valid any more.")
    if now - known.seen_at >= SEEN_EVERY:
        services.sign_ins.seen(known, now)
    return SignedIn(key, token)


def sign_out(services: DashboardServices, signed: SignedIn) -> None:
    """End the sign-in."""
    services.sign_ins.end(_id(signed.token))
    audit.note(services, signed.key, Action.SIGNED_OUT)


def _id(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
