"""JSON Schema validation that reports only the first failure, as Rafiki does.

The keywords and messages are those of Rafiki's `openapi-request-validator`, as far as the Open
Payments OpenAPI files use them. For `oneOf` and `anyOf`, the failure of the first branch is
reported, as in Rafiki, even if another branch fits the value better.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

Schema = Mapping[str, Any]

_TYPES: Final[dict[str, type | tuple[type, ...]]] = {
    "object": dict,
    "array": list,
    "string": str,
}


def _is_uri(text: str) -> bool:
    try:
        return re.fullmatch(
            r"[A-Za-z][A-Za-z0-9+.-]*:[^\s<>\"{}|\\^`]+", text
        ) is not None and bool(urlsplit(text).scheme)
    except ValueError:
        return False


def _is_date_time(text: str) -> bool:
    pattern = r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:?\d\d)"
    if not re.fullmatch(pattern, text):
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True


_FORMATS: Final[dict[str, Callable[[str], bool]]] = {
    "uri": _is_uri,
    "date-time": _is_date_time,
    "uint64": lambda text: re.fullmatch(r"[0-9]+", text) is not None,
}


def failure(value: Any, schema: Schema, path: str = "body") -> str | None:
    """Return the first failure of `value` (numbers as floats) against `schema`, or None."""
    expected = schema.get("type")
    if expected is not None and not _has_type(value, expected):
        return f"{path} must be {expected}"
    checks = (_enumerated, _of_text, _of_number, _of_array, _of_object, _of_branches)
    for check in checks:
        found = check(value, schema, path)
        if found is not None:
            return found
    return None


def _has_type(value: Any, expected: str) -> bool:
    if expected == "integer":
        return isinstance(value, float) and value.is_integer()
    return isinstance(value, _TYPES[expected])


def _enumerated(value: Any, schema: Schema, path: str) -> str | None:
    if "enum" in schema and value not in schema["enum"]:
        return f"{path} must be equal to one of the allowed values"
    return None


def _of_text(value: Any, schema: Schema, path: str) -> str | None:
    if not isinstance(value, str):
        return None
    if "pattern" in schema and not re.search(schema["pattern"], value):
        # Rafiki's validator prints the pattern with dots in place of slashes.
        return f'{path} must match pattern "{schema["pattern"].replace("/", ".")}"'
    if "format" in schema and not _FORMATS[schema["format"]](value):
        return f'{path} must match format "{schema["format"]}"'
    return None


def _of_number(value: Any, schema: Schema, path: str) -> str | None:
    if not isinstance(value, float):
        return None
    if "minimum" in schema and value < schema["minimum"]:
        return f"{path} must be >= {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"{path} must be <= {schema['maximum']}"
    return None


def _of_array(value: Any, schema: Schema, path: str) -> str | None:
    if not isinstance(value, list):
        return None
    if "maxItems" in schema and len(value) > schema["maxItems"]:
        return f"{path} must NOT have more than {schema['maxItems']} items"
    for index, item in enumerate(value):
        found = failure(item, schema.get("items", {}), f"{path}.{index}")
        if found is not None:
            return found
    if schema.get("uniqueItems") and any(item in value[:index] for index, item in enumerate(value)):
        return f"{path} must NOT have duplicate items"
    return None


def _of_object(value: Any, schema: Schema, path: str) -> str | None:
    if not isinstance(value, dict):
        return None
    properties = schema.get("properties", {})
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        return f"{path} must have required property '{missing[0]}'"
    additional = [name for name in value if name not in properties]
    if additional and schema.get("additionalProperties") is False:
        return f"{path} must NOT have additional properties: {additional[0]}"
    for name, inner in properties.items():
        if name in value:
            found = failure(value[name], inner, f"{path}.{name}")
            if found is not None:
                return found
    if additional and schema.get("unevaluatedProperties") is False:
        return f"{path} must NOT have unevaluated properties"
    return None


def _of_branches(value: Any, schema: Schema, path: str) -> str | None:
    for keyword in ("oneOf", "anyOf"):
        if keyword in schema:
            failures = [failure(value, branch, path) for branch in schema[keyword]]
            if None not in failures:
                return failures[0]
    return None
