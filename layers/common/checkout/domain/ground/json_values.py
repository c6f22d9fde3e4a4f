"""The forms in which this service writes values in JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from open_payments.models import Amount

if TYPE_CHECKING:
    from checkout import answers


def compact(body: Any) -> str:
    """Return a JSON value as text, without spaces."""
    return json.dumps(body, separators=(",", ":"), ensure_ascii=False)


def amount(value: Amount | None) -> answers.Amount | None:
    """Return a wallet's amount; its value is a string of digits, as in Open Payments."""
    if value is None:
        return None
    scale = value.asset_scale
    return {"value": str(value.value), "asset_code": value.asset_code, "asset_scale": scale}


def timestamp(at: datetime) -> str:
    """Return ISO 8601 in UTC with milliseconds, as in 2026-03-01T12:00:00.000Z."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def optional_time(at: datetime | None) -> str | None:
    """Return `timestamp(at)`, or None if there is no time."""
    return timestamp(at) if at is not None else None
