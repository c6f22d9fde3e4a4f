"""Make opaque cursors, each for a position in one merchant's list.

Other merchants cannot use such a cursor.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from dataclasses import dataclass
from typing import Generic, TypeVar

from checkout.domain.ground.errors import CursorInvalid
from checkout.domain.ground.grammar import position_pattern
from checkout.ports import Page

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class CursorPage(Generic[T]):
    """A page of a merchant's records; `next_cursor` is None on the last page."""

    records: tuple[T, ...]
    next_cursor: str | None


def with_cursor(merchant: str, page: Page[T]) -> CursorPage[T]:
    """Return a page of this merchant's list, with the cursor for the next page."""
    more = cursor(merchant, page.next_key) if page.next_key else None
    return CursorPage(page.records, more)


def cursor(merchant: str, position: str) -> str:
    """Return the cursor of `position` in a list of this merchant."""
    text = f"{position}#{_checksum(merchant, position)}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def position_of(merchant: str, presented: str | None, ids: re.Pattern[str]) -> str | None:
    """Return the position that the cursor `presented` encodes, or None if `presented` is None.

    `ids` is the pattern of the ids in the list. Raises CursorInvalid.
    """
    if presented is None:
        return None
    try:
        padded = presented + "=" * (-len(presented) % 4)
        text = base64.b64decode(padded, altchars=b"-_", validate=True)
        position, _, checksum = text.decode("ascii").rpartition("#")
    except (binascii.Error, ValueError):
        position = checksum = ""
    shape = position_pattern(ids.pattern)
    if not shape.fullmatch(position) or checksum != _checksum(merchant, position):
        raise CursorInvalid(
            "This is not a cursor for this list. Send `next_cursor` of the previous page "
            "unchanged.",
            param="cursor",
        )
    return position


def _checksum(merchant: str, position: str) -> str:
    return hashlib.sha256(f"cursor\n{merchant}\n{position}".encode()).hexdigest()[:16]
