"""The API under /v1 for Stripe's client libraries, built on the flows of the native API.

This package is loaded at the first request to /v1. It only translates between the two APIs, and has
no rules of its own about sessions.

The Lambda function `api` serves all paths under /v1 except /v1/webhook_endpoints, which the
function `dashboard` serves (endpoints.py).
"""
