"""Shards: the parts over which a merchant's lists and daily sums are spread.

A partition of a table or index takes 1 000 write units a second, and a list by time grows at one
end only. So a merchant with more sessions than that has several lists, which are read as one. All
numbers of shards are powers of two: then one number divides the other, and the sessions of a shard
of one kind are in few shards of another.
"""

from __future__ import annotations

import hashlib
from typing import Final

SHARDS: Final = (1, 2, 4, 8, 16, 32)  # that a merchant may have; the number never falls


def shard_of(record_id: str, shards: int) -> int:
    """Return the shard of a record, 0 to `shards` - 1."""
    return hashlib.sha256(record_id.encode()).digest()[0] % shards
