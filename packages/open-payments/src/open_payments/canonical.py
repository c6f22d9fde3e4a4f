"""JSON bytes that a JavaScript server parses and prints again unchanged.

The reference server verifies Content-Digest over `JSON.stringify(JSON.parse(body))`, not over the
bytes that it received. This module refuses values that this round trip would change, because the
server would answer them with a 401 whose cause is hard to find.
"""

from __future__ import annotations

import json
import re

_MAX_SAFE_INTEGER = 2**53 - 1
_INTEGER_LIKE = re.compile(r"0|[1-9][0-9]*")


def canonical(value: object) -> bytes:
    """Return the only encoding of `value` that survives the round trip, as UTF-8.

    `value` consists of dict, list, str, int, bool and None. Raises ValueError for floats, integers
    beyond 2^53-1, keys that look like integers (JavaScript moves them to the front), lone
    surrogates, and everything that JSON cannot represent.
    """
    _check(value)
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _check(value: object) -> None:
    match value:
        case None | bool():
            return
        case str():
            _check_text(value)
        case int():
            if abs(value) > _MAX_SAFE_INTEGER:
                raise ValueError("an integer beyond 2^53-1 does not survive JavaScript")
        case list():
            for item in value:
                _check(item)
        case dict():
            for key, item in value.items():
                _check_key(key)
                _check(item)
        case _:
            raise ValueError(f"{type(value).__name__} has no canonical JSON")


def _check_key(key: object) -> None:
    if not isinstance(key, str):
        raise ValueError("an object key must be a string")
    if _INTEGER_LIKE.fullmatch(key):
        raise ValueError("an integer-like object key is reordered by JavaScript")
    _check_text(key)


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError("text with a lone surrogate has no canonical JSON") from None
