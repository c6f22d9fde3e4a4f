"""Refunds: request a refund (R1), approve and send it (R2), decide its result (R3).

domain/refund/transitions.py explains the order of the writes.
"""
