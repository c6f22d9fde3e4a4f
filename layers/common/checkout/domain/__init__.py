"""The business rules of the checkout, as pure code: no clock, no randomness, no I/O, no framework.

`session/transitions.py` lists the states of a session and the transitions between them.
"""
