"""A merchant's people: invite people by a link, change members' roles, revoke members.

An invitation ends when its sender loses the right to invite. API keys that a former owner created
still work, because servers depend on these keys. The dashboard shows these keys to the owners until
an owner has replaced or revoked them.

The first member must be an owner, and an only owner cannot be removed. So if there are members, at
least one is an owner with a passkey who can manage the others. Signing in to the dashboard with API
keys is then not necessary, and the merchant can stop it. The plain text of a link's token is only
in the return value of the call that created the link.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from checkout.domain.ground.errors import (
    Conflict,
    MemberUnexpectedState,
    ParameterInvalid,
    ParameterMissing,
    ResourceMissing,
)
from checkout.domain.ground.grammar import MEMBER_ID
from checkout.domain.ground.ids import (
    api_key_hash,
    new_invitation_id,
    new_invitation_token,
    new_member_id,
    new_nonce,
)
from checkout.domain.ground.money import from_minor_units
from checkout.domain.ground.names import is_plain_name
from checkout.domain.merchant.audit import Action
from checkout.domain.merchant.people import (
    INVITATION_LASTS,
    MEMBERS_MAX,
    NAME_MAX,
    NEW_SHOP,
    Actor,
    Invitation,
    Member,
    RefundCap,
    Role,
)
from checkout.domain.merchant.reach import Effect, require
from checkout.domain.merchant.record import ApiKey
from checkout.flows import audit, merchants
from checkout.flows.idempotency import Reserve
from checkout.flows.merchant import api_keys
from checkout.services import DashboardServices

OPERATOR: Final = "operator"
REVOKED_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Invited:
    """A new invitation. Its `link` is shown once and never stored."""

    invitation: Invitation
    link: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class PeopleList:
    """The active members, the newest revoked members and the open invitations.

    Each of the three lists is newest first. `everybody` contains all present and former members.
    """

    everybody: tuple[Member, ...]
    members: tuple[Member, ...]
    invitations: tuple[Invitation, ...]


def listed(services: DashboardServices, merchant: str) -> PeopleList:
    """Return the people of a merchant, with two queries."""
    now = services.clock.now()
    members = sorted(services.people.members_of(merchant), key=_age, reverse=True)
    active = [each for each in members if each.active]
    revoked = [each for each in members if not each.active]
    invitations = sorted(services.people.invitations_of(merchant), key=_age, reverse=True)
    return PeopleList(
        tuple(members),
        (*active, *revoked[:REVOKED_SHOWN]),
        tuple(each for each in invitations if each.open_at(now)),
    )


def invite(
    services: DashboardServices,
    actor: Actor,
    *,
    name: str,
    role: Role,
    reserve: Reserve[Invited] | None = None,
) -> Invited:
    """Invite a person.

    `reserve` makes the stored answer to the request's idempotency key, which is written together
    with the invitation. Raise ParameterMissing, ParameterInvalid, MemberUnexpectedState,
    MerchantUnproven, MerchantSuspended, and KeyHeld with `reserve`.
    """
    require(merchants.get(services.merchants, actor.merchant), Effect.INVITATION)
    invited = invite_to(
        services, actor.merchant, name=name, role=role, invited_by=actor.id, reserve=reserve
    )
    audit.note(services, actor, Action.MEMBER_INVITED, f"{invited.invitation.name}, {role}")
    return invited


def invite_to(
    services: DashboardServices,
    merchant: str,
    *,
    name: str,
    role: Role,
    invited_by: str = OPERATOR,
    reserve: Reserve[Invited] | None = None,
) -> Invited:
    """Invite a person as the operator, without an entry in the audit log. Raise as `invite`."""
    name = _name(name)
    people = listed(services, merchant)
    active = [each for each in people.members if each.active]
    if len(active) + len(people.invitations) >= MEMBERS_MAX:
        raise MemberUnexpectedState(
            f"You already have {MEMBERS_MAX} members and open invitations, which is the maximum."
        )
    if role is not Role.OWNER and not any(each.owns for each in active):
        raise MemberUnexpectedState(
            "The first member must be an owner. Invite yourself first, and accept the invitation."
        )
    return _invited(services, merchant, name, role, invited_by, reserve)


def invite_shop(services: DashboardServices, *, name: str) -> Invited:
    """Invite a person, as the operator, to sign up with a shop of their own.

    Raise ParameterMissing, ParameterInvalid.
    """
    invited = _invited(services, NEW_SHOP, _name(name), Role.OWNER, OPERATOR)
    token = invited.link.rpartition("/")[2]
    return Invited(invited.invitation, f"{services.base_url}/dashboard/sign-up/{token}")


def _invited(
    services: DashboardServices,
    merchant: str,
    name: str,
    role: Role,
    invited_by: str,
    reserve: Reserve[Invited] | None = None,
) -> Invited:
    """Store an invitation, and return it with its link."""
    token, now = new_invitation_token(services.random_bytes), services.clock.now()
    invitation = Invitation(
        id=new_invitation_id(services.random_bytes),
        hash=api_key_hash(token),
        merchant=merchant,
        member=new_member_id(services.random_bytes),
        name=name,
        role=role,
        invited_by=invited_by,
        created_at=now,
        expires_at=now + INVITATION_LASTS,
    )
    invited = Invited(invitation, f"{services.base_url}/dashboard/invitation/{token}")
    writer = new_nonce(services.random_bytes)
    services.people.invite(invitation, reserve(invited, writer) if reserve else None)
    return invited


def withdraw(services: DashboardServices, actor: Actor, invitation_id: str) -> None:
    """End an invitation. Raise ResourceMissing, MemberUnexpectedState."""
    found = services.people.invitations_of(actor.merchant)
    invitation = next((each for each in found if each.id == invitation_id), None)
    if invitation is None:
        raise ResourceMissing("No such invitation.")
    if not services.people.withdraw(replace(invitation, ended_at=services.clock.now())):
        raise MemberUnexpectedState("This invitation was already accepted or withdrawn.")
    audit.note(services, actor, Action.INVITATION_WITHDRAWN, invitation.name)


def find(services: DashboardServices, actor: Actor, member_id: str) -> Member:
    """Return the merchant's active member. Raise ResourceMissing, MemberUnexpectedState."""
    known = {each.id for each in services.people.members_of(actor.merchant)}
    member = services.people.member(member_id) if member_id in known else None
    if member is None:
        raise ResourceMissing("No such member.")
    if not member.active:
        raise MemberUnexpectedState("This member has been revoked.")
    return member


def change_role(services: DashboardServices, actor: Actor, member_id: str, role: Role) -> None:
    """Give a member another role, which applies from their next request on.

    Raise ResourceMissing, MemberUnexpectedState, Conflict.
    """
    member = find(services, actor, member_id)
    unlimited = {"refund_cap": None} if role is Role.OWNER else {}
    changed = member.changed(role=role, **unlimited)
    _write(services, member, changed)
    if not changed.owns:
        _end_invitations(services, member.id, actor)
    target = f"{member.id} {member.name}: {member.role} to {role}"
    audit.note(services, actor, Action.MEMBER_ROLE_CHANGED, target)


def limit_refunds(
    services: DashboardServices, actor: Actor, member: Member, cap: RefundCap | None
) -> None:
    """From a member's next request on, limit their refunds to `cap`; None forbids refunds.

    Raise MemberUnexpectedState, Conflict.
    """
    if member.role is Role.OWNER:
        raise MemberUnexpectedState("An owner's refunds cannot be limited.")
    _write(services, member, member.changed(refund_cap=cap))
    target = f"{member.id} {member.name}: refunds {_at_most(actor, cap)}"
    audit.note(services, actor, Action.MEMBER_ROLE_CHANGED, target)


def _at_most(actor: Actor, cap: RefundCap | None) -> str:
    if cap is None:
        return "nothing"
    said = {
        how: from_minor_units(value, currency=actor.asset_code, wallet_scale=actor.asset_scale)
        for how, value in (("each", cap.once), ("a day", cap.day))
        if value is not None
    }
    return "at most " + " and ".join(f"{amount} {how}" for how, amount in said.items())


def revoke(services: DashboardServices, actor: Actor, member_id: str) -> None:
    """Revoke a member. Their sign-ins end with their next request. Raise as `change_role` does."""
    member = find(services, actor, member_id)
    _write(services, member, member.changed(revoked_at=services.clock.now()))
    _end_invitations(services, member.id, actor)
    audit.note(services, actor, Action.MEMBER_REVOKED, f"{member.id} {member.name}")


def inviter_owns(services: DashboardServices, invitation: Invitation) -> Member | bool:
    """Return whether an invitation's sender may still invite.

    The sender is a member, an API key or the operator. If a member may invite, return this member
    instead of True. The operator may always invite. A key may invite while it is valid and can sign
    in as an owner.
    """
    inviter = invitation.invited_by
    if inviter == OPERATOR:
        return True
    if MEMBER_ID.fullmatch(inviter):
        member = services.people.member(inviter)
        return member if member is not None and member.owns else False
    now = services.clock.now()
    keys = services.api_keys.of(invitation.merchant)
    return any(key.id == inviter and key.active_at(now) and key.owns for key in keys)


def left_keys(
    services: DashboardServices,
    keys: Sequence[ApiKey],
    members: Sequence[Member] | None = None,
) -> tuple[tuple[ApiKey, Member], ...]:
    """Return the valid API keys that their maker could no longer create, with these makers.

    Such a key has a right that its maker has lost since then.

    `members` are the merchant's members if the caller has already read them.
    """
    now = services.clock.now()
    made = [each for each in keys if each.maker is not None and each.active_at(now)]
    if made and members is None:
        members = services.people.members_of(made[0].merchant)
    makers = {each.id: each for each in members or ()}
    found = ((key, makers[key.maker]) for key in made if key.maker in makers)
    return tuple((key, maker) for key, maker in found if not _gives(maker, key))


def _gives(maker: Member, key: ApiKey) -> bool:
    return maker.active and api_keys.given(maker).issuperset(key.scopes)


def _end_invitations(services: DashboardServices, inviter: str, actor: Actor) -> None:
    """End a former owner's open invitations.

    The index can be out of date. If an invitation is missed here, it is refused when it is used.
    """
    now = services.clock.now()
    for each in services.people.invitations_of(actor.merchant):
        if each.invited_by == inviter and each.open_at(now):
            services.people.withdraw(replace(each, ended_at=now))
            audit.note(services, actor, Action.INVITATION_WITHDRAWN, each.name)


def allow_key_sign_in(services: DashboardServices, actor: Actor, *, allowed: bool) -> None:
    """Allow or stop signing in to the dashboard with API keys. Stopping signs out every key.

    Each key's record has a copy of this setting. The copies are written even if the setting does
    not change, because a key that was created during an earlier change has an old copy. Raise
    Conflict, and MemberUnexpectedState if no owner has a passkey.
    """
    members = services.people.members_of(actor.merchant)
    if not allowed and not any(each.owns for each in members):
        raise MemberUnexpectedState(
            "With this change, nobody could sign in. An owner must first accept an invitation."
        )
    off_at = None if allowed else services.clock.now()
    fields = {"key_sign_in_off_at": off_at}
    api_keys.change_copied(services, actor.merchant, lambda _: fields, actor=actor)
    action = Action.KEY_SIGN_IN_ALLOWED if allowed else Action.KEY_SIGN_IN_ENDED
    audit.note(services, actor, action)


def _write(services: DashboardServices, before: Member, after: Member) -> None:
    """Write the next version of a member. Raise MemberUnexpectedState if no owner would be left.

    Raise Conflict if the people have changed since they were read.
    """
    kept = None
    if before.owns and not after.owns:
        others = services.people.members_of(before.merchant)
        kept = next((each for each in others if each.owns and each.id != before.id), None)
        if kept is None:
            raise MemberUnexpectedState(
                "This is the last owner. First make another member an owner."
            )
    if not services.people.replace(after, kept):
        raise Conflict("Your people have changed in the meantime. Check them and try again.")


def _name(typed: str) -> str:
    name = typed.strip()
    if not name:
        raise ParameterMissing("Give the name of the person.", param="name")
    if not is_plain_name(name, NAME_MAX):
        raise ParameterInvalid(
            f"The name must be 1 to {NAME_MAX} letters, digits and signs, without a web or e-mail "
            "address.",
            param="name",
        )
    return name


def _age(each: Member | Invitation) -> tuple[float, str]:
    return (each.created_at.timestamp(), each.id)
