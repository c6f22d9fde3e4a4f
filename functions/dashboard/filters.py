"""The filters of transactions, for the list and for the export.

A filter that cannot be parsed is named beside the form, and nothing is listed: without it, the list
would show other transactions than requested.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Annotated, Final
from urllib.parse import urlencode

from fastapi import Depends

from checkout.domain.ground.errors import ParameterInvalid
from checkout.domain.ground.typed_amount import typed_amount
from checkout.domain.merchant.people import Actor
from checkout.domain.session.attempts import Concern
from checkout.domain.session.record import Status
from checkout.flows.session.lists import ListQuery
from dashboard.dependencies import Page
from dashboard.texts import EVERYTHING

PAGE: Final = 25
TEXT_MAX: Final = 2048  # characters of the search text
_NAMES: Final = ("q", "status", "from", "to", "min", "max")
_EARLIEST, _LATEST = date(2000, 1, 1), date(2200, 1, 1)


@dataclass(frozen=True, slots=True)
class Filters:
    """Filters as `typed` and as a query; `wrong` names the ones that cannot be parsed."""

    typed: dict[str, str]
    text: str
    query: ListQuery
    wrong: tuple[str, ...]

    @property
    def active(self) -> bool:
        return any(self.typed.values())

    @property
    def folded(self) -> int:
        """The number of filters that are set beside the search."""
        return sum(bool(value) for name, value in self.typed.items() if name not in ("q", "status"))

    def address(self, **more: str | None) -> str:
        """Return the query string of these filters and of `more`."""
        fields = {**self.typed, **more}
        return urlencode({name: value for name, value in fields.items() if value})


async def filters(request: Page) -> Filters:
    """Return the filters of the query string."""
    query = request.http.query_params
    typed = {name: query.get(name, "").strip()[:TEXT_MAX] for name in _NAMES}
    wrong: list[str] = []
    today = request.services.clock.now().date()
    since, until = (day_of(typed[name], name, wrong) for name in ("from", "to"))
    lowest, highest = (_amount(typed[name], request.key, wrong) for name in ("min", "max"))
    if since is not None and until is not None and since > until:
        wrong.append("The first day is after the last day.")
        since = None
    if since is not None and since > today:
        wrong.append("The first day is in the future.")
        since = None
    if typed["status"] not in ("", EVERYTHING, *Status, *Concern):
        wrong.append("There is no such status.")
    return Filters(
        typed=typed,
        text=typed["q"],
        query=ListQuery(
            limit=PAGE,
            cursor=query.get("newer") or query.get("cursor") or None,
            upward=bool(query.get("newer")),
            status=Status(typed["status"]) if typed["status"] in tuple(Status) else None,
            concern=Concern(typed["status"]) if typed["status"] in tuple(Concern) else None,
            created_from=_midnight(since) if since is not None else None,
            created_before=_midnight(until + timedelta(days=1)) if until is not None else None,
            amount_from=lowest,
            amount_to=highest,
        ),
        wrong=tuple(wrong),
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def day_of(typed: str, name: str, wrong: list[str]) -> date | None:
    """Return the typed day; add a sentence to `wrong` if it is none."""
    if not typed:
        return None
    with suppress(ValueError):
        day = date.fromisoformat(typed)
        if re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", typed) and _EARLIEST <= day <= _LATEST:
            return day
    wrong.append(f"“{name}” must be a day, like 2026-03-31.")
    return None


def _amount(typed: str, key: Actor, wrong: list[str]) -> int | None:
    """Return the typed decimal amount in minor units, exactly."""
    if not typed:
        return None
    try:
        return typed_amount(
            typed, currency=key.asset_code, wallet_scale=key.asset_scale, param="amount"
        )
    except ParameterInvalid as error:
        wrong.append(error.message)
        return None


async def understood(found: Annotated[Filters, Depends(filters)]) -> Filters:
    """Return the filters. Raise ParameterInvalid for one that cannot be parsed."""
    if found.wrong:
        raise ParameterInvalid(found.wrong[0])
    return found


Filtered = Annotated[Filters, Depends(filters)]
Understood = Annotated[Filters, Depends(understood)]
