"""Delivers webhook events: an attempt for each message of the event queue. No public address."""
