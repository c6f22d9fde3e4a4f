"""Declare the Open Payments clients, and the queue for clean-up at wallets."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from checkout.domain.merchant import Merchant

if TYPE_CHECKING:  # not loaded by functions that speak to no wallet
    from checkout.open_payments.client import OpenPayments
    from checkout.open_payments.tokens import TokenKeeper


class CompletionPolicy(StrEnum):
    """The evidence that completes a session (decisions.md "completed means paid")."""

    RECEIVED = "received"  # the merchant's own incoming payment shows the money
    INSTRUCTED = "instructed"  # the customer's wallet accepted the payment


class Wallets(Protocol):
    """Make Open Payments clients, each within one deadline for all its calls together."""

    @property
    def tokens(self) -> TokenKeeper:
        """Return the non-interactive grants, kept for each merchant and pair of servers."""
        ...

    def client(self, merchant: Merchant, *, deadline: datetime) -> OpenPayments:
        """Return a client that signs as `merchant`.

        Raises `errors.Unavailable` when the key cannot be read.
        """
        ...

    def anonymous(self, *, deadline: datetime) -> OpenPayments:
        """Return a client for requests without a signature: wallet addresses and their keys."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """The customer's grant that a session no longer needs.

    It is at `auth_server`, and still sealed under the session's id. `identity` is the merchant's
    that asked for it.
    """

    session: str
    merchant: str
    auth_server: str
    grant: str = field(repr=False)
    identity: int | None = None


class TaskQueue(Protocol):
    """Hand work to the function that calls wallets.

    A lost message does no harm, because grants expire.
    """

    def clean_up(self, cleanup: Cleanup) -> None:
        """Send the task, best effort and quickly; never raises."""
        ...
