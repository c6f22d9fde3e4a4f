"""JSON bodies, read strictly (RFC 8259, RFC 7493).

A text that two parsers could read differently is refused.
"""

from __future__ import annotations

import codecs
import json
import math
import re
from typing import Any, Final

from checkout.domain.ground.errors import InvalidJson

NESTING_MAX: Final = 20
INTEGER_MAX: Final = 2**53 - 1  # parsers disagree about larger numbers (RFC 8259 section 6)


def parse_object(raw: bytes) -> dict[str, Any]:
    """Return the one JSON object in `raw`. Raises InvalidJson for any other body.

    Also raises for NaN, infinities and numbers too large for a float, integers beyond 2^53-1,
    duplicate names, lone surrogates, nesting deeper than 20, and bytes that are not UTF-8.
    """
    if not raw.strip():
        raise InvalidJson("The body is empty.")
    if raw.startswith(codecs.BOM_UTF8):
        raise InvalidJson("The body begins with a byte order mark: send it without.")
    try:
        value = json.loads(
            raw.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_constant,
            parse_float=_float,
            parse_int=_integer,
        )
    except InvalidJson:
        raise
    except UnicodeDecodeError:
        raise InvalidJson("The body is not valid UTF-8.") from None
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        at = error if isinstance(error, json.JSONDecodeError) else None
        where = f" (line {at.lineno}, column {at.colno})" if at else ""
        raise InvalidJson(f"The body is not valid JSON{where}.") from None
    _check(value, depth=0)
    if not isinstance(value, dict):
        raise InvalidJson("The body must be a JSON object.")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise InvalidJson("An object in the body has the same name twice.")
    return result


def _constant(_: str) -> Any:
    raise InvalidJson("NaN and Infinity are not JSON.")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise InvalidJson("A number in the body is too large.")
    return value


def _integer(text: str) -> int:
    # Check the length first, because converting a megabyte of digits takes a long time.
    if len(text) > 17 or abs(int(text)) > INTEGER_MAX:
        raise InvalidJson("An integer in the body is beyond 2^53-1.")
    return int(text)


def _check(value: Any, *, depth: int) -> None:
    """Raise InvalidJson for a lone surrogate, or a container deeper than NESTING_MAX."""
    if isinstance(value, str):
        if re.search("[\ud800-\udfff]", value):
            raise InvalidJson("A string in the body contains a lone surrogate.")
    elif isinstance(value, dict | list):
        if depth == NESTING_MAX:
            raise _too_deep()
        for item in value:
            _check(item, depth=depth + 1)
        if isinstance(value, dict):
            for item in value.values():
                _check(item, depth=depth + 1)


def _too_deep() -> InvalidJson:
    return InvalidJson(f"The body is nested deeper than {NESTING_MAX} levels.")
