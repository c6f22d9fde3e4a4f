"""A client of Open Payments: wallet addresses, GNAP grants, incoming payments, quotes, payments.

It is independent of the checkout and imports no other package of the product.
"""
