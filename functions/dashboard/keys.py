"""The page of the merchant's API keys. A key in the clear is on the answer that made it, and on no
other.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from fastapi import Request, Response

from checkout.domain.errors import ParameterInvalid
from checkout.domain.merchant import ApiKey
from checkout.flows.merchant import api_keys
from checkout.flows.merchant.api_keys import NAME_MAX, NewKey
from checkout.ports.services import DashboardServices
from dashboard.pages import page
from dashboard.view import Moment, moment

# What a select offers: its value in the form, and its words. Also for webhook secrets.
OVERLAPS: Final = (
    ("86400", "1 day"),
    ("3600", "1 hour"),
    ("259200", "3 days"),
    ("604800", "7 days"),
    ("0", "Not at all: end it now"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """`ends_at` of a key that has been replaced and serves on for a while."""

    id: str
    name: str
    last_four: str
    created_at: Moment
    last_used_at: Moment | None
    status: str
    active: bool
    lasting: bool
    ends_at: Moment | None
    own: bool


def keys(
    services: DashboardServices,
    request: Request,
    who: ApiKey,
    *,
    made: NewKey | None = None,
    alert: str | None = None,
    status: int = 200,
) -> Response:
    """`made` was made just now; the list is from an index, which may not have it yet."""
    now = services.clock.now()
    listed = api_keys.listed(services, who)
    new = (made.key,) if made and made.key.id not in {key.id for key in listed} else ()
    return page(
        request,
        "keys.html",
        status=status,
        section="/keys",
        rows=[_row(key, now=now, who=who) for key in (*new, *listed)],
        made=made,
        alert=alert,
        name_max=NAME_MAX,
        overlaps=OVERLAPS,
    )


def overlap_of(form: dict[str, str]) -> timedelta:
    """Raises ParameterInvalid."""
    typed = form.get("overlap", "")
    if typed not in dict(OVERLAPS):
        raise ParameterInvalid("Choose how long the old one is to work on.", param="overlap")
    return timedelta(seconds=int(typed))


def _row(key: ApiKey, *, now: datetime, who: ApiKey) -> Row:
    return Row(
        id=key.id,
        name=key.name,
        last_four=key.last_four,
        created_at=moment(key.created_at),
        last_used_at=moment(key.last_used_at) if key.last_used_at else None,
        status=_status(key, now),
        active=key.active_at(now),
        lasting=key.lasting,
        ends_at=moment(key.expires_at) if key.expires_at and key.active_at(now) else None,
        own=key.id == who.id,
    )


def _status(key: ApiKey, now: datetime) -> str:
    if key.revoked_at is not None:
        return "Revoked"
    if key.expires_at is not None:
        return "Replaced" if key.active_at(now) else "Ended"
    return "Active"
