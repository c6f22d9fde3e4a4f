"""Kill the process, as a test means it, at one of its calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.flows import World

CALLS = (
    "get_item",
    "put_item",
    "update_item",
    "query",
    "batch_get_item",
    "batch_write_item",
    "transact_write_items",
)


class Killed(BaseException):
    """The process is told to end."""


class Deadly:
    """Count each call to a store and to a wallet, and kill at one: `before` or after it.

    Another process answers the requests of wallets to us, and is not killed.
    """

    def __init__(self, world: World, at: int, *, before: bool) -> None:
        self.calls, self.at, self.before, self.asked = 0, at, before, False
        for name in CALLS:
            setattr(world.dynamo, name, self._around(getattr(world.dynamo, name)))
        world.transport.send = self._around(world.transport.send)  # type: ignore[method-assign]

    def _around(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **named: Any) -> Any:
            if self.asked:
                return call(*given, **named)
            self.calls += 1
            mine = self.calls == self.at
            if mine and self.before:
                raise Killed
            self.asked = True
            try:
                result = call(*given, **named)
            finally:
                self.asked = False
            if mine:
                raise Killed
            return result

        return counted
