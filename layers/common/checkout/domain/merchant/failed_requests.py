"""The newest refused requests of an API key, kept for a day, so that developers see what failed.

A request without a valid key belongs to no merchant, so this log does not contain it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

KEPT: Final = timedelta(days=1)
NEWEST: Final = 50  # of each key
A_MINUTE: Final = 10  # further refusals are not written, so that a flood of them costs little
MESSAGE_MAX: Final = 300  # characters


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """One refused request. `route` has names in place of ids, so it is short and not secret."""

    at: datetime
    method: str
    route: str
    status: int
    code: str
    message: str
    request_id: str
    param: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedRequests:
    """The refused requests of a key, the newest last."""

    key: str
    version: int = 0
    entries: tuple[FailedRequest, ...] = ()

    def since(self, now: datetime) -> tuple[FailedRequest, ...]:
        """Return the refusals that are still kept at `now`, the newest first."""
        return tuple(each for each in reversed(self.entries) if now < each.at + KEPT)

    def with_one(self, refusal: FailedRequest) -> FailedRequests | None:
        """Return the next version with this refusal; None if its minute already has A_MINUTE."""
        minute = refusal.at - timedelta(minutes=1)
        if sum(minute < each.at for each in self.entries) >= A_MINUTE:
            return None
        kept = [each for each in self.entries if refusal.at < each.at + KEPT]
        short = replace(refusal, message=refusal.message[:MESSAGE_MAX])
        return replace(self, version=self.version + 1, entries=tuple([*kept, short][-NEWEST:]))
