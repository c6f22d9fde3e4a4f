"""Authenticate a merchant by an API key, which is looked up by its hash.

A key is rejected without saying whether a key ever existed. The plain key is in no
error, log or record.
"""

from __future__ import annotations

from typing import Final

from checkout.domain.errors import ApiKeyInvalid, ApiKeyMissing, PermissionMissing
from checkout.domain.grammar import API_KEY
from checkout.domain.ids import api_key_hash
from checkout.domain.merchant import ApiKey
from checkout.domain.people import Scope
from checkout.ports.services import Services

_READING: Final = ("GET", "HEAD")


def authenticate(services: Services, authorization: str | None, method: str) -> ApiKey:
    """Return the key of an `Authorization: Bearer sk_…` header's value (RFC 6750 section 2.1).

    The HTTP method decides which scope the key needs, for every route: what only reads is GET.
    Raises ApiKeyMissing if there are no bearer credentials, PermissionMissing, and as `active_key`
    does.
    """
    scheme, _, credentials = (authorization or "").strip().partition(" ")
    presented = credentials.strip()
    if scheme.lower() != "bearer" or not presented:
        raise ApiKeyMissing("Send your API key in the header Authorization: Bearer sk_….")
    key = active_key(services, presented)
    scope = Scope.READ if method in _READING else Scope.WRITE
    if scope not in key.scopes:
        raise PermissionMissing(f"This API key has not the scope “{scope}”, which this needs.")
    return key


def active_key(services: Services, presented: str) -> ApiKey:
    """Return the key that was presented, and record its use.

    Raises ApiKeyInvalid: an unknown, a revoked and an expired key get the same answer.
    """
    # What cannot be a key is not looked up; the hash is the look-up, so no comparison leaks time.
    known = API_KEY.fullmatch(presented)
    key = services.api_keys.find(api_key_hash(presented)) if known else None
    if key is None or not key.active_at(services.clock.now()):
        raise ApiKeyInvalid("This API key is not valid.")
    services.api_keys.touch(key, services.clock.now())
    return key
