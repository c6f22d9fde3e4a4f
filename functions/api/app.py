"""The Lambda function `api`.

Endpoints are `async def` although they call boto3, which blocks. A blocking call delays no other
request, because Lambda sends each environment one event at a time. A thread pool would add 0.3 ms
to each request (docs/reference/design.md).
"""

from __future__ import annotations

from typing import Any, Final

from fastapi import Request, Response

from api import http, refunds, routes
from checkout import wiring
from checkout.adapters.runtime import system_random
from checkout.web import ErrorResponse, application, lambda_handler, problem_json

wiring.observe("api")
wiring.build_in_lambda(wiring.api_services)
ELSEWHERE: Final = "Sessions are at /api/checkout/sessions; /docs lists all addresses."


def problem(request: Request, found: ErrorResponse) -> Response:
    """Return the error with a link to the error's entry in the reference."""
    found = http.with_id(request, found)
    http.note(request, found, found.status)
    return problem_json(request, found, wiring.doc_url(found.code))


app = application(
    random_bytes=system_random,
    render=problem,
    elsewhere=ELSEWHERE,
    repeated=("/clients/{client_id}/jwks.json",),
)
app.include_router(routes.router)
app.include_router(refunds.router)
app.include_router(routes.clients_router)
native = lambda_handler(app)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve the native API, /v1 and /docs. The code of /v1 and /docs is loaded at first use."""
    path = event["requestContext"]["http"]["path"]
    if path.startswith("/docs"):
        from api.reference import handler as reference

        return reference(event, context)
    if path.startswith("/v1/"):
        from api.v1.app import handler as stripe

        return stripe(event, context)
    return native(event, context)
