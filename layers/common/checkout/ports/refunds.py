"""Declare the reading of refunds. `ports.Records` writes them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from checkout.domain.parts import Lists
from checkout.domain.refund import Refund


@dataclass(frozen=True, slots=True)
class RefundPage:
    """A page of refunds; `next_key` is the position of the last one read, or None at the end."""

    refunds: tuple[Refund, ...]
    next_key: str | None


class Refunds(Protocol):
    """Read refunds."""

    def get(self, refund_id: str) -> Refund | None:
        """Read the refund, strongly consistent."""
        ...

    def of(self, refund_ids: tuple[str, ...]) -> tuple[Refund, ...]:
        """Read refunds, in this order, strongly consistent. Missing ones are left out."""
        ...

    def page(
        self,
        of: Lists,
        *,
        limit: int,
        after: str | None,
        created_from: datetime | None = None,
        created_before: datetime | None = None,
    ) -> RefundPage:
        """Read a merchant's refunds, newest first; `limit` is 1 to 100.

        `after` is the position of the last refund seen. The index lags a little.
        """
        ...
