"""The application of /v1, served by the functions `api` and, for webhook endpoints, `dashboard`.

It is loaded at the first request to /v1, and shares nothing with the native API's application.
"""

from __future__ import annotations

from api.v1.account import router as account
from api.v1.answers import problem
from api.v1.catalog import router as catalog
from api.v1.endpoints import router as endpoints
from api.v1.payments import router as payments
from api.v1.refunds import router as refunds
from api.v1.routes import router, unknown
from checkout.adapters.runtime import system_random
from checkout.web import application, lambda_handler

app = application(random_bytes=system_random, render=problem)
app.include_router(account)
app.include_router(catalog)
app.include_router(endpoints)
app.include_router(payments)
app.include_router(refunds)
unknown(router)
app.include_router(router)
handler = lambda_handler(app)
