"""Declare the limits by client, and the counters that processes share."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from checkout.domain.limits import Rule


class RateLimits(Protocol):
    """Count the work that clients cause. Each `take…` method returns 0, or the seconds to wait."""

    def take(self, rule: Rule, client: str) -> float:
        """Count one more for `client` in this process."""
        ...

    def take_shared(self, client: str) -> float:
        """Count one more work at wallets for `client`, in all processes together."""
        ...

    def take_list(self, merchant: str) -> float:
        """Count one more list of a merchant's, in all processes together."""
        ...

    def take_sign_up(self, client: str) -> float:
        """Count one more shop that `client` signs up with, in all processes together."""
        ...

    def take_item(self, link: str, client: str, *, left: int) -> float:
        """Count one more item of a link's stock for `client`, in all processes together.

        `left` items are neither held nor sold.
        """
        ...

    def give_item(self, link: str, client: str) -> None:
        """Count one item less, because `client` has paid one. Best effort: raises nothing."""
        ...

    def take_letter(self, about: str, *, most: int, until: datetime) -> bool:
        """Count one more e-mail about this session or member until then.

        Return False if there are `most` already.
        """
        ...

    def know(self, provider: str) -> None:
        """Remember that a payment with this wallet provider was completed just now."""
        ...

    def knows(self, provider: str) -> bool: ...


class Counters(Protocol):
    """Store counters that all processes share, for a while."""

    def attempt(self, counter: str, *, limit: int, until: datetime) -> bool:
        """Increment a counter, or return False without incrementing it if it is at `limit`.

        `counter` includes its time window, which ends at `until`.
        """
        ...

    def give_back(self, counter: str) -> None:
        """Decrement a counter that is above 0. Best effort: raises nothing."""
        ...
