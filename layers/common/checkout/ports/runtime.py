"""Declare the process's surroundings: clock, randomness, vault and database health."""

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


class RandomBytes(Protocol):
    """Return `size` cryptographically strong random bytes."""

    def __call__(self, size: int, /) -> bytes: ...


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


class Vault(Protocol):
    """Encrypt secrets for storage.

    `place` names table, record and field. A ciphertext opens in no other place.
    """

    def seal(self, plain: str, *, place: tuple[str, str, str]) -> str: ...

    def open(self, sealed: str, *, place: tuple[str, str, str]) -> str:
        """Decrypt `sealed`.

        Raises `errors.Unavailable` when the key cannot be read, SecretUnreadable when the
        ciphertext was not made for this place or with none of the keys.
        """
        ...

    def inner(self, key: str) -> Vault:
        """Return a vault under this key: 64 hexadecimal characters, at random."""
        ...

    def is_current(self, sealed: str) -> bool:
        """Tell whether `sealed` was made with the key that `seal` uses now.

        Raises `errors.Unavailable`.
        """
        ...


class DetailsKeys(Protocol):
    """Wrap merchants' keys for customers' details, and open what was sealed under them.

    For functions that cannot read ENCRYPTION_KEY. A wrapped key opens for its merchant only.
    """

    def wrap(self, key: str, *, merchant: str) -> str:
        """Return the key, which is 64 hexadecimal characters, wrapped.

        Raises `errors.Unavailable`.
        """
        ...

    def vault(self, wrapped: str, *, merchant: str) -> Vault:
        """Return the vault under the wrapped key. Raises `errors.Unavailable`, SecretUnreadable."""
        ...

    def key(self, wrapped: str, *, merchant: str) -> str:
        """Return the key that `wrap` was given. Raises as `vault` does."""
        ...


class Database(Protocol):
    """Answer the health check."""

    def ping(self) -> bool:
        """Return True if the data store answers within about a second; never raises."""
        ...
