"""Deliver webhook events: one attempt for each message of the event queue. No public URL."""

import checkout  # noqa: F401 - before all others, see there
