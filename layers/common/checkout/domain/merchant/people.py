"""The people of a merchant: members with a role, their passkeys, invitations and sign-ins.

This module also lists the rights of roles and API keys in the dashboard. An actor is the key or
member on whose behalf an operation runs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Protocol

from checkout.domain.ground.parts import Lists

INVITATION_LASTS: Final = timedelta(days=7)
CHALLENGE_LASTS: Final = timedelta(minutes=5)
NAME_MAX: Final = 60  # characters of a member's name
OWNER_OF: Final = "Owner"  # the name of a passkey whose member has no name
NEW_SHOP: Final = "new"  # the merchant of an invitation to sign up with a new shop
MEMBERS_MAX: Final = 50  # active members and open invitations of one merchant


class SignUp(StrEnum):
    """Who can sign up with a shop of their own. The operator chooses this."""

    CLOSED = "closed"  # nobody; the operator sets merchants up
    INVITATION = "invitation"  # people to whom the operator gives a link
    OPEN = "open"


class Right(StrEnum):
    """A right in the dashboard. Each route declares the right that it needs."""

    READ = "read"
    NOTE = "note"  # private notes and tags on sessions
    INTEGRATE = "integrate"  # API keys and webhooks
    REFUND = "refund"  # request refunds, up to the actor's limits
    MANAGE = "manage"  # everything else: sessions, links, settings
    OWN = "own"  # the refund budget, which pays without approvals, and the rights of people


class Role(StrEnum):
    """A member's role."""

    SUPPORT = "support"
    DEVELOPER = "developer"
    OWNER = "owner"


class Scope(StrEnum):
    """A scope of an API key."""

    READ = "read"
    WRITE = "write"  # create sessions
    MANAGE = "manage"  # end a session, accept it as paid, give it up; webhook endpoints
    REFUND = "refund"  # request and cancel refunds


# The scopes of a key unless others are chosen. `refund` is not one of them, because keys that are
# older than this scope could not refund.
USUAL: Final = (Scope.READ, Scope.WRITE, Scope.MANAGE)

RIGHTS: Final[dict[Role, frozenset[Right]]] = {
    Role.SUPPORT: frozenset({Right.READ, Right.NOTE}),
    Role.DEVELOPER: frozenset({Right.READ, Right.NOTE, Right.INTEGRATE}),
    Role.OWNER: frozenset(Right),
}


# The scopes that a member with this role can give to a key, never more than the role's rights.
GIVEN: Final[dict[Role, frozenset[Scope]]] = {
    Role.SUPPORT: frozenset(),
    Role.DEVELOPER: frozenset({Scope.READ, Scope.WRITE}),
    Role.OWNER: frozenset(Scope),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundCap:
    """The most that an actor can refund at once, and in a day (UTC); None means no limit.

    The limits are in minor units of the merchant's currency. The limits apply to the requested
    amounts, even of canceled refunds. If a refund that is paid from the refund budget costs more
    than its amount, the excess also counts, unless a person has approved the refund. `counted_as`
    is the id of the first key in a series of keys that replace each other; all keys of the series
    share one daily limit.
    """

    once: int | None = None
    day: int | None = None
    counted_as: str | None = None


class Actor(Protocol):
    """An API key or a member that acts. History and audit log show the actor by its `label`."""

    @property
    def id(self) -> str: ...

    @property
    def merchant(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def role(self) -> Role: ...

    @property
    def asset_code(self) -> str: ...

    @property
    def asset_scale(self) -> int: ...

    @property
    def lists(self) -> Lists: ...

    @property
    def refund_cap(self) -> RefundCap | None: ...

    @property
    def moves_money(self) -> bool:
        """Whether the actor can use the role's rights to move money and give rights to others."""
        ...

    @property
    def lasts_until(self) -> datetime | None:
        """The actor's end, if known. Nothing that the actor creates outlives the actor."""
        ...


def rights_of(actor: Actor) -> frozenset[Right]:
    """Return the actor's rights in the dashboard: those of the role, and refunds up to a limit.

    An API key without the scope `refund` can neither move money nor give rights in the dashboard.
    """
    limited = actor.refund_cap is not None
    rights = RIGHTS[actor.role] | (frozenset({Right.REFUND}) if limited else frozenset())
    return rights if actor.moves_money else rights - {Right.REFUND, Right.OWN}


def may(actor: Actor, right: Right) -> bool:
    """Return whether the actor has this right in the dashboard."""
    return right in rights_of(actor)


def counted_as(actor: Actor) -> str:
    """Return the id under which refunds of the actor, and of replaced keys, are added up."""
    cap = actor.refund_cap
    return (cap.counted_as if cap is not None else None) or actor.id


@dataclass(frozen=True, slots=True, kw_only=True)
class Passkey:
    """A WebAuthn credential. `id` is in base64url, `public_key` in COSE form.

    `sign_count` is the authenticator's counter when the passkey was last used. For many
    authenticators the counter is always 0.
    """

    id: str
    public_key: bytes = field(repr=False)
    sign_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A person of a merchant, who signs in with a passkey.

    `refund_cap` limits the member's refunds. An owner has no limit, because an owner could change
    it. The merchant's asset is copied here, as it is copied to keys. `parts`, the number of parts
    of the merchant's lists, is copied again at each request, because it can grow. `invited_by` is
    the id of the actor who invited the member. `version` grows by one with each write.
    """

    id: str
    merchant: str
    name: str
    role: Role
    passkey: Passkey
    asset_code: str
    asset_scale: int
    invited_by: str
    created_at: datetime
    parts: int = 1
    version: int = 1
    last_used_at: datetime | None = None
    revoked_at: datetime | None = None
    refund_cap: RefundCap | None = None

    @property
    def label(self) -> str:
        return self.name

    @property
    def active(self) -> bool:
        return self.revoked_at is None

    @property
    def lists(self) -> Lists:
        return Lists(self.merchant, self.parts)

    @property
    def lasts_until(self) -> datetime | None:
        return None

    @property
    def moves_money(self) -> bool:
        return True  # a member has all rights of the role

    @property
    def owns(self) -> bool:
        """Whether this is an active owner."""
        return self.active and self.role is Role.OWNER

    def changed(self, **fields: Any) -> Member:
        """Return the next version, with these fields, for `People.replace` to write."""
        return replace(self, version=self.version + 1, **fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invitation:
    """An invitation to become a member, by a link that works once.

    `hash` is the SHA-256 of the link's token. `member` is the id that the member will have. If the
    invitation is to sign up with a new shop, `merchant` is NEW_SHOP.
    """

    id: str
    hash: str
    merchant: str
    member: str
    name: str
    role: Role
    invited_by: str
    created_at: datetime
    expires_at: datetime
    ended_at: datetime | None = None

    def open_at(self, now: datetime) -> bool:
        """Return whether the invitation can still be accepted."""
        return self.ended_at is None and now < self.expires_at


IDLE: Final = timedelta(minutes=30)
LONGEST: Final = timedelta(hours=12)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A signed-in browser.

    `id` is the SHA-256 of the cookie's value. The browser signed in with the API key that has this
    `key_hash`, or as the member with the id `member`.
    """

    id: str
    key_hash: str | None = None
    member: str | None = None
    created_at: datetime
    seen_at: datetime

    def live_at(self, now: datetime) -> bool:
        return now < self.ends_at

    @property
    def ends_at(self) -> datetime:
        """The time at which the sign-in ends if it is not used again."""
        return min(self.seen_at + IDLE, self.created_at + LONGEST)

    def seen(self, now: datetime) -> SignIn:
        return replace(self, seen_at=now)
