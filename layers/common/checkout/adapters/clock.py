"""The system's clock and randomness. No other module uses either."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Final

system_random: Final = (
    os.urandom
)  # never a userspace generator: a restored snapshot must not repeat it


class SystemClock:
    """`ports.Clock` of the machine."""

    def now(self) -> datetime:
        """Return the time as aware UTC in whole milliseconds."""
        now = datetime.now(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)
