"""The Lambda function `api`.

Endpoints are `async def` although they call boto3, which blocks. This is deliberate: Lambda gives
an environment one event at a time, so there is nothing to block, and a thread pool costs 0.3 ms a
request (docs/reference/design.md).
"""

from __future__ import annotations

from api.routes import router
from checkout import wiring
from checkout.adapters.clock import system_random
from checkout.web import application, lambda_handler

wiring.observe("api")
app = application(random_bytes=system_random)
app.include_router(router)
handler = lambda_handler(app)
