"""`ports.Limits` in the memory of this process, and in counters that all processes share."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import Final

from checkout.domain.limits import KNOWN_FOR, WINDOW, Rule
from checkout.ports.limits import Counters
from checkout.ports.runtime import Clock

_WINDOW: Final = int(WINDOW.total_seconds())
_MOST: Final = 10_000  # clients that are remembered; strangers choose how many there are


class Allowances:
    """Thread-safe. A client may cause `a_minute` works at wallets; 0: there are no limits at all.

    What the shared counter refuses is remembered, so a flood costs one write a window and process.
    """

    def __init__(self, clock: Clock, counters: Counters, *, a_minute: int) -> None:
        self._clock = clock
        self._counters = counters
        self._limited = a_minute > 0
        self._a_window = max(1, a_minute * _WINDOW // 60)
        # When an allowance will be whole again (the generic cell rate algorithm).
        self._whole_at = _Times()
        # Until when the shared counter has no room for a client, and a provider is known.
        self._full_until, self._known_until = _Times(), _Times()

    def take(self, rule: Rule, client: str) -> float:
        if not self._limited:
            return 0
        longest = (rule.burst - 1) * rule.every
        return self._whole_at.advance(f"{rule.name} {client}", rule.every, longest, self._now())

    def take_shared(self, client: str) -> float:
        now = self._now()
        if not self._limited:
            return 0
        if (full_until := self._full_until.get(client)) > now:
            return full_until - now
        begun = int(now) // _WINDOW * _WINDOW
        until = datetime.fromtimestamp(begun + _WINDOW, UTC)
        counter = f"work {begun} {client}"
        if self._counters.attempt(counter, limit=self._a_window, until=until):
            return 0
        self._full_until.set(client, begun + _WINDOW)
        return begun + _WINDOW - now

    def know(self, provider: str) -> None:
        self._known_until.set(provider, self._now() + KNOWN_FOR.total_seconds())

    def knows(self, provider: str) -> bool:
        return self._known_until.get(provider) > self._now()

    def _now(self) -> float:
        return self._clock.now().timestamp()


class _Times:
    """Times by name. Forgets the one first that has not been set for the longest time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: dict[str, float] = {}

    def get(self, name: str) -> float:
        return self._times.get(name, 0)

    def set(self, name: str, time: float) -> None:
        with self._lock:
            self._put(name, time)

    def advance(self, name: str, step: float, longest: float, now: float) -> float:
        """Move a time by `step` from now on, but no more than `longest` ahead before; else wait."""
        with self._lock:
            time = max(now, self.get(name))
            wait = max(0, time - longest - now)
            self._put(name, time if wait else time + step)
        return wait

    def _put(self, name: str, time: float) -> None:
        self._times.pop(name, None)  # last in, last out
        self._times[name] = time
        if len(self._times) > _MOST:
            del self._times[next(iter(self._times))]
