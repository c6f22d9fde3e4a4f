"""Declare the store of payment links."""

from __future__ import annotations

from typing import Protocol

from checkout.domain.links import PaymentLink


class Links(Protocol):
    """Store payment links. `Sessions.create` and `save` change their stock with sessions."""

    def add(self, link: PaymentLink) -> None: ...

    def get(self, link_id: str) -> PaymentLink | None:
        """Read the link, strongly consistent."""
        ...

    def of(self, merchant: str) -> tuple[PaymentLink, ...]:
        """Return the links of a merchant, newest first, by an index that lags a little."""
        ...

    def replace(self, before: PaymentLink, after: PaymentLink) -> bool:
        """Write what was left and whether the link is stopped, if both are stored as `before`.

        Returns False where they are not: then nothing was written.
        """
        ...
