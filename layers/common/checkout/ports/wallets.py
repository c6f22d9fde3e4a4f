"""Declare the queue for clean-up at wallets, and the evidence that completes a session."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # not loaded by functions that speak to no wallet
    pass


class CompletionPolicy(StrEnum):
    """The evidence that completes a session (decisions.md "completed means paid")."""

    RECEIVED = "received"  # the merchant's own incoming payment shows the money
    INSTRUCTED = "instructed"  # the customer's wallet accepted the payment


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
