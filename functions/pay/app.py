"""The Lambda function `pay`.

Endpoints are `async def` although they call boto3, which blocks. A blocking call delays no other
request, because Lambda sends each environment one event at a time. A thread pool would add 0.3 ms
to each request (docs/reference/design.md).
"""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware

from checkout import wiring
from checkout.adapters.runtime import system_random
from checkout.pages import PageHeaders
from checkout.web import application, lambda_handler
from pay import alternative_wallet, details, home, links, till, withdrawals
from pay.headers import POLICY, REFERRER
from pay.problems import render_problem
from pay.routes import router

wiring.observe("pay")
wiring.build_in_lambda(wiring.pay_services)
app = application(
    random_bytes=system_random,
    render=render_problem,
    repeated=("/pay/{session_id}/status", "/pay/{session_id}/watch"),
)
app.include_router(router)
app.include_router(details.router)
app.include_router(alternative_wallet.router)
app.include_router(withdrawals.router)
app.include_router(till.router)
app.include_router(links.router)
app.include_router(home.router)
app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=4)
app.add_middleware(  # the outermost, so that every response has these headers
    PageHeaders, random_bytes=system_random, policy=POLICY, referrer=REFERRER
)
handler = lambda_handler(app)
