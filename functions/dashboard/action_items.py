"""The page of what needs somebody, and the strip on all other pages that leads to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import Response

from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right
from checkout.flows.notices import ActionItem, Case
from checkout.pages import Moment
from dashboard.banner import PAYMENTS, Read, named, page_of
from dashboard.dependencies import Page
from dashboard.rendering import page, session_of, strip
from dashboard.routing import PageRouter
from dashboard.texts import NEED
from dashboard.view import moment

router = PageRouter()
SUMS_MAX: Final = 25  # payments whose sums are read; of more only the order is named


@dataclass(frozen=True, slots=True)
class ActionRow:
    """One thing that needs somebody. `page` is the path where it is solved.

    `id` tells payments without an order number apart.
    """

    text: str
    todo: str
    name: str
    id: str | None
    at: Moment
    ends: bool
    page: str


@router.page("/needs", Door(Right.READ, "what needs somebody"))
async def needs(request: Page) -> Response:
    """List what needs somebody, the most urgent first."""
    found = strip(request.http)
    payments = [each.target for each in found.found if each.case in PAYMENTS] if found else []
    read = {each: session_of(request.http, each) for each in payments[:SUMS_MAX]}
    return page(
        request.http,
        "needs.html",
        section="/needs",
        known=found is not None,
        rows=[_row(each, read.get) for each in found.found] if found else [],
        more=found.more if found else False,
    )


def _row(need: ActionItem, read: Read) -> ActionRow:
    text, todo = NEED[need.case]
    return ActionRow(
        text=text,
        todo=todo,
        name=named(need, read),
        id=need.target if need.case in PAYMENTS and need.name == need.target else None,
        at=moment(need.at),
        ends=need.case is Case.KEY_ENDS,
        page=page_of(need),
    )
