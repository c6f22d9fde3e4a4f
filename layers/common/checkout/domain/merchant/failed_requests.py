"""The last refused requests of an API key, so that developers see what failed.

A request without a valid key belongs to no merchant, so this log does not contain it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

KEPT: Final = timedelta(days=1)  # after the key's last refused request
LAST: Final = 10  # the number of refused requests that are kept for each key
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

    def kept_at(self, now: datetime) -> tuple[FailedRequest, ...]:
        """Return the refusals that are still kept at `now`, the newest first."""
        if self.entries and now < self.entries[-1].at + KEPT:
            return self.entries[::-1]
        return ()

    def with_one(self, refusal: FailedRequest) -> FailedRequests:
        """Return the next version, with this refusal."""
        short = replace(refusal, message=refusal.message[:MESSAGE_MAX])
        return replace(self, version=self.version + 1, entries=(*self.entries, short)[-LAST:])
