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
from checkout.domain.refusals import NEWEST
from checkout.flows.merchant import api_keys, people, refusals
from checkout.flows.merchant.api_keys import NAME_MAX, NewKey
from checkout.pages import Moment
from checkout.ports.services import DashboardServices
from dashboard.dependencies import Form, Injected, Key, Visited, once, overlap_of
from dashboard.limits import cap_of, limits_of
from dashboard.rendering import page, refused, saved
from dashboard.texts import OVERLAPS, SCOPES, SENT_TWICE
from dashboard.view import moment

router = APIRouter(prefix="/keys")
_DAY: Final = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A key. `ends_at` is the end of the key or of its overlap, while it still works."""

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
    limits: str | None
    own: bool
    left_by: str | None


@router.get("")
async def list_keys(services: Injected, request: Request, key: Key) -> Response:
    return _page(services, request, key)


@router.post("")
async def create(services: Injected, request: Request, key: Key, form: Form) -> Response:
    """Create an API key. Only this response shows it."""
    try:
        done = once(
            services,
            request,
            key,
            form,
            lambda reserve: api_keys.create(
                services,
                key,
                name=form.get("name", ""),
                scopes=_scopes_of(form, key),
                ends_at=_end_of(form),
                refund_cap=cap_of(form, key),
                reserve=reserve,
            ),
            lambda new: new.key.id,
        )
    except CheckoutError as error:
        return refused(error, _page, services, request, key)
    if done.made is None:
        return _page(services, request, key, alert=SENT_TWICE, status=409)
    return _page(services, request, key, made=done.made)


@router.post("/{key_id}/roll")
async def roll(services: Injected, request: Request, key: Key, key_id: str, form: Form) -> Response:
    """Replace a key, which works on for the overlap. Only this response shows the new one."""
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


@router.get("/{key_id}/refused")
async def refused_requests(services: Injected, request: Request, key: Key, key_id: str) -> Response:
    """List the refused requests of a key, the newest first."""
    found, log = refusals.of(services, key, key_id)
    return page(
        request,
        "refused.html",
        section="/keys",
        name=found.label,
        rows=[(moment(each.at), each) for each in log],
        newest=NEWEST,
    )


def _page(
    services: DashboardServices,
    request: Request,
    key: Actor,
    *,
    made: NewKey | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """Return the page.

    The list comes from an index, which may not contain the new key `made` yet.
    """
    now = services.clock.now()
    listed = api_keys.listed(services, key)
    left = {made.id: maker.name for made, maker in people.left_keys(services, listed)}
    new = (made.key,) if made and made.key.id not in {each.id for each in listed} else ()
    return page(
        request,
        "keys.html",
        status=status,
        section="/keys",
        rows=[
            _row(each, now=now, own=each.id == key.id, left_by=left.get(each.id))
            for each in (*new, *listed)
        ],
        made=made,
        alert=alert,
        name_max=NAME_MAX,
        overlaps=OVERLAPS.items(),
        scopes=[(value, words) for value, (_, words) in _offered(key)],
        refunding="refund" in dict(_offered(key)),
        currency=key.asset_code,
    )


def _row(key: ApiKey, *, now: datetime, own: bool, left_by: str | None) -> KeyRow:
    """Return a key; `left_by` is the member who made it and may not make it now."""
    return KeyRow(
        id=key.id,
        name=key.name,
        last_four=key.last_four,
        created_at=moment(key.created_at),
        last_used_at=moment(key.last_used_at) if key.last_used_at else None,
        status=_status(key, now),
        active=key.active_at(now),
        current=key.current and key.active_at(now),
        scopes=_words_of(key),
        signs_in=key.signs_in,
        ends_at=moment(key.lasts_until) if key.lasts_until and key.active_at(now) else None,
        limits=limits_of(key),
        own=own,
        left_by=left_by,
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
    """Return the scopes that this actor can give to a key, the most first."""
    given = api_keys.given(key)
    return [each for each in SCOPES.items() if given.issuperset(each[1][0])]


def _scopes_of(form: dict[str, str], key: Actor) -> tuple[Scope, ...]:
    """Return the scopes that were chosen; nothing chosen is all that the actor can give."""
    most = next((value for value, _ in _offered(key)), "")
    chosen = SCOPES.get(form.get("scopes", most))
    if chosen is None:
        raise ParameterInvalid("Choose what the key may do.", param="scopes")
    return chosen[0]


def _end_of(form: dict[str, str]) -> datetime | None:
    """Return the end of the typed day in UTC, or None if the field is empty."""
    typed = form.get("ends", "").strip()
    if not typed:
        return None
    if _DAY.fullmatch(typed):
        with suppress(ValueError):
            return datetime.combine(date.fromisoformat(typed), time(), UTC) + timedelta(days=1)
    raise ParameterInvalid("The last day must be a day, like 2027-03-31.", param="ends")
