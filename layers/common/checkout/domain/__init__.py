"""The rules of the product, pure: no clock, no randomness, no I/O, no framework.

`session/transitions.py` has the states of a session.
"""
