"""Parts of a merchant's lists and daily sums; the parts are read together, as one list or sum.

The database limits the number of new records per second in one list, so a busy list is split into
parts. A merchant can get more parts without moving any record, because each record keeps the part
that it got when it was created.
"""

from __future__ import annotations

import hashlib
from typing import Final, NamedTuple

PARTS: Final = (1, 2, 4, 8, 16, 32)  # the possible numbers; a merchant's number never decreases


class Lists(NamedTuple):
    """The lists and sums of a merchant; `parts` is the largest number of parts that it has had."""

    merchant: str
    parts: int = 1


def part_of(record_id: str, parts: int) -> int:
    """Return the part to which a record belongs, from 0 to `parts` - 1."""
    return hashlib.sha256(record_id.encode()).digest()[0] % parts
