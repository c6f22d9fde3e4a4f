"""A client of Open Payments: wallet addresses, GNAP grants, incoming payments, quotes, payments.

It knows the protocol and its traps, and nothing of checkouts: it imports nothing else of the
product.
"""
