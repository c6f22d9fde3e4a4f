"""The page that lists the cases that need a person. A banner on all other pages links to it."""

from __future__ import annotations

from typing import Final

from fastapi import Response

from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right
from dashboard.banner import PAYMENTS, named, page_of
from dashboard.dependencies import Page
from dashboard.rendering import page, session_of, strip
from dashboard.routing import PageRouter
from dashboard.texts import NEED

router = PageRouter()
SUMS_MAX: Final = 25  # payments whose sums are shown; the others have only an order number


@router.page("/needs", Door(Right.READ, "what needs somebody"))
async def needs(request: Page) -> Response:
    """List the cases that need a person, the most urgent first."""
    found = strip(request.http)
    payments = [each.target for each in found.found if each.case in PAYMENTS] if found else []
    read = {each: session_of(request.http, each) for each in payments[:SUMS_MAX]}
    return page(
        request.http,
        "needs.html",
        section="/needs",
        needs=None,
        known=found is not None,
        rows=[
            (each, *NEED[each.case], named(each, read.get), page_of(each)) for each in found.found
        ]
        if found
        else [],
        payments=PAYMENTS,
        more=found.more if found else False,
    )
