"""JavaScript's `JSON.parse` and `JSON.stringify`, which Rafiki uses to compute a body's digest.

The digest is over `JSON.stringify(JSON.parse(body))`. Python's json differs for integer-like keys,
numbers, lone surrogates and NaN. For these, this module follows ECMA-262.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any, NoReturn

_ARRAY_INDEX = re.compile(r"0|[1-9][0-9]{0,9}")
_quoted = json.JSONEncoder(ensure_ascii=False).encode
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def parse(raw: bytes) -> Any:
    """Parse a JSON text, with numbers as floats, as JavaScript does. Raises ValueError."""
    try:
        return json.loads(raw.decode(), parse_int=float, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("too deep") from None


def stringify(value: Any) -> str:
    """Serialize a value as JavaScript does. Ints, which `parse` never returns, are not rounded."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub(lambda found: f"\\u{ord(found[0]):04x}", _quoted(value))
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _number(value)
    if isinstance(value, list):
        return f"[{','.join(map(stringify, value))}]"
    pairs = (f"{stringify(key)}:{stringify(value[key])}" for key in _key_order(value))
    return f"{{{','.join(pairs)}}}"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _key_order(value: dict[str, Any]) -> list[str]:
    indices = [key for key in value if _ARRAY_INDEX.fullmatch(key) and int(key) < 2**32 - 1]
    if not indices:
        return list(value)
    return sorted(indices, key=int) + [key for key in value if key not in indices]


def _number(value: float) -> str:
    """Format as ECMA-262 Number::toString: shortest digits, an exponent outside 1e-6 .. 1e21."""
    if value in (float("inf"), float("-inf")):
        return "null"
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(text) + exponent
    if 0 < point <= 21:
        body = text[:point].ljust(point, "0") + ("." + text[point:] if len(text) > point else "")
    elif -6 < point <= 0:
        body = "0." + "0" * -point + text
    else:
        body = text[0] + ("." + text[1:] if len(text) > 1 else "") + f"e{point - 1:+d}"
    return ("-" if sign else "") + body
