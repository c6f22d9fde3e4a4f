"""Declare the limits by client, and the counters that processes share."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from checkout.domain.limits import Rule


class Limits(Protocol):
    """Count what clients cause."""

    def take(self, rule: Rule, client: str) -> float:
        """Count one more for `client`; return 0, or for how many seconds it may not have it."""
        ...


class Counters(Protocol):
    """Store counters that all processes share, for a while."""

    def attempt(self, counter: str, *, limit: int, until: datetime) -> bool:
        """Increment a counter; return False, without incrementing, at `limit`.

        `counter` includes its time window, which ends at `until`.
        """
        ...
