"""The Lambda function `api`.

Endpoints are `async def` although they call boto3, which blocks. This is deliberate: Lambda gives
an environment one event at a time, so there is nothing to block, and a thread pool costs 0.3 ms a
request (docs/reference/design.md).
"""

from __future__ import annotations

from typing import Any

from api.routes import router
from checkout import wiring
from checkout.adapters.clock import system_random
from checkout.web import application, lambda_handler

wiring.observe("api")
app = application(random_bytes=system_random)
app.include_router(router)
native = lambda_handler(app)


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Serve the native API, and /v1, which is loaded at its first request."""
    if event["requestContext"]["http"]["path"].startswith("/v1/"):
        from api.v1.app import handler as stripe

        return stripe(event, context)
    return native(event, context)
