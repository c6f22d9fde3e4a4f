"""A client of Open Payments: wallet addresses, GNAP grants, incoming payments, quotes, payments.

It knows nothing about checkouts and imports no other package of the product.
"""
