"""The API under /v1 for Stripe's client libraries, over the flows of the native API.

It is loaded at the first request. It only translates, and has no rules of its own about sessions.
The function `api` serves it, except /v1/webhook_endpoints, which `dashboard` serves (endpoints.py).
"""
