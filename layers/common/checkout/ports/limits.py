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

    def take_items(self, link: str, client: str, items: int, *, left: int) -> float:
        """Count more items of a link's stock for `client`, in all processes together.

        `left` items are neither held nor sold. A client that holds none may take any number.
        """
        ...

    def give_items(self, link: str, client: str, items: int) -> None:
        """Stop counting items that `client` has paid. Best effort: raises nothing."""
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

    def attempt(self, counter: str, *, limit: int, until: datetime, by: int = 1) -> bool:
        """Add to a counter, or return False without adding if it would exceed `limit`.

        The first addition always succeeds. `counter` includes its time window, which ends at
        `until`.
        """
        ...

    def give_back(self, counter: str, by: int = 1) -> None:
        """Subtract from a counter that has as much. Best effort: raises nothing."""
        ...
