"""The page for the people of a shop.

The page lists members with their roles, and invitations that nobody has accepted yet. It has a
setting for whether API keys can be used to sign in. Only the response to the request that creates
an invitation contains the invitation's link. The link opens a page on which the invited person
creates a passkey and becomes a member.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Response

from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import NAME_MAX, Right, Role
from checkout.domain.merchant.record import ApiKey
from checkout.flows import merchants
from checkout.flows.idempotency import Reserve
from checkout.flows.merchant import settings
from checkout.flows.people import people, sign_in
from checkout.flows.people.people import Invited
from dashboard.dependencies import Form, OpenForm, OpenPage, OpenRequest, Page, PageRequest
from dashboard.forms import Fields, Yes, cap_of, message
from dashboard.rendering import FIRST, page, see, set_cookie
from dashboard.routing import OPEN, PageRouter
from dashboard.texts import ROLE, SENT_TWICE
from dashboard.view import limits_of

router = PageRouter(prefix="/people", section=("/people", "People"))


class RoleForm(Fields):
    """The role of a member, or the role and name of an invited person."""

    name: str
    role: Annotated[Role, message("Choose a role.")]


class KeySignInForm(Fields):
    """Whether API keys can be used to sign in."""

    allowed: Yes


def _page(
    request: PageRequest,
    *,
    invited: Invited | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """Return the page.

    The lists come from an index that may not contain the new invitation yet. So `invited`, the new
    invitation, is added to the list.
    """
    services, key = request.services, request.key
    listed = people.listed(services, key.merchant)
    known = {each.id for each in listed.invitations}
    new = (invited.invitation,) if invited and invited.invitation.id not in known else ()
    merchant = merchants.get(services.merchants, key.merchant)
    keys = services.api_keys.of(merchant.id)
    left = people.left_keys(services, keys, listed.everybody)
    return page(
        request.http,
        "people.html",
        status=status,
        section="/people",
        rows=listed.members,
        own=key.id,
        limits_of=limits_of,
        waiting=(*new, *listed.invitations),
        invited=invited,
        by_key=isinstance(key, ApiKey),
        owned=any(each.owns for each in listed.members),
        key_sign_in=merchant.key_sign_in_off_at is None,
        behind=settings.keys_behind(services, merchant, keys),
        left=[(made.label, maker.name) for made, maker in left],
        alert=alert,
        name_max=NAME_MAX,
        currency=key.asset_code,
        roles=ROLE,
    )


@router.page("", Door(Right.READ, "the names of people"))
async def list_people(request: Page) -> Response:
    return _page(request)


@router.form("", Door(Right.OWN, "rights to a person"), again=_page)
async def invite(request: Form) -> Response:
    """Invite a person. Only this response shows the link."""
    typed = request.read(RoleForm)

    def act(reserve: Reserve[Invited] | None) -> Invited:
        return people.invite(
            request.services, request.key, name=typed.name, role=typed.role, reserve=reserve
        )

    done = request.once(act, lambda new: new.invitation.id)
    if done.made is None:
        return _page(request, alert=SENT_TWICE, status=409)
    return _page(request, invited=done.made)


@router.form("/key-sign-in", Door(Right.OWN, "whether keys sign in"), again=_page)
async def set_key_sign_in(request: Form) -> Response:
    """Allow or forbid signing in to the dashboard with API keys."""
    allowed = request.read(KeySignInForm).allowed
    people.allow_key_sign_in(request.services, request.key, allowed=allowed)
    return see(request.visit, "/people")


@router.form(
    "/invitations/{invitation_id}/withdraw", Door(Right.OWN, "rights of a person"), again=_page
)
async def withdraw(request: Form, invitation_id: str) -> Response:
    people.withdraw(request.services, request.key, invitation_id)
    return see(request.visit, "/people")


@router.form("/{member_id}/role", Door(Right.OWN, "rights of a person"), again=_page)
async def change_role(request: Form, member_id: str) -> Response:
    role = request.read(RoleForm).role
    people.change_role(request.services, request.key, member_id, role)
    return see(request.visit, "/people")


@router.form("/{member_id}/refunds", Door(Right.OWN, "the limit of a person"), again=_page)
async def limit_refunds(request: Form, member_id: str) -> Response:
    """Limit a member's refunds to the typed limits. Without limits, the member cannot refund."""
    services, key = request.services, request.key
    member = people.find(services, key, member_id)
    people.limit_refunds(services, key, member, cap_of(request))
    return see(request.visit, "/people")


@router.form("/{member_id}/revoke", Door(Right.OWN, "rights of a person"), again=_page)
async def revoke(request: Form, member_id: str) -> Response:
    people.revoke(request.services, request.key, member_id)
    return see(request.visit, "/people")


invitations = PageRouter(prefix="/invitation/{token}")


def _invitation_page(
    request: OpenRequest, token: str, *, alert: str | None = None, status: int = 200
) -> Response:
    services = request.services
    found = sign_in.invitation_of(services, token, client=request.client)
    merchant = merchants.get(services.merchants, found.merchant)
    return page(
        request.http,
        "invitation.html",
        status=status,
        shop=merchant.name,
        name=found.name,
        role=ROLE[found.role],
        token=token,
        alert=alert,
    )


@invitations.page("", OPEN)
async def invitation(request: OpenPage, token: str) -> Response:
    return _invitation_page(request, token)


@invitations.form("/options", OPEN)
async def options(request: OpenForm, token: str) -> Response:
    """Return the options for a new passkey, with a challenge for this browser."""
    browser = request.visit.token
    made = sign_in.begin_joining(request.services, token, browser=browser, client=request.client)
    return Response(made, media_type="application/json")


@invitations.form("", OPEN, again=_invitation_page)
async def accept(request: OpenForm, token: str) -> Response:
    """Make the invited person a member with the new passkey, and sign them in."""
    signed_in = sign_in.join(
        request.services,
        token,
        browser=request.visit.token,
        answer=request.form.get("credential", ""),
        client=request.client,
    )
    response = see(request.visit, FIRST)
    set_cookie(response, request.visit, signed_in.token)
    return response
