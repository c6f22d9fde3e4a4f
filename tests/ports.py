"""Ports for tests that serve a whole local world."""

from __future__ import annotations

import random
import socket

# What sandbox/place.py and sandbox/wallets/defaults.py derive from their base.
OFFSETS = (0, 1, 2, 10, 11, 100, 101, 102, 201, 202, 566)
# Not the tests' own seed, with which two workers would choose the same ports at once.
_chance = random.SystemRandom()


def free_base() -> int:
    """A base of which every port of the local world is free right now."""
    for _ in range(200):
        base = _chance.randrange(20_000, 32_000)  # below those that systems give to clients
        try:
            for offset in OFFSETS:
                with socket.socket() as probe:
                    probe.bind(("127.0.0.1", base + offset))
        except OSError:
            continue
        return base
    raise AssertionError("no free ports")
