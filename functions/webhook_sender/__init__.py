"""Deliver webhook events, without a public URL: one attempt for each message in the queue."""

import checkout  # noqa: F401 - before all others, because it prepares a cold start
