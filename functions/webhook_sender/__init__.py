"""Deliver webhook events, without a public URL: one attempt for each message in the queue."""

import checkout  # noqa: F401 - imported first, to shorten cold starts
