"""A merchant's API keys: made with a name, replaced with an overlap, revoked.

A key in the clear is in the answer of the call that made it, and nowhere else. Refuses to take away
the last key that lasts: without one nobody could sign in to make another.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from checkout.domain.audit import Action
from checkout.domain.errors import (
    Conflict,
    KeyUnexpectedState,
    ParameterInvalid,
    ParameterMissing,
    ResourceMissing,
)
from checkout.domain.ids import api_key_hash, new_api_key, new_key_id
from checkout.domain.merchant import ApiKey, Merchant
from checkout.flows import audit, merchants
from checkout.ports.services import DashboardServices, Services

NAME_MAX: Final = 60  # characters
OVERLAP_MAX: Final = timedelta(days=7)
ACTIVE_MAX: Final = 20  # a change of the return hosts is written to all of them at once
ENDED_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class NewKey:
    """`plain` is shown once and stored nowhere."""

    key: ApiKey
    plain: str = field(repr=False)


def new_key(services: Services, merchant: Merchant, *, name: str) -> NewKey:
    """A fresh key that is not stored yet."""
    plain = new_api_key(services.random_bytes)
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
    )
    return NewKey(record, plain)


def listed(services: DashboardServices, who: ApiKey) -> tuple[ApiKey, ...]:
    """The active keys and the last ones that ended, each newest first. One query."""
    now = services.clock.now()
    keys = sorted(services.api_keys.of(who.merchant), key=_age, reverse=True)
    active = [key for key in keys if key.active_at(now)]
    ended = [key for key in keys if not key.active_at(now)]
    return (*active, *ended[:ENDED_SHOWN])


def create(services: DashboardServices, who: ApiKey, *, name: str) -> NewKey:
    """Another key. Raises ParameterMissing, ParameterInvalid, KeyUnexpectedState, Conflict."""
    name = _name(name)
    now = services.clock.now()
    if sum(key.active_at(now) for key in services.api_keys.of(who.merchant)) >= ACTIVE_MAX:
        raise KeyUnexpectedState(f"You have {ACTIVE_MAX} active keys; revoke one first.")
    merchant = merchants.get(services.merchants, who.merchant)
    made = new_key(services, merchant, name=name)
    if not services.api_keys.add(made.key, merchant):
        raise _busy()
    audit.note(services, who, Action.KEY_CREATED, _called(made.key))
    return made


def roll(services: DashboardServices, who: ApiKey, key_id: str, *, overlap: timedelta) -> NewKey:
    """A new key in the place of that one, which ends when `overlap` (0 to 7 days) is over.

    Raises ParameterInvalid, ResourceMissing, KeyUnexpectedState, Conflict.
    """
    if not timedelta(0) <= overlap <= OVERLAP_MAX:
        raise ParameterInvalid("The overlap must be 0 to 7 days.", param="overlap")
    old = _found(services, who, key_id)
    if not old.lasting:
        raise KeyUnexpectedState("This key was revoked or replaced already.")
    now, merchant = services.clock.now(), merchants.get(services.merchants, who.merchant)
    made = new_key(services, merchant, name=old.name)
    ended = replace(old, expires_at=now + overlap) if overlap else replace(old, revoked_at=now)
    if not services.api_keys.roll(ended, made.key, merchant):
        raise _busy()
    audit.note(services, who, Action.KEY_ROLLED, f"{_called(old)} by {_called(made.key)}")
    return made


def revoke(services: DashboardServices, who: ApiKey, key_id: str) -> ApiKey:
    """From the next request on, the key is none any more. Raises as `roll` does."""
    key = _found(services, who, key_id)
    if key.revoked_at is not None:
        raise KeyUnexpectedState("This key was revoked already.")
    others = [each for each in (who, *services.api_keys.of(who.merchant)) if each.id != key.id]
    kept = next((each for each in others if each.lasting), None)
    if kept is None:
        raise KeyUnexpectedState(
            "This is your last key: create another one first, and then revoke this one."
        )
    revoked = replace(key, revoked_at=services.clock.now())
    if not services.api_keys.revoke(revoked, kept):
        raise _busy()
    audit.note(services, who, Action.KEY_REVOKED, _called(key))
    return revoked


def _found(services: DashboardServices, who: ApiKey, key_id: str) -> ApiKey:
    """Only among the merchant's own."""
    if key_id == who.id:
        return who
    for key in services.api_keys.of(who.merchant):
        if key.id == key_id:
            return key
    raise ResourceMissing("No such key.")


def _name(typed: str) -> str:
    name = typed.strip()
    if not name:
        raise ParameterMissing("Give the key a name, so that you will know it again.", param="name")
    if len(name) > NAME_MAX or not name.isprintable():
        raise ParameterInvalid(
            f"The name must be 1 to {NAME_MAX} printable characters.", param="name"
        )
    return name


def _age(key: ApiKey) -> tuple[float, str]:
    return (key.created_at.timestamp(), key.id)


def _called(key: ApiKey) -> str:
    return f"{key.name} (…{key.last_four})"


def _busy() -> Conflict:
    return Conflict("Your keys or settings were changed meanwhile. Look at them and try again.")
