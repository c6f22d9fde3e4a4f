"""The system's clock, random bytes and threads. Other modules use these only through this module.

Although Python runs only one thread at a time, threads are useful here, because most of the time
they wait for servers.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import UTC, datetime
from operator import length_hint
from typing import Final, TypeVar

system_random: Final = (
    os.urandom
)  # not a userspace generator, whose numbers would repeat after a snapshot is restored


class SystemClock:
    """`ports.Clock` on the machine's clock."""

    def now(self) -> datetime:
        """Return the time in UTC, with its time zone, in whole milliseconds."""
        now = datetime.now(UTC)
        return now.replace(microsecond=now.microsecond // 1000 * 1000)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


T = TypeVar("T")
R = TypeVar("R")

WIDTH: Final = 24  # threads


def run_in_turn(do: Callable[[T], R], items: Iterable[T], /) -> list[R]:
    """Run `do` on one item after another: a `ports.Concurrency` for tests and small commands."""
    return [do(item) for item in items]


class Threads:
    """`ports.Concurrency` on up to `width` threads, which end with each call.

    The threads must end, because Lambda freezes a process between events. The log lines of a thread
    contain the same invocation id as those of its caller.
    """

    def __init__(self, width: int = WIDTH) -> None:
        self._width = width

    def __call__(self, do: Callable[[T], R], items: Iterable[T], /) -> list[R]:
        """Return the results of `do` for each item. At the end, raise the first error of `do`."""
        width = min(self._width, length_hint(items, self._width))
        if width <= 1:
            return run_in_turn(do, items)
        numbered = enumerate(items)
        lock = threading.Lock()
        results: dict[int, R] = {}

        def work() -> None:
            while True:
                with lock:
                    taken = next(numbered, None)
                if taken is None:
                    return
                number, item = taken
                results[number] = do(item)

        with ThreadPoolExecutor(width) as pool:
            working = [pool.submit(copy_context().run, work) for _ in range(width)]
        for each in working:
            each.result()
        return [result for _, result in sorted(results.items(), key=lambda pair: pair[0])]
