"""The page of what needs somebody, and the strip on all other pages that leads to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from fastapi import APIRouter, Request, Response

from checkout.flows.merchant.needs import Case, Need
from checkout.pages import Moment
from dashboard.dependencies import Injected, Key
from dashboard.rendering import page, strip
from dashboard.texts import NEED
from dashboard.view import moment

router = APIRouter()
_PAGES: Final = {
    Case.BUDGET_REQUESTED: "/budget",
    Case.WALLET_KEY: "",
    Case.ENDPOINT_DISABLED: "/webhooks?endpoint={}",
    Case.ENDPOINT_FAILING: "/webhooks?endpoint={}",
    Case.BUDGET_OVER: "/budget",
    Case.KEY_ENDS: "/keys",
}


@dataclass(frozen=True, slots=True)
class NeedRow:
    """One thing that needs somebody. `page` is the path where it is solved."""

    text: str
    todo: str
    name: str
    at: Moment
    ends: bool
    page: str


@router.get("/needs")
async def needs(_: Injected, request: Request, __: Key) -> Response:
    """List what needs somebody, the most urgent first."""
    found = strip(request)
    return page(
        request,
        "needs.html",
        section="/needs",
        known=found is not None,
        rows=[_row(each) for each in found.found] if found else [],
        more=found.more if found else False,
    )


def _row(need: Need) -> NeedRow:
    text, todo = NEED[need.case]
    return NeedRow(
        text=text,
        todo=todo,
        name=need.name,
        at=moment(need.at),
        ends=need.case is Case.KEY_ENDS,
        page=_PAGES.get(need.case, "/transactions/{}").format(need.target),
    )
