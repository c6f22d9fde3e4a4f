"""Bound the size of a page of a list: Lambda's responses have at most 6 MB."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from checkout.flows.payment.sessions import json_text

PAGE_BYTES: Final = 5_000_000  # a page of larger objects ends early


def fitting(objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first objects that fit on a page together, and one at least."""
    found = list(objects)
    if _size(found) <= PAGE_BYTES:
        return found
    data: list[dict[str, Any]] = []
    size = 0
    for shown in found:
        size += _size(shown)
        if size > PAGE_BYTES and data:
            break
        data.append(shown)
    return data


def _size(value: Any) -> int:
    """Return the bytes of `value` as Lambda writes it: a string within JSON."""
    return len(json.dumps(json_text(value)))
