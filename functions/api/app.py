"""The Lambda function `api`."""

from __future__ import annotations

from api.routes import router
from checkout import wiring
from checkout.adapters.clock import system_random
from checkout.web import application, lambda_handler

wiring.observe("api")
app = application(random_bytes=system_random)
app.include_router(router)
handler = lambda_handler(app)
