"""Change a record that others may change at the same time: the loser of a write decides again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from checkout.domain.errors import Conflict
from checkout.ports.stale import Stale

GIVE_WAY: Final = 5  # how often the loser of a write decides again

T = TypeVar("T")


def give_way(record: T, changed: Callable[[T], T], write: Callable[[T], None]) -> T:
    """Write what `changed` makes of the record; after a lost race, decide again from the winner.

    Returns the record as written; one that `changed` returns as it was is not written. Raises
    Conflict after GIVE_WAY lost races, and what `changed` and `write` raise.
    """
    for _ in range(GIVE_WAY):
        after = changed(record)
        if after is record:
            return record
        try:
            write(after)
        except Stale as stale:
            record = stale.current
        else:
            return after
    raise Conflict("This is being changed by other requests; try again shortly.")
