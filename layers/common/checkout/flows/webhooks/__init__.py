"""Deliver webhook events, and manage endpoints and the delivery log."""
