"""Deliver webhook events: one attempt for each message of the event queue. No public URL."""
