"""Rate limits, kept in the memory of this process and in counters that all processes share."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Final

from checkout.adapters.dynamo import DynamoCounters
from checkout.domain.ground.limits import (
    DAY,
    ITEMS_LEAST,
    ITEMS_SHARE,
    KNOWN_FOR,
    LEFT_SHARE,
    LISTS,
    SIGN_UPS,
    SIGN_UPS_OF_ALL,
    WINDOW,
    Rule,
)
from checkout.domain.links import HELD_FOR
from checkout.ports import Clock

_BEGINNING: Final = datetime.fromtimestamp(0, UTC)
_MOST: Final = 10_000  # clients kept in memory, because any number of clients can call


class Allowances:
    """Counts and limits what a client does. Thread-safe.

    Each `take…` method except `take_letter` returns 0 if the action is allowed, and otherwise the
    number of seconds to wait. Each minute, a client can start `a_minute` actions that send requests
    to wallets. If `a_minute` is 0, clients have no limits. From the stock of one payment link, a
    client can take a third of `a_minute` items in half an hour, or fewer if few items are left. One
    purchase of any size is always possible, and paid items do not use up this limit. If the shared
    counter refuses a client, the process remembers the refusal. So a flood of requests costs each
    process only one write per time window.
    """

    def __init__(self, clock: Clock, counters: DynamoCounters, *, a_minute: int) -> None:
        self._clock = clock
        self._counters = counters
        self._limited = a_minute > 0
        self._a_window = max(1, int(a_minute * WINDOW / timedelta(minutes=1)))
        self._items = max(1, a_minute // ITEMS_SHARE)
        # The time at which a client's allowance is full again (generic cell rate algorithm).
        self._whole_at = _Times()
        # The time until which the shared counter refuses a client, and the time until which the
        # process remembers a provider (`know`).
        self._full_until, self._known_until = _Times(), _Times()

    def take(self, rule: Rule, client: str) -> float:
        """Count one more request of `client` in this process."""
        if not self._limited:
            return 0
        return self._whole_at.advance(rule, client, self._clock.now()).total_seconds()

    def take_shared(self, client: str) -> float:
        """Count one more action of `client` that calls wallets, in all processes together."""
        return self._take("work", client, self._a_window)

    def take_list(self, merchant: str) -> float:
        """Count one more read of a list by `merchant`, in all processes together."""
        return self._take("list", merchant, LISTS)

    def _take(self, name: str, client: str, limit: int) -> float:
        """Count one more action in this WINDOW, unless the process remembers a refusal."""
        now = self._clock.now()
        if not self._limited:
            return 0
        counted = f"{name} {client}"
        if (full_until := self._full_until.get(counted)) > now:
            return (full_until - now).total_seconds()
        wait = self._attempt(name, client, now, WINDOW, limit)
        if wait:
            self._full_until.set(counted, now + timedelta(seconds=wait))
        return wait

    def take_sign_up(self, client: str) -> float:
        """Count one more sign-up of `client`, in all processes together."""
        if not self._limited:
            return 0
        now = self._clock.now()
        wait = self._attempt("sign-up", client, now, DAY, SIGN_UPS)
        return wait or self._attempt("sign-ups", "of all", now, DAY, SIGN_UPS_OF_ALL)

    def take_items(self, link: str, client: str, items: int, *, left: int) -> float:
        """Count more items of a link's stock for `client`, in all processes together.

        `left` is the number of items that are neither held nor sold. A client that holds no items
        can take any number.
        """
        if not self._limited:
            return 0
        limit = min(self._items, max(ITEMS_LEAST, left // LEFT_SHARE))
        return self._attempt(f"item {link}", client, self._clock.now(), HELD_FOR, limit, items)

    def give_items(self, link: str, client: str, items: int) -> None:
        """Subtract items that `client` has paid for. Best effort: raises nothing."""
        if self._limited:
            counter, _ = _window(f"item {link}", client, self._clock.now(), HELD_FOR)
            self._counters.give_back(counter, items)

    def take_letter(self, about: str, *, most: int, until: datetime) -> bool:
        """Count one more e-mail about this session or member, in the window that ends at `until`.

        Return False if `most` e-mails were counted already.
        """
        return self._counters.attempt(f"receipt {about}", limit=most, until=until)

    def _attempt(
        self, name: str, client: str, now: datetime, length: timedelta, limit: int, by: int = 1
    ) -> float:
        """Count `by` more. Return 0, or if `limit` is exceeded, the seconds to the window's end."""
        counter, ends = _window(name, client, now, length)
        if self._counters.attempt(counter, limit=limit, until=ends, by=by):
            return 0
        return (ends - now).total_seconds()

    def know(self, provider: str) -> None:
        """Remember that a payment with this wallet provider was completed now."""
        self._known_until.set(provider, self._clock.now() + KNOWN_FOR)

    def knows(self, provider: str) -> bool:
        """Return whether a payment with this wallet provider was completed recently."""
        return self._known_until.get(provider) > self._clock.now()


def _window(name: str, client: str, now: datetime, length: timedelta) -> tuple[str, datetime]:
    """Return the name of the counter for the window that `now` is in, and the window's end."""
    window = int(now.timestamp() // length.total_seconds())
    return f"{name} {window} {client}", _BEGINNING + (window + 1) * length


class _Times:
    """Times by name. If there are too many, the one that was set the longest ago is removed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._times: dict[str, datetime] = {}

    def get(self, name: str) -> datetime:
        return self._times.get(name, _BEGINNING)

    def set(self, name: str, time: datetime) -> None:
        with self._lock:
            self._put(name, time)

    def advance(self, rule: Rule, client: str, now: datetime) -> timedelta:
        """Use up one step of the client's allowance, or return the time until the next step."""
        name = f"{rule.name} {client}"
        with self._lock:
            time = max(now, self.get(name))
            wait = max(timedelta(0), time - (rule.burst - 1) * rule.every - now)
            self._put(name, time if wait else time + rule.every)
        return wait

    def _put(self, name: str, time: datetime) -> None:
        self._times.pop(name, None)  # so that this name becomes the last one to be removed
        self._times[name] = time
        if len(self._times) > _MOST:
            del self._times[next(iter(self._times))]
