"""The people: members with their roles, invitations, and whether API keys sign in.

The link of an invitation is only in the response that created it.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from checkout.domain.errors import CheckoutError, ParameterInvalid
from checkout.domain.merchant import ApiKey
from checkout.domain.people import NAME_MAX, Actor, Member, Role
from checkout.flows import merchants
from checkout.flows.merchant import people, settings
from checkout.flows.merchant.people import Invited
from checkout.pages import Moment
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Form, Injected, Key, Visited, once
from dashboard.limits import cap_of, limits_of
from dashboard.rendering import page, refused, saved
from dashboard.texts import ROLE, SENT_TWICE
from dashboard.view import moment

router = APIRouter(prefix="/people")


@dataclass(frozen=True, slots=True)
class MemberRow:
    """A member. `role` is its value in forms, `refunds` are the limits of one who may refund."""

    id: str
    name: str
    role: str
    role_text: str
    joined_at: Moment
    last_used_at: Moment | None
    active: bool
    own: bool
    owns: bool
    refunds: str | None


@dataclass(frozen=True, slots=True)
class Waiting:
    """An invitation that was not accepted yet."""

    id: str
    name: str
    role_text: str
    expires_at: Moment


@router.get("")
async def list_people(services: Injected, request: Request, key: Key) -> Response:
    return _page(services, request, key)


@router.post("")
async def invite(services: Injected, request: Request, key: Key, form: Form) -> Response:
    """Invite a person. Only this response shows the link."""
    try:
        name, role = form.get("name", ""), _role_of(form)
        done = once(
            services,
            request,
            key,
            form,
            lambda reserve: people.invite(services, key, name=name, role=role, reserve=reserve),
            lambda new: new.invitation.id,
        )
    except CheckoutError as error:
        return refused(error, _page, services, request, key)
    if done.made is None:
        return _page(services, request, key, alert=SENT_TWICE, status=409)
    return _page(services, request, key, invited=done.made)


@router.post("/key-sign-in")
async def set_key_sign_in(
    services: Injected, visit: Visited, request: Request, key: Key, form: Form
) -> Response:
    """Allow API keys to sign in to the dashboard, or forbid it."""

    def save() -> None:
        people.allow_key_sign_in(services, key, allowed=form.get("allowed") == "yes")

    return saved(save, visit, "/people", _page, services, request, key)


@router.post("/invitations/{invitation_id}/withdraw")
async def withdraw(
    services: Injected, visit: Visited, request: Request, key: Key, invitation_id: str, _: Form
) -> Response:

    def save() -> None:
        people.withdraw(services, key, invitation_id)

    return saved(save, visit, "/people", _page, services, request, key)


@router.post("/{member_id}/role")
async def change_role(
    services: Injected, visit: Visited, request: Request, key: Key, member_id: str, form: Form
) -> Response:

    def save() -> None:
        people.change_role(services, key, member_id, _role_of(form))

    return saved(save, visit, "/people", _page, services, request, key)


@router.post("/{member_id}/refunds")
async def limit_refunds(
    services: Injected, visit: Visited, request: Request, key: Key, member_id: str, form: Form
) -> Response:
    """Let a member refund up to the typed limits; without any, not at all."""

    def save() -> None:
        member = people.find(services, key, member_id)
        people.limit_refunds(services, key, member, cap_of(form, key))

    return saved(save, visit, "/people", _page, services, request, key)


@router.post("/{member_id}/revoke")
async def revoke(
    services: Injected, visit: Visited, request: Request, key: Key, member_id: str, _: Form
) -> Response:

    def save() -> None:
        people.revoke(services, key, member_id)

    return saved(save, visit, "/people", _page, services, request, key)


def _page(
    services: DashboardServices,
    request: Request,
    key: Actor,
    *,
    invited: Invited | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """Return the page.

    The lists come from an index, which may not contain the new invitation `invited` yet.
    """
    listed = people.listed(services, key.merchant)
    known = {each.id for each in listed.invitations}
    new = (invited.invitation,) if invited and invited.invitation.id not in known else ()
    merchant = merchants.get(services.merchants, key.merchant)
    keys = services.api_keys.of(merchant.id)
    left = people.left_keys(services, keys, listed.everybody)
    return page(
        request,
        "people.html",
        status=status,
        section="/people",
        rows=[_row(each, own=each.id == key.id) for each in listed.members],
        waiting=[
            Waiting(each.id, each.name, ROLE[each.role][0], moment(each.expires_at))
            for each in (*new, *listed.invitations)
        ],
        invited=invited,
        by_key=isinstance(key, ApiKey),
        owned=any(each.owns for each in listed.members),
        key_sign_in=merchant.key_sign_in_off_at is None,
        behind=settings.keys_behind(services, merchant, keys),
        left=[(made.label, maker.name) for made, maker in left],
        alert=alert,
        name_max=NAME_MAX,
        currency=key.asset_code,
        roles=[(role.value, *words) for role, words in ROLE.items()],
    )


def _row(member: Member, *, own: bool) -> MemberRow:
    return MemberRow(
        id=member.id,
        name=member.name,
        role=member.role.value,
        role_text=ROLE[member.role][0],
        joined_at=moment(member.created_at),
        last_used_at=moment(member.last_used_at) if member.last_used_at else None,
        active=member.active,
        own=own,
        owns=member.owns,
        refunds=limits_of(member),
    )


def _role_of(form: dict[str, str]) -> Role:
    try:
        return Role(form.get("role", ""))
    except ValueError:
        raise ParameterInvalid("Choose a role.", param="role") from None
