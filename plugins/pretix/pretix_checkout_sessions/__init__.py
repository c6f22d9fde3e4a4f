"""Checkout Sessions as a payment method of pretix."""

__version__ = "0.1.0"
