"""The Lambda function `dashboard`: the pages, and /v1/webhook_endpoints of the API.

A webhook's signing secret is encrypted with a key that the function `api` cannot use. So this
function handles the requests to /v1/webhook_endpoints, with the code of `api/v1/endpoints.py`.

Endpoints are `async def` although they call boto3, which blocks. A blocking call delays no other
request, because Lambda sends each environment one event at a time. A thread pool would add 0.3 ms
to each request (docs/reference/design.md).
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import Depends
from fastapi.routing import APIRoute

from checkout import wiring
from checkout.adapters.runtime import system_random
from checkout.domain.merchant.doors import Door
from checkout.domain.merchant.people import Right
from checkout.pages import PageHeaders
from checkout.web import application, lambda_handler
from dashboard import (
    action_items,
    audit,
    budget,
    keys,
    links,
    notices,
    overview,
    people,
    refunds,
    reports,
    settings,
    sign_in,
    transaction,
    transactions,
    webhooks,
)
from dashboard.dependencies import PREFIX, visit
from dashboard.rendering import render_problem

# The policy allows only requests to this origin, and the inline style and script that a response
# itself contains. In addition, a frame can show a preview of the customers' page, and the poster of
# a payment link can load the picture of the item for sale.
POLICY: Final = (
    "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; "
    "img-src 'self' data:{pictures}; connect-src 'self'; frame-src 'self'; form-action 'self'; "
    "frame-ancestors 'none'; base-uri 'none'"
)
# With `no-referrer`, browsers would send our forms with `Origin: null`. Any other site can send the
# same value, so the value would not prove that the form is ours.
REFERRER: Final = "same-origin"
# The routers in the order of the navigation. The settings come last, beside the person's name.
ROUTERS: Final = (
    overview.router,
    transactions.router,
    links.router,
    webhooks.router,
    keys.router,
    people.router,
    notices.router,
    audit.router,
    settings.router,
    sign_in.router,
    people.invitations,
    transaction.router,
    refunds.router,
    budget.router,
    action_items.router,
    reports.statements,
    reports.exports,
)
# For each route, by method and path: its `Door`, which declares the right that the route needs and
# what the route changes (routing.py). docs/tables.py prints them.
DOORS: Final[dict[tuple[str, str], Door[Right]]] = {
    place: door for router in ROUTERS for place, door in router.doors.items()
}
NEEDED: Final[dict[tuple[str, str], Right]] = {place: door.needs for place, door in DOORS.items()}

wiring.observe("dashboard")
wiring.build_in_lambda(wiring.dashboard_services)
app = application(random_bytes=system_random, render=render_problem)
for router in ROUTERS:
    app.include_router(router, prefix=PREFIX, dependencies=[Depends(visit)])
app.state.needed = NEEDED
app.state.sections = tuple(each.section for each in ROUTERS if each.section is not None)
app.state.names = {  # for NamesFirst in routing.py
    PREFIX + route.path
    for router in ROUTERS
    for route in router.routes
    if isinstance(route, APIRoute) and "{" not in route.path
}
app.add_middleware(  # the outermost, so that every response has these headers
    PageHeaders, random_bytes=system_random, policy=POLICY, referrer=REFERRER
)
pages = lambda_handler(app)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve the pages and /v1/webhook_endpoints, whose code is loaded at first use."""
    if event["requestContext"]["http"]["path"].startswith("/v1/"):
        from api.v1.app import handler as stripe

        return stripe(event, context)
    return pages(event, context)
