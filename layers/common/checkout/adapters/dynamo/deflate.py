"""Compress texts with a dictionary of what most of them hold: field names, events, addresses.

The first byte of a compressed text is the number of its dictionary. A dictionary never changes, as
every stored record needs the one it was written with; a better one gets the next number.
"""

from __future__ import annotations

import zlib
from typing import Final

from checkout.adapters.dynamo.dictionaries import DICTIONARIES, LATEST
from checkout.adapters.dynamo.values import Value

_RAW: Final = -15  # zlib's largest window, without its header and checksum
_LEVEL: Final = 6


def deflated(plain: str) -> Value:
    """Return the attribute that holds this text."""
    packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, _RAW, zdict=DICTIONARIES[LATEST])
    return {"B": bytes([LATEST]) + packer.compress(plain.encode()) + packer.flush()}


def inflated(value: Value) -> str:
    """Return the text of an attribute. Raise KeyError or ValueError if it holds none."""
    stored = memoryview(value["B"])
    unpacker = zlib.decompressobj(_RAW, zdict=DICTIONARIES[stored[0]])
    try:
        plain = unpacker.decompress(stored[1:])
    except zlib.error as error:
        raise ValueError("a compressed text is damaged") from error
    if not unpacker.eof:
        raise ValueError("a compressed text is cut off")
    return plain.decode()
