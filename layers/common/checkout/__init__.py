"""Checkout Sessions: a self-hosted checkout over Open Payments.

Start at `domain/transitions.py`, then read `flows/`.
"""
