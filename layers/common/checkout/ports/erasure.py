"""Declare the reading of all records, for the operator's commands. No request does this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from checkout.domain.audit import AuditEntry
from checkout.domain.note import Note
from checkout.domain.refund import Refund
from checkout.domain.session import Session
from checkout.domain.webhooks import WebhookEvent
from checkout.domain.withdrawal import Withdrawal
from checkout.ports.sessions import Reservation


class AllRecords(Protocol):
    """Read whole tables, in no order; None stands for a row that cannot be read.

    Each raises `errors.Unavailable`.
    """

    def sessions(self) -> Iterator[Session | None]: ...

    def session_ids(self) -> Iterator[str]:
        """Return the ids of all sessions, also of those that cannot be read."""
        ...

    def merchant_of(self, session_id: str) -> str | None:
        """Return the id of a session's merchant, also if the session cannot be read."""
        ...

    def events(self) -> Iterator[WebhookEvent | None]: ...

    def audit_entries(self) -> Iterator[AuditEntry | None]: ...

    def notes(self) -> Iterator[Note | None]: ...

    def withdrawals(self) -> Iterator[Withdrawal | None]: ...

    def refunds(self) -> Iterator[Refund | None]: ...

    def answers(self) -> Iterator[Reservation | None]:
        """Return the stored answers of requests with an idempotency key."""
        ...

    def replace_answer(self, answer: Reservation) -> None:
        """Write the answer's body in place of the stored one, unless the key has a newer answer."""
        ...
