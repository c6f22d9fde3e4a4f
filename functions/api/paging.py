"""Bound the size of a page of a list: Lambda's responses have at most 6 MB."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from checkout.flows.payment.sessions import json_text

PAGE_BYTES: Final = 5_000_000  # a page of larger objects ends early


def fitting(objects: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the first objects that fit on a page together, and one at least."""
    data: list[dict[str, Any]] = []
    size = 0
    for shown in objects:
        size += len(json.dumps(json_text(shown)))  # as Lambda writes it: a string within JSON
        if size > PAGE_BYTES and data:
            break
        data.append(shown)
    return data
