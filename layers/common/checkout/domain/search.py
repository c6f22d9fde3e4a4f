"""Search keys: a merchant's search text, hashed so that spellings of the same text match.

Case, blanks around it, and the ways to write a wallet address (`$host/path`, `https://host/path`,
`host/path`) make no difference. Only the whole text is found, never a part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Final

METADATA_FOUND_MAX: Final = 10  # values of a session's metadata, in their order


def search_key(merchant: str, text: str) -> str:
    """Return the index's key for `text`. It is a hash, because a wallet address is private."""
    return hashlib.sha256(f"search\n{merchant}\n{same_text(text)}".encode()).hexdigest()[:32]


def metadata_keys(merchant: str, metadata: Mapping[str, Any]) -> list[str]:
    """Return the keys under which a session is found by its metadata, each once.

    They are of the first values that are text or numbers.
    """
    values = [value for value in metadata.values() if findable(value)][:METADATA_FOUND_MAX]
    return list(dict.fromkeys(search_key(merchant, str(value)) for value in values))


def findable(value: Any) -> bool:
    if isinstance(value, str):
        return bool(same_text(value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def same_text(text: str) -> str:
    """Return `text` as it is compared: spellings of the same wallet address are equal."""
    plain = text.strip().casefold()
    return plain.removeprefix("$").removeprefix("https://").rstrip("/")
