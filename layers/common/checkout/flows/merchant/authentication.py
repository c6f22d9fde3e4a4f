"""Who is calling the merchant API: a presented key, looked up by its hash.

Refuses without saying whether a key ever existed. The plain key is in no error, log or record.
"""

from __future__ import annotations

from checkout.domain.errors import ApiKeyInvalid, ApiKeyMissing
from checkout.domain.grammar import API_KEY
from checkout.domain.ids import api_key_hash
from checkout.domain.merchant import ApiKey
from checkout.ports.services import Services


def authenticate(services: Services, authorization: str | None) -> ApiKey:
    """The key named by an `Authorization: Bearer sk_…` header's value (RFC 6750 section 2.1).

    Raises ApiKeyMissing (no bearer credentials), ApiKeyInvalid (unknown, revoked or expired: one
    answer).
    """
    scheme, _, credentials = (authorization or "").strip().partition(" ")
    presented = credentials.strip()
    if scheme.lower() != "bearer" or not presented:
        raise ApiKeyMissing("Send your API key in the header Authorization: Bearer sk_….")
    # What cannot be a key is not looked up; the hash is the look-up, so no comparison leaks time.
    known = API_KEY.fullmatch(presented)
    key = services.api_keys.find(api_key_hash(presented)) if known else None
    if key is None or not key.active_at(services.clock.now()):
        raise ApiKeyInvalid("This API key is not valid.")
    services.api_keys.touch(key, services.clock.now())
    return key
