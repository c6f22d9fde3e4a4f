"""Rows of tables as text, with what the codec compresses unpacked, and back."""

from __future__ import annotations

import json
from typing import Any

from checkout.adapters.dynamo.codec import deflated, inflated


def row_text(row: dict[str, Any]) -> str:
    """Return a row as JSON in which a compressed text is under "deflated"."""
    return json.dumps({name: _readable(value) for name, value in row.items()}, ensure_ascii=False)


def row_of(text: str) -> dict[str, Any]:
    """Return the row of `row_text`."""
    return {
        name: deflated(value["deflated"]) if "deflated" in value else value
        for name, value in json.loads(text).items()
    }


def _readable(value: dict[str, Any]) -> dict[str, Any]:
    return {"deflated": inflated(value)} if "B" in value else value
