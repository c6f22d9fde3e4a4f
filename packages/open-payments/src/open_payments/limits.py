"""The limits of a grant that the customer approves: amounts and intervals of its payments.

Servers grant malformed limits, and later refuse or fail each payment. So all limits are checked
here, before the customer is asked to approve them.

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
    """Periods from `start` on, each a number of months or days long, without an end.

    Raises ValueError if `start` has no offset or has a fraction of a second, or if not exactly one
    of the lengths is positive. Months that begin after the 28th are also refused, because servers
    count each month from the end of the month before, so such periods would drift.
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
    """Limits for the sum of all payments under one grant, in each period if it has an interval.

    Exactly one amount is given: `debit_amount`, which includes the sender's fees, or
    `receive_amount`, which is what arrives. `receiver` is the only incoming payment that the grant
    can pay. Raises ValueError.
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
        """Return the JSON object for a grant request."""
        named: dict[str, object] = {
            "receiver": self.receiver,
            "debitAmount": self.debit_amount and self.debit_amount.members(),
            "receiveAmount": self.receive_amount and self.receive_amount.members(),
            "interval": self.interval and str(self.interval),
        }
        return {name: value for name, value in named.items() if value is not None}
