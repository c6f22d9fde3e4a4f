"""`ports.Limits` in the memory of this process, and in counters that all processes share."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Final

from checkout.domain.limits import ITEMS_SHARE, KNOWN_FOR, WINDOW, Rule
from checkout.domain.links import HELD_FOR
from checkout.ports.limits import Counters
from checkout.ports.runtime import Clock

_BEGINNING: Final = datetime.fromtimestamp(0, UTC)
_MOST: Final = 10_000  # clients that are remembered; strangers choose how many there are


class Allowances:
    """Thread-safe. A client may cause `a_minute` works at wallets; 0: clients have no limits.

    Of the stock of one payment link it may take a third as many items in half an hour.

    What the shared counter refuses is remembered, so a flood costs one write a window and process.
    """

    def __init__(self, clock: Clock, counters: Counters, *, a_minute: int) -> None:
        self._clock = clock
        self._counters = counters
        self._limited = a_minute > 0
        self._a_window = max(1, int(a_minute * WINDOW / timedelta(minutes=1)))
        self._items = max(1, a_minute // ITEMS_SHARE)
        # When an allowance will be whole again (the generic cell rate algorithm).
        self._whole_at = _Times()
        # Until when the shared counter has no room for a client, and a provider is known.
        self._full_until, self._known_until = _Times(), _Times()

    def take(self, rule: Rule, client: str) -> float:
        if not self._limited:
            return 0
        return self._whole_at.advance(rule, client, self._clock.now()).total_seconds()

    def take_shared(self, client: str) -> float:
        now = self._clock.now()
        if not self._limited:
            return 0
        if (full_until := self._full_until.get(client)) > now:
            return (full_until - now).total_seconds()
        wait = self._attempt("work", client, now, WINDOW, self._a_window)
        if wait:
            self._full_until.set(client, now + timedelta(seconds=wait))
        return wait

    def take_item(self, link: str, client: str) -> float:
        if not self._limited:
            return 0
        return self._attempt(f"item {link}", client, self._clock.now(), HELD_FOR, self._items)

    def take_receipt(self, session_id: str, *, most: int, until: datetime) -> bool:
        return self._counters.attempt(f"receipt {session_id}", limit=most, until=until)

    def _attempt(
        self, name: str, client: str, now: datetime, length: timedelta, limit: int
    ) -> float:
        """Count one more in the window of this length; return 0, or the seconds until it ends."""
        window = int(now.timestamp() // length.total_seconds())
        ends = _BEGINNING + (window + 1) * length
        if self._counters.attempt(f"{name} {window} {client}", limit=limit, until=ends):
            return 0
        return (ends - now).total_seconds()

    def know(self, provider: str) -> None:
        self._known_until.set(provider, self._clock.now() + KNOWN_FOR)

    def knows(self, provider: str) -> bool:
        return self._known_until.get(provider) > self._clock.now()


class _Times:
    """Times by name. Forgets the one first that has not been set for the longest time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: dict[str, datetime] = {}

    def get(self, name: str) -> datetime:
        return self._times.get(name, _BEGINNING)

    def set(self, name: str, time: datetime) -> None:
        with self._lock:
            self._put(name, time)

    def advance(self, rule: Rule, client: str, now: datetime) -> timedelta:
        """Move the client's time on by one step of the rule, or return how long to wait for it."""
        name = f"{rule.name} {client}"
        with self._lock:
            time = max(now, self.get(name))
            wait = max(timedelta(0), time - (rule.burst - 1) * rule.every - now)
            self._put(name, time if wait else time + rule.every)
        return wait

    def _put(self, name: str, time: datetime) -> None:
        self._times.pop(name, None)  # last in, last out
        self._times[name] = time
        if len(self._times) > _MOST:
            del self._times[next(iter(self._times))]
