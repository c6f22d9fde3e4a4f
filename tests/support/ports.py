"""Ports for tests that serve a whole local world."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from collections.abc import Iterable
from pathlib import Path

from sandbox.place import Place

# The ports of a local world, and those of wallets that are served without one (sandbox/wallets).
_WORLD = Place(0, Path(), 0)
OFFSETS = {*_WORLD.ports(), _WORLD.listener_port, 1, 2}
# Not the tests' own seed, with which two workers would choose the same ports at once.
_chance = random.SystemRandom()
# One byte for each port: the process that has locked it has the port. Locks end with their process.
_locks = os.open(
    Path(tempfile.gettempdir()) / f"checkout-sessions-test-ports-{os.getuid()}",
    os.O_CREAT | os.O_RDWR,
)
_ours: set[int] = set()


def free_base() -> int:
    """Return a base of which every port of the local world is free.

    No other call, in this process or another one, gets one of these ports while this process lives.
    """
    for _ in range(200):
        base = _chance.randrange(20_000, 32_000)  # below those that systems give to clients
        ports = {base + offset for offset in OFFSETS}
        if ports.isdisjoint(_ours) and _reserved(ports) and _unused(ports):
            return base
    raise AssertionError("no free ports")


def _reserved(ports: Iterable[int]) -> bool:
    """Lock the ports against other processes; return whether none has one of them."""
    try:
        for port in ports:
            fcntl.lockf(_locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
            _ours.add(port)
    except OSError:
        return False
    return True


def _unused(ports: Iterable[int]) -> bool:
    try:
        for port in ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True
