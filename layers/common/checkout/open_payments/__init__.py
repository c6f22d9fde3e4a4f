"""A client of Open Payments: wallet addresses, GNAP grants, incoming payments, quotes, outgoing
payments.

It knows the wire and its traps, and nothing of checkouts: it imports nothing else of the product.
"""
