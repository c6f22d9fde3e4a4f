"""Declare the store of members who have asked for notices."""

from __future__ import annotations

from typing import Protocol

from checkout.domain.notices import Subscriber
from checkout.ports.sessions import Reservation


class Subscribers(Protocol):
    """Store one record for each member; the sweep finds those that are due among the sessions."""

    def get(self, subscriber_id: str) -> Subscriber | None:
        """Read the record, strongly consistent."""
        ...

    def put(self, subscriber: Subscriber, reservation: Reservation | None = None) -> bool:
        """Write the record if the stored version is one less; a first version if there is none.

        Returns False if somebody else has written meanwhile. The reservation is written in the same
        transaction. Raises KeyHeld.
        """
        ...
