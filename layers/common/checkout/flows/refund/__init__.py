"""Refunds: request one (R1), approve and send it (R2), decide its result (R3).

The order of writes and its reasons: domain/refund/transitions.py.
"""
