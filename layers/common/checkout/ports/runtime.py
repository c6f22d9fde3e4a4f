"""Declare the clock and the threads of the process, and the errors of secrets and passkeys."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Clock(Protocol):
    """Tell the time, and wait."""

    def now(self) -> datetime:
        """Return the time as aware UTC in whole milliseconds, which is how it is stored."""
        ...

    def sleep(self, seconds: float) -> None: ...


class SideBySide(Protocol):
    """Do the same work for many items, several at a time."""

    def __call__(self, do: Callable[[T], R], items: Iterable[T], /) -> list[R]:
        """Return the results of `do` for each item, in order.

        The next item is taken when there is room for it, so an iterator may end the work early.
        Raises the error of `do`, after all begun work has ended.
        """
        ...


@dataclass(frozen=True, slots=True)
class ShardRange:
    """A range of all shards: each `of`-th of them, from `number` on."""

    number: int = 0
    of: int = 1

    def among(self, shards: int) -> range:
        """Return the shards of this range."""
        return range(self.number, shards, self.of)


WHOLE: Final = ShardRange()


class SecretUnreadable(ValueError):
    """Report a ciphertext that does not open at its place. The message holds no secret."""


class PasskeyRefused(Exception):
    """Report that a browser's answer is not valid for the challenge. The message is for logs."""
