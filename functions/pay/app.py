"""The Lambda function `pay`."""

from __future__ import annotations

from starlette.middleware.gzip import GZipMiddleware

from checkout import wiring
from checkout.adapters.clock import system_random
from checkout.page_headers import PageHeaders
from checkout.web import application, lambda_handler
from pay.headers import POLICY, REFERRER
from pay.problems import render_problem
from pay.routes import router

wiring.observe("pay")
app = application(random_bytes=system_random, render=render_problem)
app.include_router(router)
app.add_middleware(GZipMiddleware, minimum_size=1024, compresslevel=4)
app.add_middleware(  # the outermost: every answer has them
    PageHeaders, random_bytes=system_random, policy=POLICY, referrer=REFERRER
)
handler = lambda_handler(app)
