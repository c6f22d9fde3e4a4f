"""The API keys. A key in clear text is only in the response that created it."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.domain.errors import CheckoutError, ParameterInvalid
from checkout.domain.merchant import ApiKey
from checkout.domain.people import Actor, Scope
from checkout.flows.merchant import api_keys
from checkout.flows.merchant.api_keys import NAME_MAX, NewKey
from checkout.pages import Moment
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Form, Injected, Key, Visited, overlap_of
from dashboard.rendering import page, refused, saved
from dashboard.texts import OVERLAPS, SCOPES
from dashboard.view import moment

router = APIRouter(prefix="/keys")
_DAY: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class Row:
    """A key; `ends_at` is its end, or that of its overlap, while it works."""

    id: str
    name: str
    last_four: str
    created_at: Moment
    last_used_at: Moment | None
    status: str
    active: bool
    current: bool
    scopes: str
    signs_in: bool
    ends_at: Moment | None
    own: bool


@router.get("")
async def list_keys(services: Injected, request: Request, key: Key) -> Response:
    return _page(services, request, key)


@router.post("")
async def create(services: Injected, request: Request, key: Key, form: Form) -> Response:
    try:
        made = api_keys.create(
            services,
            key,
            name=form.get("name", ""),
            scopes=_scopes_of(form),
            ends_at=_end_of(form),
        )
    except CheckoutError as error:
        return refused(error, _page, services, request, key)
    return _page(services, request, key, made=made)


@router.post("/{key_id}/roll")
async def roll(services: Injected, request: Request, key: Key, key_id: str, form: Form) -> Response:
    try:
        made = api_keys.roll(services, key, key_id, overlap=overlap_of(form))
    except CheckoutError as error:
        return refused(error, _page, services, request, key)
    return _page(services, request, key, made=made)


@router.post("/{key_id}/revoke")
async def revoke(
    services: Injected, visit: Visited, request: Request, key: Key, key_id: str, _: Form
) -> Response:

    def save() -> None:
        api_keys.revoke(services, key, key_id)

    return saved(save, visit, "/keys", _page, services, request, key)


def _page(
    services: DashboardServices,
    request: Request,
    key: Actor,
    *,
    made: NewKey | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """Return the page; the list comes from an index, which may not have `made` yet."""
    now = services.clock.now()
    listed = api_keys.listed(services, key)
    new = (made.key,) if made and made.key.id not in {each.id for each in listed} else ()
    return page(
        request,
        "keys.html",
        status=status,
        section="/keys",
        rows=[_row(each, now=now, own=each.id == key.id) for each in (*new, *listed)],
        made=made,
        alert=alert,
        name_max=NAME_MAX,
        overlaps=OVERLAPS.items(),
        scopes=[(value, words) for value, (_, words) in SCOPES.items()],
    )


def _row(key: ApiKey, *, now: datetime, own: bool) -> Row:
    ends = [at for at in (key.expires_at, key.ends_at) if at is not None]
    return Row(
        id=key.id,
        name=key.name,
        last_four=key.last_four,
        created_at=moment(key.created_at),
        last_used_at=moment(key.last_used_at) if key.last_used_at else None,
        status=_status(key, now),
        active=key.active_at(now),
        current=key.current and key.active_at(now),
        scopes=next(words for scopes, words in SCOPES.values() if set(scopes) == set(key.scopes)),
        signs_in=key.signs_in,
        ends_at=moment(min(ends)) if ends and key.active_at(now) else None,
        own=own,
    )


def _status(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return "Revoked"
    if not key.active_at(now):
        return "Ended"
    return "Replaced" if key.expires_at is not None else "Active"


def _scopes_of(form: dict[str, str]) -> tuple[Scope, ...]:
    chosen = SCOPES.get(form.get("scopes", "both"))
    if chosen is None:
        raise ParameterInvalid("Choose what the key may do.", param="scopes")
    return chosen[0]


def _end_of(form: dict[str, str]) -> datetime | None:
    """Return the end of the typed day in UTC; nothing typed is no end."""
    typed = form.get("ends", "").strip()
    if not typed:
        return None
    if _DAY.fullmatch(typed):
        with suppress(ValueError):
            return datetime.combine(date.fromisoformat(typed), time(), UTC) + timedelta(days=1)
    raise ParameterInvalid("The last day must be a day, like 2027-03-31.", param="ends")
