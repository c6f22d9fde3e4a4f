"""Simulated time and the actors in it: greenlets that take turns, in the order of their times.

Nothing here knows what the actors do. Time stands still while one runs; it passes only by `sleep`
and `wait`. With the same calls in the same order, every run is the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from greenlet import getcurrent, greenlet  # type: ignore[import-untyped]


class Died(BaseException):
    """The process that an actor runs in is gone. No handler of the product may catch it and go
    on: every effect of a dead process raises it again.
    """


class Actor:
    """One thread of doing: a request being served, a customer, a schedule."""

    def __init__(self, name: str, act: Callable[[], None], hub: Any) -> None:
        self.name = name
        self.done = False
        self.turn = 0  # a wake-up for an earlier turn is void
        self.waiter: Actor | None = None
        self.green = greenlet(self._run, parent=hub)
        self._act = act

    def _run(self) -> None:
        try:
            self._act()
        except Died:
            pass
        finally:
            self.done = True


class Scheduler:
    """`now` is in milliseconds since the world began."""

    def __init__(self) -> None:
        self.now = 0
        self.over = False
        self._until = 0
        self._order = 0
        self._due: list[tuple[int, int, Actor | None, int, Callable[[], None] | None]] = []
        self._hub = getcurrent()
        self._current: Actor | None = None
        self._actors: list[Actor] = []

    @property
    def actor(self) -> str:
        """Return the name of the actor whose turn it is, for the trace."""
        return self._current.name if self._current else "world"

    def spawn(self, name: str, act: Callable[[], None], *, after: int = 0) -> Actor:
        actor = Actor(name, act, self._hub)
        self._actors.append(actor)
        self._wake(actor, self.now + after)
        return actor

    def later(self, after: int, callback: Callable[[], None]) -> None:
        """`callback` runs between two turns; it cannot sleep."""
        self._push(self.now + after, None, 0, callback)

    def sleep(self, milliseconds: int) -> None:
        """The current actor's turn ends; its next comes after that time.

        If nobody has a turn before, there is nothing to switch to.
        """
        actor = self._running()
        at = self.now + milliseconds
        if at <= self._until and (not self._due or self._due[0][0] > at):
            self.now = at
            actor.turn += 1
            return
        self._wake(actor, at)
        self._give_up_turn()

    def wait(self, other: Actor, *, at_most: int) -> bool:
        """Until `other` is done (True), or for `at_most` milliseconds."""
        if not other.done:
            actor = self._running()
            other.waiter = actor
            self._wake(actor, self.now + at_most)
            self._give_up_turn()
        return other.done

    def run(self, *, until: int) -> None:
        """Take turns up to and including that time, or until `over`."""
        self._until = until
        while self._due and not self.over and self._due[0][0] <= until:
            at, _, actor, turn, callback = heapq.heappop(self._due)
            if callback is not None:
                self.now = at
                callback()
            elif actor is not None and actor.turn == turn and not actor.done:
                self.now = at
                self._resume(actor)
        if not self.over:
            self.now = max(self.now, until)

    def close(self) -> None:
        """The world ends, and with it all actors that still wait."""
        self.over = True
        for actor in self._actors:
            if not actor.done and actor.green:
                actor.green.throw(Died)

    def _resume(self, actor: Actor) -> None:
        actor.turn += 1
        self._current = actor
        try:
            actor.green.switch()
        finally:
            self._current = None
        if actor.done and actor.waiter is not None and not actor.waiter.done:
            self._wake(actor.waiter, self.now)
            actor.waiter = None

    def _give_up_turn(self) -> None:
        self._hub.switch()
        if self.over:
            raise Died

    def _running(self) -> Actor:
        if self.over:
            raise Died
        assert self._current is not None
        return self._current

    def _wake(self, actor: Actor, at: int) -> None:
        self._push(at, actor, actor.turn, None)

    def _push(
        self, at: int, actor: Actor | None, turn: int, callback: Callable[[], None] | None
    ) -> None:
        self._order += 1
        heapq.heappush(self._due, (at, self._order, actor, turn, callback))
