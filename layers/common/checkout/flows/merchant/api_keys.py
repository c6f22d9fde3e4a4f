"""A merchant's API keys: create, replace with an overlap, revoke; authenticate requests.

The plain text of a key is only in the return value of the call that creates the key, and in no
error, log or record. A request's key is looked up by its hash, and the error for a rejected key
does not show whether the key ever existed. A merchant cannot revoke its only full-access key
without an expiry date. Otherwise, the merchant could be left with keys that all expire or have
limited rights.

The newest refused requests of a key are stored so that the merchant can see them. Successful
requests and requests without a valid key are not stored. Each process stores only a limited number
of refused requests for each key, so a flood of wrong requests causes few writes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from checkout.domain.ground.errors import (
    ApiKeyInvalid,
    ApiKeyMissing,
    CheckoutError,
    Conflict,
    KeyUnexpectedState,
    ParameterInvalid,
    ParameterMissing,
    PermissionMissing,
    ResourceMissing,
)
from checkout.domain.ground.grammar import API_KEY
from checkout.domain.ground.ids import (
    api_key_hash,
    new_api_key,
    new_key_id,
    new_nonce,
)
from checkout.domain.ground.limits import REFUSAL
from checkout.domain.ground.names import is_name
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.doors import API
from checkout.domain.merchant.failed_requests import FailedRequest
from checkout.domain.merchant.people import GIVEN, USUAL, Actor, Member, RefundCap, Scope
from checkout.domain.merchant.record import ApiKey, Merchant
from checkout.flows import audit, merchants
from checkout.flows.idempotency import Reserve
from checkout.services import DashboardServices, Services

NAME_MAX: Final = 60  # characters
OVERLAP_MAX: Final = timedelta(days=7)
ACTIVE_MAX: Final = 20  # all active keys must fit into one transaction (change_copied)
ENDED_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class NewKey:
    """A new key. `plain` is shown once and never stored."""

    key: ApiKey
    plain: str = field(repr=False)


def new_key(services: Services, merchant: Merchant, *, name: str, **options: Any) -> NewKey:
    """Return a new key, which is not stored yet. `options` are further fields of its record."""
    plain = new_api_key(services.random_bytes, test=services.test)
    record = ApiKey(
        id=new_key_id(services.random_bytes),
        hash=api_key_hash(plain),
        merchant=merchant.id,
        name=name,
        last_four=plain[-4:],
        asset_code=merchant.asset_code,
        asset_scale=merchant.asset_scale,
        created_at=services.clock.now(),
        return_hosts=merchant.return_hosts,
        key_sign_in_off_at=merchant.key_sign_in_off_at,
        parts=merchant.parts,
        suspended=merchant.suspended,
        **options,
    )
    return NewKey(record, plain)


def successor(
    services: Services, merchant: Merchant, old: ApiKey, *, maker: str | None = None
) -> NewKey:
    """Return a new key with the rights of the old one. It is not stored yet.

    The new key's refunds have the old key's limits, and count towards the old key's daily total.
    """
    cap = old.refund_cap
    if cap is not None:
        cap = replace(cap, counted_as=cap.counted_as or old.id)
    options = {"ends_at": old.ends_at, "maker": maker or old.maker, "refund_cap": cap}
    return new_key(services, merchant, name=old.name, scopes=old.scopes, **options)


def listed(services: DashboardServices, key: Actor) -> tuple[ApiKey, ...]:
    """Return the active keys, then at most ENDED_SHOWN ended keys, each group newest first."""
    now = services.clock.now()
    keys = sorted(services.api_keys.of(key.merchant), key=_age, reverse=True)
    active = [each for each in keys if each.active_at(now)]
    ended = [each for each in keys if not each.active_at(now)]
    return (*active, *ended[:ENDED_SHOWN])


def create(
    services: DashboardServices,
    key: Actor,
    *,
    name: str,
    scopes: tuple[Scope, ...] = USUAL,
    ends_at: datetime | None = None,
    refund_cap: RefundCap | None = None,
    reserve: Reserve[NewKey] | None = None,
) -> NewKey:
    """Create a key with these scopes, which ends at `ends_at`, or never if `ends_at` is None.

    The new key cannot have more rights than its maker, the member or key `key`. If the maker is a
    key, the new key cannot be valid for longer than the maker. `reserve` makes the stored answer to
    the request's idempotency key, which is written together with the new key. Raise
    ParameterMissing, ParameterInvalid, KeyUnexpectedState, Conflict, PermissionMissing, and KeyHeld
    with `reserve`.
    """
    name = _name(name)
    now = services.clock.now()
    if ends_at is not None and ends_at <= now:
        raise ParameterInvalid("The expiry date must be in the future.", param="ends_at")
    _require_given(key, scopes, ends_at)
    if refund_cap is not None and Scope.REFUND not in scopes:
        raise ParameterInvalid(
            "Only a key with the scope `refund` can have these limits.", param="scopes"
        )
    # The merchant is read before its keys are counted, so that `add` notices a key that another
    # request creates after the count.
    merchant = merchants.get(services.merchants, key.merchant)
    if sum(each.active_at(now) for each in services.api_keys.of(key.merchant)) >= ACTIVE_MAX:
        raise KeyUnexpectedState(f"You have {ACTIVE_MAX} active keys; revoke one first.")
    maker = key.id if isinstance(key, Member) else None
    options = {"ends_at": ends_at, "maker": maker, "refund_cap": refund_cap}
    made = new_key(services, merchant, name=name, scopes=scopes, **options)
    reservation = reserve(made, new_nonce(services.random_bytes)) if reserve else None
    if not services.api_keys.add(made.key, merchant, reservation):
        raise _busy()
    audit.note(services, key, Action.KEY_CREATED, made.key.label)
    return made


def roll(services: DashboardServices, key: Actor, key_id: str, *, overlap: timedelta) -> NewKey:
    """Create a key with the rights of an old key, which ends after `overlap` (0 to 7 days).

    Raise ParameterInvalid, ResourceMissing, KeyUnexpectedState, Conflict, PermissionMissing.
    """
    if not timedelta(0) <= overlap <= OVERLAP_MAX:
        raise ParameterInvalid("The overlap must be 0 to 7 days.", param="overlap")
    old, now = _found(services, key, key_id), services.clock.now()
    if not (old.current and old.active_at(now)):
        raise KeyUnexpectedState("This key has expired, or was revoked or replaced.")
    _require_given(key, old.scopes, old.ends_at)
    merchant = merchants.get(services.merchants, key.merchant)
    maker = key.id if isinstance(key, Member) else None
    made = successor(services, merchant, old, maker=maker)
    ended = replace(old, expires_at=now + overlap) if overlap else replace(old, revoked_at=now)
    if not services.api_keys.roll(ended, made.key, merchant):
        raise _busy()
    audit.note(services, key, Action.KEY_ROLLED, f"{old.label} by {made.key.label}")
    return made


def revoke(services: DashboardServices, key: Actor, key_id: str) -> ApiKey:
    """Revoke the key, effective with the next request. Raise as `roll` does."""
    old = _found(services, key, key_id)
    if old.revoked_at is not None:
        raise KeyUnexpectedState("This key has already been revoked.")
    others = [each for each in _all(services, key.merchant, key) if each.id != old.id]
    kept = next((each for each in others if each.lasting), None)
    if kept is None:
        raise KeyUnexpectedState(
            "This is your last full-access key without an expiry date. Create another before you "
            "revoke it."
        )
    revoked = replace(old, revoked_at=services.clock.now())
    if not services.api_keys.revoke(revoked, kept):
        raise _busy()
    audit.note(services, key, Action.KEY_REVOKED, old.label)
    return revoked


def given(actor: Actor) -> frozenset[Scope]:
    """Return the scopes that this actor may give to a key."""
    own = GIVEN[actor.role]
    return own & frozenset(actor.scopes) if isinstance(actor, ApiKey) else own


def _require_given(actor: Actor, scopes: tuple[Scope, ...], ends_at: datetime | None) -> None:
    """Raise PermissionMissing for a scope that the actor cannot give.

    Raise ParameterInvalid if the actor is a key that ends before `ends_at`, because a key cannot
    make a key that is valid for longer than itself.
    """
    if not given(actor).issuperset(scopes):
        raise PermissionMissing(
            "This key would have more rights than you. Ask an owner of your shop to create it."
        )
    last = actor.lasts_until
    if last is not None and (ends_at is None or ends_at > last):
        raise ParameterInvalid(
            "The key that you signed in with has an expiry date, so a new key cannot expire later.",
            param="ends_at",
        )


def change_copied(
    services: DashboardServices,
    merchant_id: str,
    fields: Callable[[Merchant], dict[str, Any]],
    *,
    actor: Actor | None = None,
) -> Merchant:
    """Change fields of the merchant's record that are copied to the records of its API keys.

    One transaction writes the merchant and all active keys. Raise ResourceMissing, Conflict.
    """
    now = services.clock.now()
    active = [each for each in _all(services, merchant_id, actor) if each.active_at(now)]
    return merchants.change(
        services.merchants,
        merchant_id,
        lambda merchant: merchant.changed(**fields(merchant)),
        lambda merchant: services.api_keys.settle(merchant, active),
    )


def _all(services: DashboardServices, merchant: str, actor: Actor | None) -> list[ApiKey]:
    """Return the merchant's keys: those in the index, and the actor if the actor is a key.

    The index is updated with a little delay, so it may not contain the actor's key yet.
    """
    known = {each.id: each for each in services.api_keys.of(merchant)}
    if isinstance(actor, ApiKey):
        known[actor.id] = actor
    return list(known.values())


def _found(services: DashboardServices, key: Actor, key_id: str) -> ApiKey:
    """Return the merchant's key with this id. Raise ResourceMissing."""
    if isinstance(key, ApiKey) and key_id == key.id:
        return key
    for each in services.api_keys.of(key.merchant):
        if each.id == key_id:
            return each
    raise ResourceMissing("No such key.")


def _name(typed: str) -> str:
    name = typed.strip()
    if not name:
        raise ParameterMissing("Give the key a name, so that you can recognize it.", param="name")
    if not is_name(name, NAME_MAX):
        raise ParameterInvalid(
            f"The name must be 1 to {NAME_MAX} printable characters.", param="name"
        )
    return name


def _age(key: ApiKey) -> tuple[float, str]:
    return (key.created_at.timestamp(), key.id)


def _busy() -> Conflict:
    return Conflict("Your keys or settings have changed in the meantime. Check them and try again.")


_READING: Final = ("GET", "HEAD")


def scope_of(method: str, route: str) -> Scope:
    """Return the scope that a route needs; `route` is its path, with names in place of ids.

    If no such route exists, methods that only read need the scope to read, and all other methods
    need the scope to manage.
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

    The key needs the scope of the method and the route (`scope_of`). Before this scope is checked,
    `known` is called with the key, so that the caller can store a refusal for this key. Raises
    ApiKeyMissing if there are no bearer credentials, PermissionMissing if the key lacks the scope,
    and the errors of `active_key`.
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
            f"This API key lacks the scope “{scope}”, which this request needs. Create a key with "
            "this scope at /dashboard/keys."
        )
    return key


def active_key(services: Services, presented: str) -> ApiKey:
    """Return the presented key, and record its use.

    Raises the same ApiKeyInvalid for an unknown, a revoked and an expired key.
    """
    # A text that cannot be a key is not looked up. Keys are looked up by their hash, so the time
    # that a lookup takes reveals nothing about stored keys.
    known = API_KEY.fullmatch(presented)
    key = services.api_keys.find(api_key_hash(presented)) if known else None
    if key is None or not key.active_at(services.clock.now()):
        raise ApiKeyInvalid(
            "This API key is unknown, was revoked, or has expired. Send the complete key, without "
            "quotes. You can create a key at /dashboard/keys."
        )
    services.api_keys.touch(key, services.clock.now())
    return key


def note_failed_request(services: Services, key: ApiKey, refusal: FailedRequest) -> None:
    """Store a refused request if possible. Never raises."""
    if services.limits.take(REFUSAL, key.id):
        return
    try:
        stored = services.failed_requests.of(key.id)
        services.failed_requests.put(stored.with_one(refusal))
    except CheckoutError:
        return


def failed_requests_of(
    services: DashboardServices, actor: Actor, key_id: str
) -> tuple[ApiKey, tuple[FailedRequest, ...]]:
    """Return a key of the actor's merchant with its refused requests, newest first.

    Raise ResourceMissing.
    """
    keys = services.api_keys.of(actor.merchant)
    key = next((each for each in keys if each.id == key_id), None)
    if key is None:
        raise ResourceMissing("No such API key.")
    return key, services.failed_requests.of(key.id).kept_at(services.clock.now())
