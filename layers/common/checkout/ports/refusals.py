"""Declare the store of refused requests."""

from __future__ import annotations

from typing import Protocol

from checkout.domain.refusals import Refusals


class RefusalLog(Protocol):
    """Store the refused requests of each API key, for a day."""

    def of(self, key_id: str) -> Refusals:
        """Read those of a key; none is a record of version 0."""
        ...

    def put(self, refusals: Refusals) -> bool:
        """Write the record if the stored version is one less.

        Returns False if somebody else has written meanwhile.
        """
        ...
