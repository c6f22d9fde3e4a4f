"""Authenticate a merchant by an API key, which is looked up by its hash.

A key is rejected without saying whether a key ever existed. The plain key is never in an error, log
or record.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from checkout.domain.ground.errors import ApiKeyInvalid, ApiKeyMissing, PermissionMissing
from checkout.domain.ground.grammar import API_KEY
from checkout.domain.ground.ids import api_key_hash
from checkout.domain.merchant.doors import API
from checkout.domain.merchant.people import Scope
from checkout.domain.merchant.record import ApiKey
from checkout.ports.services import Services

_READING: Final = ("GET", "HEAD")


def scope_of(method: str, route: str) -> Scope:
    """Return the scope that a route needs; `route` is its path, with names in place of ids.

    GET only reads. What is no route needs the scope to manage.
    """
    door = API.get((method, route))
    if door is not None:
        return door.needs
    return Scope.READ if method in _READING else Scope.MANAGE


def authenticate(
    services: Services,
    authorization: str | None,
    method: str,
    route: str = "",
    known: Callable[[ApiKey], None] = lambda key: None,
) -> ApiKey:
    """Return the key of an `Authorization: Bearer sk_…` header's value (RFC 6750 section 2.1).

    The key needs the scope of the method and the route (`scope_of`); `known` gets it before that
    is checked. Raises ApiKeyMissing if there
    are no bearer credentials, PermissionMissing, and as `active_key` does.
    """
    scheme, _, credentials = (authorization or "").strip().partition(" ")
    presented = credentials.strip()
    if scheme.lower() != "bearer" or not presented:
        raise ApiKeyMissing("Send your API key in the header Authorization: Bearer sk_….")
    key = active_key(services, presented)
    known(key)
    scope = scope_of(method, route)
    if scope not in key.scopes:
        raise PermissionMissing(
            f"This API key lacks the scope “{scope}”, which this needs. Make a key with it at "
            "/dashboard/keys."
        )
    return key


def active_key(services: Services, presented: str) -> ApiKey:
    """Return the presented key, and record its use.

    Raises ApiKeyInvalid: an unknown, a revoked and an expired key get the same answer.
    """
    # A text that cannot be a key is not looked up. Keys are looked up by their hash, so no
    # comparison leaks time.
    known = API_KEY.fullmatch(presented)
    key = services.api_keys.find(api_key_hash(presented)) if known else None
    if key is None or not key.active_at(services.clock.now()):
        raise ApiKeyInvalid(
            "This API key is unknown, revoked or ended. Send it whole, without quotes; make one at "
            "/dashboard/keys."
        )
    services.api_keys.touch(key, services.clock.now())
    return key
