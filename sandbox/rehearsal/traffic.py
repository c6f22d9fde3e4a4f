"""Rehearsal of a deployment: customers who buy during other steps."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType

import httpx2

from sandbox.demo import DemoFailed
from sandbox.rehearsal.stack import RehearsalFailed


class Traffic:
    """Customers who buy again and again in the body of `with`, one thread for each of `buyers`."""

    def __init__(self, buyers: Sequence[Callable[[], None]]) -> None:
        self._enough = threading.Event()
        self._bought = 0
        self._failed: list[str] = []
        self._customers = [threading.Thread(target=self._buy, args=(buy,)) for buy in buyers]

    def __enter__(self) -> Traffic:
        for customer in self._customers:
            customer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wait until all customers have finished. Raises RehearsalFailed if a purchase failed."""
        self._enough.set()
        for customer in self._customers:
            customer.join()
        if self._failed and error is None:
            raise RehearsalFailed(f"checkouts failed during the upgrade: {self._failed}")

    def _buy(self, buy: Callable[[], None]) -> None:
        while not self._enough.is_set():
            try:
                buy()
            except (DemoFailed, httpx2.HTTPError) as failed:
                self._failed.append(str(failed))
            else:
                self._bought += 1

    def result(self) -> str:
        """Return a summary of the purchases."""
        return f"{self._bought} checkouts, {len(self._failed)} failed"
