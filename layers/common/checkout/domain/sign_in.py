"""Sign-ins to the dashboard, and how long they last."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

IDLE: Final = timedelta(minutes=30)
LONGEST: Final = timedelta(hours=12)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignIn:
    """A signed-in browser.

    `id` is the SHA-256 of its cookie's value. It signed in with the API key of `key_hash`, or as
    the member of this id.
    """

    id: str
    key_hash: str | None = None
    member: str | None = None
    created_at: datetime
    seen_at: datetime

    def live_at(self, now: datetime) -> bool:
        return now < self.ends_at

    @property
    def ends_at(self) -> datetime:
        """The time of its end if it is not used again."""
        return min(self.seen_at + IDLE, self.created_at + LONGEST)

    def seen(self, now: datetime) -> SignIn:
        return replace(self, seen_at=now)
