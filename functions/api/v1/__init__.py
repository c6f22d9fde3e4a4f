"""The API under /v1, which Stripe's client libraries speak, over the flows of the native API.

Loaded at the first request to it. It has no rules of its own about sessions: it translates.
"""
