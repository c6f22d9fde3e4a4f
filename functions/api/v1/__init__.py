"""The API under /v1 for Stripe's client libraries, over the flows of the native API.

It is loaded at the first request. It only translates, and has no rules of its own about sessions.
The function `api` serves it, but for /v1/webhook_endpoints, which `dashboard` does (endpoints.py).
"""
