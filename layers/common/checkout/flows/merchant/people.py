"""A merchant's people: invite them by a link, change their role, revoke them.

The first member is an owner, and the last owner stays. So where there are members there is somebody
who can manage them with a passkey, and a merchant may then end the sign-in with API keys.
A link's token in clear text is only in the return value of the call that created it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Final

from checkout.domain.audit import Action
from checkout.domain.errors import (
    Conflict,
    MemberUnexpectedState,
    ParameterInvalid,
    ParameterMissing,
    ResourceMissing,
)
from checkout.domain.ids import (
    api_key_hash,
    new_invitation_id,
    new_invitation_token,
    new_member_id,
)
from checkout.domain.people import (
    INVITATION_LASTS,
    MEMBERS_MAX,
    NAME_MAX,
    Actor,
    Invitation,
    Member,
    Role,
)
from checkout.flows import audit
from checkout.flows.merchant import api_keys
from checkout.ports.services import DashboardServices

OPERATOR: Final = "operator"
REVOKED_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class Invited:
    """A new invitation; its `link` is shown once and stored nowhere."""

    invitation: Invitation
    link: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Listed:
    """The active members and the last revoked ones, and the open invitations, newest first."""

    members: tuple[Member, ...]
    invitations: tuple[Invitation, ...]


def listed(services: DashboardServices, merchant: str) -> Listed:
    """Return the people of a merchant, with two queries."""
    now = services.clock.now()
    members = sorted(services.people.members_of(merchant), key=_age, reverse=True)
    active = [each for each in members if each.active]
    revoked = [each for each in members if not each.active]
    invitations = sorted(services.people.invitations_of(merchant), key=_age, reverse=True)
    return Listed(
        (*active, *revoked[:REVOKED_SHOWN]),
        tuple(each for each in invitations if each.open_at(now)),
    )


def invite(services: DashboardServices, actor: Actor, *, name: str, role: Role) -> Invited:
    """Invite a person. Raise ParameterMissing, ParameterInvalid, MemberUnexpectedState."""
    invited = invite_to(services, actor.merchant, name=name, role=role, invited_by=actor.id)
    audit.note(services, actor, Action.MEMBER_INVITED, f"{invited.invitation.name}, {role}")
    return invited


def invite_to(
    services: DashboardServices, merchant: str, *, name: str, role: Role, invited_by: str = OPERATOR
) -> Invited:
    """Invite a person as the operator, without an entry in the audit log. Raise as `invite`."""
    name = _name(name)
    people = listed(services, merchant)
    active = [each for each in people.members if each.active]
    if len(active) + len(people.invitations) >= MEMBERS_MAX:
        raise MemberUnexpectedState(f"You have {MEMBERS_MAX} members and open invitations.")
    if role is not Role.OWNER and not any(each.owns for each in active):
        raise MemberUnexpectedState(
            "The first member must be an owner: invite yourself first, and accept."
        )
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
    services.people.invite(invitation)
    return Invited(invitation, f"{services.base_url}/dashboard/invitation/{token}")


def withdraw(services: DashboardServices, actor: Actor, invitation_id: str) -> None:
    """End an invitation. Raise ResourceMissing, MemberUnexpectedState."""
    found = services.people.invitations_of(actor.merchant)
    invitation = next((each for each in found if each.id == invitation_id), None)
    if invitation is None:
        raise ResourceMissing("No such invitation.")
    if not services.people.withdraw(replace(invitation, ended_at=services.clock.now())):
        raise MemberUnexpectedState("This invitation was accepted or withdrawn before.")
    audit.note(services, actor, Action.INVITATION_WITHDRAWN, invitation.name)


def change_role(services: DashboardServices, actor: Actor, member_id: str, role: Role) -> None:
    """Give a member another role, from their next request on.

    Raise ResourceMissing, MemberUnexpectedState, Conflict.
    """
    member = _found(services, actor, member_id)
    _write(services, member, member.changed(role=role))
    target = f"{member.id} {member.name}: {member.role} to {role}"
    audit.note(services, actor, Action.MEMBER_ROLE_CHANGED, target)


def revoke(services: DashboardServices, actor: Actor, member_id: str) -> None:
    """Revoke a member, whose sign-ins end with their next request. Raise as `change_role`."""
    member = _found(services, actor, member_id)
    _write(services, member, member.changed(revoked_at=services.clock.now()))
    audit.note(services, actor, Action.MEMBER_REVOKED, f"{member.id} {member.name}")


def allow_key_sign_in(services: DashboardServices, actor: Actor, *, allowed: bool) -> None:
    """Let API keys sign in to the dashboard, or not any more: also those that are signed in.

    They are written even if nothing changes, which repairs a key that was created at the same time.
    Raise MemberUnexpectedState unless there is an owner with a passkey, Conflict.
    """
    members = services.people.members_of(actor.merchant)
    if not allowed and not any(each.owns for each in members):
        raise MemberUnexpectedState(
            "Nobody could sign in any more: an owner must have accepted an invitation first."
        )
    off_at = None if allowed else services.clock.now()
    fields = {"key_sign_in_off_at": off_at}
    api_keys.change_copied(services, actor.merchant, lambda _: fields, actor=actor)
    action = Action.KEY_SIGN_IN_ALLOWED if allowed else Action.KEY_SIGN_IN_ENDED
    audit.note(services, actor, action)


def _write(services: DashboardServices, before: Member, after: Member) -> None:
    """Write the next version of a member; an owner who is none any more leaves another one."""
    kept = None
    if before.owns and not after.owns:
        others = services.people.members_of(before.merchant)
        kept = next((each for each in others if each.owns and each.id != before.id), None)
        if kept is None:
            raise MemberUnexpectedState("This is the last owner: make another member an owner.")
    if not services.people.replace(after, kept):
        raise Conflict("Your people have changed in the meantime. Check them and try again.")


def _found(services: DashboardServices, actor: Actor, member_id: str) -> Member:
    """Return the merchant's active member. Raise ResourceMissing, MemberUnexpectedState."""
    known = {each.id for each in services.people.members_of(actor.merchant)}
    member = services.people.member(member_id) if member_id in known else None
    if member is None:
        raise ResourceMissing("No such member.")
    if not member.active:
        raise MemberUnexpectedState("This member has been revoked.")
    return member


def _name(typed: str) -> str:
    name = typed.strip()
    if not name:
        raise ParameterMissing("Give the name of the person.", param="name")
    if len(name) > NAME_MAX or not name.isprintable():
        raise ParameterInvalid(
            f"The name must be 1 to {NAME_MAX} printable characters.", param="name"
        )
    return name


def _age(each: Member | Invitation) -> tuple[float, str]:
    return (each.created_at.timestamp(), each.id)
