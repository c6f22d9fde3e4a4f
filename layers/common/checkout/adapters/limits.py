"""`ports.Limits` in the memory of this process, and in a counter that all processes share.

Knows up to 10 000 clients, and forgets those first that it has not seen for the longest time.
"""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Final

from checkout.domain.limits import Rule
from checkout.ports.limits import Counters
from checkout.ports.runtime import Clock

_WINDOW: Final = 60  # seconds, of the shared counter
_MOST: Final = 10_000


class Allowances:
    """Thread-safe. A client may do `a_minute` more of what a rule shares; 0: there is no limit.

    What the shared counter refuses is remembered, so a flood costs one write a minute and process.
    """

    def __init__(self, clock: Clock, counters: Counters | None = None, *, a_minute: int) -> None:
        self._clock = clock
        self._counters = counters
        self._a_minute = a_minute
        self._lock = threading.Lock()
        # When an allowance will be whole again, in seconds (the generic cell rate algorithm).
        self._whole_at: dict[tuple[str, str], float] = {}
        # Until when the shared counter has no room.
        self._full_until: dict[tuple[str, str], float] = {}

    def take(self, rule: Rule, client: str) -> float:
        if self._a_minute == 0:
            return 0
        now = self._clock.now().timestamp()
        wait = self._take_own(rule, client, now)
        if wait == 0 or not rule.shared or self._counters is None:
            return wait
        return self._take_shared(self._counters, rule, client, now)

    def _take_own(self, rule: Rule, client: str, now: float) -> float:
        key = (rule.name, client)
        with self._lock:
            whole_at = max(now, self._whole_at.pop(key, now))
            wait = whole_at - (rule.burst - 1) * rule.every - now
            if wait <= 0:
                whole_at += rule.every
            _put(self._whole_at, key, whole_at)
        return max(wait, 0)

    def _take_shared(self, counters: Counters, rule: Rule, client: str, now: float) -> float:
        key = (rule.name, client)
        left = self._full_until.get(key, now) - now
        if left > 0:
            return left
        begun = int(now) // _WINDOW * _WINDOW
        ends = begun + _WINDOW
        until = datetime.fromtimestamp(ends, UTC)
        counter = f"{rule.name} {begun} {client}"
        if counters.attempt(counter, limit=self._a_minute, until=until):
            return 0
        with self._lock:
            self._full_until.pop(key, None)
            _put(self._full_until, key, ends)
        return ends - now


def _put(known: dict[tuple[str, str], float], key: tuple[str, str], value: float) -> None:
    known[key] = value  # last in, last out
    if len(known) > _MOST:
        del known[next(iter(known))]
