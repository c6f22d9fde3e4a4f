"""Declare the store of payment links."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from checkout.domain.links import PaymentLink
from checkout.ports.sessions import Reservation


@dataclass(frozen=True, slots=True)
class LinkPage:
    """A page of links; `next_key` is the position of the last one, or None at the end."""

    links: tuple[PaymentLink, ...]
    next_key: str | None


class Links(Protocol):
    """Store payment links. `Sessions.create` and `save` change their stock with sessions."""

    def add(self, link: PaymentLink, reservation: Reservation | None = None) -> None:
        """Write a new link, and the reservation in the same transaction. Raises KeyHeld."""
        ...

    def get(self, link_id: str) -> PaymentLink | None:
        """Read the link, strongly consistent."""
        ...

    def page(self, merchant: str, *, limit: int, after: str | None) -> LinkPage:
        """Read a merchant's links, newest first by `grammar.position`, by an index that lags.

        `after` is the position of the last link seen; `limit` is at most 99.
        """
        ...

    def set_left(self, link: PaymentLink, left: int) -> bool:
        """Write the number of items left, if the stored number is still that of `link`.

        Otherwise, or while buyers take items, returns False, and nothing is written.
        """
        ...

    def set_stopped(self, link: PaymentLink, at: datetime | None) -> None:
        """Stop the link, or let it sell again if `at` is None."""
        ...
