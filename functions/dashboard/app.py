"""The Lambda function `dashboard`."""

from __future__ import annotations

from checkout import wiring
from checkout.adapters.clock import system_random
from checkout.page_headers import PageHeaders
from checkout.web import application, lambda_handler
from dashboard import keys_routes, routes, settings_routes, webhooks_routes
from dashboard.headers import POLICY, REFERRER
from dashboard.pages import render_problem

wiring.observe("dashboard")
app = application(random_bytes=system_random, render=render_problem)
app.include_router(routes.router)
app.include_router(keys_routes.router)
app.include_router(webhooks_routes.router)
app.include_router(settings_routes.router)
app.add_middleware(  # the outermost: every answer has them
    PageHeaders, random_bytes=system_random, policy=POLICY, referrer=REFERRER
)
handler = lambda_handler(app)
