"""Bound the size of a page of a list: Lambda's responses have at most 6 MB."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

from checkout.flows.payment.sessions import json_text

PAGE_BYTES: Final = 5_000_000  # a page of larger objects ends early
_LONGEST: Final = 12  # bytes of a character in a string of JSON: two escapes, as in \ud83d\ude00

Object = dict[str, Any]


def page_text(objects: Sequence[Object], page: Callable[[int], Object]) -> str:
    """Return the page of the first objects that fit on one together, and of one at least.

    `page` returns the page of so many of `objects`.
    """
    # Nearly all pages fit, so the whole page is written first, and not object by object.
    text = json_text(page(len(objects)))
    if len(text) * _LONGEST <= PAGE_BYTES or _size(text) <= PAGE_BYTES:
        return text
    return json_text(page(_fitting(objects)))


def _fitting(objects: Iterable[Object]) -> int:
    """Return how many of the first objects fit; at least 1."""
    count = size = 0
    for each in objects:
        size += _size(json_text(each))
        if size > PAGE_BYTES and count:
            break
        count += 1
    return count


def _size(text: str) -> int:
    """Return the bytes of `text` as Lambda writes it: a string within JSON."""
    return len(json.dumps(text))
