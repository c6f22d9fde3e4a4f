"""Declare how a store reports a lost race."""

from __future__ import annotations

from typing import Any


class Stale(Exception):
    """Report that a record changed since it was read; `current` is the winner's version."""

    def __init__(self, current: Any) -> None:
        super().__init__(f"the record is at version {current.version}")
        self.current = current
