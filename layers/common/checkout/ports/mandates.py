"""Declare the reading of mandates, and the storing of new ones. `ports.Records` changes them."""

from __future__ import annotations

from typing import Protocol

from checkout.domain.mandate import Mandate


class Mandates(Protocol):
    """Read mandates, and begin them."""

    def get(self, mandate_id: str) -> Mandate | None:
        """Read the mandate, strongly consistent."""
        ...

    def begin(self, mandate: Mandate) -> Mandate:
        """Store a mandate that is new; return it, or the one that is there already."""
        ...
