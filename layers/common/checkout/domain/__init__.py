"""The rules, pure: no clock, no randomness, no I/O, no framework.

`transitions.py` moves sessions; the rest is its vocabulary.
"""
