"""The limits of a grant that the customer approves: amounts and intervals of its payments.

A server grants a malformed limit and refuses, or fails, each payment later. So all limits are
checked here, before the customer is asked to approve them.

Source: Open Payments OpenAPI 1.3 (auth server, `limits-outgoing`), ISO 8601 repeating intervals.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from open_payments.models import Amount

_LAST_DAY: Final = 28  # of every month


@dataclass(frozen=True, slots=True)
class Interval:
    """Periods from `start` on, each of some months or days, without an end.

    Raises ValueError for a `start` without an offset or with a fraction of a second, for anything
    but one positive length, and for months that begin after the 28th: servers count each month from
    the end of the one before, so such periods drift.
    """

    start: datetime
    months: int = 0
    days: int = 0

    def __post_init__(self) -> None:
        if self.start.utcoffset() is None or self.start.microsecond:
            raise ValueError("an interval starts at a whole second, with its offset")
        if min(self.months, self.days) < 0 or (self.months > 0) is (self.days > 0):
            raise ValueError("an interval has a length in months or in days")
        if self.months and self.start.astimezone(UTC).day > _LAST_DAY:
            raise ValueError("an interval of months starts on the 28th at the latest, in UTC")

    def __str__(self) -> str:
        start = self.start.astimezone(UTC).replace(tzinfo=None).isoformat()
        length = f"{self.months}M" if self.months else f"{self.days}D"
        return f"R/{start}Z/P{length}"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of all payments under one grant, together; within one period if there is an interval.

    `debit_amount` counts the sender's fees, `receive_amount` what arrives; exactly one is given.
    `receiver` is the only incoming payment that may be paid. Raises ValueError.
    """

    receiver: str | None = None
    debit_amount: Amount | None = None
    receive_amount: Amount | None = None
    interval: Interval | None = None

    def __post_init__(self) -> None:
        amount = self.debit_amount or self.receive_amount
        if amount is None or (self.debit_amount and self.receive_amount):
            raise ValueError("a grant is limited by one amount")
        if not 0 <= amount.value < 2**64:
            raise ValueError("a grant is limited by an unsigned amount of 64 bits")

    def members(self) -> dict[str, object]:
        """Return the JSON object of a grant request."""
        named: dict[str, object] = {
            "receiver": self.receiver,
            "debitAmount": self.debit_amount and self.debit_amount.members(),
            "receiveAmount": self.receive_amount and self.receive_amount.members(),
            "interval": self.interval and str(self.interval),
        }
        return {name: value for name, value in named.items() if value is not None}
