"""The page of the API keys.

Only the response to the request that creates a key contains the key in plain text.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated

from fastapi import Response
from pydantic import BeforeValidator

from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Actor, Right, Scope
from checkout.domain.merchant.record import ApiKey
from checkout.flows.idempotency import Reserve
from checkout.flows.merchant import api_keys
from checkout.flows.merchant.api_keys import NAME_MAX, NewKey
from checkout.flows.people import people
from dashboard.dependencies import Form, Page, PageRequest
from dashboard.forms import DayOrNone, Fields, RollForm, cap_of, message
from dashboard.rendering import page, see
from dashboard.routing import PageRouter
from dashboard.texts import OVERLAPS, SCOPES, SENT_TWICE
from dashboard.view import limits_of

router = PageRouter(prefix="/keys", section=("/keys", "API keys"))


class KeyForm(Fields):
    """A new key. `ends` is the key's last day. No `scopes` means all that the creator can give."""

    name: str
    scopes: Annotated[
        tuple[Scope, ...] | None,
        BeforeValidator(lambda typed: SCOPES[typed][0] if typed in SCOPES else typed),
        message("Choose what the key may do."),
    ] = None
    ends: Annotated[DayOrNone, message("The last day must be a day, like 2027-03-31.")]


def _page(
    request: PageRequest,
    *,
    made: NewKey | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """Return the page.

    The list comes from an index that may not contain the new key yet. So `made`, the new key, is
    added to the list.
    """
    services, key = request.services, request.key
    listed = api_keys.listed(services, key)
    left = {made.id: maker.name for made, maker in people.left_keys(services, listed)}
    new = (made.key,) if made and made.key.id not in {each.id for each in listed} else ()
    return page(
        request.http,
        "keys.html",
        status=status,
        section="/keys",
        rows=(*new, *listed),
        now=services.clock.now(),
        own=key.id,
        left_by=left,
        status_of=_status,
        scopes_of=_words_of,
        limits_of=limits_of,
        made=made,
        alert=alert,
        name_max=NAME_MAX,
        overlaps=OVERLAPS.items(),
        scopes=[(value, words) for value, (_, words) in _offered(key)],
        refunding="refund" in dict(_offered(key)),
        currency=key.asset_code,
    )


@router.page("", Door(Right.READ, "the names of keys"))
async def list_keys(request: Page) -> Response:
    return _page(request)


@router.form(
    "", Door(Right.INTEGRATE, "a key, with the scopes that its maker can give"), again=_page
)
async def create(request: Form) -> Response:
    """Create an API key. Only this response shows it."""

    def act(reserve: Reserve[NewKey] | None) -> NewKey:
        typed = request.read(KeyForm)
        _, (most, _) = _offered(request.key)[0]
        return api_keys.create(
            request.services,
            request.key,
            name=typed.name,
            scopes=typed.scopes or most,
            ends_at=typed.ends + timedelta(days=1) if typed.ends else None,
            refund_cap=cap_of(request),
            reserve=reserve,
        )

    done = request.once(act, lambda new: new.key.id)
    if done.made is None:
        return _page(request, alert=SENT_TWICE, status=409)
    return _page(request, made=done.made)


@router.form(
    "/{key_id}/roll",
    Door(Right.INTEGRATE, "a key, with the scopes that its maker can give"),
    again=_page,
)
async def roll(request: Form, key_id: str) -> Response:
    """Replace a key. The old one stays valid for a while. Only this response shows the new key."""
    overlap = request.read(RollForm).overlap
    return _page(
        request, made=api_keys.roll(request.services, request.key, key_id, overlap=overlap)
    )


@router.form("/{key_id}/revoke", Door(Right.INTEGRATE, "ends a key"), again=_page)
async def revoke(request: Form, key_id: str) -> Response:
    api_keys.revoke(request.services, request.key, key_id)
    return see(request.visit, "/keys")


@router.page("/{key_id}/refused", Door(Right.READ, "a key's refused requests"))
async def refused_requests(request: Page, key_id: str) -> Response:
    """List the newest refused requests of a key, newest first."""
    found, log = api_keys.failed_requests_of(request.services, request.key, key_id)
    return page(
        request.http,
        "refused.html",
        section="/keys",
        name=found.label,
        rows=log,
    )


def _status(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return "Revoked"
    if not key.active_at(now):
        return "Ended"
    return "Replaced" if key.expires_at is not None else "Active"


def _words_of(key: ApiKey) -> str:
    named = (words for scopes, words in SCOPES.values() if set(scopes) == set(key.scopes))
    return next(named, ", ".join(key.scopes))


def _offered(key: Actor) -> list[tuple[str, tuple[tuple[Scope, ...], str]]]:
    """Return the sets of scopes that this actor can give to a key, largest first."""
    given = api_keys.given(key)
    return [each for each in SCOPES.items() if given.issuperset(each[1][0])]
