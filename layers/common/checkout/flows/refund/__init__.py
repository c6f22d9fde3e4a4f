"""Refunds: request one (R1), approve and send it (R2), decide what became of it (R3).

The order of writes and its reasons: domain/refund/transitions.py.
"""
