"""Webhook events, endpoints and signatures."""
